//! Reverse accumulation on the graph.
//!
//! The gradient graph has the same tree of blocks: each computes what the
//! original block computes, and each leaf then walks its path backwards. It
//! applies the rules, the order of operands and the order of additions of the
//! tape's sweep, so that the two agree bit for bit as long as the original
//! graph is the faithful one that `merge` makes. For regions see `regions`, for
//! loops `loops` and `reach`, for array `sums`.
//!
//! One difference is left, and the runtime deals with it: where an adjoint is
//! zero the sweep passes nothing on, the graph passes on zero times the partial
//! derivative. That shows only as NaN in the result, when the partial is not
//! finite.

use super::activity::Activity;
use super::adjoints::Adjoints;
use super::arrays::{Row, rows};
use super::needed::Needed;
use super::order::{Entries, Order};
use super::sums::Sums;
use crate::entity::PrimaryMap;
use crate::op::{Op, contribution};
use crate::ssa::{
    ArrayData, Block, Builder, CallData, Def, End, Folding, Graph, Item, Node, Region,
};

/// What the outputs of the graph that [`reverse()`] makes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// The derivatives by the active inputs.
    Gradient,
    /// The derivatives by the active inputs, then the value.
    GradientAndValue,
}

/// The gradient of the first output of `graph`, a verified graph, by its active
/// inputs: one output for each, in order. Those for a row of inputs that loops read are a
/// array of outputs.
///
/// Each path is differentiated on its own: the derivative of a choice is the
/// choice of the derivatives (corollary 2 of the φ-calculus in "Coarsening
/// Optimization for Differentiable Programming"). A region on a path gets a
/// region of the gradient graph that replays it backwards, a loop one that
/// replays its iterations, the last one first; the adjoints of elements of array
/// are sums. `folding` applies to the new graph; with [`Folding::Exact`] its
/// outputs are the bits that the tape's sweep computes, where φs are to the tape the
/// addition of -0.0, but for the NaN of zero times infinity. Entry φs, φs of loops and
/// elements of array are no events to the tape if [`reordered`](super::reordered())
/// finds no loops; if it does, entry φs and φs of loops are additions of -0.0, too, and
/// the order of additions to nodes that have several names may be another one.
///
/// Memory and time are linear in what is made, but for the search for what each
/// loop carries, which looks at a loop once for each loop around it; the stack
/// does not grow with the graph. What is made does not depend on the bounds of
/// loops. Per leaf it is linear in the path, with two exceptions: after each
/// branch of a region, each adjoint that one of its sides changes is a φ, so one
/// that is passed on from below n branches costs n φs; and the elements of a
/// array of n nodes, not of inputs, cost n steps for each outermost region that reads it.
///
/// A graph with regions that replay others, which gradient graphs are where
/// there were regions, is not differentiated: adjoints of what the first region
/// computed would have to leave the second. Nor is one that adds to sums. The
/// gradient graph is then one that stops without a result for all inputs.
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

/// As [`reverse()`]; the sweep computes `recomputed`, loops in loops, again. `entries`
/// tells what entry φs are to it if that does not depend on the graph.
pub(super) fn reverse_from(
    graph: &Graph,
    recomputed: &[Region],
    entries: Option<Entries>,
    wanted: Wanted,
    folding: Folding,
) -> Graph {
    let activity = Activity::of(graph);
    let first = entries.unwrap_or(Entries::Named);
    let mut pass = Reverse::new(&activity, recomputed, wanted, folding, first);
    if has_gradient(graph) {
        pass.run();
        if entries.is_none() && pass.order.has_wrong() {
            // To add to first values at once is of no use then.
            pass = Reverse::new(&activity, recomputed, wanted, folding, Entries::Copies);
            pass.run();
        }
    } else {
        pass.refuse();
    }
    pass.builder.into_graph()
}

/// Whether [`reverse()`] differentiates `graph`: it has no sums, and no region replays another.
pub(super) fn has_gradient(graph: &Graph) -> bool {
    !graph.arrays.values().any(ArrayData::is_sums)
        && graph.regions.values().all(|region| region.replays.is_none())
}

/// A graph on its way to its gradient.
pub(super) struct Reverse<'a> {
    pub(super) graph: &'a Graph,
    wanted: Wanted,
    pub(super) builder: Builder,
    /// For each node of the graph its copy in the new one.
    copy: PrimaryMap<Node, Option<Node>>,
    /// For each region of the graph its copy in the new one.
    pub(super) region_copy: PrimaryMap<Region, Option<Region>>,
    /// The loops that are computed again where they are swept.
    pub(super) recomputed: &'a [Region],
    pub(super) needed: Needed,
    /// Whether what is copied has been computed before, so that no guard fails.
    is_again: bool,
    pub(super) adjoints: Adjoints,
    pub(super) activity: &'a Activity<'a>,
    pub(super) sums: Sums,
    pub(super) rows: Vec<Row>,
    pub(super) order: Order,
    /// The steps from the root to here, regions as one step each.
    path: Vec<Item>,
}

