//! Products of matrices of plain numbers.

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

    /// The distances between neighbours in a column and in a row.
    fn strides(self) -> [usize; 2] {
        if self.is_transposed { [1, self.rows] } else { [self.columns, 1] }
    }
}

/// Adds `a` times `b` to the row-major matrix `c`.
#[cfg(feature = "linalg")]
pub(super) fn add_product(a: Operand<'_>, b: Operand<'_>, c: &mut [f64]) {
    use nalgebra::{DMatrixViewMut, Dyn, MatrixView};

    let [a, b] = [a, b].map(|operand| {
        // The transpose of its columns, which are the rows here.
        let [down, right] = operand.strides();
        MatrixView::<f64, Dyn, Dyn, Dyn, Dyn>::from_slice_with_strides(
            operand.entries,
            operand.columns,
            operand.rows,
            right,
            down,
        )
    });
    // nalgebra's matrices are column-major, so this is Cᵀ + BᵀAᵀ.
    DMatrixViewMut::from_slice(c, b.nrows(), a.ncols()).gemm(1.0, &b, &a, 1.0);
}

/// Adds `a` times `b` to the row-major matrix `c`.
#[cfg(not(feature = "linalg"))]
pub(super) fn add_product(a: Operand<'_>, b: Operand<'_>, c: &mut [f64]) {
    let [down, right] = a.strides();
    for (row, sums) in c.chunks_exact_mut(b.columns).enumerate() {
        for inner in 0..a.columns {
            let factor = a.entries[row * down + inner * right];
            if b.is_transposed {
                let column = b.entries[inner..].iter().step_by(b.rows);
                sums.iter_mut().zip(column).for_each(|(sum, b)| *sum += factor * b);
            } else {
                let others = &b.entries[inner * b.columns..][..b.columns];
                sums.iter_mut().zip(others).for_each(|(sum, b)| *sum += factor * b);
            }
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
