//! Gathered adjoints: sums that are computed with twice the digits.
//!
//! What a closed form makes of several numbers is a matrix of known derivatives. Where it
//! has grown, what the numbers pass on to one that they began as may cancel: a loop would
//! have passed on little or nothing in each step, and of the sum of the rounded products no
//! digit is left. So these are summed as in "Accurate Sum and Dot Product" (Ogita, Rump and
//! Oishi 2005), algorithm Dot2. What is told so says it by a tangent of a tangent, or of a way.

use super::activity::Activity;
use super::reverse::Reverse;
use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{Folding, Node, for_each_use, is_way, split_product, split_sum, tangent_of};

/// Which nodes have adjoints that are gathered: tangents of ways, so that all of a matrix is
/// multiplied by the same, which primitives in the block that they are in use and nothing else.
/// So an adjoint is gathered and passed on in one go through a block. Only for
/// [`Folding::Real`]: otherwise the order of additions is that of the tape.
pub(super) fn gathered(activity: &Activity<'_>, folding: Folding) -> Array<Node, bool> {
    let graph = activity.graph;
    let mut gathered = Array::filled(false, graph.nodes.len());
    if folding == Folding::Exact {
        return gathered;
    }
    for node in graph.nodes.keys().filter(|&node| activity.active[node]) {
        gathered[node] = tangent_of(graph, node).is_some_and(|of| is_way(graph, of));
    }
    for_each_use(graph, |node| gathered[node] = false);
    for user in graph.nodes.keys() {
        for &arg in graph.nodes[user].args() {
            gathered[arg] &= activity.nest.node_block(user) == activity.nest.node_block(arg);
        }
    }
    gathered
}

impl Reverse<'_> {
    /// Adds `passed` to the adjoint of `node`, which is gathered.
    pub(super) fn gather(&mut self, node: Node, passed: Node) {
        let Some(before) = self.adjoints.get(node) else {
            return self.adjoints.set(node, passed);
        };
        let builder = &mut self.builder;
        let less = builder.constant(-1.0);
        let [sum, lost] = split_sum(|op, args| builder.apply(op, args), less, [before, passed]);
        self.adjoints.set(node, sum);
        self.gather_lost(node, lost);
    }

    /// Adds the product of `adjoint` and `slope` to the adjoint of `node`, which is gathered.
    pub(super) fn gather_product(&mut self, node: Node, adjoint: Node, slope: Node) {
        let builder = &mut self.builder;
        let [product, lost] = split_product(|op, args| builder.apply(op, args), [adjoint, slope]);
        self.gather(node, product);
        self.gather_lost(node, lost);
    }

    /// `adjoint`, that of `node`, with what rounding has taken from it.
    pub(super) fn with_lost(&mut self, node: Node, adjoint: Node) -> Node {
        match self.lost.remove(&node) {
            Some(lost) => self.builder.apply(Op::Add, &[adjoint, lost]),
            None => adjoint,
        }
    }

    fn gather_lost(&mut self, node: Node, lost: Node) {
        let sum = match self.lost.get(&node) {
            Some(&before) => self.builder.apply(Op::Add, &[before, lost]),
            None => lost,
        };
        self.lost.insert(node, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Wanted, reverse};
    use crate::ssa::{FAR, Graph, Outcome, interpret, parse};

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

    #[test]
    fn what_other_blocks_use_is_not_gathered() {
        // 2·t or 3·t, where t is the tangent of that of x.
        let text = format!(
            "graph active 1 inactive 0\nv1 = const 1.0\nv2 = const {FAR:?}\nv3 = const {:?}\n\
             v4 = const 2.0\nv5 = const 3.0\nb0:\n  v6 = add v0 v2\n  v7 = mul_add v6 v1 v3\n  \
             v8 = add v7 v2\n  v9 = mul_add v8 v1 v3\n  branch v0 b1 b2\nb1:\n  v10 = mul v4 v9\n  \
             return v10\nb2:\n  v11 = mul v5 v9\n  return v11\n",
            -FAR
        );
        let graph = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let activity = Activity::of(&graph, Folding::Real);
        assert!(gathered(&activity, Folding::Real).values().all(|&is_gathered| !is_gathered));
        let gradient = reverse(&graph, Wanted::Gradient, Folding::Real);
        assert_eq!(interpret(&gradient, &[1.0]), Outcome::Values(vec![2.0]));
        assert_eq!(interpret(&gradient, &[0.0]), Outcome::Values(vec![3.0]));
    }

    #[test]
    fn nothing_is_gathered_where_bits_are_kept() {
        let graph = graph("v11");
        let count = |folding| {
            let activity = Activity::of(&graph, folding);
            gathered(&activity, folding).values().filter(|&&is_gathered| is_gathered).count()
        };
        assert_eq!((count(Folding::Real), count(Folding::Exact)), (1, 0));
    }
}
