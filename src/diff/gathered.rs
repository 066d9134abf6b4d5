//! Gathered adjoints: sums that are computed with twice the digits.
//!
//! What a closed form makes of several numbers is a matrix of known derivatives. Where it
//! has grown, what the numbers pass on to one that they began as may cancel: a loop would
//! have passed on little or nothing in each step, and of the sum of the rounded products no
//! digit is left. So these are summed as in "Accurate Sum and Dot Product" (Ogita, Rump and
//! Oishi 2005), algorithm Dot2.

use super::activity::Activity;
use super::reverse::Reverse;
use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{Builder, Folding, Node, is_way, tangent_of};

/// Which nodes have adjoints that are gathered: tangents of ways, so that all of a matrix is
/// multiplied by the same, if nothing elsewhere than in the block that they are in uses them.
/// Only for [`Folding::Real`]: otherwise the order of additions is that of the tape.
pub(super) fn gathered(activity: &Activity<'_>, folding: Folding) -> Array<Node, bool> {
    let graph = activity.graph;
    let is_gathered = |node| tangent_of(graph, node).is_some_and(|of| is_way(graph, of));
    let mut gathered = Array::filled(false, graph.nodes.len());
    if folding == Folding::Exact {
        return gathered;
    }
    for node in graph.nodes.keys() {
        gathered[node] = is_gathered(node);
        for &arg in graph.nodes[node].args() {
            gathered[arg] &= activity.nest.node_block(node) == activity.nest.node_block(arg);
        }
    }
    gathered
}

impl Reverse<'_> {
    /// Adds `passed` to the adjoint of `node`, which is gathered.
    pub(super) fn gather(&mut self, node: Node, passed: Node) {
        let (sum, lost) = match self.adjoints.get(node) {
            Some(before) => split_sum(&mut self.builder, before, passed),
            None => (passed, None),
        };
        self.adjoints.set(node, sum);
        self.gather_lost(node, lost);
    }

    /// Adds the product of `adjoint` and `slope` to the adjoint of `node`, which is gathered.
    pub(super) fn gather_product(&mut self, node: Node, adjoint: Node, slope: Node) {
        let product = self.builder.apply(Op::Mul, &[adjoint, slope]);
        self.gather(node, product);
        let negative = self.builder.apply(Op::Neg, &[product]);
        let lost = self.builder.apply(Op::MulAdd, &[adjoint, slope, negative]);
        self.gather_lost(node, Some(lost));
    }

    /// `adjoint`, that of `node`, with what rounding has taken from it.
    pub(super) fn with_lost(&mut self, node: Node, adjoint: Node) -> Node {
        match self.lost.remove(&node) {
            Some(lost) => self.builder.apply(Op::Add, &[adjoint, lost]),
            None => adjoint,
        }
    }

    fn gather_lost(&mut self, node: Node, lost: Option<Node>) {
        let Some(lost) = lost else { return };
        let sum = match self.lost.get(&node) {
            Some(&before) => self.builder.apply(Op::Add, &[before, lost]),
            None => lost,
        };
        self.lost.insert(node, sum);
    }
}

/// `a + b`, and what rounding takes from it, by Knuth's sum without error. That differences are
/// products makes rewriting leave them as they are.
fn split_sum(builder: &mut Builder, a: Node, b: Node) -> (Node, Option<Node>) {
    let sum = builder.apply(Op::Add, &[a, b]);
    let less = builder.constant(-1.0);
    let of_b = builder.apply(Op::MulAdd, &[a, less, sum]);
    let of_a = builder.apply(Op::MulAdd, &[of_b, less, sum]);
    let (lost_a, lost_b) = (builder.apply(Op::Sub, &[a, of_a]), builder.apply(Op::Sub, &[b, of_b]));
    (sum, Some(builder.apply(Op::Add, &[lost_a, lost_b])))
}

#[cfg(test)]
mod tests {
    use crate::diff::{Wanted, reverse};
    use crate::ssa::{FAR, Folding, Graph, Outcome, interpret, parse};

    /// 0.1·a + 0.3·b, with the derivatives 3·10²⁰ of a and -10²⁰ of b by x, as they are told of
    /// `tangent`: v9 is the tangent of x, and v11 that of v9.
    fn graph(tangent: &str) -> Graph {
        let text = format!(
            "graph active 1 inactive 0\nv1 = const 1.0\nv2 = const {FAR:?}\nv3 = const {:?}\n\
             v4 = const 3e20\nv5 = const -1e20\nv6 = const 0.1\nv7 = const 0.3\nb0:\n  \
             v8 = add v0 v2\n  v9 = mul_add v8 v1 v3\n  v10 = add v9 v2\n  \
             v11 = mul_add v10 v1 v3\n  v12 = mul v4 {tangent}\n  v13 = mul v5 {tangent}\n  \
             v14 = mul v6 v12\n  v15 = mul v7 v13\n  v16 = add v14 v15\n  return v16\n",
            -FAR
        );
        parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn what_cancels_at_a_tangent_of_a_tangent_has_all_digits() {
        let slope = |tangent| {
            let gradient = reverse(&graph(tangent), Wanted::Gradient, Folding::Real);
            match interpret(&gradient, &[2.0]) {
                Outcome::Values(values) => values[0],
                other => panic!("{other:?}"),
            }
        };
        // 3·0.1 - 0.3 is 2⁻⁵⁵ for the numbers that are next to these.
        assert_eq!(slope("v11"), 1e20 * 2f64.powi(-55));
        assert_ne!(slope("v9"), slope("v11"));
    }
}
