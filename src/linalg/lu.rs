//! LU factorisation with partial pivoting, in place, by the steps of nalgebra.
//!
//! Matrices are column-major here. The transpose of a row-major one serves as well where the result
//! is transposed too.

use nalgebra::linalg::{gauss_step, gauss_step_swap};
use nalgebra::{DMatrixView, DMatrixViewMut};

use super::triangular::{add_multiple, dot};

/// The error of a matrix without an inverse: a pivot is exactly zero.
///
/// A matrix that is singular only up to rounding has pivots that are not zero, and large results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the matrix is singular")]
pub struct Singular;

/// The number of entries of a factorisation.
pub(super) const fn length(n: usize) -> usize {
    n * n + n
}

/// Factors a matrix of order `n`, whose entries are the first numbers of `factors`. The numbers of
/// the rows that are exchanged follow the factors.
pub(super) fn factor(factors: &mut [f64], n: usize) -> Result<(), Singular> {
    let (entries, pivots) = factors.split_at_mut(n * n);
    let mut lu = DMatrixViewMut::from_slice(entries, n, n);
    for (i, exchanged) in pivots.iter_mut().enumerate() {
        let pivot = i + lu.view_range(i.., i).icamax();
        let diagonal = lu[(pivot, i)];
        if diagonal == 0.0 && !lu.iter().any(|entry| entry.is_nan()) {
            return Err(Singular);
        }
        *exchanged = pivot as f64;
        if pivot == i {
            gauss_step(&mut lu, diagonal, i);
        } else {
            lu.columns_range_mut(..i).swap_rows(i, pivot);
            gauss_step_swap(&mut lu, diagonal, i, pivot);
        }
    }
    Ok(())
}

/// Replaces B by A⁻¹B.
pub(super) fn solve(factors: &[f64], n: usize, b: &mut [f64]) {
    let (entries, pivots) = factors.split_at(n * n);
    let lu = DMatrixView::from_slice(entries, n, n);
    for column in b.chunks_exact_mut(n) {
        pivots.iter().enumerate().for_each(|(i, &pivot)| column.swap(i, pivot as usize));
    }
    let mut b = DMatrixViewMut::from_slice(b, n, b.len() / n);
    lu.solve_lower_triangular_with_diag_unchecked_mut(&mut b, 1.0);
    lu.solve_upper_triangular_unchecked_mut(&mut b);
}

/// Replaces B by A⁻ᵀB.
pub(super) fn solve_transposed(factors: &[f64], n: usize, b: &mut [f64]) {
    let (entries, pivots) = factors.split_at(n * n);
    for column in b.chunks_exact_mut(n) {
        for (i, factors) in entries.chunks_exact(n).enumerate() {
            column[i] = (column[i] - dot(&factors[..i], &column[..i])) / factors[i];
        }
        for (i, factors) in entries.chunks_exact(n).enumerate().rev() {
            column[i] -= dot(&factors[i + 1..], &column[i + 1..]);
        }
        pivots.iter().enumerate().rev().for_each(|(i, &pivot)| column.swap(i, pivot as usize));
    }
}

/// Adds `factor` times abᵀ to a matrix.
pub(super) fn add_outer(factor: f64, a: &[f64], b: &[f64], matrix: &mut [f64]) {
    for (column, &b) in matrix.chunks_exact_mut(a.len()).zip(b) {
        add_multiple(factor * b, a, column);
    }
}

/// Adds `factor` times Ax to y.
pub(super) fn add_image(factor: f64, matrix: &[f64], x: &[f64], y: &mut [f64]) {
    for (column, &x) in matrix.chunks_exact(y.len()).zip(x) {
        add_multiple(factor * x, column, y);
    }
}
