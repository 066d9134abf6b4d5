//! The accuracy contract: which results of a closed form are returned.
//!
//! With the running error bound e of a result v, one of the clauses of [`accepts`] has to
//! hold, and no intermediate result may be out of range; otherwise the loop runs.
//! Every comparison is such that NaN fails.

use super::double_double::{Bounded, power_of_two};

/// The largest magnitude of powers, sums, states, coefficients and adjoints. Products of two
/// are finite then, as is a sum of all such products that a routine adds up.
pub const MAX_MAGNITUDE: f64 = power_of_two(500);
/// The largest bound relative to the result. It is 2 to 4 ulp.
pub const RELATIVE_BOUND: f64 = power_of_two(-51);
/// The largest bound relative to the effect that a relative change of the input has, for
/// results that have cancelled: 1e-22. A tape in working precision is no better: for
/// descent with momentum that has converged in 300 steps it returns -2.8e-31 as the derivative
/// by the learning rate.
pub const EFFECT_BOUND: f64 = power_of_two(-75);
/// The largest magnitude, with bound, of a result that is as good as zero. It leaves room for
/// the underflow of many operations above the smallest normal number, 2.2e-308.
pub const NEGLIGIBLE: f64 = 1e-285;
/// An input counts as at least this much of the state, and at least this, where a relative
/// change of it is asked for: an input of zero has none.
pub const MIN_INPUT: f64 = power_of_two(-40);

/// Watches that numbers stay in range.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    within: bool,
}

impl Range {
    /// Nothing is out of range yet.
    pub const START: Range = Range { within: true };

    /// Takes notice of a number, with its bound.
    #[inline(always)]
    pub fn check(&mut self, number: Bounded) {
        self.within &= number.size <= MAX_MAGNITUDE;
    }

    /// Whether all numbers were in range.
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

/// The scale of a state's value: its magnitude, or what it started from.
#[inline(always)]
pub fn value_scale(value: f64, start: f64) -> f64 {
    larger(value.abs(), start.abs())
}

/// The scale of the partial derivative by an input: that which changes a state of scale `state`
/// by all of it when the input changes by all of it.
#[inline(always)]
pub fn partial_scale(state: f64, input: f64) -> f64 {
    let smallest = larger(MIN_INPUT * state, MIN_INPUT);
    state / larger(input.abs(), smallest)
}

/// Whether a result is accurate enough to be returned.
#[inline(always)]
pub fn accepts(result: Bounded, scale: f64) -> bool {
    let (value, bound) = (result.hi.abs(), result.bound);
    let accurate = bound <= RELATIVE_BOUND * value
        || bound <= EFFECT_BOUND * scale
        || value + bound <= NEGLIGIBLE;
    accurate && value <= MAX_MAGNITUDE && bound <= MAX_MAGNITUDE
}
