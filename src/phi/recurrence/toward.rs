//! A number that a loop carries, and a loop in it takes to a point, or away from that.
//!
//! Let s become c + P·(s - c) in each iteration. In a sweep the adjoint of s is multiplied by P,
//! and that of c gets the rest: both together stay what they were. Where |P| is
//! larger than 1 in some iterations and less in others each may grow to be large, and be small
//! again in the end; of a sum of products with 1 - P, each rounded, nothing is left then. A
//! program that computes s - r·(s - c) adds the same to the one as it takes from the other,
//! and loses nothing. So does what is told here: the adjoint of c gets all that there was of s,
//! and then less what is left to s, the same number; or, where P is near 1, less the same product
//! with P - 1 that s gets.

use super::emit::Emitter;
use super::form::{Affine, Base};
use super::slopes::is_carried;
use super::terms::{Step, Terms};
use crate::op::Op;
use crate::phi::pair::Pairs;
use crate::ssa::Node;

/// A number and the point that it is taken to.
pub(super) struct Toward {
    /// What the loop around carries.
    pub(super) number: Node,
    /// The nodes that the point is the sum of, with their factors, but for constants.
    parts: Vec<(Node, f64)>,
}

impl Toward {
    /// Of what is `first` and makes `step`, which is known as `row`, too; `None` if the point is
    /// not known, or if the number or the step depends on it.
    pub(super) fn of(
        emitter: &Emitter<'_>,
        row: &Affine,
        step: &Step,
        first: &Terms,
    ) -> Option<Toward> {
        let (&[(number, 1)], _) = first.single()? else { return None };
        let (own, mut others) = (step.added.nodes(), first.nodes());
        others.extend(step.shared.iter().flat_map(Terms::nodes));
        if step.less_one != Terms::number(1.0.into())
            || !is_carried(emitter, number)
            || !own.is_disjoint(&others)
        {
            return None;
        }
        // What was computed before the loop may be the point, whatever it was computed of.
        let mut bases = row.keys().filter_map(|&base| match base {
            Base::Node(node) if emitter.value(node).is_none() => Some(node),
            _ => None,
        });
        if let (Some(node), None) = (bases.next(), bases.next())
            && step.added.plus(&Terms::of_node(emitter, node)).is_zero()
        {
            return Some(Toward { number, parts: vec![(node, 1.0)] });
        }
        let part = |term: Terms| {
            let (powers, factor) = term.single()?;
            match *powers {
                [] => Some(None),
                [(node, 1)] if factor.low == 0.0 => Some(Some((node, -factor.high))),
                _ => None,
            }
        };
        let parts: Option<Vec<_>> = step.added.singles().map(part).collect();
        Some(Toward { number, parts: parts?.into_iter().flatten().collect() })
    }

    /// `value` with its derivatives by the point, where that by the number is `slope`, and 1 more
    /// if it `is_near` that.
    pub(super) fn told(
        &self,
        emitter: &mut Emitter<'_>,
        mut value: Node,
        is_near: Node,
        slope: Node,
    ) -> Node {
        let (slope, zero) = (emitter.held(slope), emitter.constant(0.0));
        for &(part, factor) in &self.parts {
            let (tangent, factor) = (emitter.tangent(part), emitter.constant(factor));
            let part = emitter.apply(Op::Mul, &[factor, tangent]);
            let left = emitter.apply(Op::Mul, &[slope, part]);
            value = emitter.apply(Op::Sub, &[value, left]);
            // A sweep comes to this first.
            let whole = emitter.apply(Op::Select, &[is_near, zero, part]);
            value = emitter.apply(Op::Add, &[value, whole]);
        }
        value
    }
}
