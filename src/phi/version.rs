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
    Block, CallData, Copies, Def, Editor, End, Graph, Item, Nest, Node, NodeData, PlaceId, Region,
    RegionData,
};

/// A routine and its arguments.
pub(super) struct Evaluation {
    pub(super) routine: AffinePower,
    /// The node of each input: visible before the loop, or computable there.
    pub(super) live_ins: Vec<Node>,
    /// The input that is the trip count, if that is not a constant.
    pub(super) trips: Option<usize>,
}

/// Copies the steps that compute `nodes` from inside `region` to before `anchor`, and replaces the
/// nodes by their copies. `graph` is the original graph.
pub(super) fn move_before(
    editor: &mut Editor,
    graph: &Graph,
    nest: &Nest,
    (region, anchor): (Region, Region),
    copies: &mut Copies,
    nodes: &mut [Node],
) {
    let inside = graph.blocks_inside(region);
    let is_inside = |r: Region| inside.contains(&graph.regions[r].root);
    for node in nodes {
        for step in movable_steps(graph, nest, *node, is_inside).unwrap_or_default() {
            if copies.node(step) == step {
                let copy = copies.step(editor, step);
                editor.insert(anchor, Item::Node(copy));
            }
        }
        *node = copies.node(*node);
    }
}

/// The two versions of a loop under construction.
pub(super) struct Versions {
    /// The loop that becomes the fallback version, an item of `block`.
    fallback: Region,
    block: Block,
    place: Option<PlaceId>,
    /// The arm with the values of the routines.
    pub(super) arm: Block,
    /// True in calls that all routines so far accept.
    accepted: Option<Node>,
}

impl Versions {
    pub(super) fn of(editor: &mut Editor, block: Block, fallback: Region) -> Versions {
        let (place, arm) = (editor.regions[fallback].place, editor.new_block());
        Versions { fallback, block, place, arm, accepted: None }
    }

    /// Inserts a call of `routine` with `args` before the loop. Returns its outputs with their
    /// partials attached, in the arm.
    pub(super) fn call(
        &mut self,
        editor: &mut Editor,
        routine: Routine,
        args: Vec<Node>,
    ) -> Vec<Node> {
        let (anchor, place) = (self.fallback, self.place);
        let routine = Arc::new(routine);
        let data = CallData { routine: Arc::clone(&routine), args: args.clone() };
        let call = Def::Call(editor.calls.push(data));
        let call = editor.insert_node(anchor, call, place);
        let mut outputs = Vec::new();
        for output in 0..routine.outputs() {
            let index = routine.value_index(output);
            let result = |editor: &mut Editor, number: usize| {
                editor.insert_node(anchor, Def::Result(call, number as u32), place)
            };
            let mut value = result(editor, index);
            for (nth, &input) in routine.differentiated().iter().enumerate() {
                let partial = result(editor, index + 1 + nth);
                let args: [Node; MAX_ARITY] = [value, args[input as usize], partial];
                value = editor.push_apply(self.arm, Op::Attach, &args, place);
            }
            outputs.push(value);
        }
        self.accepted = Some(match self.accepted {
            Some(before) => editor.insert_apply(anchor, Op::Mul, &[before, call], place),
            None => call,
        });
        outputs
    }

    /// Puts a branch on the acceptance of all calls in the place of the loop: one arm passes on
    /// `values`, the other runs the loop. `phis` become the φs of the branch, and the loop gets new
    /// ones. Without a call, the loop stays.
    pub(super) fn finish(self, editor: &mut Editor, phis: &[Node], values: Vec<Node>) {
        let Versions { fallback, block, place, arm, accepted } = self;
        let Some(accepted) = accepted else { return };
        let [root, otherwise] = [(); 2].map(|()| editor.new_block());
        editor.blocks[root].end = End::Branch { condition: accepted, then: arm, otherwise };
        editor.blocks[arm].end = End::Return(values.into_iter().collect());
        let data = RegionData { root, phis: phis.to_vec(), replays: None, cycle: None, place };
        let versions = editor.regions.push(data);
        editor.replace_region(block, fallback, versions);
        editor.blocks[otherwise].items.push(Item::Region(fallback));
        let mut own: Vec<Node> = Vec::with_capacity(phis.len());
        for (&phi, number) in phis.iter().zip(0..) {
            editor.nodes[phi].def = Def::Phi(versions, number);
            own.push(editor.nodes.push(NodeData { def: Def::Phi(fallback, number), place }));
        }
        editor.blocks[otherwise].end = End::Return(own.iter().copied().collect());
        editor.regions[fallback].phis = own;
    }
}
