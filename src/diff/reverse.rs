//! Reverse accumulation on the graph.
//!
//! The gradient graph has the same tree of blocks: each is a copy of the primal block, and
//! each leaf then sweeps its path backwards. It applies the derivative rules, the order of
//! operands and the order of additions of the tape's sweep, so the two agree bit for bit if
//! the primal graph is the one that `merge` makes. For regions see `regions`, for loops
//! `loops` and `adjoint_flow`, for arrays `sums`.
//!
//! There is one difference: where an adjoint is zero, the tape makes no contribution and the
//! graph adds zero times the partial derivative. That shows only as NaN in the result, if the
//! partial is not finite, and the runtime then runs the tape.

use hashbrown::HashMap;

use super::adjoints::Adjoints;
use super::input_adjoints::{OutputArray, output_arrays};
use super::primal::Primal;
use super::rematerialise::SavedValues;
use super::sums::Sums;
use super::tape_order::{EntryPhis, TapeOrder};
use crate::entity::PrimaryMap;
use crate::op::{Op, contribution};
use crate::ssa::{
    Array, ArrayData, Block, Builder, CallData, Def, End, Folding, Graph, Item, Node, Region,
};

/// The outputs of the graph that [`reverse()`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// The derivatives by the active inputs.
    Gradient,
    /// The derivatives by the active inputs, then the value.
    GradientAndValue,
}

/// The gradient of the first output of `graph`, a verified graph, by its active
/// inputs: one output for each, in order. The outputs for a range of inputs that loops read by
/// index are an array.
///
/// Each path is differentiated on its own: the derivative of a choice is the
/// choice of the derivatives (corollary 2 of the φ-calculus in "Coarsening
/// Optimization for Differentiable Programming"). For each region on a path the
/// gradient graph has a region that replays it backwards, for each loop one that
/// replays its iterations, the last one first; the adjoints of array elements
/// are sums. `folding` applies to the new graph. With [`Folding::Exact`] its
/// outputs are the bits that the tape's sweep computes, with φs as additions of -0.0, but
/// for the NaN of zero times infinity. Entry φs, φs of loops and array elements are no
/// events of the tape if [`reordered`](super::reordered()) finds no loops; otherwise entry
/// φs and φs of loops are additions of -0.0, too, and the order of additions to nodes with
/// aliases may differ.
///
/// Memory and time are linear in the size of the gradient graph, but for the search for
/// loop-carried adjoints, which visits a loop once for each loop around it; the stack
/// does not grow with the graph. The gradient graph does not depend on the bounds of
/// loops. Per leaf it is linear in the path, with two exceptions: after each
/// branch of a region, each adjoint that one of its arms changes is a φ, so one
/// from below n branches costs n φs; and an array of n nodes, not of inputs, costs n
/// operations for each outermost region that reads it.
///
/// A graph with regions that replay others (such as a gradient graph) is not
/// differentiated, because adjoints of values of the first region would be computed in the
/// second, where they are not visible outside. Nor is a graph that adds to sums. The
/// result is then a graph that stops without a result for all inputs.
///
/// # Examples
///
/// ```
/// use phigrad::internals::diff::{Wanted, reverse};
/// use phigrad::internals::ssa::{Folding, Outcome, interpret, parse};
///
/// let graph = parse("graph active 2 inactive 0\nb0:\n  v2 = mul v0 v1\n  return v2\n")?;
/// let gradient = reverse(&graph, Wanted::Gradient, Folding::Exact);
/// assert_eq!(interpret(&gradient, &[2.0, 3.0]), Outcome::Values(vec![3.0, 2.0]));
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn reverse(graph: &Graph, wanted: Wanted, folding: Folding) -> Graph {
    reverse_from(graph, &[], None, wanted, folding)
}

/// As [`reverse()`], with a sweep that runs the inner loops `recomputed` again. `entries` is
/// the treatment of entry φs; by default the graph decides.
pub(super) fn reverse_from(
    graph: &Graph,
    recomputed: &[Region],
    entries: Option<EntryPhis>,
    wanted: Wanted,
    folding: Folding,
) -> Graph {
    let primal = Primal::of(graph);
    let first = entries.unwrap_or(EntryPhis::Aliases);
    let mut pass = Reverse::new(&primal, recomputed, wanted, folding, first);
    if has_gradient(graph) {
        pass.run();
        if entries.is_none() && pass.order.is_reordered() {
            // Without the order of the tape, adjoint forwarding to first values is no use.
            pass = Reverse::new(&primal, recomputed, wanted, folding, EntryPhis::Copies);
            pass.run();
        }
    } else {
        pass.refuse();
    }
    pass.builder.into_graph()
}

