//! Solutions of linear systems with the Cholesky factor of their matrix.
//!
//! With x = (LLᵀ)⁻¹b, λ = (LLᵀ)⁻¹w, u = Lᵀx and z = Lᵀλ, the adjoint of b is λ, and that of L is
//! the lower triangle of -(λuᵀ + xzᵀ).

use core::convert::Infallible;

use super::buffer::with_zeros;
use super::shape::{entries, is_expected, lower_triangle, nan, transposed};
use super::table::Table;
use super::triangular::{
    add_lower, add_multiple, add_upper, length, row, solve_lower, solve_upper,
};
use crate::custom::Operation;
use crate::trace::Var;

/// The solution X of LLᵀX = B for the factor `l` of [`cholesky`](super::cholesky), an n x n matrix
/// of which the lower triangle is read. `b` is a row-major matrix of n rows, or a vector; the
/// result is of the same shape.
///
/// # Errors
///
/// If `l` does not have n² entries, or `b` no multiple of n, the recording fails
/// ([`Error::is_shape`](crate::Error::is_shape)); the results are NaN.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var, linalg};
///
/// let f = Tape::record(|x: &[Var]| {
///     let l = linalg::cholesky(&x[..4], 2)?;
///     Ok::<_, linalg::NotPositiveDefinite>(linalg::cholesky_solve(&l, &x[4..], 2))
/// });
/// assert_eq!(f.eval(&[4.0, 2.0, 2.0, 10.0, 8.0, 10.0])?, Ok(vec![5.0 / 3.0, 2.0 / 3.0]));
/// # Ok::<(), phigrad::Error>(())
/// ```
#[track_caller]
#[must_use]
pub fn cholesky_solve(l: &[Var], b: &[Var], n: usize) -> Vec<Var> {
    let columns = b.len().checked_div(n).unwrap_or(0);
    if !is_expected("length of `l` of `linalg::cholesky_solve`", l.len(), entries([n, n]))
        || !is_expected("length of `b` of `linalg::cholesky_solve`", b.len(), n * columns)
    {
        return nan(b.len());
    }
    if columns == 0 {
        return nan(0);
    }
    static SOLUTIONS: Table<CholeskySolve> = Table::new();
    let arguments = [lower_triangle(l, n), transposed(b, columns)].concat();
    let Ok(solution) = SOLUTIONS.get(CholeskySolve { n, columns }).call(&arguments);
    transposed(&solution, n)
}

/// From the lower triangle of L and the columns of B to the columns of X.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CholeskySolve {
    n: usize,
    columns: usize,
}

/// Replaces b by L⁻ᵀL⁻¹b.
fn solve(l: &[f64], b: &mut [f64]) {
    solve_lower(l, b);
    solve_upper(l, b);
}

/// Subtracts the lower triangle of abᵀ.
fn subtract_outer(a: &[f64], b: &[f64], lower: &mut [f64]) {
    for (i, &a) in a.iter().enumerate() {
        add_multiple(-a, &b[..=i], &mut lower[row(i)]);
    }
}

impl Operation for CholeskySolve {
    type Error = Infallible;

    fn inputs(&self) -> usize {
        length(self.n) + self.outputs()
    }

    fn outputs(&self) -> usize {
        self.n * self.columns
    }

    fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), Infallible> {
        let (l, b) = x.split_at(length(self.n));
        y.copy_from_slice(b);
        y.chunks_exact_mut(self.n).for_each(|column| solve(l, column));
        Ok(())
    }

    fn vjp(&self, x: &[f64], y: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
        let n = self.n;
        let l = &x[..length(n)];
        out.fill(0.0);
        let (by_l, by_b) = out.split_at_mut(length(n));
        by_b.copy_from_slice(w);
        for (x, adjoint) in y.chunks_exact(n).zip(by_b.chunks_exact_mut(n)) {
            with_zeros(2 * n, |buffer| {
                let (u, z) = buffer.split_at_mut(n);
                add_upper(1.0, l, x, u);
                solve_lower(l, adjoint);
                z.copy_from_slice(adjoint);
                solve_upper(l, adjoint);
                subtract_outer(adjoint, u, by_l);
                subtract_outer(x, z, by_l);
            });
        }
    }

    /// ẋ = (LLᵀ)⁻¹(ḃ - L̇u - LL̇ᵀx).
    fn jvp(&self, x: &[f64], y: &[f64], _: &[f64], v: &[f64], out: &mut [f64]) {
        let n = self.n;
        let (l, (dl, db)) = (&x[..length(n)], v.split_at(length(n)));
        out.copy_from_slice(db);
        for (x, tangent) in y.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
            with_zeros(n, |u| {
                add_upper(1.0, l, x, u);
                add_lower(-1.0, dl, u, tangent);
                solve_lower(l, tangent);
                add_upper(-1.0, dl, x, tangent);
                solve_upper(l, tangent);
            });
        }
    }

    fn is_twice_differentiable(&self) -> bool {
        true
    }

    /// The terms of [`vjp`](Self::vjp), with λ̇ = -(LLᵀ)⁻¹(L̇z + LL̇ᵀλ).
    fn vjp_tangent(
        &self,
        x: &[f64],
        y: &[f64],
        saved: &[f64],
        (w, v): (&[f64], &[f64]),
        out: &mut [f64],
    ) {
        let n = self.n;
        let (l, dl) = (&x[..length(n)], &v[..length(n)]);
        out.fill(0.0);
        let (by_l, by_b) = out.split_at_mut(length(n));
        let mut tangents = vec![0.0; y.len()];
        self.jvp(x, y, saved, v, &mut tangents);
        let columns = y.chunks_exact(n).zip(tangents.chunks_exact(n)).zip(w.chunks_exact(n));
        for (((x, dx), w), adjoint_tangent) in columns.zip(by_b.chunks_exact_mut(n)) {
            with_zeros(5 * n, |buffer| {
                let mut parts = buffer.chunks_exact_mut(n);
                let mut next = || parts.next().unwrap_or_default();
                let [u, du, z, dz, adjoint] = core::array::from_fn(|_| next());
                add_upper(1.0, l, x, u);
                add_upper(1.0, dl, x, du);
                add_upper(1.0, l, dx, du);
                z.copy_from_slice(w);
                solve_lower(l, z);
                adjoint.copy_from_slice(z);
                solve_upper(l, adjoint);
                add_lower(-1.0, dl, z, adjoint_tangent);
                solve_lower(l, adjoint_tangent);
                add_upper(-1.0, dl, adjoint, adjoint_tangent);
                solve_upper(l, adjoint_tangent);
                add_upper(1.0, dl, adjoint, dz);
                add_upper(1.0, l, adjoint_tangent, dz);
                for (a, b) in [(&*adjoint_tangent, &*u), (adjoint, du), (dx, z), (x, dz)] {
                    subtract_outer(a, b, by_l);
                }
            });
        }
    }

    fn name(&self) -> &str {
        "linalg::cholesky_solve"
    }
}
