//! The Cholesky factor of a positive definite matrix.
//!
//! Derivatives: I. Murray, "Differentiation of the Cholesky decomposition" (2016). With Φ, which
//! takes the lower triangle and half of the diagonal, L̇ = L Φ(L⁻¹ȦL⁻ᵀ); the adjoint of A is
//! L⁻ᵀ Φ(LᵀW) L⁻¹.

use super::buffer::with_zeros;
use super::product::{Operand, add_product};
use super::shape::{entries, is_expected, lower_triangle, nan, nan_of_shape};
use super::table::Table;
use super::triangular::{
    divide_by_lower, divide_by_upper, dot, halve, length, pack_symmetric, row, unpack,
    unpack_symmetric,
};
use crate::custom::Operation;
use crate::trace::Var;

/// The error of a matrix that is not positive definite, to working precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the matrix is not positive definite")]
pub struct NotPositiveDefinite;

/// The Cholesky factor of a positive definite n x n matrix: the lower triangular L with A = LLᵀ, as
/// a full row-major matrix.
///
/// It is a function of the lower triangle of `a`, entries above the diagonal are ignored. So a
/// derivative by an entry below the diagonal counts for both that are equal in a symmetric matrix.
///
/// # Errors
///
/// [`NotPositiveDefinite`] if a pivot is not positive. If `a` does not have n² entries, the
/// recording fails ([`Error::is_shape`](crate::Error::is_shape)); the results are NaN.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var, linalg};
///
/// // The logarithm of a determinant.
/// let f = Tape::record(|a: &[Var]| {
///     let l = linalg::cholesky(a, 2)?;
///     Ok::<_, linalg::NotPositiveDefinite>(2.0 * (l[0].ln() + l[3].ln()))
/// });
/// let gradient = f.grad(&[4.0, 0.0, 2.0, 2.0])??;
/// assert!((gradient[0] - 0.5).abs() < 1e-15); // A⁻¹ = [[0.5, -0.5], [-0.5, 1]]
/// assert!((gradient[2] + 1.0).abs() < 1e-15); // Twice, by both entries.
/// assert_eq!(f.eval(&[1.0, 0.0, 2.0, 1.0])?, Err(linalg::NotPositiveDefinite));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn cholesky(a: &[Var], n: usize) -> Result<Vec<Var>, NotPositiveDefinite> {
    if !is_expected("length of `a` of `linalg::cholesky`", a.len(), entries([n, n])) {
        return Ok(nan_of_shape(entries([n, n])));
    }
    if n == 0 {
        return Ok(nan(0));
    }
    static FACTORS: Table<Cholesky> = Table::new();
    let lower = FACTORS.get(Cholesky { n }).call(&lower_triangle(a, n))?;
    let mut factor = vec![Var::from(0.0); n * n];
    for (i, to) in factor.chunks_exact_mut(n).enumerate() {
        to[..=i].copy_from_slice(&lower[row(i)]);
    }
    Ok(factor)
}

/// From the lower triangle of A to that of L.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cholesky {
    n: usize,
}

impl Cholesky {
    /// Φ(L⁻¹ȦL⁻ᵀ).
    fn relative_tangent(self, l: &[f64], direction: &[f64], out: &mut [f64]) {
        unpack_symmetric(direction, out, self.n);
        divide_by_lower(l, out, self.n);
        halve(out, self.n);
    }
}

impl Operation for Cholesky {
    type Error = NotPositiveDefinite;

    fn inputs(&self) -> usize {
        length(self.n)
    }

    fn outputs(&self) -> usize {
        length(self.n)
    }

    fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), NotPositiveDefinite> {
        y.copy_from_slice(x);
        for i in 0..self.n {
            let (before, rest) = y.split_at_mut(row(i).start);
            let current = &mut rest[..=i];
            for j in 0..i {
                let other = &before[row(j)];
                current[j] = (current[j] - dot(&current[..j], &other[..j])) / other[j];
            }
            let pivot = current[i] - dot(&current[..i], &current[..i]);
            // NaN is the result of NaN.
            if pivot <= 0.0 {
                return Err(NotPositiveDefinite);
            }
            current[i] = pivot.sqrt();
        }
        Ok(())
    }

    fn vjp(&self, _: &[f64], y: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
        let n = self.n;
        with_zeros(3 * n * n, |buffer| {
            let (l, buffer) = buffer.split_at_mut(n * n);
            let (weights, product) = buffer.split_at_mut(n * n);
            unpack(y, l, n);
            unpack(w, weights, n);
            add_product(Operand::new(l, n).transpose(), Operand::new(weights, n), product);
            halve(product, n);
            divide_by_upper(y, product, n);
            pack_symmetric(product, out, n);
        });
    }

    fn jvp(&self, _: &[f64], y: &[f64], _: &[f64], v: &[f64], out: &mut [f64]) {
        let n = self.n;
        with_zeros(3 * n * n, |buffer| {
            let (l, buffer) = buffer.split_at_mut(n * n);
            let (relative, tangent) = buffer.split_at_mut(n * n);
            unpack(y, l, n);
            self.relative_tangent(y, v, relative);
            add_product(Operand::new(l, n), Operand::new(relative, n), tangent);
            tangent.chunks_exact(n).enumerate().for_each(|(i, from)| {
                out[row(i)].copy_from_slice(&from[..=i]);
            });
        });
    }

    fn is_twice_differentiable(&self) -> bool {
        true
    }

    /// With P = Φ(LᵀW) and Z = Φ(L⁻¹ȦL⁻ᵀ), so that L̇ = LZ, it is
    /// L⁻ᵀ (Φ(L̇ᵀW) - ZᵀP - PZ) L⁻¹.
    fn vjp_tangent(
        &self,
        _: &[f64],
        y: &[f64],
        _: &[f64],
        (w, v): (&[f64], &[f64]),
        out: &mut [f64],
    ) {
        let (n, square) = (self.n, self.n * self.n);
        with_zeros(6 * square, |buffer| {
            let mut parts = buffer.chunks_exact_mut(square);
            let mut next = || parts.next().unwrap_or_default();
            let [l, weights, relative, tangent, p, q] = core::array::from_fn(|_| next());
            unpack(y, l, n);
            unpack(w, weights, n);
            self.relative_tangent(y, v, relative);
            let [l, weights, relative] = [&*l, weights, relative].map(|m| Operand::new(m, n));
            add_product(l, relative, tangent);
            add_product(l.transpose(), weights, p);
            halve(p, n);
            add_product(Operand::new(tangent, n).transpose(), weights, q);
            halve(q, n);
            p.iter_mut().for_each(|entry| *entry = -*entry);
            add_product(relative.transpose(), Operand::new(p, n), q);
            add_product(Operand::new(p, n), relative, q);
            divide_by_upper(y, q, n);
            pack_symmetric(q, out, n);
        });
    }

    fn name(&self) -> &str {
        "linalg::cholesky"
    }
}
