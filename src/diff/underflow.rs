//! Derivatives that are told and may have vanished.
//!
//! A closed form tells the derivative by what a loop begins with as one number, such as the power
//! aⁿ. A loop that is swept multiplies the adjoint by a, n times: if that is huge, much of it is
//! left where aⁿ alone is less than any number. There the product of both is not known.

use super::activity::Activity;
use super::reverse::Reverse;
use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{Def, MODERATE, Node, slope_by};

/// 2⁻⁸⁸⁰: what is told has all its digits from here on, also if it was a power before it was
/// multiplied by something of [`MODERATE`] size.
pub(super) const LEAST_TOLD: f64 = f64::from_bits(0x08F0_0000_0000_0000);

/// 2⁻⁷⁵²: what is passed on where an adjoint of [`MODERATE`] size meets that.
const LEAST_PASSED: f64 = MODERATE * LEAST_TOLD;

/// For each derivative that is told times its tangent the derivative, if that may have vanished.
pub(super) fn slopes_that_may_vanish(activity: &Activity<'_>) -> Array<Node, Option<Node>> {
    let graph = activity.graph;
    let mut slopes = Array::filled(None, graph.nodes.len());
    for node in graph.nodes.keys().filter(|&node| activity.active[node]) {
        let slope = slope_by(graph, node).map(|(slope, _)| slope);
        let may_vanish =
            |&slope: &Node| graph.constant(slope).is_none_or(|it| it.abs() < LEAST_TOLD);
        slopes[node] = slope.filter(may_vanish);
    }
    // Of a derivative with twice the digits the first number tells how large it is.
    for node in graph.nodes.keys() {
        let Def::Apply(Op::Add, [first, second, _]) = graph.nodes[node].def else { continue };
        let Def::Apply(Op::Add, [_, before, _]) = graph.nodes[first].def else { continue };
        let [first, by] = [before, second].map(|node| slope_by(graph, node).map(|(_, by)| by));
        if first.is_some() && first == by {
            slopes[second] = None;
        }
    }
    slopes
}

impl Reverse<'_> {
    /// Stops where `adjoint` is huge, and `node` is a derivative times its tangent, and so small
    /// that it may have vanished.
    pub(super) fn require_known(&mut self, node: Node, adjoint: Node) {
        let Some(slope) = self.may_vanish[node] else { return };
        let is_moderate = |adjoint: f64| adjoint.abs() <= MODERATE;
        if self.builder.graph().constant(adjoint).is_some_and(is_moderate) {
            return;
        }
        let slope = self.at_hand(slope, node);
        let builder = &mut self.builder;
        let [least, least_passed] =
            [LEAST_TOLD, LEAST_PASSED].map(|number| builder.constant(number));
        let passed = builder.apply(Op::Mul, &[adjoint, slope]);
        let [adjoint, passed] = [adjoint, passed].map(|of| builder.apply(Op::Abs, &[of]));
        let limit = builder.apply(Op::Mul, &[adjoint, least]);
        let size = builder.apply(Op::Max, &[passed, least_passed]);
        let is_known = builder.apply(Op::Le, &[limit, size]);
        builder.guard(is_known, true);
    }
}

#[cfg(test)]
mod tests {
    use crate::diff::{Wanted, reverse};
    use crate::ssa::{FAR, Folding, Graph, Outcome, interpret, parse};

    const HUGE: f64 = 1e300;

    /// a times what has these derivatives by x, told in a row; x is the active input, a is v1, and v2
    /// and v3 are derivatives.
    fn graph(slopes: &[&str]) -> Graph {
        let mut text = format!(
            "graph active 1 inactive 3\nv4 = const 1.0\nv5 = const {FAR:?}\nv6 = const {:?}\n\
             v7 = const 0.0\nv8 = const 1e-290\nb0:\n  v9 = add v0 v5\n  v10 = mul_add v9 v4 v6\n  \
             v11 = neg v10\n  v12 = add v10 v10\n",
            -FAR
        );
        let mut last = 3;
        for (at, slope) in slopes.iter().enumerate() {
            let (product, sum) = (13 + 2 * at, 14 + 2 * at);
            text += &format!("  v{product} = mul {slope}\n  v{sum} = add v{last} v{product}\n");
            last = sum;
        }
        let whole = last + 1;
        text += &format!("  v{whole} = mul v1 v{last}\n  return v{whole}\n");
        parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// The derivative by x, if it is known.
    fn slope(slopes: &[&str], [a, b, c]: [f64; 3]) -> Option<f64> {
        let gradient = reverse(&graph(slopes), Wanted::Gradient, Folding::Real);
        match interpret(&gradient, &[2.0, a, b, c]) {
            Outcome::Values(values) => Some(values[0]),
            _ => None,
        }
    }

    #[test]
    fn derivatives_that_may_have_vanished_do_not_meet_huge_adjoints() {
        for told in [["v2 v10"], ["v10 v2"]] {
            for vanished in [0.0, 5e-324, -1e-290] {
                assert_eq!(slope(&told, [HUGE, vanished, 0.0]), None, "{told:?} {vanished:e}");
                assert_eq!(slope(&told, [-HUGE, vanished, 0.0]), None, "{told:?} {vanished:e}");
                let moderate = [3e38, vanished, 0.0];
                assert_eq!(slope(&told, moderate), Some(3e38 * vanished), "{told:?} {vanished:e}");
            }
            assert_eq!(slope(&told, [HUGE, 1e-260, 0.0]), Some(HUGE * 1e-260));
            assert_eq!(slope(&told, [HUGE, -2.0, 0.0]), Some(-2.0 * HUGE));
            assert_eq!(slope(&told, [f64::NAN, 2.0, 0.0]), None);
            assert_eq!(slope(&told, [f64::INFINITY, 0.0, 0.0]), None);
        }
    }

    #[test]
    fn so_do_constants_and_what_is_told_of_several() {
        for told in ["v7 v10", "v8 v10", "v2 v11", "v2 v12"] {
            assert_eq!(slope(&[told], [HUGE, 0.0, 0.0]), None, "{told}");
            assert!(slope(&[told], [1.0, 0.0, 0.0]).is_some(), "{told}");
        }
        assert_eq!(slope(&["v4 v10"], [HUGE, 0.0, 0.0]), Some(HUGE));
    }

    #[test]
    fn second_parts_of_derivatives_may_be_nothing() {
        let pair = ["v2 v10", "v3 v10"];
        assert_eq!(slope(&pair, [HUGE, 2.0, 0.0]), Some(2.0 * HUGE));
        assert_eq!(slope(&pair, [HUGE, 0.0, 2.0]), None);
        // By another tangent it is a derivative of its own.
        assert_eq!(slope(&["v2 v10", "v3 v11"], [HUGE, 2.0, 0.0]), None);
    }
}
