//! Lengths of slices, and orders of matrices.

use core::panic::Location;

use crate::trace::{TraceError, Var, fail};

/// Tests whether a length or order is as expected; otherwise the recording fails.
#[track_caller]
pub(super) fn is_expected(quantity: &'static str, found: usize, expected: usize) -> bool {
    if found != expected {
        fail(TraceError::Shape { quantity, found, expected, at: Location::caller() });
    }
    found == expected
}

/// The number of entries; the largest number if there cannot be as many.
pub(super) fn entries([rows, columns]: [usize; 2]) -> usize {
    rows.saturating_mul(columns)
}

/// The results of a call with a wrong shape.
pub(super) fn nan(count: usize) -> Vec<Var> {
    vec![Var::from(f64::NAN); count]
}

/// The results of a call with a wrong shape, which says that there are `count`: that may be any
/// number, so that there are fewer.
pub(super) fn nan_of_shape(count: usize) -> Vec<Var> {
    const MAX_RESULTS: usize = 1 << 16;
    nan(count.min(MAX_RESULTS))
}

/// The transpose of a row-major matrix with so many columns.
pub(super) fn transposed(a: &[Var], columns: usize) -> Vec<Var> {
    (0..columns).flat_map(|column| a.iter().skip(column).step_by(columns).copied()).collect()
}

/// The lower triangle of a row-major square matrix, row by row.
pub(super) fn lower_triangle(a: &[Var], n: usize) -> Vec<Var> {
    a.chunks_exact(n).zip(1..).flat_map(|(row, length)| row[..length].iter().copied()).collect()
}
