//! What the sweep needs to know of the values of a graph: which of them, and which
//! are computed again rather than kept.
//!
//! What is kept of each iteration of a loop costs memory, and time where that is not
//! in the cache. So where it takes a few cheap steps from what is there anyway, such
//! as an element of a table, the sweep goes through these steps once more.

use super::activity::Activity;
use super::reverse::Reverse;
use crate::entity::PrimaryMap;
use crate::op::{Algebra, Op, contribution};
use crate::ssa::{Array, ArrayData, Def, End, Graph, Item, Node, Region};

/// The most steps in place of one number that would be kept.
const MOST_STEPS: u32 = 3;

/// What the sweep needs.
pub(super) struct Needed {
    nodes: PrimaryMap<Node, bool>,
    /// For each node of a loop that can be computed again in how many steps.
    steps: PrimaryMap<Node, Option<u32>>,
}

impl Needed {
    /// What the sweep needs that computes the loops that are `recomputed` again.
    pub(super) fn of(activity: &Activity<'_>, recomputed: &[Region]) -> Needed {
        let nodes = needed(activity, recomputed);
        let steps = PrimaryMap::filled(None, nodes.len());
        let mut needed = Needed { nodes, steps };
        let graph = activity.graph;
        let tables: PrimaryMap<Array, bool> =
            graph.arrays.values().map(|array| is_table(graph, array)).collect();
        for node in graph.nodes.keys() {
            needed.steps[node] = needed.steps_to(activity, &tables, node);
        }
        needed
    }

    /// The nodes that are kept.
    pub(super) fn kept(&self) -> impl Iterator<Item = Node> + '_ {
        let kept = |&node: &Node| self.nodes[node] && self.steps[node].is_none();
        self.nodes.keys().filter(kept)
    }

    fn steps_to(
        &self,
        activity: &Activity<'_>,
        tables: &PrimaryMap<Array, bool>,
        node: Node,
    ) -> Option<u32> {
        let graph = activity.graph;
        let around = activity.nest.node_loop(node)?;
        match graph.nodes[node].def {
            Def::Element(access) => tables[graph.accesses[access].array].then_some(1),
            Def::Apply(op, _) if is_cheap(op) => {
                let of_arg = |&arg: &Node| match activity.nest.node_loop(arg) {
                    Some(region) if region == around => {
                        let is_number = matches!(graph.nodes[arg].def, Def::Iteration(_));
                        let is_there = is_number || self.nodes[arg];
                        self.steps[arg].or(is_there.then_some(0))
                    }
                    _ => Some(0),
                };
                let steps: Option<u32> = graph.nodes[node].args().iter().map(of_arg).sum();
                steps.map(|steps| steps + 1).filter(|&steps| steps <= MOST_STEPS)
            }
            _ => None,
        }
    }
}

impl Reverse<'_> {
    /// The value of `node` for what `user` passes on, kept or computed again.
    pub(super) fn at_hand(&mut self, node: Node, user: Node) -> Node {
        let around = self.activity.nest.node_loop(user);
        if self.needed.steps[node].is_none() || self.activity.nest.node_loop(node) != around {
            return self.copied(node);
        }
        match self.graph.nodes[node].def {
            Def::Element(access) => self.copy_element(access),
            Def::Apply(op, args) => {
                // At most as deep as there are steps.
                let args = args.map(|arg| self.at_hand(arg, user));
                self.builder.apply(op, &args[..op.arity()])
            }
            _ => self.copied(node),
        }
    }
}

/// Whether elements of `array` are read from where they are anyway: constants, or
/// inputs in even distances.
fn is_table(graph: &Graph, array: &ArrayData) -> bool {
    let number = |&node: &Node| match graph.nodes[node].def {
        Def::Input(number) => Some(i64::from(number)),
        _ => None,
    };
    match array {
        ArrayData::Constants(_) | ArrayData::Inputs { .. } => true,
        ArrayData::Nodes(nodes) => {
            let numbers: Option<Vec<i64>> = nodes.iter().map(number).collect();
            let even = |numbers: Vec<i64>| {
                numbers.windows(3).all(|three| three[1] - three[0] == three[2] - three[1])
            };
            numbers.is_some_and(even)
        }
        ArrayData::Saved(_) | ArrayData::Sums(_) | ArrayData::Outputs { .. } => false,
    }
}

/// Whether `op` costs about as much as to keep a number and to bring it back.
fn is_cheap(op: Op) -> bool {
    let cheap = matches!(op, Op::Add | Op::Sub | Op::Mul | Op::MulAdd | Op::Neg | Op::Abs);
    cheap || op.is_comparison() || op == Op::Select
}

/// The nodes whose values the sweep needs: operands and results on which derivatives
/// depend, conditions, and what the loops that are computed again use of those around.
fn needed(activity: &Activity<'_>, recomputed: &[Region]) -> PrimaryMap<Node, bool> {
    let (graph, nest) = (activity.graph, &activity.nest);
    let mut needed = PrimaryMap::filled(false, graph.nodes.len());
    let is_begun = |node: Node, user: Option<Region>| {
        let own = nest.node_loop(node);
        let loops = core::iter::successors(user, |&region| nest.loop_around(region));
        loops.take_while(|&region| Some(region) != own).any(|region| recomputed.contains(&region))
    };
    for (block, data) in graph.blocks.iter() {
        let around = nest.block_loop(block);
        for item in &data.items {
            match *item {
                Item::Node(node) => {
                    let args = graph.nodes[node].args().iter();
                    args.filter(|&&arg| is_begun(arg, around)).for_each(|&arg| needed[arg] = true);
                    need_for_partials(activity, node, &mut needed);
                }
                Item::Region(region) => {
                    let firsts = graph.entries(region).iter().map(|entry| entry.first);
                    let begun = firsts.filter(|&first| is_begun(first, Some(region)));
                    begun.for_each(|first| needed[first] = true);
                }
                Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) => {}
            }
        }
        if let (End::Branch { condition, .. }, Some(_)) = (&data.end, around) {
            needed[*condition] = true;
        }
    }
    needed
}

/// Notes what the partial derivatives of `node` by its operands depend on.
fn need_for_partials(activity: &Activity<'_>, node: Node, needed: &mut PrimaryMap<Node, bool>) {
    let Def::Apply(op, args) = activity.graph.nodes[node].def else { return };
    for (operand, &arg) in args.iter().enumerate().take(op.arity()) {
        if activity.active[arg] {
            let used = contribution(&mut Used, op, operand, [1, 2, 4], 8, 0).unwrap_or(0);
            let values = args.into_iter().chain([node]).enumerate();
            let values = values.filter(|&(bit, _)| used & (1 << bit) != 0);
            values.for_each(|(_, value)| needed[value] = true);
        }
    }
}

/// Which values a result is made from, as a set of bits.
struct Used;

impl Algebra for Used {
    type Value = u8;

    fn constant(&mut self, _: f64) -> u8 {
        0
    }

    fn apply<const N: usize>(&mut self, _: Op, args: [u8; N]) -> u8 {
        args.into_iter().fold(0, |all, arg| all | arg)
    }
}
