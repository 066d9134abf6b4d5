//! The eigenvalues of a symmetric matrix.
//!
//! With A = V diag(λ) Vᵀ, the adjoint of A is V diag(w) Vᵀ. Its derivative has the divided
//! differences of the weights: with Â = VᵀȦV it is V M Vᵀ, Mᵢⱼ = Âᵢⱼ (wⱼ - wᵢ) / (λⱼ - λᵢ).

use core::convert::Infallible;

use nalgebra::{DMatrix, SymmetricEigen};

use super::buffer::with_zeros;
use super::product::{Operand, add_product};
use super::shape::{entries, is_expected, lower_triangle, nan_of_shape};
use super::table::Table;
use super::triangular::{length, pack_symmetric, row, unpack_symmetric};
use crate::custom::Operation;
use crate::trace::Var;

/// The eigenvalues of a symmetric n x n matrix in ascending order.
///
/// They are a function of the lower triangle of `a`, entries above the diagonal are ignored. So a
/// derivative by an entry below the diagonal counts for both that are equal in a symmetric matrix.
///
/// Where eigenvalues are equal, their derivatives are those for one choice of eigenvectors; sums
/// over all of them, as a trace, have the right derivative. Derivatives of the second order are NaN
/// there.
///
/// The results are NaN if an entry is not finite or the iteration does not converge.
///
/// # Errors
///
/// If `a` does not have n² entries, the recording fails
/// ([`Error::is_shape`](crate::Error::is_shape)); the results are NaN.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var, linalg};
///
/// let largest = Tape::record(|a: &[Var]| linalg::symmetric_eigenvalues(a, 2)[1]);
/// let (value, gradient) = largest.value_and_grad(&[2.0, 0.0, 1.0, 2.0])?;
/// assert!((value - 3.0).abs() < 1e-15);
/// let expected = [0.5, 0.0, 1.0, 0.5]; // The squares of the eigenvector, and twice its product.
/// assert!(gradient.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-15));
/// # Ok::<(), phigrad::Error>(())
/// ```
#[track_caller]
#[must_use]
pub fn symmetric_eigenvalues(a: &[Var], n: usize) -> Vec<Var> {
    if !is_expected("length of `a` of `linalg::symmetric_eigenvalues`", a.len(), entries([n, n]))
        || n == 0
    {
        return nan_of_shape(n);
    }
    static EIGENVALUES: Table<Eigenvalues> = Table::new();
    let Ok(values) = EIGENVALUES.get(Eigenvalues { n }).call(&lower_triangle(a, n));
    values
}

/// From the lower triangle of A to its eigenvalues, with the eigenvectors, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Eigenvalues {
    n: usize,
}

impl Eigenvalues {
    /// A bound on the iterations, of which an eigenvalue takes two or three.
    fn max_iterations(self) -> usize {
        100 * (self.n + 10)
    }

    /// VMVᵀ of a square matrix M, into zeros. The vectors are rows.
    fn transform(self, vectors: Operand<'_>, m: Operand<'_>, out: &mut [f64]) {
        let mut product = vec![0.0; out.len()];
        add_product(vectors, m, &mut product);
        add_product(Operand::new(&product, self.n), vectors.transpose(), out);
    }
}

impl Operation for Eigenvalues {
    type Error = Infallible;

    fn inputs(&self) -> usize {
        length(self.n)
    }

    fn outputs(&self) -> usize {
        self.n
    }

    fn saved(&self) -> usize {
        self.n * self.n
    }

    fn eval(&self, x: &[f64], y: &mut [f64], saved: &mut [f64]) -> Result<(), Infallible> {
        let n = self.n;
        y.fill(f64::NAN);
        saved.fill(f64::NAN);
        if !x.iter().all(|entry| entry.is_finite()) {
            return Ok(());
        }
        let mut a = DMatrix::zeros(n, n);
        unpack_symmetric(x, a.as_mut_slice(), n);
        let decomposition = SymmetricEigen::try_new(a, f64::EPSILON, self.max_iterations());
        let Some(SymmetricEigen { eigenvectors, eigenvalues }) = decomposition else {
            return Ok(());
        };
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&one, &other| eigenvalues[one].total_cmp(&eigenvalues[other]));
        let places = y.iter_mut().zip(saved.chunks_exact_mut(n));
        for ((value, vector), number) in places.zip(order) {
            *value = eigenvalues[number];
            vector.copy_from_slice(eigenvectors.column(number).as_slice());
        }
        Ok(())
    }

    fn vjp(&self, _: &[f64], _: &[f64], saved: &[f64], w: &[f64], out: &mut [f64]) {
        let n = self.n;
        out.fill(0.0);
        for (vector, w) in saved.chunks_exact(n).zip(w) {
            for i in 0..n {
                let by_row = &mut out[row(i)];
                for j in 0..i {
                    by_row[j] += 2.0 * w * vector[i] * vector[j];
                }
                by_row[i] += w * vector[i] * vector[i];
            }
        }
    }

    /// The diagonal of VᵀȦV.
    fn jvp(&self, _: &[f64], _: &[f64], saved: &[f64], v: &[f64], out: &mut [f64]) {
        for (vector, tangent) in saved.chunks_exact(self.n).zip(out) {
            *tangent = 0.0;
            for i in 0..self.n {
                let direction = &v[row(i)];
                let before: f64 = (0..i).map(|j| direction[j] * vector[j]).sum();
                *tangent += vector[i] * (2.0 * before + direction[i] * vector[i]);
            }
        }
    }

    fn is_twice_differentiable(&self) -> bool {
        true
    }

    fn vjp_tangent(
        &self,
        _: &[f64],
        y: &[f64],
        saved: &[f64],
        (w, v): (&[f64], &[f64]),
        out: &mut [f64],
    ) {
        let n = self.n;
        let vectors = Operand::new(saved, n);
        with_zeros(2 * n * n, |buffer| {
            let (direction, differences) = buffer.split_at_mut(n * n);
            unpack_symmetric(v, direction, n);
            self.transform(vectors, Operand::new(direction, n), differences);
            for (i, row) in differences.chunks_exact_mut(n).enumerate() {
                for (j, entry) in row.iter_mut().enumerate() {
                    // Equal eigenvalues give NaN, unless the direction has no entry for them.
                    let is_zero = i == j || *entry == 0.0;
                    *entry = if is_zero { 0.0 } else { *entry * ((w[j] - w[i]) / (y[j] - y[i])) };
                }
            }
            direction.fill(0.0);
            self.transform(vectors.transpose(), Operand::new(differences, n), direction);
            pack_symmetric(direction, out, n);
        });
    }

    fn name(&self) -> &str {
        "linalg::symmetric_eigenvalues"
    }
}
