//! The inverse of a matrix.
//!
//! With Y = A⁻¹, the adjoint of A is -YᵀWYᵀ. The transpose of the inverse is the inverse of the
//! transpose, so that row-major matrices are factored as they are.

use super::buffer::with_zeros;
use super::lu::{self, Singular};
use super::product::{Operand, add_product};
use super::shape::{entries, is_expected, nan, nan_of_shape};
use super::table::Table;
use crate::custom::Operation;
use crate::trace::Var;

/// The inverse of an n x n matrix, by an LU factorisation with partial pivoting, in row-major
/// order.
///
/// To multiply with an inverse, [`solve`](super::solve) is faster and more accurate.
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
/// let f = Tape::record(|a: &[Var]| linalg::inverse(a, 2));
/// assert_eq!(f.eval(&[0.0, 2.0, 4.0, 0.0])?, Ok(vec![0.0, 0.25, 0.5, 0.0]));
/// assert_eq!(f.eval(&[1.0, 2.0, 2.0, 4.0])?, Err(linalg::Singular));
/// # Ok::<(), phigrad::Error>(())
/// ```
#[track_caller]
pub fn inverse(a: &[Var], n: usize) -> Result<Vec<Var>, Singular> {
    if !is_expected("length of `a` of `linalg::inverse`", a.len(), entries([n, n])) {
        return Ok(nan_of_shape(entries([n, n])));
    }
    if n == 0 {
        return Ok(nan(0));
    }
    static INVERSES: Table<Inverse> = Table::new();
    INVERSES.get(Inverse { n }).call(a)
}

/// From A to A⁻¹.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Inverse {
    n: usize,
}

impl Inverse {
    /// Subtracts `factors[0]` times `factors[1]` times `factors[2]` from `out`.
    fn subtract(self, factors: [Operand<'_>; 3], out: &mut [f64]) {
        let [a, b, c] = factors;
        with_zeros(out.len(), |product| {
            add_product(a, b, product);
            product.iter_mut().for_each(|entry| *entry = -*entry);
            add_product(Operand::new(product, self.n), c, out);
        });
    }
}

impl Operation for Inverse {
    type Error = Singular;

    fn inputs(&self) -> usize {
        self.n * self.n
    }

    fn outputs(&self) -> usize {
        self.n * self.n
    }

    fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), Singular> {
        with_zeros(lu::length(self.n), |factors| {
            factors[..x.len()].copy_from_slice(x);
            lu::factor(factors, self.n)?;
            y.fill(0.0);
            y.iter_mut().step_by(self.n + 1).for_each(|entry| *entry = 1.0);
            lu::solve(factors, self.n, y);
            Ok(())
        })
    }

    fn vjp(&self, _: &[f64], y: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
        let (y, w) = (Operand::new(y, self.n).transpose(), Operand::new(w, self.n));
        out.fill(0.0);
        self.subtract([y, w, y], out);
    }

    /// -YȦY.
    fn jvp(&self, _: &[f64], y: &[f64], _: &[f64], v: &[f64], out: &mut [f64]) {
        let [y, v] = [y, v].map(|matrix| Operand::new(matrix, self.n));
        out.fill(0.0);
        self.subtract([y, v, y], out);
    }

    fn is_twice_differentiable(&self) -> bool {
        true
    }

    /// -(ẎᵀWYᵀ + YᵀWẎᵀ).
    fn vjp_tangent(
        &self,
        x: &[f64],
        y: &[f64],
        saved: &[f64],
        (w, v): (&[f64], &[f64]),
        out: &mut [f64],
    ) {
        let mut tangent = vec![0.0; y.len()];
        self.jvp(x, y, saved, v, &mut tangent);
        let [y, dy] = [y, &tangent].map(|matrix| Operand::new(matrix, self.n).transpose());
        let w = Operand::new(w, self.n);
        out.fill(0.0);
        self.subtract([dy, w, y], out);
        self.subtract([y, w, dy], out);
    }

    fn name(&self) -> &str {
        "linalg::inverse"
    }
}
