//! Products of matrices of plain numbers.

use std::borrow::Cow;

#[cfg(not(feature = "linalg"))]
use super::triangular::add_multiple;

/// A matrix in row-major order, or the transpose of one.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    entries: &'a [f64],
    rows: usize,
    columns: usize,
    is_transposed: bool,
}

impl<'a> Operand<'a> {
    /// The row-major matrix with so many columns, at least one.
    pub(super) fn new(entries: &'a [f64], columns: usize) -> Self {
        Operand { entries, rows: entries.len() / columns, columns, is_transposed: false }
    }

    pub(super) fn transpose(self) -> Self {
        let is_transposed = !self.is_transposed;
        Operand { rows: self.columns, columns: self.rows, is_transposed, ..self }
    }

    /// The entries in row-major order.
    fn row_major(self) -> Cow<'a, [f64]> {
        if !self.is_transposed {
            return Cow::Borrowed(self.entries);
        }
        let row = |row| self.entries[row..].iter().step_by(self.rows);
        Cow::Owned((0..self.rows).flat_map(row).copied().collect())
    }
}

/// Adds `a` times `b` to the row-major matrix `c`.
pub(super) fn add_product(a: Operand<'_>, b: Operand<'_>, c: &mut [f64]) {
    let (a_entries, b_entries) = (a.row_major(), b.row_major());
    add_row_major([&a_entries, &b_entries], [a.rows, a.columns, b.columns], c);
}

#[cfg(feature = "linalg")]
fn add_row_major([a, b]: [&[f64]; 2], [rows, inner, columns]: [usize; 3], c: &mut [f64]) {
    use nalgebra::{DMatrixView, DMatrixViewMut};

    // nalgebra's matrices are column-major, so this is Cᵀ + BᵀAᵀ. The views have no row stride:
    // with one, nalgebra 0.34 reads out of bounds.
    let (a, b) =
        (DMatrixView::from_slice(a, inner, rows), DMatrixView::from_slice(b, columns, inner));
    DMatrixViewMut::from_slice(c, columns, rows).gemm(1.0, &b, &a, 1.0);
}

#[cfg(not(feature = "linalg"))]
fn add_row_major([a, b]: [&[f64]; 2], [_, inner, columns]: [usize; 3], c: &mut [f64]) {
    for (a, sums) in a.chunks_exact(inner).zip(c.chunks_exact_mut(columns)) {
        for (&factor, b) in a.iter().zip(b.chunks_exact(columns)) {
            add_multiple(factor, b, sums);
        }
    }
}

/// Transposes a square row-major matrix in place.
pub(super) fn transpose(a: &mut [f64], n: usize) {
    for i in 0..n {
        for j in 0..i {
            a.swap(i * n + j, j * n + i);
        }
    }
}
