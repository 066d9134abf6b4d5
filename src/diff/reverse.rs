//! Reverse accumulation on the graph.
//!
//! The gradient graph has the same tree of blocks: each computes what the
//! original block computes, and each leaf then walks its path backwards. It
//! applies the rules, the order of operands and the order of additions of the
//! tape's sweep, so that the two agree bit for bit as long as the original
//! graph is the faithful one that `lift` makes.
//!
//! One difference is left, and the runtime deals with it: where an adjoint is
//! zero the sweep passes nothing on, the graph passes on zero times the partial
//! derivative. That shows only as NaN in the result, when the partial is not
//! finite.

use crate::entity::Array;
use crate::op::{Op, contribution};
use crate::ssa::{Builder, Def, End, Folding, Graph, Item, Node};

/// What the outputs of the graph that [`reverse()`] makes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// The derivatives by the active inputs.
    Gradient,
    /// The derivatives by the active inputs, then the value.
    GradientAndValue,
}

/// The gradient of the first output of `graph`, a verified graph, by its active
/// inputs: one output for each, in order.
///
/// Each path is differentiated on its own: the derivative of a choice is the
/// choice of the derivatives (corollary 2 of the φ-calculus in "Coarsening
/// Optimization for Differentiable Programming"). `folding` applies to the new
/// graph; with [`Folding::Exact`] its outputs are the bits that the tape's sweep
/// computes, except for the NaN of zero times infinity.
///
/// # Examples
///
/// ```
/// use phigrad::diff::{Wanted, reverse};
/// use phigrad::ssa::{Folding, Outcome, interpret, parse};
///
/// let graph = parse("graph active 2 inactive 0\nb0:\n  v2 = mul v0 v1\n  return v2\n")?;
/// let gradient = reverse(&graph, Wanted::Gradient, Folding::Exact);
/// assert_eq!(interpret(&gradient, &[2.0, 3.0]), Outcome::Values(vec![3.0, 2.0]));
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn reverse(graph: &Graph, wanted: Wanted, folding: Folding) -> Graph {
    let mut pass = Reverse {
        graph,
        wanted,
        builder: Builder::of(graph, folding),
        copy: Array::filled(None, graph.nodes.len()),
        adjoint: Array::filled(None, graph.nodes.len()),
        active: active_nodes(graph),
        path: Vec::new(),
    };
    for (node, data) in graph.nodes.iter() {
        pass.copy[node] = match data.def {
            Def::Input(i) => Some(pass.builder.input(i as usize)),
            Def::Const(bits) => Some(pass.builder.constant(f64::from_bits(bits))),
            Def::Apply(..) | Def::Phi(..) => None,
        };
    }
    pass.run();
    pass.builder.into_graph()
}

/// Which nodes depend on an active input.
fn active_nodes(graph: &Graph) -> Array<Node, bool> {
    let mut active = Array::filled(false, graph.nodes.len());
    // Operands have smaller ids than their users.
    for (node, data) in graph.nodes.iter() {
        active[node] = match data.def {
            Def::Input(i) => (i as usize) < graph.active,
            Def::Const(_) | Def::Phi(..) => false,
            Def::Apply(..) => data.args().iter().any(|&arg| active[arg]),
        };
    }
    active
}

struct Reverse<'a> {
    graph: &'a Graph,
    wanted: Wanted,
    builder: Builder,
    copy: Array<Node, Option<Node>>,
    adjoint: Array<Node, Option<Node>>,
    active: Array<Node, bool>,
    /// The nodes computed from the root to here.
    path: Vec<Node>,
}

impl Reverse<'_> {
    fn run(&mut self) {
        // A block to visit, with its copy; or the length of the path to go back to.
        enum Step {
            Visit(crate::ssa::Block, Option<crate::ssa::Block>),
            Leave(usize),
        }
        let mut pending = vec![Step::Visit(self.graph.root(), None)];
        while let Some(step) = pending.pop() {
            let (block, new_block) = match step {
                Step::Visit(block, new_block) => (block, new_block),
                Step::Leave(length) => {
                    self.path.truncate(length);
                    self.builder.leave();
                    continue;
                }
            };
            if let Some(new_block) = new_block {
                self.builder.enter(new_block);
                pending.push(Step::Leave(self.path.len()));
            }
            for &item in &self.graph.blocks[block].items {
                self.copy_item(item);
            }
            match &self.graph.blocks[block].end {
                End::Return(outputs) => {
                    if let Some(&output) = outputs.first() {
                        self.sweep(output);
                    }
                }
                End::Branch { condition, then, otherwise } => {
                    let condition = self.copied(*condition);
                    let (new_then, new_otherwise) = self.builder.branch(condition);
                    pending.push(Step::Visit(*otherwise, Some(new_otherwise)));
                    pending.push(Step::Visit(*then, Some(new_then)));
                }
                End::Open => {}
            }
        }
    }

    fn copy_item(&mut self, item: Item) {
        match item {
            Item::Node(node) => {
                let data = &self.graph.nodes[node];
                if let Def::Apply(op, args) = data.def {
                    let args = args.map(|arg| self.copied(arg));
                    self.set_place(node);
                    let copy = self.builder.apply(op, &args[..op.arity()]);
                    self.copy[node] = Some(copy);
                    self.path.push(node);
                }
            }
            Item::Guard { condition, expect } => {
                let condition = self.copied(condition);
                self.builder.guard(condition, expect);
            }
            Item::Region(_) => {}
        }
    }

    /// Ends the current leaf with the derivatives of `output`.
    fn sweep(&mut self, output: Node) {
        let inputs = (0..self.graph.active).map(|i| self.graph.input(i));
        let inputs: Vec<Node> = inputs.collect();
        if self.active[output] {
            let one = self.builder.constant(1.0);
            self.adjoint[output] = Some(one);
        }
        for index in (0..self.path.len()).rev() {
            let node = self.path[index];
            // Taking it clears the table for the next leaf.
            let Some(adjoint) = self.adjoint[node].take() else { continue };
            let Def::Apply(op, args) = self.graph.nodes[node].def else { continue };
            self.set_place(node);
            let (x, y) = (args.map(|arg| self.copied(arg)), self.copied(node));
            for (operand, &arg) in args.iter().enumerate().take(op.arity()) {
                if !self.active[arg] {
                    continue;
                }
                let passed = contribution(&mut self.builder, op, operand, x, y, adjoint);
                if let Some(passed) = passed {
                    let sum = match self.adjoint[arg] {
                        Some(before) => self.builder.apply(Op::Add, &[before, passed]),
                        None => passed,
                    };
                    self.adjoint[arg] = Some(sum);
                }
            }
        }
        self.builder.set_place(None);
        let zero = self.builder.constant(0.0);
        let exact = self.builder.folding() == Folding::Exact;
        let mut outputs: Vec<Node> = Vec::with_capacity(inputs.len() + 1);
        for input in inputs {
            outputs.push(match self.adjoint[input].take() {
                // The sweep adds to zero, so it never yields a negative zero.
                Some(adjoint) if exact => self.builder.apply(Op::Add, &[adjoint, zero]),
                Some(adjoint) => adjoint,
                None => zero,
            });
        }
        if self.wanted == Wanted::GradientAndValue {
            outputs.push(self.copied(output));
        }
        self.builder.finish_block(&outputs);
    }

    fn set_place(&mut self, node: Node) {
        self.builder.set_place(self.graph.nodes[node].place);
    }

    fn copied(&mut self, node: Node) -> Node {
        // A verified graph computes operands before their uses.
        self.copy[node].unwrap_or_else(|| self.builder.constant(f64::NAN))
    }
}
