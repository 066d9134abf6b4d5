//! Opposed products: what one product has added to an adjoint the next one takes away.
//!
//! Where x and 1 - x mix two numbers, the derivative by x is the adjoint times one of them
//! less the adjoint times the other. If these are near to each other both products cancel
//! but for their rounding errors, as in each step of a chain of states that comes to rest.
//! So the adjoint is multiplied by the difference, which has no such errors. Adjoints pass on
//! what is not finite, so that a difference beyond the largest float is no finite result.

use crate::op::Op;
use crate::ssa::{Builder, Def, Folding, Graph, Node};

/// The sum of an adjoint and of what is passed to it.
pub(super) fn added(builder: &mut Builder, before: Node, passed: Node) -> Node {
    let opposed = match builder.folding() {
        Folding::Real => opposed(builder.graph(), before, passed),
        // That is the order of the tape.
        Folding::Exact => None,
    };
    let Some(Opposed { rest, factor, more, less }) = opposed else {
        return builder.apply(Op::Add, &[before, passed]);
    };
    let difference = builder.apply(Op::Sub, &[more, less]);
    let product = builder.apply(Op::Mul, &[factor, difference]);
    match rest {
        Some(rest) => builder.apply(Op::Add, &[rest, product]),
        None => product,
    }
}

/// A sum of `rest`, if there is any, and of `factor` times the difference of two numbers.
struct Opposed {
    rest: Option<Node>,
    factor: Node,
    more: Node,
    less: Node,
}

/// A product, possibly negated.
struct Product {
    factors: [Node; 2],
    is_negative: bool,
}

fn opposed(graph: &Graph, before: Node, passed: Node) -> Option<Opposed> {
    let passed = product(graph, passed)?;
    let (rest, last) = summands(graph, before)?;
    if last.is_negative == passed.is_negative {
        return None;
    }
    let ([a, b], [c, d]) = (last.factors, passed.factors);
    let common = [(a, b, c, d), (a, b, d, c), (b, a, c, d), (b, a, d, c)];
    let (factor, first, _, second) = common.into_iter().find(|(one, _, other, _)| one == other)?;
    let (more, less) = if last.is_negative { (second, first) } else { (first, second) };
    Some(Opposed { rest, factor, more, less })
}

/// What `sum` is the sum of: the product that was added last, and what was there before.
fn summands(graph: &Graph, sum: Node) -> Option<(Option<Node>, Product)> {
    if let Some(product) = product(graph, sum) {
        return Some((None, product));
    }
    match graph.nodes[sum].def {
        Def::Apply(Op::Add, [a, b, _]) => match product(graph, b) {
            Some(last) => Some((Some(a), last)),
            None => Some((Some(b), product(graph, a)?)),
        },
        Def::Apply(Op::Sub, [a, b, _]) => Some((Some(a), product(graph, b)?.negated())),
        _ => None,
    }
}

fn product(graph: &Graph, node: Node) -> Option<Product> {
    match graph.nodes[node].def {
        Def::Apply(Op::Mul, [x, y, _]) => Some(Product { factors: [x, y], is_negative: false }),
        // What is negated twice is folded.
        Def::Apply(Op::Neg, [inner, ..]) => match graph.nodes[inner].def {
            Def::Apply(Op::Mul, [x, y, _]) => Some(Product { factors: [x, y], is_negative: true }),
            _ => None,
        },
        _ => None,
    }
}

impl Product {
    fn negated(self) -> Product {
        Product { is_negative: !self.is_negative, ..self }
    }
}
