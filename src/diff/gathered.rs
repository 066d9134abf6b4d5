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
use crate::ssa::{
    Builder, Folding, NO_NUMBER, Node, for_each_use, is_way, split_product, split_sum, tangent_of,
};

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

/// What is known of an adjoint that is gathered, beside the sum.
#[derive(Default)]
pub(super) struct Gathered {
    /// What rounding has taken from the sum.
    lost: Option<Node>,
    /// How large the products are, and what slopes were multiplied by.
    products: Option<Node>,
    adjoints: Option<Node>,
}

/// Of products that are so many times larger than what slopes were multiplied by enough has to be
/// left: these slopes are powers that have grown, and have no more than twice the digits.
const GROWN: f64 = (1u64 << 40) as f64;

/// So much.
const LEFT: f64 = 1.0 / (1u64 << 50) as f64;

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
        let of = self.gathering.entry(node).or_default();
        of.lost = Some(added(builder, of.lost, lost));
    }

    /// Adds the product of `adjoint` and `slope` to the adjoint of `node`, which is gathered.
    pub(super) fn gather_product(&mut self, node: Node, adjoint: Node, slope: Node) {
        let builder = &mut self.builder;
        let [product, lost] = split_product(|op, args| builder.apply(op, args), [adjoint, slope]);
        self.gather(node, product);
        let builder = &mut self.builder;
        let [product, adjoint] = [product, adjoint].map(|of| builder.apply(Op::Abs, &[of]));
        let of = self.gathering.entry(node).or_default();
        of.lost = Some(added(builder, of.lost, lost));
        of.products = Some(added(builder, of.products, product));
        of.adjoints = Some(added(builder, of.adjoints, adjoint));
    }

    /// `sum`, the adjoint of `node`, with what rounding has taken from it; no number where powers
    /// have grown and nothing is left of their products.
    pub(super) fn gathered_sum(&mut self, node: Node, sum: Node) -> Node {
        let Some(of) = self.gathering.remove(&node) else { return sum };
        let builder = &mut self.builder;
        let sum = of.lost.map_or(sum, |lost| builder.apply(Op::Add, &[sum, lost]));
        let (Some(products), Some(adjoints)) = (of.products, of.adjoints) else { return sum };
        let [grown, part] = [GROWN, LEFT].map(|number| builder.constant(number));
        let [one, no_number] = [1.0, f64::from_bits(NO_NUMBER)].map(|x| builder.constant(x));
        let limit = builder.apply(Op::Mul, &[adjoints, grown]);
        let has_grown = builder.apply(Op::Gt, &[products, limit]);
        let least = builder.apply(Op::Mul, &[products, part]);
        let size = builder.apply(Op::Abs, &[sum]);
        let is_left = builder.apply(Op::Gt, &[size, least]);
        let if_grown = builder.apply(Op::Select, &[is_left, one, no_number]);
        let factor = builder.apply(Op::Select, &[has_grown, if_grown, one]);
        builder.apply(Op::Mul, &[sum, factor])
    }
}

fn added(builder: &mut Builder, before: Option<Node>, number: Node) -> Node {
    before.map_or(number, |before| builder.apply(Op::Add, &[before, number]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Wanted, reverse};
    use crate::ssa::{FAR, Graph, Outcome, interpret, parse};

    /// 0.1·a + 0.3·b, with the derivatives 3·10⁹ of a and -10⁹ of b by x, as they are told of
    /// `tangent`: v9 is the tangent of x, and v11 that of v9.
    fn graph(tangent: &str) -> Graph {
        let text = format!(
            "graph active 1 inactive 0\nv1 = const 1.0\nv2 = const {FAR:?}\nv3 = const {:?}\n\
             v4 = const 3e9\nv5 = const -1e9\nv6 = const 0.1\nv7 = const 0.3\nb0:\n  \
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
        assert_eq!(slope("v11"), 1e9 * 2f64.powi(-55));
        assert_ne!(slope("v9"), slope("v11"));
    }

    #[test]
    fn nothing_is_known_where_large_slopes_cancel_by_all_digits() {
        let slope = |large: f64| {
            let text = graph("v11").to_string();
            let text = text.replace("const 3000000000.0", &format!("const {:?}", 3.0 * large));
            let text = text.replace("const -1000000000.0", &format!("const {:?}", -large));
            let graph = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let gradient = reverse(&graph, Wanted::Gradient, Folding::Real);
            match interpret(&gradient, &[2.0]) {
                Outcome::Values(values) => values[0],
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(slope(2f64.powi(30)), 2f64.powi(-25));
        assert!(slope(2f64.powi(60)).is_nan());
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
