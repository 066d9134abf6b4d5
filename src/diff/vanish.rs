//! Rounding errors: nodes that are zero as functions of real numbers, and have
//! no derivative.
//!
//! Who computes what rounding has taken away, `mul_add(a, b, -(a·b))` or the
//! error of a sum, does so to correct a value. To differentiate that would be to
//! add and subtract the same over and over.

use smallvec::{SmallVec, smallvec};

use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{Def, Graph, Node};

/// A term of a form: a node, or the product of two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Term {
    Node(Node),
    Product(Node, Node),
}

/// A sum of few terms, each with how often it counts.
type Form = SmallVec<[(Term, i32); 4]>;

/// Which nodes of `graph` vanish by the rules of real numbers, as far as that
/// shows in a few terms; none in a graph without `mul_add`.
pub(super) fn vanishing(graph: &Graph) -> Array<Node, bool> {
    let mut search = Search { graph, vanishes: Array::filled(false, graph.nodes.len()) };
    let fuses = |def: &Def| matches!(def, Def::Apply(Op::MulAdd, _));
    if !graph.nodes.values().any(|data| fuses(&data.def)) {
        return search.vanishes;
    }
    for node in graph.nodes.keys() {
        let Def::Apply(op, args) = graph.nodes[node].def else { continue };
        search.vanishes[node] = match op {
            Op::Add | Op::Sub | Op::MulAdd => search.form(node, 1, DEPTH).is_empty(),
            Op::Neg => search.vanishes[args[0]],
            Op::Mul => search.vanishes[args[0]] || search.vanishes[args[1]],
            Op::Div => search.vanishes[args[0]],
            _ => false,
        };
    }
    search.vanishes
}

/// How deep forms are followed: the error of a sum needs four steps.
const DEPTH: usize = 6;

struct Search<'a> {
    graph: &'a Graph,
    vanishes: Array<Node, bool>,
}

impl Search<'_> {
    /// What `node` is as a sum; a sum in it is a term of its own if `levels` is 0.
    /// Differences by `mul_add` are followed `depth` deep in any case: they are
    /// such that must not be rounded otherwise, and no sums of the program.
    fn form(&self, node: Node, levels: usize, depth: usize) -> Form {
        if self.vanishes[node] {
            return Form::new();
        }
        let Def::Apply(op, [a, b, c]) = self.graph.nodes[node].def else {
            return smallvec![(Term::Node(node), 1)];
        };
        match op {
            Op::Neg if depth > 0 => scaled(self.form(a, levels, depth - 1), -1),
            Op::Mul => self.product(a, b),
            Op::Add if levels > 0 => sum(self.form(a, 0, depth), self.form(b, 0, depth)),
            Op::Sub if levels > 0 => {
                sum(self.form(a, 0, depth), scaled(self.form(b, 0, depth), -1))
            }
            Op::MulAdd if depth > 0 && self.graph.constant(b) == Some(1.0) => {
                sum(self.form(a, 1, depth - 1), self.form(c, 0, depth - 1))
            }
            Op::MulAdd if levels > 0 => sum(self.product(a, b), self.form(c, 0, depth)),
            _ => smallvec![(Term::Node(node), 1)],
        }
    }

    fn product(&self, a: Node, b: Node) -> Form {
        if self.vanishes[a] || self.vanishes[b] {
            return Form::new();
        }
        let ((a, sign_a), (b, sign_b)) = (self.signed(a), self.signed(b));
        let sign = sign_a * sign_b;
        // A quotient times its divisor.
        for (quotient, other) in [(a, b), (b, a)] {
            if let Def::Apply(Op::Div, [dividend, divisor, _]) = self.graph.nodes[quotient].def
                && divisor == other
            {
                return scaled(self.form(dividend, 0, 1), sign);
            }
        }
        smallvec![(Term::Product(a.min(b), a.max(b)), sign)]
    }

    fn signed(&self, node: Node) -> (Node, i32) {
        match self.graph.nodes[node].def {
            Def::Apply(Op::Neg, [inner, ..]) => (inner, -1),
            _ => (node, 1),
        }
    }
}

fn scaled(mut form: Form, factor: i32) -> Form {
    form.iter_mut().for_each(|(_, count)| *count *= factor);
    form
}

fn sum(mut a: Form, b: Form) -> Form {
    for (term, count) in b {
        match a.iter_mut().find(|(other, _)| *other == term) {
            Some((_, before)) => *before += count,
            None => a.push((term, count)),
        }
    }
    a.retain(|&mut (_, count)| count != 0);
    a
}
