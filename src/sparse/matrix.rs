//! The public sparse matrix.

use std::sync::{Arc, LazyLock};

use super::pattern::Pattern;

/// A sparse matrix in compressed rows: the result of sparse derivatives.
///
/// The columns of a row are sorted and distinct. All entries that may be other than zero are
/// stored, also those that happen to be zero. The form is that which `nalgebra_sparse::CsrMatrix`
/// and `faer::sparse::SparseRowMat` take; for the transposed one see [`SparseMatrix::to_csc`].
///
/// # Examples
///
/// ```
/// use phigrad::{SparseMatrix, Tape, Var};
///
/// let f = Tape::record(|x: &[Var]| x.windows(2).map(|two| (two[1] - two[0] * two[0]).powi(2)).sum::<Var>());
/// let mut hessian = SparseMatrix::default();
/// for x in [[1.0, 1.0, 1.0], [0.5, 2.0, 3.0]] {
///     f.sparse_hessian_into(&x, &mut hessian)?;
///     assert_eq!(hessian.row_offsets(), [0, 2, 5, 7]);
///     assert_eq!(hessian.column_indices(), [0, 1, 0, 1, 2, 1, 2]);
/// }
/// assert_eq!(hessian.values(), [-5.0, -2.0, -2.0, 38.0, -8.0, -8.0, 2.0]);
/// # Ok::<(), phigrad::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SparseMatrix {
    pattern: Arc<Pattern>,
    values: Vec<f64>,
}

/// The pattern of all matrices without rows and columns, so that these do not allocate.
static EMPTY: LazyLock<Arc<Pattern>> = LazyLock::new(Arc::default);

impl Default for SparseMatrix {
    /// The matrix without rows and columns.
    fn default() -> Self {
        SparseMatrix { pattern: Arc::clone(&EMPTY), values: Vec::new() }
    }
}

impl SparseMatrix {
    /// The number of rows. For an example see [`SparseMatrix::triplets`].
    pub fn rows(&self) -> usize {
        self.pattern.rows()
    }

    /// The number of columns. For an example see [`SparseMatrix::triplets`].
    pub fn columns(&self) -> usize {
        self.pattern.columns
    }

    /// The number of the first entry of each row, and at the end the number of entries. For an
    /// example see [`SparseMatrix`].
    pub fn row_offsets(&self) -> &[usize] {
        &self.pattern.offsets
    }

    /// The column of each entry, row by row. For an example see [`SparseMatrix`].
    pub fn column_indices(&self) -> &[usize] {
        &self.pattern.indices
    }

    /// The entries, row by row. For an example see [`SparseMatrix`].
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Tests whether `other` has entries at the same places: then a symbolic factorisation of one
    /// is one of the other. Matrices of one function share their pattern, and the test takes no
    /// time.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0] * x[1]);
    /// let (a, b) = (f.sparse_hessian(&[1.0, 2.0])?, f.sparse_hessian(&[0.0, 0.0])?);
    /// assert!(a.has_pattern_of(&b));
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    pub fn has_pattern_of(&self, other: &SparseMatrix) -> bool {
        Arc::ptr_eq(&self.pattern, &other.pattern) || self.pattern == other.pattern
    }

    /// The entries with their rows and columns, row by row.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| [x[0] * x[1], x[2].exp()]);
    /// let jacobian = f.sparse_jacobian(&[2.0, 3.0, 0.0])?;
    /// assert_eq!((jacobian.rows(), jacobian.columns()), (2, 3));
    /// let entries: Vec<(usize, usize, f64)> = jacobian.triplets().collect();
    /// assert_eq!(entries, [(0, 0, 3.0), (0, 1, 2.0), (1, 2, 1.0)]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    pub fn triplets(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let pattern = &*self.pattern;
        let rows = (0..pattern.rows()).flat_map(|row| {
            let entries = pattern.offsets[row]..pattern.offsets[row + 1];
            entries.map(move |entry| (row, entry))
        });
        rows.map(|(row, entry)| (row, pattern.indices[entry], self.values[entry]))
    }

    /// The row offsets, column indices and values, for `CsrMatrix::try_from_csr_data` of
    /// `nalgebra_sparse` or `SymbolicSparseRowMat::new_checked` of `faer`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| [x[0] * x[1], x[0]]);
    /// let (offsets, columns, values) = f.sparse_jacobian(&[2.0, 3.0])?.into_csr();
    /// assert_eq!((offsets, columns, values), (vec![0, 2, 3], vec![0, 1, 0], vec![3.0, 2.0, 1.0]));
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    pub fn into_csr(self) -> (Vec<usize>, Vec<usize>, Vec<f64>) {
        let Pattern { offsets, indices, .. } = Arc::unwrap_or_clone(self.pattern);
        (offsets, indices, self.values)
    }

    /// The column offsets, row indices and values of the same matrix in compressed columns, for
    /// `CscMatrix::try_from_csc_data` of `nalgebra_sparse` or `SymbolicSparseColMat::new_checked`
    /// of `faer`. For a symmetric matrix they are those of the rows.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| [x[0] * x[1], x[0]]);
    /// let (offsets, rows, values) = f.sparse_jacobian(&[2.0, 3.0])?.to_csc();
    /// assert_eq!((offsets, rows, values), (vec![0, 2, 3], vec![0, 1, 0], vec![3.0, 1.0, 2.0]));
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    pub fn to_csc(&self) -> (Vec<usize>, Vec<usize>, Vec<f64>) {
        self.transposed().into_csr()
    }

    /// The transposed matrix.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| [x[0] * x[1], x[0]]);
    /// let transposed = f.sparse_jacobian(&[2.0, 3.0])?.transposed();
    /// assert_eq!(transposed.to_dense(), [3.0, 1.0, 2.0, 0.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[must_use]
    pub fn transposed(&self) -> SparseMatrix {
        let (pattern, entries) = self.pattern.transposed();
        let values = entries.iter().map(|&entry| self.values[entry]).collect();
        SparseMatrix { pattern: Arc::new(pattern), values }
    }

    /// All numbers row by row, with zeros where there is no entry.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0].exp() + x[1]);
    /// assert_eq!(f.sparse_hessian(&[0.0, 5.0])?.to_dense(), [1.0, 0.0, 0.0, 0.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    pub fn to_dense(&self) -> Vec<f64> {
        let mut dense = vec![0.0; self.rows() * self.columns()];
        for (row, column, value) in self.triplets() {
            dense[row * self.columns() + column] = value;
        }
        dense
    }

    /// Makes it the matrix with these entries; allocates only if it had fewer.
    pub(crate) fn assign(&mut self, pattern: &Arc<Pattern>, values: &[f64]) {
        if !Arc::ptr_eq(&self.pattern, pattern) {
            self.pattern = Arc::clone(pattern);
        }
        self.values.clear();
        self.values.extend_from_slice(values);
    }
}
