//! Solutions of linear systems.
//!
//! With X = A⁻¹B and Λ = A⁻ᵀW, the adjoint of B is Λ, and that of A is -ΛXᵀ (M. Giles, "An extended
//! collection of matrix derivative results for forward and reverse mode automatic differentiation",
//! 2008).

use super::buffer::with_zeros;
use super::lu::{self, Singular, add_image, add_outer};
use super::shape::{entries, is_expected, nan, transposed};
use super::table::Table;
use super::triangular::dot;
use crate::custom::Operation;
use crate::trace::Var;

/// The solution X of AX = B for an n x n matrix A, by an LU factorisation with partial pivoting.
/// `b` is a row-major matrix of n rows, or a vector; the result is of the same shape.
///
/// There is one path for every order of pivots. A kernel calls the same factorisation, and its
/// derivatives use the factors.
///
/// # Errors
///
/// [`Singular`] if a pivot is zero. If `a` does not have n² entries, or `b` no multiple of n, the
/// recording fails ([`Error::is_shape`](crate::Error::is_shape)); the results are NaN.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var, linalg};
///
/// let f = Tape::record(|x: &[Var]| {
///     let solution = linalg::solve(&x[..4], &x[4..], 2)?;
///     Ok::<_, linalg::Singular>(linalg::dot(&solution, &solution))
/// });
/// assert_eq!(f.eval(&[0.0, 2.0, 4.0, 0.0, 2.0, 8.0])?, Ok(5.0)); // x = [2, 1]
/// assert_eq!(f.grad(&[0.0, 2.0, 4.0, 0.0, 2.0, 8.0])?, Ok(vec![-2.0, -1.0, -2.0, -1.0, 1.0, 1.0]));
/// assert_eq!(f.eval(&[1.0, 2.0, 2.0, 4.0, 1.0, 1.0])?, Err(linalg::Singular));
/// # Ok::<(), phigrad::Error>(())
/// ```
#[track_caller]
pub fn solve(a: &[Var], b: &[Var], n: usize) -> Result<Vec<Var>, Singular> {
    let columns = b.len().checked_div(n).unwrap_or(0);
    if !is_expected("length of `a` of `linalg::solve`", a.len(), entries([n, n]))
        || !is_expected("length of `b` of `linalg::solve`", b.len(), n * columns)
    {
        return Ok(nan(b.len()));
    }
    if columns == 0 {
        return Ok(nan(0));
    }
    static SOLUTIONS: Table<Solve> = Table::new();
    let arguments = [transposed(a, n), transposed(b, columns)].concat();
    let solution = SOLUTIONS.get(Solve { n, columns }).call(&arguments)?;
    Ok(transposed(&solution, n))
}

/// From the columns of A and B to those of X, with the factors of A.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Solve {
    n: usize,
    columns: usize,
}

impl Solve {
    /// A⁻¹(Ḃ - ȦX).
    fn tangent(self, y: &[f64], saved: &[f64], v: &[f64], out: &mut [f64]) {
        let n = self.n;
        let (da, db) = v.split_at(n * n);
        out.copy_from_slice(db);
        for (x, tangent) in y.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
            add_image(-1.0, da, x, tangent);
        }
        lu::solve(saved, n, out);
    }
}

impl Operation for Solve {
    type Error = Singular;

    fn inputs(&self) -> usize {
        self.n * self.n + self.outputs()
    }

    fn outputs(&self) -> usize {
        self.n * self.columns
    }

    fn saved(&self) -> usize {
        lu::length(self.n)
    }

    fn eval(&self, x: &[f64], y: &mut [f64], saved: &mut [f64]) -> Result<(), Singular> {
        let (a, b) = x.split_at(self.n * self.n);
        saved[..a.len()].copy_from_slice(a);
        lu::factor(saved, self.n)?;
        y.copy_from_slice(b);
        lu::solve(saved, self.n, y);
        Ok(())
    }

    fn vjp(&self, _: &[f64], y: &[f64], saved: &[f64], w: &[f64], out: &mut [f64]) {
        let n = self.n;
        let (by_a, by_b) = out.split_at_mut(n * n);
        by_b.copy_from_slice(w);
        lu::solve_transposed(saved, n, by_b);
        by_a.fill(0.0);
        for (x, adjoint) in y.chunks_exact(n).zip(by_b.chunks_exact(n)) {
            add_outer(-1.0, adjoint, x, by_a);
        }
    }

    fn jvp(&self, _: &[f64], y: &[f64], saved: &[f64], v: &[f64], out: &mut [f64]) {
        self.tangent(y, saved, v, out);
    }

    fn is_twice_differentiable(&self) -> bool {
        true
    }

    /// With Λ̇ = -A⁻ᵀȦᵀΛ, the derivative of the adjoint of B is Λ̇, and that of A is -(Λ̇Xᵀ + ΛẊᵀ).
    fn vjp_tangent(
        &self,
        _: &[f64],
        y: &[f64],
        saved: &[f64],
        (w, v): (&[f64], &[f64]),
        out: &mut [f64],
    ) {
        let n = self.n;
        let da = &v[..n * n];
        let (by_a, by_b) = out.split_at_mut(n * n);
        with_zeros(2 * y.len(), |buffer| {
            let (adjoints, tangents) = buffer.split_at_mut(y.len());
            adjoints.copy_from_slice(w);
            lu::solve_transposed(saved, n, adjoints);
            self.tangent(y, saved, v, tangents);
            for (adjoint, to) in adjoints.chunks_exact(n).zip(by_b.chunks_exact_mut(n)) {
                let columns = da.chunks_exact(n);
                columns.zip(to).for_each(|(column, to)| *to = -dot(column, adjoint));
            }
            lu::solve_transposed(saved, n, by_b);
            by_a.fill(0.0);
            let (points, adjoint_tangents) = (y.chunks_exact(n), by_b.chunks_exact(n));
            for (x, adjoint_tangent) in points.zip(adjoint_tangents) {
                add_outer(-1.0, adjoint_tangent, x, by_a);
            }
            for (tangent, adjoint) in tangents.chunks_exact(n).zip(adjoints.chunks_exact(n)) {
                add_outer(-1.0, adjoint, tangent, by_a);
            }
        });
    }

    fn name(&self) -> &str {
        "linalg::solve"
    }
}