/// What is left to copy.
enum Step {
    /// A block; its copy, unless that is the current block.
    Block(Block, Option<Block>),
    /// The rest of a block, from this step on.
    Rest(Block, usize),
    /// The φs of a region, whose blocks have been copied to the other one.
    Join(Region, Region),
    /// Back to the block above, and to a path of this length.
    Leave(usize),
}

impl<'a> Reverse<'a> {
    pub(super) fn new(
        activity: &'a Activity<'a>,
        recomputed: &'a [Region],
        wanted: Wanted,
        folding: Folding,
        entries: Entries,
    ) -> Self {
        let graph = activity.graph;
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
            region_copy: PrimaryMap::filled(None, graph.regions.len()),
            needed: Needed::of(activity, recomputed),
            order: Order::of(activity, folding, entries),
            recomputed,
            is_again: false,
            adjoints: Adjoints::new(graph.nodes.len()),
            rows: rows(activity),
            activity,
            sums: Sums::new(graph),
            path: Vec::new(),
        }
    }

    /// Makes the graph that stops for all inputs.
    fn refuse(&mut self) {
        let (never, unknown) = (self.builder.constant(0.0), self.builder.constant(f64::NAN));
        self.builder.guard(never, true);
        let outputs = self.graph.active + usize::from(self.wanted == Wanted::GradientAndValue);
        self.builder.finish_block(&vec![unknown; outputs]);
    }

    pub(super) fn run(&mut self) {
        self.copy_steps(vec![Step::Block(self.graph.root(), None)], 0);
    }

    /// Copies `region`, a loop that has been copied before, to the current block: from
    /// here on the copies of what is in it are the new ones. Its φs keep theirs, which
    /// conditions may depend on that are replayed.
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

    /// Copies all that is `pending`, the last first. The current block is in `depth`
    /// regions; only outside of all a leaf is swept, and steps belong to the path.
    fn copy_steps(&mut self, mut pending: Vec<Step>, mut depth: usize) {
        while let Some(step) = pending.pop() {
            match step {
                Step::Block(block, copy) => {
                    if let Some(copy) = copy {
                        self.builder.enter(copy);
                        pending.push(Step::Leave(self.path.len()));
                    }
                    pending.push(Step::Rest(block, 0));
                }
                Step::Leave(length) => {
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

    /// Copies a step; of a region only the beginning, which it returns with its
    /// copy.
    fn copy_item(&mut self, item: Item) -> Option<(Region, Region)> {
        match item {
            // Graphs with sums are refused.
            Item::Fill(_) | Item::Accumulate(..) => None,
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
                        Some(self.builder.call(routine, args))
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
        // For the next leaf no adjoint may be left.
        self.adjoints.open();
        for index in 0..self.path.len() {
            if let Item::Region(region) = self.path[index] {
                self.fill_pasts(region);
            }
        }
        self.fill_rows();
        if self.activity.active[output] {
            let one = self.builder.constant(1.0);
            if !self.add_to_sum(output, one) {
                self.adjoints.set(output, one);
            }
        }
        for index in (0..self.path.len()).rev() {
            match self.path[index] {
                Item::Node(node) => self.pass_on(node),
                Item::Region(region) => self.sweep_region(region),
                Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) => {}
            }
        }
        self.builder.set_place(None);
        let zero = self.builder.constant(0.0);
        let exact = self.builder.folding() == Folding::Exact;
        let derivatives = self.other_derivatives().into_iter();
        let mut outputs: Vec<Node> = derivatives
            .map(|adjoint| match adjoint {
                // The sweep adds to zero, so it never yields a negative zero.
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

    /// Adds to the adjoint of each operand of `node` what it gets of its own.
    pub(super) fn pass_on(&mut self, node: Node) {
        let Some(adjoint) = self.adjoints.take(node) else { return };
        self.builder.set_place(self.graph.nodes[node].place);
        let (op, args) = match self.graph.nodes[node].def {
            Def::Apply(op, args) => (op, args),
            Def::Element(access) => {
                self.check_element(node);
                self.add_to_element(access, adjoint);
                return;
            }
            _ => return,
        };
        let (x, y) = (args.map(|arg| self.at_hand(arg, node)), self.copied(node));
        for (operand, &arg) in args.iter().enumerate().take(op.arity()) {
            if self.activity.active[arg] {
                let passed = contribution(&mut self.builder, op, operand, x, y, adjoint);
                if let Some(passed) = passed {
                    self.add(arg, passed);
                }
            }
        }
    }

    /// Adds `passed` to the adjoint of `node`, and to those of what it stands for.
    pub(super) fn add(&mut self, node: Node, passed: Node) {
        self.add_to_one(node, passed);
        self.add_to_firsts(node, passed);
    }

    /// Adds `passed` to the adjoint of `node` alone.
    pub(super) fn add_to_one(&mut self, node: Node, passed: Node) {
        if self.add_to_sum(node, passed) || self.add_directly(node, passed) {
            return;
        }
        let sum = match self.adjoints.get(node) {
            Some(before) => self.builder.apply(Op::Add, &[before, passed]),
            None => passed,
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
