//! The logarithm of a determinant.
//!
//! The adjoint of A is wA⁻ᵀ. A matrix and its transpose have one determinant, so that row-major
//! matrices are factored as they are.

use super::buffer::with_zeros;
use super::lu::{self, Singular};
use super::product::transpose;
use super::shape::{entries, is_expected};
use super::table::Table;
use crate::custom::Operation;
use crate::trace::Var;

/// The determinant of a matrix as logarithm and sign.
///
/// # Examples
///
/// ```
/// use phigrad::linalg::{LogDet, Singular, log_det};
/// use phigrad::{Tape, Var};
///
/// // The determinant itself.
/// let f = Tape::record(|a: &[Var]| {
///     let LogDet { ln_abs, sign } = log_det(a, 2)?;
///     Ok::<_, Singular>(sign * ln_abs.exp())
/// });
/// assert!((f.eval(&[1.0, 2.0, 3.0, 4.0])?? + 2.0).abs() < 1e-14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LogDet {
    /// The logarithm of the absolute value.
    pub ln_abs: Var,
    /// 1 or -1, with derivative 0.
    pub sign: Var,
}

/// The determinant of an n x n matrix, as the logarithm of its absolute value and its sign, by an
/// LU factorisation with partial pivoting. There is one path for every order of pivots and both
/// signs.
///
/// # Errors
///
/// [`Singular`] if a pivot is zero. If `a` does not have n² entries, the recording fails
/// ([`Error::is_shape`](crate::Error::is_shape)); the results are NaN.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var, linalg};
///
/// let f = Tape::record(|a: &[Var]| {
///     let determinant = linalg::log_det(a, 2)?;
///     Ok::<_, linalg::Singular>(determinant.sign * determinant.ln_abs)
/// });
/// let (value, gradient) = f.value_and_grad(&[0.0, 2.0, 4.0, 0.0])??;
/// assert!((value + 8.0f64.ln()).abs() < 1e-15);
/// assert_eq!(gradient, [-0.0, -0.5, -0.25, -0.0]);
/// assert_eq!(f.eval(&[1.0, 2.0, 2.0, 4.0])?, Err(linalg::Singular));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn log_det(a: &[Var], n: usize) -> Result<LogDet, Singular> {
    let constants = |[ln_abs, sign]: [f64; 2]| LogDet { ln_abs: ln_abs.into(), sign: sign.into() };
    if !is_expected("length of `a` of `linalg::log_det`", a.len(), entries([n, n])) {
        return Ok(constants([f64::NAN; 2]));
    }
    if n == 0 {
        return Ok(constants([0.0, 1.0]));
    }
    static DETERMINANTS: Table<LogDeterminant> = Table::new();
    let results = DETERMINANTS.get(LogDeterminant { n }).call(a)?;
    Ok(LogDet { ln_abs: results[0], sign: results[1] })
}

/// From A to ln|det A| and the sign, with the factors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LogDeterminant {
    n: usize,
}

impl Operation for LogDeterminant {
    type Error = Singular;

    fn inputs(&self) -> usize {
        self.n * self.n
    }

    fn outputs(&self) -> usize {
        2
    }

    fn saved(&self) -> usize {
        lu::length(self.n)
    }

    fn eval(&self, x: &[f64], y: &mut [f64], saved: &mut [f64]) -> Result<(), Singular> {
        saved[..x.len()].copy_from_slice(x);
        lu::factor(saved, self.n)?;
        let (factors, pivots) = saved.split_at(x.len());
        let (mut ln_abs, mut sign) = (0.0, 1.0);
        for (i, pivot) in factors.iter().step_by(self.n + 1).enumerate() {
            ln_abs += pivot.abs().ln();
            // An exchange of two rows changes the sign.
            let is_exchanged = pivots[i] != i as f64;
            sign *= if is_exchanged { -pivot.signum() } else { pivot.signum() };
        }
        y.copy_from_slice(&[ln_abs, sign]);
        Ok(())
    }

    fn vjp(&self, _: &[f64], _: &[f64], saved: &[f64], w: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        out.iter_mut().step_by(self.n + 1).for_each(|entry| *entry = w[0]);
        lu::solve_transposed(saved, self.n, out);
    }

    /// The trace of A⁻¹Ȧ.
    fn jvp(&self, _: &[f64], _: &[f64], saved: &[f64], v: &[f64], out: &mut [f64]) {
        with_zeros(v.len(), |relative| {
            relative.copy_from_slice(v);
            lu::solve(saved, self.n, relative);
            out.copy_from_slice(&[relative.iter().step_by(self.n + 1).sum(), 0.0]);
        });
    }

    fn is_twice_differentiable(&self) -> bool {
        true
    }

    /// -w (A⁻¹ȦA⁻¹)ᵀ.
    fn vjp_tangent(
        &self,
        _: &[f64],
        _: &[f64],
        saved: &[f64],
        (w, v): (&[f64], &[f64]),
        out: &mut [f64],
    ) {
        out.iter_mut().zip(v).for_each(|(to, v)| *to = -w[0] * v);
        lu::solve(saved, self.n, out);
        transpose(out, self.n);
        lu::solve_transposed(saved, self.n, out);
    }

    fn name(&self) -> &str {
        "linalg::log_det"
    }
}
