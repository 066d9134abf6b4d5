//! Gathered adjoints: sums that are computed with twice the digits.
//!
//! What a closed form makes of several numbers is a matrix of known derivatives. Where it
//! has grown, what the numbers pass on to one that they began as may cancel: a loop would
//! have passed on little or nothing in each step, and of the sum of the rounded products no
//! digit is left. So these are summed as in "Accurate Sum and Dot Product" (Ogita, Rump and
//! Oishi 2005), algorithm Dot2. What is told so says it by its tangent, which is that of one form
//! alone (`ssa::tangent`). Where powers have grown and little is left of the sum it is no number.

use super::activity::Activity;
use super::reverse::Reverse;
use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{
    Builder, Folding, NO_NUMBER, Node, for_each_use, grown_by, is_gathering, split_product,
    split_sum,
};

/// Which nodes have adjoints that are gathered: tangents that say so, which primitives in the block
/// that they are in use and nothing else, as those of a form do. So an adjoint is gathered and
/// passed on in one go through a block. Only for [`Folding::Real`]: otherwise the order of additions
/// is that of the tape.
pub(super) fn gathered(activity: &Activity<'_>, folding: Folding) -> Array<Node, bool> {
    let graph = activity.graph;
    let mut gathered = Array::filled(false, graph.nodes.len());
    if folding == Folding::Exact {
        return gathered;
    }
    for node in graph.nodes.keys().filter(|&node| activity.active[node]) {
        gathered[node] = is_gathering(graph, node);
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

/// This part of products is to be left of their sum if they are [`grown_by`] so many times larger
/// than what slopes were multiplied by: such slopes are powers that have grown, or what comes of
/// them, and have no more than twice the digits. Units matter to that. Where slopes are large for
/// another reason, what cancels is the loop's for nothing.
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
        let grown = grown_by(self.activity.graph, node);
        let builder = &mut self.builder;
        let sum = of.lost.map_or(sum, |lost| builder.apply(Op::Add, &[sum, lost]));
        let (Some(products), Some(adjoints)) = (of.products, of.adjoints) else { return sum };
        let [grown, part] = [grown, LEFT].map(|number| builder.constant(number));
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
    use std::collections::BTreeSet;

    use super::*;
    use crate::diff::{Wanted, reverse};
    use crate::ssa::{FAR, Graph, Outcome, far, interpret, is_far, next_form, parse};

    /// 0.1·a + 0.3·b, with derivatives of a and b by x that are inactive inputs, told by a
    /// tangent that is so `far`.
    fn graph(far: f64) -> Graph {
        let text = format!(
            "graph active 1 inactive 2\nv3 = const 1.0\nv4 = const {far:?}\nv5 = const {:?}\n\
             v6 = const 0.1\nv7 = const 0.3\nb0:\n  v8 = add v0 v4\n  v9 = mul_add v8 v3 v5\n  \
             v10 = mul v1 v9\n  v11 = mul v2 v9\n  v12 = mul v6 v10\n  v13 = mul v7 v11\n  \
             v14 = add v12 v13\n  return v14\n",
            -far
        );
        parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// The derivative by x if those of a and b are `slopes`.
    fn slope(far: f64, slopes: [f64; 2]) -> f64 {
        let gradient = reverse(&graph(far), Wanted::Gradient, Folding::Real);
        match interpret(&gradient, &[2.0, slopes[0], slopes[1]]) {
            Outcome::Values(values) => values[0],
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_cancels_at_a_tangent_of_a_form_has_all_digits() {
        // 3·0.1 - 0.3 is 2⁻⁵⁵ for the numbers that are next to these.
        for size in [1.0, 1e9, 2f64.powi(38), 2f64.powi(39)] {
            let slopes = [3.0 * size, -size];
            assert_eq!(slope(far(1, 1.0), slopes), size * 2f64.powi(-55), "{size:e}");
            assert_ne!(slope(FAR, slopes), slope(far(1, 1.0), slopes), "{size:e}");
        }
    }

    #[test]
    fn nothing_is_known_where_large_slopes_cancel_by_all_digits() {
        for size in [2f64.powi(40), 2f64.powi(60), f64::INFINITY, f64::NAN] {
            assert!(slope(far(1, 1.0), [3.0 * size, -size]).is_nan(), "{size:e}");
        }
        // Where some are left, or slopes are small, it is the sum.
        for (first, second) in [(2f64.powi(60), 1e10), (2f64.powi(60), -2f64.powi(58)), (3.0, -1.0)]
        {
            let expected = 0.1f64.mul_add(first, 0.3 * second);
            let found = slope(far(1, 1.0), [first, second]);
            assert!((found - expected).abs() <= 1e-15 * expected.abs(), "{first} {second}");
        }
        assert_eq!(slope(far(1, 1.0), [0.0, 0.0]), 0.0);
    }

    #[test]
    fn slopes_by_what_steps_are_made_of_count_them() {
        for (steps, size) in [(2.0, 43), (16.0, 43), (400.0, 51), (1e300, 99)] {
            let far = far(1, steps);
            let largest = 2f64.powi(size);
            assert_eq!(slope(far, [3.0 * largest, -largest]), 2f64.powi(size - 55), "{steps}");
            assert!(slope(far, [6.0 * largest, -2.0 * largest]).is_nan(), "{steps}");
        }
    }

    #[test]
    fn tangents_of_forms_are_different_nodes() {
        let numbers: BTreeSet<u64> =
            [0, 1, 2, 0x2D2C, u16::MAX].map(|of| far(of, 1.0).to_bits()).into();
        assert_eq!(numbers.len(), 5);
        assert!([0, 1, 0x4D2C, u16::MAX].iter().all(|&form| is_far(far(form, 1.0))));
        assert!([1.0, -FAR, FAR.next_up(), far(1, 1.0).next_up()].iter().all(|&x| !is_far(x)));
        assert_eq!(next_form(&graph(FAR)), 1);
        assert_eq!(next_form(&graph(far(6, 1.0))), 7);
        assert_eq!(next_form(&graph(far(u16::MAX, 1.0))), u16::MAX);
    }

    #[test]
    fn what_other_blocks_use_is_not_gathered() {
        // 2·t or 3·t, where t is the tangent of x.
        let (far, less) = (far(1, 1.0), -far(1, 1.0));
        let text = format!(
            "graph active 1 inactive 0\nv1 = const 1.0\nv2 = const {far:?}\nv3 = const {less:?}\n\
             v4 = const 2.0\nv5 = const 3.0\nb0:\n  v6 = add v0 v2\n  v7 = mul_add v6 v1 v3\n  \
             branch v0 b1 b2\nb1:\n  v8 = mul v4 v7\n  return v8\nb2:\n  v9 = mul v5 v7\n  \
             return v9\n"
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
        let graph = graph(far(1, 1.0));
        let count = |folding| {
            let activity = Activity::of(&graph, folding);
            gathered(&activity, folding).values().filter(|&&is_gathered| is_gathered).count()
        };
        assert_eq!((count(Folding::Real), count(Folding::Exact)), (1, 0));
    }
}
