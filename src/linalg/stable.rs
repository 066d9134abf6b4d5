//! Functions of vectors that do not overflow, without a guard: norm, log-sum-exp, softmax.

use super::shape::nan;
use crate::trace::Var;

/// The Euclidean norm √(Σ xᵢ²), without overflow or underflow of the squares. Its derivative at the
/// origin is taken as 0; it is 0 for an empty slice. If an entry is infinite, the norm is ∞ and its
/// gradient is 0.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var, linalg};
///
/// let f = Tape::record(|x: &[Var]| linalg::norm(x));
/// for scale in [1.0, 1e200, 1e-200] {
///     let (value, gradient) = f.value_and_grad(&[3.0 * scale, -4.0 * scale])?;
///     assert!((value / (5.0 * scale) - 1.0).abs() < 1e-15);
///     assert!((gradient[0] - 0.6).abs() < 1e-15 && (gradient[1] + 0.8).abs() < 1e-15);
/// }
/// assert_eq!(f.grad(&[0.0, 0.0])?, [0.0, 0.0]);
/// assert_eq!(f.value_and_grad(&[1.0, f64::INFINITY])?, (f64::INFINITY, vec![0.0, 0.0]));
/// # Ok::<(), phigrad::Error>(())
/// ```
#[track_caller]
#[must_use]
pub fn norm(x: &[Var]) -> Var {
    let Some((&first, others)) = x.split_first() else { return Var::from(0.0) };
    let mut largest = first.abs();
    for &x in others {
        largest = x.abs().max(largest);
    }
    // A power of two near the largest number: scaling is exact, and `floor` has no derivative.
    // Within the bounds neither the squares nor the adjoints overflow.
    let exponent = largest.log2().floor().max(-800.0).min(800.0);
    let (scale, inverse) = (exponent.exp2(), (-exponent).exp2());
    let scaled = first * inverse;
    let mut sum = scaled * scaled;
    for &x in others {
        let scaled = x * inverse;
        sum += scaled * scaled;
    }
    let is_zero = sum.equal_to(0.0);
    is_zero.select(0.0, is_zero.select(1.0, sum).sqrt() * scale)
}

/// ln Σ exp xᵢ, without overflow. It is -∞ for an empty slice.
///
/// Numbers that are -∞ contribute nothing, and have derivative 0. If all are -∞ or one is ∞, so is
/// the result, and the derivative is NaN.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var, linalg};
///
/// let f = Tape::record(|x: &[Var]| linalg::log_sum_exp(x));
/// let (value, gradient) = f.value_and_grad(&[1000.0, 1000.0, f64::NEG_INFINITY])?;
/// assert_eq!(value, 1000.0 + 2.0f64.ln());
/// assert_eq!(gradient, [0.5, 0.5, 0.0]);
/// # Ok::<(), phigrad::Error>(())
/// ```
#[track_caller]
#[must_use]
pub fn log_sum_exp(x: &[Var]) -> Var {
    let Some((&first, others)) = x.split_first() else { return Var::from(f64::NEG_INFINITY) };
    // Shifted by the largest number itself, not by its integer part as in `softmax`, the result is
    // accurate near 0 as well.
    let shift = finite_or_zero(largest(first, others));
    let mut sum = (first - shift).exp();
    for &x in others {
        sum += (x - shift).exp();
    }
    shift + sum.ln()
}

/// exp xᵢ / Σ exp xⱼ for each number, without overflow.
///
/// Numbers that are -∞ have the result 0, and derivative 0. If all are -∞ or one is ∞, results are
/// NaN.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var, linalg};
///
/// let f = Tape::record(|x: &[Var]| linalg::softmax(x));
/// assert_eq!(f.eval(&[1000.0, 1000.0, f64::NEG_INFINITY])?, [0.5, 0.5, 0.0]);
/// # Ok::<(), phigrad::Error>(())
/// ```
#[track_caller]
#[must_use]
pub fn softmax(x: &[Var]) -> Vec<Var> {
    let Some((&first, others)) = x.split_first() else { return nan(0) };
    // Any number near the largest one serves, and `floor` has no derivative.
    let shift = finite_or_zero(largest(first, others).floor());
    let mut terms = Vec::with_capacity(x.len());
    for &x in x {
        terms.push((x - shift).exp());
    }
    let mut sum = terms[0];
    for &term in &terms[1..] {
        sum += term;
    }
    for term in &mut terms {
        *term /= sum;
    }
    terms
}

/// The largest number; NaN is ignored.
#[track_caller]
fn largest(first: Var, others: &[Var]) -> Var {
    let mut largest = first;
    for &x in others {
        largest = x.max(largest);
    }
    largest
}

/// `x`, but 0 where it is infinite.
#[track_caller]
fn finite_or_zero(x: Var) -> Var {
    x.abs().less_than(f64::INFINITY).select(x, 0.0)
}
