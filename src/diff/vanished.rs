//! Derivatives that are told and may have vanished.
//!
//! A closed form tells the derivative by what a loop begins with as one number, such as the power
//! aⁿ. A loop that is swept multiplies the adjoint by a, n times: if that is huge, much of it is
//! left where aⁿ alone is less than any number. There the product of both is not known.

use super::activity::Activity;
use super::reverse::Reverse;
use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{Def, Graph, Node, is_tangent};

/// 2⁻⁸⁹⁶: derivatives that are told have all their digits from here on, also if they are products
/// with what closed forms begin with, which is no more than 2¹²⁸.
const LEAST: f64 = f64::from_bits(0x07F0_0000_0000_0000);

/// 2⁻⁷⁶⁸: what is passed on if an adjoint of 2¹²⁸ meets that.
const LEAST_PASSED: f64 = f64::from_bits(0x0FF0_0000_0000_0000);

/// For each derivative that is told, and may have vanished, times its tangent what that is.
pub(super) fn told(activity: &Activity<'_>) -> Array<Node, Option<Node>> {
    let graph = activity.graph;
    let mut told = Array::filled(None, graph.nodes.len());
    for node in graph.nodes.keys().filter(|&node| activity.active[node]) {
        let slope = slope(graph, node).map(|(slope, _)| slope);
        told[node] = slope.filter(|&slope| graph.constant(slope).is_none_or(|it| it.abs() < LEAST));
    }
    // Of a derivative with twice the digits the first number tells how large it is.
    for node in graph.nodes.keys() {
        let Def::Apply(Op::Add, [first, second, _]) = graph.nodes[node].def else { continue };
        let Def::Apply(Op::Add, [_, before, _]) = graph.nodes[first].def else { continue };
        let by = [before, second].map(|node| slope(graph, node).map(|(_, by)| by));
        if by[0].is_some() && by[0] == by[1] {
            told[second] = None;
        }
    }
    told
}

/// A derivative, and the tangent that it is multiplied by in `node`.
fn slope(graph: &Graph, node: Node) -> Option<(Node, Node)> {
    let Def::Apply(Op::Mul, [a, b, _]) = graph.nodes[node].def else { return None };
    match [a, b].map(|of| is_tangent(graph, of)) {
        [_, true] => Some((a, b)),
        [true, _] => Some((b, a)),
        _ => None,
    }
}

impl Reverse<'_> {
    /// Stops where `adjoint` is huge and the derivative so small that it may have vanished, if
    /// `node` is a derivative that is told.
    pub(super) fn require_known(&mut self, node: Node, adjoint: Node) {
        let Some(slope) = self.told[node] else { return };
        let slope = self.copied(slope);
        let builder = &mut self.builder;
        let is_moderate = |adjoint: f64| adjoint.abs() <= LEAST_PASSED / LEAST;
        if builder.graph().constant(adjoint).is_some_and(is_moderate) {
            return;
        }
        let [least, least_passed] = [LEAST, LEAST_PASSED].map(|number| builder.constant(number));
        let passed = builder.apply(Op::Mul, &[adjoint, slope]);
        let [adjoint, passed] = [adjoint, passed].map(|of| builder.apply(Op::Abs, &[of]));
        let limit = builder.apply(Op::Mul, &[adjoint, least]);
        let size = builder.apply(Op::Max, &[passed, least_passed]);
        let is_known = builder.apply(Op::Le, &[limit, size]);
        builder.guard(is_known, true);
    }
}
