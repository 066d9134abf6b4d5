//! Scalar recurrences by quotients.
//!
//! After n steps of `y -> a y + b`, y is `aⁿ y0 + b s` with `s = (aⁿ - 1)/(a - 1)`, and the
//! derivative of s by a is `(n aⁿ⁻¹ - s)/(a - 1)`, so that one power is enough. Near a = 1 the
//! differences cancel, and the error bounds grow.

use super::acceptance::Range;
use super::double_double::{Bounded, Dot, power_of_two};
use super::powering::Adjoints;

/// The largest error bound of a quotient, relative to it. A less accurate one fails the contract's
/// 2^-75 of the effect if the terms of the result cancel; near a = 1 binary powering is used.
const MAX_QUOTIENT_ERROR: f64 = power_of_two(-72);

/// The state, and its partial derivatives as the adjoints of a, b and y0.
#[derive(Clone, Copy, Debug)]
pub struct Quotients {
    /// The state after all steps.
    pub state: Bounded,
    /// The partial derivatives.
    pub adjoints: Adjoints<1, 1>,
}

/// The state after `trips` steps, at least one; `None` if a quotient is not accurate.
#[inline(always)]
pub fn by_quotients(
    ratio: Bounded,
    offset: Bounded,
    start: Bounded,
    trips: u64,
    range: &mut Range,
) -> Option<Quotients> {
    // ratio^(trips - 1) by binary powering, from the lowest bit. The magnitude of each power is at
    // most 1 or that of the last one, so a range check of the last one is enough.
    let mut power = Bounded::ONE;
    let mut square = ratio;
    let mut exponent = trips.checked_sub(1)?;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power * square;
        }
        exponent >>= 1;
        if exponent > 0 {
            square = square * square;
        }
    }
    let full_power = power * ratio;
    let scaled_power = power * Bounded::exact(trips as f64);
    let mut state = Dot::product(full_power, start);
    let mut by_ratio = Dot::product(scaled_power, start);
    let ratio_minus_one = ratio - Bounded::ONE;
    let sum = Dot::from(full_power).plus(-Bounded::ONE).finish(2) / ratio_minus_one;
    let sum_by_ratio = Dot::from(scaled_power).plus(-sum).finish(2) / ratio_minus_one;
    if !(is_accurate(sum) && (offset.is_zero() || is_accurate(sum_by_ratio))) {
        return None;
    }
    if !offset.is_zero() {
        state = state.plus_product(offset, sum);
        by_ratio = by_ratio.plus_product(offset, sum_by_ratio);
    }
    let (state, by_ratio) = (state.finish(2), by_ratio.finish(2));
    for number in [full_power, scaled_power, sum, state, by_ratio] {
        range.check(number);
    }
    let adjoints = Adjoints { matrix: [[by_ratio]], offset: [sum], start: [[full_power]] };
    Some(Quotients { state, adjoints })
}

/// True if the error bound of a quotient is small enough.
#[inline(always)]
fn is_accurate(quotient: Bounded) -> bool {
    quotient.bound <= MAX_QUOTIENT_ERROR * quotient.hi.abs()
}
