//! Products and solutions with a lower triangular matrix L, which is stored row by row without the
//! zeros.

use core::ops::Range;

use super::product::transpose;

/// The number of entries.
pub(super) fn length(n: usize) -> usize {
    n * (n + 1) / 2
}

/// The entries of row `i`; the last one is on the diagonal.
pub(super) fn row(i: usize) -> Range<usize> {
    length(i)..length(i + 1)
}

/// Σ aᵢbᵢ.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Adds `factor` times `x` to `y`.
pub(super) fn add_multiple(factor: f64, x: &[f64], y: &mut [f64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += factor * x);
}

/// Replaces b by L⁻¹b.
pub(super) fn solve_lower(l: &[f64], b: &mut [f64]) {
    for i in 0..b.len() {
        let row = &l[row(i)];
        b[i] = (b[i] - dot(&row[..i], &b[..i])) / row[i];
    }
}

/// Replaces b by L⁻ᵀb.
pub(super) fn solve_upper(l: &[f64], b: &mut [f64]) {
    for i in (0..b.len()).rev() {
        let row = &l[row(i)];
        b[i] /= row[i];
        let (before, after) = b.split_at_mut(i);
        add_multiple(-after[0], &row[..i], before);
    }
}

/// Adds `factor` times Lx to y.
pub(super) fn add_lower(factor: f64, l: &[f64], x: &[f64], y: &mut [f64]) {
    for (i, y) in y.iter_mut().enumerate() {
        *y += factor * dot(&l[row(i)], &x[..=i]);
    }
}

/// Adds `factor` times Lᵀx to y.
pub(super) fn add_upper(factor: f64, l: &[f64], x: &[f64], y: &mut [f64]) {
    for (i, &x) in x.iter().enumerate() {
        add_multiple(factor * x, &l[row(i)], &mut y[..=i]);
    }
}

/// Replaces the square matrix M by L⁻¹ML⁻ᵀ.
pub(super) fn divide_by_lower(l: &[f64], m: &mut [f64], n: usize) {
    for _ in 0..2 {
        m.chunks_exact_mut(n).for_each(|row| solve_lower(l, row));
        transpose(m, n);
    }
}

/// Replaces the square matrix M by L⁻ᵀML⁻¹.
pub(super) fn divide_by_upper(l: &[f64], m: &mut [f64], n: usize) {
    for _ in 0..2 {
        m.chunks_exact_mut(n).for_each(|row| solve_upper(l, row));
        transpose(m, n);
    }
}

/// Writes L, with its zeros, to `full`.
pub(super) fn unpack(l: &[f64], full: &mut [f64], n: usize) {
    full.fill(0.0);
    full.chunks_exact_mut(n).enumerate().for_each(|(i, to)| to[..=i].copy_from_slice(&l[row(i)]));
}

/// Writes the symmetric matrix with this lower triangle to `full`.
pub(super) fn unpack_symmetric(lower: &[f64], full: &mut [f64], n: usize) {
    for i in 0..n {
        for (j, &entry) in lower[row(i)].iter().enumerate() {
            (full[i * n + j], full[j * n + i]) = (entry, entry);
        }
    }
}

/// Writes the derivatives by the entries of the lower triangle of a symmetric matrix, each of which
/// stands for two, to `lower`. Those by all entries are in `full`.
pub(super) fn pack_symmetric(full: &[f64], lower: &mut [f64], n: usize) {
    for i in 0..n {
        let to = &mut lower[row(i)];
        for j in 0..i {
            to[j] = full[i * n + j] + full[j * n + i];
        }
        to[i] = full[i * n + i];
    }
}

/// Makes the entries of a square matrix above the diagonal zero, and halves those on it.
pub(super) fn halve(m: &mut [f64], n: usize) {
    for (i, row) in m.chunks_exact_mut(n).enumerate() {
        row[i] *= 0.5;
        row[i + 1..].fill(0.0);
    }
}
