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
pub(super) const LEAST: f64 = f64::from_bits(0x08F0_0000_0000_0000);

/// 2⁻⁷⁵²: what is passed on where an adjoint of [`MODERATE`] size meets that.
const LEAST_PASSED: f64 = MODERATE * LEAST;

/// For each derivative that is told times its tangent the derivative, if that may have vanished.
pub(super) fn slopes_that_may_vanish(activity: &Activity<'_>) -> Array<Node, Option<Node>> {
    let graph = activity.graph;
    let mut slopes = Array::filled(None, graph.nodes.len());
    for node in graph.nodes.keys().filter(|&node| activity.active[node]) {
        let slope = slope_by(graph, node).map(|(slope, _)| slope);
        let may_vanish = |&slope: &Node| graph.constant(slope).is_none_or(|it| it.abs() < LEAST);
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
        let [least, least_passed] = [LEAST, LEAST_PASSED].map(|number| builder.constant(number));
        let passed = builder.apply(Op::Mul, &[adjoint, slope]);
        let [adjoint, passed] = [adjoint, passed].map(|of| builder.apply(Op::Abs, &[of]));
        let limit = builder.apply(Op::Mul, &[adjoint, least]);
        let size = builder.apply(Op::Max, &[passed, least_passed]);
        let is_known = builder.apply(Op::Le, &[limit, size]);
        builder.guard(is_known, true);
    }
}