/// True if [`reverse()`] differentiates `graph`: it has no sums, and no region replays another.
pub(super) fn has_gradient(graph: &Graph) -> bool {
    !graph.arrays.values().any(ArrayData::is_sums)
        && graph.regions.values().all(|region| region.replays.is_none())
}

/// The state of the pass: the primal graph and the gradient graph being built.
pub(super) struct Reverse<'a> {
    pub(super) graph: &'a Graph,
    wanted: Wanted,
    pub(super) builder: Builder,
    /// For each node of the graph its copy in the new one.
    copy: PrimaryMap<Node, Option<Node>>,
    /// For each array of cells of the graph its copy in the new one.
    pub(super) cells_copy: PrimaryMap<Array, Option<Array>>,
    /// For each region of the graph its copy in the new one.
    pub(super) region_copy: PrimaryMap<Region, Option<Region>>,
    /// The inner loops that are run again where they are swept.
    pub(super) recomputed: &'a [Region],
    pub(super) saved_values: SavedValues,
    /// True while a recomputed loop is copied, whose guards have been checked before.
    is_again: bool,
    pub(super) adjoints: Adjoints,
    pub(super) primal: &'a Primal<'a>,
    pub(super) sums: Sums,
    pub(super) output_arrays: Vec<OutputArray>,
    pub(super) order: TapeOrder,
    /// The items from the root to the current position, each region as one item.
    path: Vec<Item>,
    /// The results of each call of a custom operation, in the new graph.
    pub(super) custom_results: HashMap<Node, Vec<Node>>,
    /// The adjoints of the outputs of calls that have not been propagated, by call and number.
    pub(super) output_adjoints: HashMap<(Node, u32), Node>,
}

/// A unit of work of copying.
enum Step {
    /// A block; its copy, unless that is the current block.
    Block(Block, Option<Block>),
    /// The items of a block from this number on, and its end.
    Rest(Block, usize),
    /// The φs of a region and of its copy, after its blocks.
    Join(Region, Region),
    /// The return to the parent block, with a path of this length.
    Return(usize),
}

impl<'a> Reverse<'a> {
    pub(super) fn new(
        primal: &'a Primal<'a>,
        recomputed: &'a [Region],
        wanted: Wanted,
        folding: Folding,
        entries: EntryPhis,
    ) -> Self {
        let graph = primal.graph;
        let mut builder = Builder::of(graph, folding);
        let mut copy = PrimaryMap::filled(None, graph.nodes.len());
        for (node, data) in graph.nodes.iter() {
            copy[node] = match data.def {
                Def::Input(i) => Some(builder.input(i as usize)),
                Def::Const(bits) => Some(builder.constant(f64::from_bits(bits))),
                Def::Apply(..)
                | Def::Phi(..)
                | Def::Entry(..)
                | Def::Iteration(_)
                | Def::Element(_)
                | Def::Call(_)
                | Def::Result(..) => None,
            };
        }
        Reverse {
            graph,
            wanted,
            builder,
            copy,
            cells_copy: PrimaryMap::filled(None, graph.arrays.len()),
            region_copy: PrimaryMap::filled(None, graph.regions.len()),
            saved_values: SavedValues::of(primal, recomputed),
            order: TapeOrder::of(primal, folding, entries),
            recomputed,
            is_again: false,
            adjoints: Adjoints::new(graph.nodes.len()),
            output_arrays: output_arrays(primal),
            primal,
            sums: Sums::new(graph),
            path: Vec::new(),
            custom_results: HashMap::new(),
            output_adjoints: HashMap::new(),
        }
    }

    /// Makes a graph that stops without a result for all inputs.
    fn refuse(&mut self) {
        let (never, unknown) = (self.builder.constant(0.0), self.builder.constant(f64::NAN));
        self.builder.guard(never, true);
        let outputs = self.graph.active + usize::from(self.wanted == Wanted::GradientAndValue);
        self.builder.finish_block(&vec![unknown; outputs]);
    }

    pub(super) fn run(&mut self) {
        self.copy_steps(vec![Step::Block(self.graph.root(), None)], 0);
    }

    /// Copies `region`, a recomputed loop, to the current block once more: its nodes get new
    /// copies. Its φs keep the old ones, since conditions that are replayed may depend on them.
    pub(super) fn copy_again(&mut self, region: Region) {
        let phis = self.graph.regions[region].phis.iter();
        let before: Vec<(Node, Option<Node>)> = phis.map(|&phi| (phi, self.copy[phi])).collect();
        let new = self.begin_copy(region);
        self.region_copy[region] = Some(new);
        let root = self.graph.regions[region].root;
        self.is_again = true;
        self.copy_steps(vec![Step::Join(region, new), Step::Block(root, None)], 1);
        self.is_again = false;
        before.into_iter().for_each(|(phi, copy)| self.copy[phi] = copy);
    }

