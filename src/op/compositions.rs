//! Functions that are composed of primitives without a guard, over the [`Algebra`] of derivative
//! rules: the same formula records on the tape and computes on numbers, bit for bit.
//!
//! Where a formula has a side for each sign, one condition selects all parts of it, so that the
//! derivative at the join is that of one side, and not a mixture of subgradients.

use core::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

use super::Op;
use super::derivative::Algebra;

/// `-|a|`, with the condition that `a` is negative.
fn negative_magnitude<A: Algebra>(k: &mut A, a: A::Value) -> (A::Value, A::Value) {
    let is_negative = formula!(k; Lt(a, 0.0));
    (is_negative, formula!(k; Select(is_negative, a, Neg(a))))
}

/// ln(1 + eᵃ) as max(a, 0) + ln(1 + exp(-|a|)).
pub(crate) fn softplus<A: Algebra>(k: &mut A, a: A::Value) -> A::Value {
    let (is_negative, exponent) = negative_magnitude(k, a);
    formula!(k; Add(Select(is_negative, 0.0, a), Ln1p(Exp(exponent))))
}

/// 1 / (1 + e⁻ᵃ) by exp(-|a|), which does not overflow.
pub(crate) fn sigmoid<A: Algebra>(k: &mut A, a: A::Value) -> A::Value {
    let (is_negative, exponent) = negative_magnitude(k, a);
    let exponential = formula!(k; Exp(exponent));
    formula!(k; Div(Select(is_negative, exponential, 1.0), Add(1.0, exponential)))
}

/// ln(a / (1 - a)): 2·artanh(2a - 1) around its root, where the difference of logarithms cancels.
pub(crate) fn logit<A: Algebra>(k: &mut A, a: A::Value) -> A::Value {
    let shifted = formula!(k; Sub(Mul(2.0, a), 1.0));
    let is_near = formula!(k; Lt(Abs(shifted), 0.5));
    let near = formula!(k; Mul(2.0, Atanh(shifted)));
    let far = formula!(k; Sub(Ln(a), Ln1p(Neg(a))));
    formula!(k; Select(is_near, near, far))
}

/// ln(eᵃ + eᵇ) as max(a, b) + ln(1 + exp(-|a - b|)).
pub(crate) fn log_add_exp<A: Algebra>(k: &mut A, a: A::Value, b: A::Value) -> A::Value {
    let difference = formula!(k; Sub(a, b));
    // Of equal infinities it is NaN.
    let is_nan = formula!(k; Ne(difference, difference));
    let of_equals = formula!(k; Select(Eq(a, b), 0.0, difference));
    let difference = formula!(k; Select(is_nan, of_equals, difference));
    let (is_below, exponent) = negative_magnitude(k, difference);
    formula!(k; Add(Select(is_below, b, a), Ln1p(Exp(exponent))))
}

/// ln(Γ(a)·Γ(b)/Γ(a + b)) as ln Γ of the smaller less the rising factorial of the larger.
pub(crate) fn ln_beta<A: Algebra>(k: &mut A, a: A::Value, b: A::Value) -> A::Value {
    let is_below = formula!(k; Lt(a, b));
    let smaller = formula!(k; Select(is_below, a, b));
    let larger = formula!(k; Select(is_below, b, a));
    formula!(k; Sub(LnGamma(smaller), LnRising(larger, smaller, 0.0)))
}

/// Φ(a) = erfc(-a/√2)/2.
pub(crate) fn normal_cdf<A: Algebra>(k: &mut A, a: A::Value) -> A::Value {
    formula!(k; Mul(0.5, Erfc(Mul([-FRAC_1_SQRT_2], a))))
}

/// ln Φ(a): below 0 by the scaled error function.
pub(crate) fn ln_normal_cdf<A: Algebra>(k: &mut A, a: A::Value) -> A::Value {
    let is_negative = formula!(k; Lt(a, 0.0));
    let scaled = formula!(k; Mul([FRAC_1_SQRT_2], a));
    // Each side gets 0 where the other one is taken, so that no derivative is infinite there.
    let below = formula!(k; Select(is_negative, Neg(scaled), 0.0));
    let above = formula!(k; Select(is_negative, 0.0, scaled));
    let size = formula!(k; Select(is_negative, a, 0.0));
    let of_negative = formula!(k; Sub(Ln(Mul(0.5, Erfcx(below, 0.0))), Mul(0.5, Mul(size, size))));
    let of_positive = formula!(k; Ln1p(Mul([-0.5], Erfc(above))));
    formula!(k; Select(is_negative, of_negative, of_positive))
}

/// Φ⁻¹(a) = -√2·erfc⁻¹(2a).
pub(crate) fn normal_quantile<A: Algebra>(k: &mut A, a: A::Value) -> A::Value {
    formula!(k; Mul([-SQRT_2], ErfcInv(Mul(2.0, a))))
}

/// The remainder of `a / b` that is not negative.
pub(crate) fn rem_euclid<A: Algebra>(k: &mut A, a: A::Value, b: A::Value) -> A::Value {
    let remainder = formula!(k; Rem(a, b));
    formula!(k; Select(Lt(remainder, 0.0), Add(remainder, Abs(b)), remainder))
}

/// The quotient that leaves [`rem_euclid`].
pub(crate) fn div_euclid<A: Algebra>(k: &mut A, a: A::Value, b: A::Value) -> A::Value {
    let quotient = formula!(k; Trunc(Div(a, b)));
    let lowered = formula!(k; Select(Gt(b, 0.0), Sub(quotient, 1.0), Add(quotient, 1.0)));
    formula!(k; Select(Lt(Rem(a, b), 0.0), lowered, quotient))
}

/// exp(a²)·erfc(a)
pub(crate) fn erfcx<A: Algebra>(k: &mut A, a: A::Value) -> A::Value {
    formula!(k; Erfcx(a, 0.0))
}

/// The polygamma function of this order.
pub(crate) fn polygamma<A: Algebra>(k: &mut A, a: A::Value, order: u32) -> A::Value {
    formula!(k; Polygamma(a, [f64::from(order)]))
}

/// The first derivative of ln Γ.
pub(crate) fn digamma<A: Algebra>(k: &mut A, a: A::Value) -> A::Value {
    formula!(k; Polygamma(a, 0.0))
}

/// The second derivative of ln Γ.
pub(crate) fn trigamma<A: Algebra>(k: &mut A, a: A::Value) -> A::Value {
    formula!(k; Polygamma(a, 1.0))
}

/// ln(Γ(a + b)/Γ(a))
pub(crate) fn ln_rising<A: Algebra>(k: &mut A, a: A::Value, b: A::Value) -> A::Value {
    formula!(k; LnRising(a, b, 0.0))
}

/// The lower regularised incomplete gamma function.
pub(crate) fn gamma_p<A: Algebra>(k: &mut A, a: A::Value, shape: A::Value) -> A::Value {
    formula!(k; GammaP(a, shape, 0.0))
}

/// The regularised incomplete beta function.
pub(crate) fn beta_inc<A: Algebra>(k: &mut A, x: A::Value, a: f64, b: f64) -> A::Value {
    formula!(k; BetaInc(x, [a], [b]))
}

/// The Bessel function of the first kind of this order.
pub(crate) fn bessel_j<A: Algebra>(k: &mut A, a: A::Value, order: i32) -> A::Value {
    formula!(k; BesselJ(a, [f64::from(order)]))
}

/// The modified Bessel function of the first kind of this order.
pub(crate) fn bessel_i<A: Algebra>(k: &mut A, a: A::Value, order: i32) -> A::Value {
    formula!(k; BesselI(a, [f64::from(order)]))
}
