//! Rules for shares: what a part of a sum is of the whole, as in softmax.
//!
//! What is left of 1 without a large share has few digits. With the other parts of the
//! sum together as o, 1 - n/(n + o) is 1/(1 + n/o), in which nothing cancels, and which is
//! right also where n or o is infinite or zero.

use egg::Id;

use super::Right::{Made, Pattern as To};
use super::Tag::{NeedsFact, Real};
use super::{Rule, rule};
use crate::op::Op;
use crate::phi::simplify::found::Found;

const MADE: &[Op] = &[Op::Add, Op::Div, Op::Mul, Op::Recip, Op::Neg];

/// The rules.
pub(super) const RULES: &[Rule] = &[
    rule("1-less-share", NeedsFact, "(sub 1 (div ?n ?d))", Made(rest, MADE)).accurate(),
    rule("1-less-scaled-share", NeedsFact, "(sub 1 (mul ?n (recip ?d)))", Made(rest, MADE))
        .accurate(),
    rule("share-less-1", NeedsFact, "(sub (div ?n ?d) 1)", Made(negated_rest, MADE)).accurate(),
    rule("share-and-minus-1", NeedsFact, "(add (div ?n ?d) -1)", Made(negated_rest, MADE))
        .accurate(),
    rule("scaled-share-less-1", NeedsFact, "(sub (mul ?n (recip ?d)) 1)", Made(negated_rest, MADE))
        .accurate(),
    rule(
        "scaled-share-and-minus-1",
        NeedsFact,
        "(add (mul ?n (recip ?d)) -1)",
        Made(negated_rest, MADE),
    )
    .accurate(),
    rule(
        "derivative-of-share",
        NeedsFact,
        "(sub ?r (mul (div ?n ?d) ?r))",
        Made(scaled_rest, MADE),
    )
    .accurate(),
    rule(
        "derivative-of-difference-over-sum",
        Real,
        "(sub ?r (mul (div (sub ?n 1) (add ?n 1)) ?r))",
        To("(mul ?r (div 2 (add ?n 1)))"),
    )
    .accurate(),
    rule(
        "negated-derivative-of-difference-over-sum",
        Real,
        "(sub (neg (mul (div (sub 1 ?n) (add ?n 1)) ?r)) ?r)",
        To("(neg (mul ?r (div 2 (add ?n 1))))"),
    )
    .accurate(),
];

/// 1 + n/o
fn whole_over_rest(found: &mut Found<'_>) -> Option<Id> {
    let (part, rest) = (found.id('n')?, found.rest('n', 'd')?);
    let one = found.number(1.0);
    let ratio = if rest == one { part } else { found.apply(Op::Div, &[part, rest]) };
    Some(found.apply(Op::Add, &[ratio, one]))
}

fn rest(found: &mut Found<'_>) -> Option<Id> {
    let whole = whole_over_rest(found)?;
    Some(found.apply(Op::Recip, &[whole]))
}

fn negated_rest(found: &mut Found<'_>) -> Option<Id> {
    let rest = rest(found)?;
    Some(found.apply(Op::Neg, &[rest]))
}

fn scaled_rest(found: &mut Found<'_>) -> Option<Id> {
    let (scale, whole) = (found.id('r')?, whole_over_rest(found)?);
    Some(found.apply(Op::Div, &[scale, whole]))
}