    /// Works off `pending`, last first. The current block is in `depth` regions. Only outside
    /// of regions leaves are swept and items belong to the path.
    fn copy_steps(&mut self, mut pending: Vec<Step>, mut depth: usize) {
        while let Some(step) = pending.pop() {
            match step {
                Step::Block(block, copy) => {
                    if let Some(copy) = copy {
                        self.builder.enter(copy);
                        pending.push(Step::Return(self.path.len()));
                    }
                    pending.push(Step::Rest(block, 0));
                }
                Step::Return(length) => {
                    self.path.truncate(length);
                    self.builder.leave();
                }
                Step::Rest(block, start) => {
                    let items = &self.graph.blocks[block].items[start..];
                    let inside = depth > 0;
                    let begun = items.iter().enumerate().find_map(|(index, &item)| {
                        if !inside {
                            self.path.push(item);
                        }
                        self.copy_item(item).map(|begun| (index, begun))
                    });
                    if let Some((index, (region, new))) = begun {
                        depth += 1;
                        let root = self.graph.regions[region].root;
                        pending.push(Step::Rest(block, start + index + 1));
                        pending.push(Step::Join(region, new));
                        pending.push(Step::Block(root, None));
                    } else {
                        self.copy_end(block, inside, &mut pending);
                    }
                }
                Step::Join(region, new) => {
                    depth -= 1;
                    self.set_region_place(region);
                    let phis = &self.graph.regions[region].phis;
                    let copies = match self.graph.regions[region].cycle {
                        Some(_) => self.builder.end_loop(new, phis.len()),
                        None => self.builder.end_region(new, phis.len()),
                    };
                    for (&phi, copy) in phis.iter().zip(copies) {
                        self.copy[phi] = Some(copy);
                    }
                }
            }
        }
    }

    /// Copies an item. A region is only begun, and returned with its copy.
    fn copy_item(&mut self, item: Item) -> Option<(Region, Region)> {
        match item {
            Item::Fill(array) => {
                let copy = self.builder.array(self.graph.arrays[array].clone());
                self.builder.fill(copy);
                self.cells_copy[array] = Some(copy);
                None
            }
            // `has_gradient` excludes graphs with sums.
            Item::Accumulate(..) => None,
            Item::Store(access, node) => {
                let stored = self.copied(node);
                if let Some(cell) = self.copied_cell(access) {
                    self.builder.store(cell, stored);
                }
                None
            }
            Item::Node(node) => {
                self.builder.set_place(self.graph.nodes[node].place);
                self.copy[node] = match self.graph.nodes[node].def {
                    Def::Apply(op, args) => {
                        let args = args.map(|arg| self.copied(arg));
                        Some(self.builder.apply(op, &args[..op.arity()]))
                    }
                    Def::Element(access) => Some(self.copy_element(access)),
                    Def::Call(call) => {
                        let CallData { routine, args } = &self.graph.calls[call];
                        let args = args.iter().map(|&arg| self.copied(arg)).collect();
                        let copy = self.builder.call(routine, args);
                        self.note_custom_results(node, copy);
                        Some(copy)
                    }
                    Def::Result(call, number) => {
                        let call = self.copied(call);
                        Some(self.builder.result(call, number))
                    }
                    _ => None,
                };
                None
            }
            Item::Guard { .. } if self.is_again => None,
            Item::Guard { condition, expect } => {
                let condition = self.copied(condition);
                self.builder.guard(condition, expect);
                None
            }
            Item::Region(region) => {
                let copy = self.begin_copy(region);
                self.region_copy[region] = Some(copy);
                Some((region, copy))
            }
        }
    }

    fn begin_copy(&mut self, region: Region) -> Region {
        self.set_region_place(region);
        let Some(cycle) = &self.graph.regions[region].cycle else {
            return self.builder.begin_region(None);
        };
        let firsts: Vec<Node> =
            cycle.entries.iter().map(|entry| self.copied(entry.first)).collect();
        let (copy, phis) = self.builder.begin_loop(cycle.bound, &firsts, None);
        for (entry, phi) in cycle.entries.iter().zip(phis) {
            self.copy[entry.phi] = Some(phi);
        }
        copy
    }

