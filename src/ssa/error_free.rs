//! What rounding takes from sums and products, as in the compensated algorithms of Ogita, Rump and
//! Oishi, "Accurate Sum and Dot Product" (2005).
//!
//! It is spelt with `mul_add`, by which rewriting by the rules of real numbers knows to leave it
//! alone, and differentiation that it is zero as a function of real numbers.

use super::graph::Node;
use crate::op::Op;

/// `a + b`, and what rounding takes from it, by Knuth's sum without error. That the
/// differences are products with `less`, which is -1, makes rewriting leave them as they are;
/// native code subtracts.
pub(crate) fn split_sum(
    mut apply: impl FnMut(Op, &[Node]) -> Node,
    less: Node,
    [a, b]: [Node; 2],
) -> [Node; 2] {
    let sum = apply(Op::Add, &[a, b]);
    let of_b = apply(Op::MulAdd, &[a, less, sum]);
    let of_a = apply(Op::MulAdd, &[of_b, less, sum]);
    let (lost_a, lost_b) = (apply(Op::Sub, &[a, of_a]), apply(Op::Sub, &[b, of_b]));
    [sum, apply(Op::Add, &[lost_a, lost_b])]
}

/// `a · b`, and what rounding takes from it.
pub(crate) fn split_product(
    mut apply: impl FnMut(Op, &[Node]) -> Node,
    [a, b]: [Node; 2],
) -> [Node; 2] {
    let product = apply(Op::Mul, &[a, b]);
    let negative = apply(Op::Neg, &[product]);
    [product, apply(Op::MulAdd, &[a, b, negative])]
}
