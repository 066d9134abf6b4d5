//! Loop versioning: the loop runs only if the routine that evaluates its closed form rejects the
//! call.
//!
//! ```text
//! accepted = call …
//! region: branch accepted
//!   then:       the values of the routine, with their partials attached
//!   otherwise:  the loop (the fallback version)
//! ```

use std::sync::Arc;

use super::recurrence::movable_steps;
use crate::numeric::{AffinePower, Routine};
use crate::op::{MAX_ARITY, Op};
use crate::ssa::{
    Block, CallData, Copies, Def, End, Graph, Item, Nest, Node, NodeData, PlaceId, Region,
    RegionData, blocks_inside,
};

/// A routine and its arguments.
pub(super) struct Evaluation {
    pub(super) routine: AffinePower,
    /// The node of each input: visible before the loop, or computable there.
    pub(super) live_ins: Vec<Node>,
    /// The input that is the trip count, if that is not a constant.
    pub(super) trips: Option<usize>,
}

/// An insertion point: before item `at` of `block`.
pub(super) struct Cursor {
    pub(super) block: Block,
    pub(super) at: usize,
}

impl Cursor {
    /// The insertion point before `region`, an item of `block`.
    pub(super) fn before(graph: &Graph, block: Block, region: Region) -> Option<Cursor> {
        let at = graph.blocks[block].items.iter().position(|&item| item == Item::Region(region))?;
        Some(Cursor { block, at })
    }

    /// Inserts an item.
    pub(super) fn insert(&mut self, graph: &mut Graph, item: Item) {
        graph.blocks[self.block].items.insert(self.at, item);
        self.at += 1;
    }

    /// Inserts a new node.
    pub(super) fn push(&mut self, graph: &mut Graph, def: Def, place: Option<PlaceId>) -> Node {
        let node = graph.nodes.push(NodeData { def, place });
        self.insert(graph, Item::Node(node));
        node
    }
}

/// Copies the steps that compute `nodes` from inside `region` to the cursor, and replaces the nodes
/// by their copies.
pub(super) fn move_before(
    new: &mut Graph,
    graph: &Graph,
    nest: &Nest,
    region: Region,
    cursor: &mut Cursor,
    copies: &mut Copies,
    nodes: &mut [Node],
) {
    let inside = blocks_inside(graph, region);
    let is_inside = |r: Region| inside.contains(&graph.regions[r].root);
    for node in nodes {
        for step in movable_steps(graph, nest, *node, is_inside).unwrap_or_default() {
            if copies.node(step) == step {
                let copy = copies.step(new, step);
                cursor.insert(new, Item::Node(copy));
            }
        }
        *node = copies.node(*node);
    }
}

/// Inserts a call of `routine` with `args`. Returns its acceptance, and for each output the value
/// with the partials attached, by nodes that are appended to `steps`.
pub(super) fn call(
    graph: &mut Graph,
    cursor: &mut Cursor,
    routine: Routine,
    args: Vec<Node>,
    steps: &mut Vec<Node>,
    place: Option<PlaceId>,
) -> (Node, Vec<Node>) {
    let routine = Arc::new(routine);
    let data = CallData { routine: Arc::clone(&routine), args };
    let accepted = graph.calls.push(data);
    let args = graph.calls[accepted].args.clone();
    let accepted = cursor.push(graph, Def::Call(accepted), place);
    let mut outputs = Vec::new();
    for output in 0..routine.outputs() {
        let mut result = |graph: &mut Graph, number: usize| {
            cursor.push(graph, Def::Result(accepted, number as u32), place)
        };
        let index = routine.value_index(output);
        let mut value = result(graph, index);
        for (nth, &input) in routine.differentiated().iter().enumerate() {
            let partial = result(graph, index + 1 + nth);
            let args: [Node; MAX_ARITY] = [value, args[input as usize], partial];
            value = graph.nodes.push(NodeData { def: Def::Apply(Op::Attach, args), place });
            steps.push(value);
        }
        outputs.push(value);
    }
    (accepted, outputs)
}

/// Inserts the conjunction of the acceptance of earlier calls and of this one.
pub(super) fn all_accepted(
    graph: &mut Graph,
    cursor: &mut Cursor,
    before: Option<Node>,
    accepted: Node,
) -> Node {
    let Some(before) = before else { return accepted };
    let place = graph.nodes[accepted].place;
    cursor.push(graph, Def::Apply(Op::Mul, [before, accepted, before]), place)
}

/// Replaces `region`, the item at the cursor, by a branch on `accepted`: one arm computes `values`
/// by `steps`, the other runs the loop. `phis` become the φs of the branch, and the loop gets new
/// ones.
pub(super) fn version(
    graph: &mut Graph,
    cursor: &Cursor,
    (region, phis): (Region, &[Node]),
    accepted: Node,
    (steps, values): (Vec<Node>, Vec<Node>),
) {
    let place = graph.regions[region].place;
    let [root, then, otherwise] = [(); 3].map(|()| graph.new_block());
    graph.blocks[root].end = End::Branch { condition: accepted, then, otherwise };
    graph.blocks[then].items = steps.into_iter().map(Item::Node).collect();
    graph.blocks[then].end = End::Return(values.into_iter().collect());
    graph.blocks[otherwise].items.push(Item::Region(region));
    let data = RegionData { root, phis: phis.to_vec(), replays: None, cycle: None, place };
    let versions = graph.regions.push(data);
    let own: Vec<Node> = (0u32..)
        .zip(phis)
        .map(|(number, &phi)| {
            graph.nodes[phi].def = Def::Phi(versions, number);
            graph.nodes.push(NodeData { def: Def::Phi(region, number), place })
        })
        .collect();
    graph.blocks[otherwise].end = End::Return(own.iter().copied().collect());
    graph.regions[region].phis = own;
    graph.blocks[cursor.block].items[cursor.at] = Item::Region(versions);
}