    fn copy_end(&mut self, block: Block, inside: bool, pending: &mut Vec<Step>) {
        match &self.graph.blocks[block].end {
            End::Return(values) if inside => {
                let values: Vec<Node> = values.iter().map(|&value| self.copied(value)).collect();
                self.builder.finish_block(&values);
            }
            End::Return(outputs) => {
                if let Some(&output) = outputs.first() {
                    self.sweep(output);
                }
            }
            End::Branch { condition, then, otherwise } => {
                let condition = self.copied(*condition);
                let (new_then, new_otherwise) = self.builder.branch(condition);
                pending.push(Step::Block(*otherwise, Some(new_otherwise)));
                pending.push(Step::Block(*then, Some(new_then)));
            }
            End::Open => {}
        }
    }

    /// Ends the current leaf with the derivatives of `output`.
    fn sweep(&mut self, output: Node) {
        // The scope restores the adjoints for the next leaf.
        self.adjoints.open();
        for index in 0..self.path.len() {
            if let Item::Region(region) = self.path[index] {
                self.zero_trajectory_adjoints(region);
            }
        }
        self.zero_output_arrays();
        let path = core::mem::take(&mut self.path);
        self.zero_cell_adjoints(&path);
        self.path = path;
        if self.primal.varied[output] {
            let one = self.builder.constant(1.0);
            if !self.add_to_sum(output, one) {
                self.adjoints.set(output, one);
            }
        }
        for index in (0..self.path.len()).rev() {
            match self.path[index] {
                Item::Node(node) => self.propagate(node),
                Item::Region(region) => self.sweep_region(region),
                Item::Store(access, node) => self.propagate_store(access, node),
                Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) => {}
            }
        }
        self.builder.set_place(None);
        let zero = self.builder.constant(0.0);
        let exact = self.builder.folding() == Folding::Exact;
        let derivatives = self.other_derivatives().into_iter();
        let mut outputs: Vec<Node> = derivatives
            .map(|adjoint| match adjoint {
                // The tape adds to zero, so its derivatives are never -0.0.
                Some(adjoint) if exact => self.builder.apply(Op::Add, &[adjoint, zero]),
                Some(adjoint) => adjoint,
                None => zero,
            })
            .collect();
        if self.wanted == Wanted::GradientAndValue {
            outputs.push(self.copied(output));
        }
        self.builder.finish_block(&outputs);
        self.adjoints.close();
    }

    /// Takes the adjoint of `node` and adds its contribution to each operand's adjoint.
    pub(super) fn propagate(&mut self, node: Node) {
        if let Def::Call(_) = self.graph.nodes[node].def {
            self.propagate_call(node);
            return;
        }
        let Some(adjoint) = self.adjoints.take(node) else { return };
        self.builder.set_place(self.graph.nodes[node].place);
        let (op, args) = match self.graph.nodes[node].def {
            Def::Apply(op, args) => (op, args),
            Def::Element(access) => {
                self.check_element(node);
                self.add_to_element(access, adjoint);
                return;
            }
            Def::Result(call, number) => {
                self.add_to_output(call, number, adjoint);
                return;
            }
            _ => return,
        };
        let (x, y) = (args.map(|arg| self.primal_value(arg, node)), self.copied(node));
        for (operand, &arg) in args.iter().enumerate().take(op.arity()) {
            if self.primal.varied[arg] {
                let increment = contribution(&mut self.builder, op, operand, x, y, adjoint);
                if let Some(increment) = increment {
                    self.add(arg, increment);
                }
            }
        }
    }

    /// Adds `increment` to the adjoint of `node`, and to those that it is an alias of.
    pub(super) fn add(&mut self, node: Node, increment: Node) {
        self.add_to_one(node, increment);
        self.add_to_aliased_firsts(node, increment);
    }

    /// Adds `increment` to the adjoint of `node` alone.
    pub(super) fn add_to_one(&mut self, node: Node, increment: Node) {
        if self.add_to_sum(node, increment) || self.add_to_alias_target(node, increment) {
            return;
        }
        let sum = match self.adjoints.get(node) {
            Some(before) => self.builder.apply(Op::Add, &[before, increment]),
            None => increment,
        };
        self.adjoints.set(node, sum);
    }

    pub(super) fn set_region_place(&mut self, region: Region) {
        self.builder.set_place(self.graph.regions[region].place);
    }

    /// The copy of `node`.
    pub(super) fn copied(&mut self, node: Node) -> Node {
        let number = match self.graph.nodes[node].def {
            Def::Iteration(region) => self.region_copy[region],
            _ => None,
        };
        match (self.copy[node], number) {
            (Some(copy), _) => copy,
            (None, Some(region)) => self.builder.iteration(region),
            // A verified graph computes operands before their uses.
            (None, None) => self.builder.constant(f64::NAN),
        }
    }
}
