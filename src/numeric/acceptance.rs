//! The accuracy contract: the condition for returning the results of a closed form.
//!
//! Let e be the running error bound of a result v. One of the clauses of [`accepts`] must hold, and
//! all intermediate results must be in range; otherwise the call is rejected and the loop runs.
//! Comparisons are written so that NaN fails.

use super::double_double::{Bounded, power_of_two};

/// The largest magnitude of powers, sums, states, coefficients and adjoints, so that sums of
/// products of two of them do not overflow.
pub const MAX_MAGNITUDE: f64 = power_of_two(500);
/// The largest error bound relative to the result: 2 to 4 ulp.
pub const RELATIVE_BOUND: f64 = power_of_two(-51);
/// The largest error bound relative to the effect of a relative change of the input, for results
/// that have cancelled: 2.6e-23. A tape in working precision is no better: for descent with
/// momentum that has converged in 300 steps it returns -2.8e-31 as the derivative by the learning
/// rate.
pub const EFFECT_BOUND: f64 = power_of_two(-75);
/// The largest magnitude plus error bound of a result that counts as zero. It exceeds the underflow
/// of many operations near the smallest normal number, 2.2e-308.
pub const NEGLIGIBLE: f64 = 1e-285;
/// The smallest magnitude of an input, absolute and relative to the state, in [`partial_scale`]: a
/// zero input has no relative change.
pub const MIN_INPUT: f64 = power_of_two(-40);

/// The range check of intermediate results.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    within: bool,
}

impl Range {
    /// The check before the first number.
    pub const START: Range = Range { within: true };

    /// Checks a number with its error bound.
    #[inline(always)]
    pub fn check(&mut self, number: Bounded) {
        self.within &= number.size <= MAX_MAGNITUDE;
    }

    /// True if all numbers were in range.
    #[inline(always)]
    pub fn holds(self) -> bool {
        self.within
    }
}

/// The larger of two magnitudes; NaN if `a` is.
#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if a < b { b } else { a }
}

/// The scale of a state's value: the larger of its magnitude and that of its start.
#[inline(always)]
pub fn value_scale(value: f64, start: f64) -> f64 {
    larger(value.abs(), start.abs())
}

/// The scale of the partial derivative by an input: the quotient of the scale of the state and the
/// magnitude of the input.
#[inline(always)]
pub fn partial_scale(state: f64, input: f64) -> f64 {
    let smallest = larger(MIN_INPUT * state, MIN_INPUT);
    state / larger(input.abs(), smallest)
}

/// True if a result is accurate enough to be returned.
#[inline(always)]
pub fn accepts(result: Bounded, scale: f64) -> bool {
    let (value, bound) = (result.hi.abs(), result.bound);
    let accurate = bound <= RELATIVE_BOUND * value
        || bound <= EFFECT_BOUND * scale
        || value + bound <= NEGLIGIBLE;
    accurate && value <= MAX_MAGNITUDE && bound <= MAX_MAGNITUDE
}
