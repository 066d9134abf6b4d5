//! Saved values and rematerialisation: which values of the primal graph the reverse sweep
//! requires, and which of these it computes again instead of loading them.
//!
//! A value that is saved in each iteration of a loop costs memory, and time where that is not
//! cached. A value of at most [`MAX_STEPS`] cheap operations on values that are available in the
//! sweep (`a[i] · 2` where `a` is an input) is rematerialised instead.

use super::primal::Primal;
use super::reverse::Reverse;
use crate::entity::PrimaryMap;
use crate::op::{Algebra, Op, contribution};
use crate::ssa::{Array, ArrayData, Def, End, Graph, Item, Node, Region};

/// The largest number of operations that replace one saved value.
const MAX_STEPS: u32 = 3;

/// The primal values that the sweep requires.
pub(super) struct SavedValues {
    required: PrimaryMap<Node, bool>,
    /// For each node of a loop that can be rematerialised the number of operations.
    steps: PrimaryMap<Node, Option<u32>>,
}

impl SavedValues {
    /// The values that a sweep requires that computes the loops `recomputed` again.
    pub(super) fn of(primal: &Primal<'_>, recomputed: &[Region]) -> SavedValues {
        let required = required_values(primal, recomputed);
        let steps = PrimaryMap::filled(None, required.len());
        let mut values = SavedValues { required, steps };
        let graph = primal.graph;
        let tables: PrimaryMap<Array, bool> =
            graph.arrays.values().map(|array| is_table(graph, array)).collect();
        let tables = with_cells(primal, tables);
        for node in graph.nodes.keys() {
            values.steps[node] = values.rematerialisation_steps(primal, &tables, node);
        }
        values
    }

    /// The nodes whose values are saved.
    pub(super) fn saved(&self) -> impl Iterator<Item = Node> + '_ {
        let is_saved = |&node: &Node| self.required[node] && self.steps[node].is_none();
        self.required.keys().filter(is_saved)
    }

    fn rematerialisation_steps(
        &self,
        primal: &Primal<'_>,
        tables: &PrimaryMap<Array, bool>,
        node: Node,
    ) -> Option<u32> {
        let graph = primal.graph;
        let around = primal.nest.node_loop(node)?;
        match graph.nodes[node].def {
            Def::Element(access) => tables[graph.accesses[access].array].then_some(1),
            Def::Apply(op, _) if is_cheap(op) => {
                let of_arg = |&arg: &Node| match primal.nest.node_loop(arg) {
                    Some(region) if region == around => {
                        let is_number = matches!(graph.nodes[arg].def, Def::Iteration(_));
                        let is_available = is_number || self.required[arg];
                        self.steps[arg].or(is_available.then_some(0))
                    }
                    _ => Some(0),
                };
                let steps: Option<u32> = graph.nodes[node].args().iter().map(of_arg).sum();
                steps.map(|steps| steps + 1).filter(|&steps| steps <= MAX_STEPS)
            }
            _ => None,
        }
    }
}

impl Reverse<'_> {
    /// The value of `node` where the sweep propagates the adjoint of `user`: saved or
    /// rematerialised.
    pub(super) fn primal_value(&mut self, node: Node, user: Node) -> Node {
        let around = self.primal.nest.node_loop(user);
        let is_saved = self.saved_values.steps[node].is_none();
        if is_saved || self.primal.nest.node_loop(node) != around {
            return self.copied(node);
        }
        match self.graph.nodes[node].def {
            Def::Element(access) => self.copy_element(access),
            Def::Apply(op, args) => {
                // The recursion is at most `MAX_STEPS` deep.
                let args = args.map(|arg| self.primal_value(arg, user));
                self.builder.apply(op, &args[..op.arity()])
            }
            _ => self.copied(node),
        }
    }
}

/// `tables` and the cells that are filled outside all regions: they still have their contents in
/// the sweep.
fn with_cells(primal: &Primal<'_>, mut tables: PrimaryMap<Array, bool>) -> PrimaryMap<Array, bool> {
    for (block, data) in primal.graph.blocks.iter() {
        if primal.nest.block_region(block).is_none() {
            let filled = data.items.iter().filter_map(|item| match *item {
                Item::Fill(array) => Some(array),
                _ => None,
            });
            filled.for_each(|array| tables[array] = true);
        }
    }
    tables
}

/// True if elements of `array` are loaded from constants or from inputs at equal distances,
/// which are available in the sweep.
fn is_table(graph: &Graph, array: &ArrayData) -> bool {
    let number = |&node: &Node| match graph.nodes[node].def {
        Def::Input(number) => Some(i64::from(number)),
        _ => None,
    };
    match array {
        ArrayData::Constants(_) | ArrayData::Inputs { .. } => true,
        ArrayData::Nodes(nodes) => {
            let numbers: Option<Vec<i64>> = nodes.iter().map(number).collect();
            let is_progression = |numbers: Vec<i64>| {
                numbers.windows(3).all(|three| three[1] - three[0] == three[2] - three[1])
            };
            numbers.is_some_and(is_progression)
        }
        ArrayData::Saved(_)
        | ArrayData::Sums(_)
        | ArrayData::Outputs { .. }
        | ArrayData::Cells(_) => false,
    }
}

/// True if `op` takes about as long as a store and a load.
fn is_cheap(op: Op) -> bool {
    let cheap = matches!(op, Op::Add | Op::Sub | Op::Mul | Op::MulAdd | Op::Neg | Op::Abs);
    cheap || op.is_comparison() || op == Op::Select
}

/// The nodes whose values the sweep requires: operands and results in partial derivatives,
/// conditions, and operands that loops in `recomputed` take from outside.
fn required_values(primal: &Primal<'_>, recomputed: &[Region]) -> PrimaryMap<Node, bool> {
    let (graph, nest) = (primal.graph, &primal.nest);
    let mut required = PrimaryMap::filled(false, graph.nodes.len());
    // True if a recomputed loop that `node` is not in contains `user`.
    let enters_recomputed = |node: Node, user: Option<Region>| {
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
                    args.filter(|&&arg| enters_recomputed(arg, around))
                        .for_each(|&arg| required[arg] = true);
                    require_for_partials(primal, node, &mut required);
                }
                Item::Region(region) => {
                    let firsts = graph.entries(region).iter().map(|entry| entry.first);
                    let entering = firsts.filter(|&first| enters_recomputed(first, Some(region)));
                    entering.for_each(|first| required[first] = true);
                }
                Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => {}
            }
        }
        if let (End::Branch { condition, .. }, Some(_)) = (&data.end, around) {
            required[*condition] = true;
        }
    }
    required
}

/// Marks the values in the partial derivatives of `node` by its active operands.
fn require_for_partials(primal: &Primal<'_>, node: Node, required: &mut PrimaryMap<Node, bool>) {
    let Def::Apply(op, args) = primal.graph.nodes[node].def else { return };
    for (operand, &arg) in args.iter().enumerate().take(op.arity()) {
        if primal.varied[arg] {
            let used = contribution(&mut Used, op, operand, [1, 2, 4], 8, 0).unwrap_or(0);
            let values = args.into_iter().chain([node]).enumerate();
            let values = values.filter(|&(bit, _)| used & (1 << bit) != 0);
            values.for_each(|(_, value)| required[value] = true);
        }
    }
}

/// The algebra of dependences: a value is the set of operands that it depends on, as bits.
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
