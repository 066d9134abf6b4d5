//! Sparse Jacobians and Hessians: as many products as the pattern needs, by a kernel or from one
//! run on the tape.

use core::cell::RefCell;

use super::core::Results;
use super::error::Error;
use super::function::Request;
use super::outputs::Output;
use super::patterns::{KnownPattern, of_single_run};
use super::recorded::{Recorded, RecordedWith};
use super::vector::{CallResult, is_scalar};
use crate::pipeline::Purpose;
use crate::sparse::{Compression, MatrixKind, Products, SparseMatrix};
use crate::trace::{
    Adjoints, Operand, Tangents, Trace, Var, push_forward, sweep_from_sum, sweep_tangents,
};

/// The place for a sparse result, and the pattern of the specialisation, if there is one.
#[derive(Clone, Copy)]
pub(super) struct SparseRequest<'a> {
    pub(super) matrix: &'a RefCell<SparseMatrix>,
    pub(super) known: Option<&'a KnownPattern>,
}

impl SparseRequest<'_> {
    /// Computes the matrix of this kind from the run `trace` with these outputs.
    pub(super) fn read(
        self,
        trace: &Trace<'_>,
        outputs: &[Operand],
        kind: MatrixKind,
        (adjoints, tangents): (&mut Adjoints, &mut Tangents),
    ) -> Result<(), Error> {
        let compression = match self.known {
            Some(known) => known.of_trace(trace)?,
            None => of_single_run(trace, kind)?,
        };
        let Compression { pattern, products, .. } = &*compression;
        let mut entries = vec![0.0; pattern.len()];
        let mut seed = Vec::new();
        for product in 0..compression.count() {
            match (kind, products) {
                (MatrixKind::Hessian, _) => {
                    seed.clear();
                    compression.seed(product, &mut seed);
                    push_forward(trace, &seed, tangents);
                    let result = sweep_tangents(trace, tangents);
                    compression.read(product, |row| result[row].tangent, &mut entries);
                }
                (_, Products::Columns) => {
                    seed.clear();
                    compression.seed(product, &mut seed);
                    push_forward(trace, &seed, tangents);
                    compression.read(product, |row| tangents.of(outputs[row]), &mut entries);
                }
                (_, Products::Rows) => {
                    let rows = compression.members(product).map(|row| outputs[row]);
                    let result = sweep_from_sum(trace, rows, adjoints);
                    compression.read(product, |column| result[column], &mut entries);
                }
            }
        }
        self.matrix.borrow_mut().assign(pattern, &entries);
        Ok(())
    }
}

macro_rules! sparse {
    ($name:ident<F>, ($($args:ty),*), ($($data:ident: $type:ty)?)) => {
        /// Sparse Jacobians. A [`SparseMatrix`] has entries for all derivatives that may be other
        /// than zero on a path that has been called so far. So calls along one path have the same
        /// pattern, until a call takes a new path with further entries, or a kernel is made that
        /// serves further paths: then the pattern grows. It never shrinks.
        impl<O: Output, F: Fn($($args),*) -> O> $name<F> {
            /// The Jacobian at `x`, with a row for each output and a column for each active input.
            ///
            /// It takes as many products with the Jacobian as the colouring of its columns, or
            /// rows, has colours: three for a band of width three, whatever the number of inputs.
            ///
            /// # Errors
            ///
            /// As for `jacobian`; and when the pattern has more than 2²⁷ entries
            /// ([`Error::is_too_long`]).
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| x.windows(2).map(|x| x[1] - x[0] * x[0]).collect::<Vec<_>>());
            /// let jacobian = f.sparse_jacobian(&[1.0, 2.0, 3.0])?;
            /// assert_eq!(jacobian.column_indices(), [0, 1, 1, 2]);
            /// assert_eq!(jacobian.values(), [-2.0, 1.0, -4.0, 1.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| [x[0], x[1] * data[0]]);
            /// assert_eq!(f.sparse_jacobian(&[2.0, 3.0], &[4.0])?.to_dense(), [1.0, 0.0, 0.0, 4.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn sparse_jacobian(
                &self,
                x: &[f64] $(, $data: $type)?
            ) -> Result<O::Of<SparseMatrix>, Error> {
                let mut jacobian = SparseMatrix::default();
                let result = self.jacobian_to_sparse(x $(, $data)?, &mut jacobian)?;
                Ok(O::answer(result.map(|()| jacobian)))
            }

            /// The Jacobian at `x`, written into `jacobian`, which may be any matrix. Nothing is
            /// allocated if that is of an earlier call with the same pattern, a kernel serves and
            /// the thread has called it before. On an error `jacobian` is unchanged.
            ///
            /// # Errors
            ///
            /// As for `sparse_jacobian`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{SparseMatrix, Tape, Var};
            ///
            /// let mut jacobian = SparseMatrix::default();
            /// let f = Tape::record(|x: &[Var]| [x[0] * x[0], x[1].exp()]);
            /// f.sparse_jacobian_into(&[3.0, 0.0], &mut jacobian)?;
            /// assert_eq!(jacobian.values(), [6.0, 1.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| [x[0] * data[0], x[1]]);
            /// f.sparse_jacobian_into(&[3.0, 0.0], &[4.0], &mut jacobian)?;
            /// assert_eq!(jacobian.values(), [4.0, 1.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn sparse_jacobian_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                jacobian: &mut SparseMatrix,
            ) -> Result<O::Of<()>, Error> {
                self.jacobian_to_sparse(x $(, $data)?, jacobian).map(O::answer)
            }

            fn jacobian_to_sparse(
                &self,
                x: &[f64] $(, $data: $type)?,
                jacobian: &mut SparseMatrix,
            ) -> CallResult<(), O> {
                with_request(Purpose::SparseJacobian, jacobian, |request| {
                    if is_scalar::<O>() {
                        return Ok(self.call_one(x $(, $data)?, request, &mut [])?.map(drop));
                    }
                    let to = Results::Into { slice: &mut [], name: "Jacobian" };
                    Ok(self.call_outputs(x $(, $data)?, request, to)?.map(drop))
                })
            }
        }

        /// Sparse Hessians of functions of one output.
        impl<O: Output<Outputs = Var>, F: Fn($($args),*) -> O> $name<F> {
            /// The Hessian at `x`, both triangles of it; it is exactly symmetric.
            ///
            /// It takes few Hessian products: three for a chain of any length, two for an arrow.
            /// For the pattern see `sparse_jacobian`.
            ///
            /// # Errors
            ///
            /// As for `hvp`; and when the pattern has more than 2²⁷ entries
            /// ([`Error::is_too_long`]).
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| x.windows(2).map(|x| (x[0] * x[1]).exp()).sum::<Var>());
            /// let hessian = f.sparse_hessian(&vec![0.0; 1000])?;
            /// assert_eq!((hessian.rows(), hessian.values().len()), (1000, 2998));
            /// assert_eq!(hessian.triplets().nth(3), Some((1, 1, 0.0)));
            /// assert_eq!(hessian.triplets().nth(4), Some((1, 2, 1.0)));
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * x[1] * data[0]);
            /// assert_eq!(f.sparse_hessian(&[1.0, 1.0], &[3.0])?.values(), [3.0, 3.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn sparse_hessian(
                &self,
                x: &[f64] $(, $data: $type)?
            ) -> Result<O::Of<SparseMatrix>, Error> {
                let mut hessian = SparseMatrix::default();
                let result = self.hessian_to_sparse(x $(, $data)?, &mut hessian)?;
                Ok(O::answer(result.map(|()| hessian)))
            }

            /// The Hessian at `x`, written into `hessian`, which may be any matrix. Nothing is
            /// allocated if that is of an earlier call with the same pattern, a kernel serves and
            /// the thread has called it before. On an error `hessian` is unchanged.
            ///
            /// # Errors
            ///
            /// As for `sparse_hessian`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{SparseMatrix, Tape, Var};
            ///
            /// let mut hessian = SparseMatrix::default();
            /// let f = Tape::record(|x: &[Var]| x[0].powi(3) + x[1]);
            /// f.sparse_hessian_into(&[2.0, 5.0], &mut hessian)?;
            /// assert_eq!(hessian.triplets().collect::<Vec<_>>(), [(0, 0, 12.0)]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0].powi(2) * data[0]);
            /// f.sparse_hessian_into(&[2.0], &[5.0], &mut hessian)?;
            /// assert_eq!(hessian.values(), [10.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn sparse_hessian_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                hessian: &mut SparseMatrix,
            ) -> Result<O::Of<()>, Error> {
                self.hessian_to_sparse(x $(, $data)?, hessian).map(O::answer)
            }

            fn hessian_to_sparse(
                &self,
                x: &[f64] $(, $data: $type)?,
                hessian: &mut SparseMatrix,
            ) -> CallResult<(), O> {
                with_request(Purpose::SparseHessian, hessian, |request| {
                    Ok(self.call_one(x $(, $data)?, request, &mut [])?.map(drop))
                })
            }
        }
    };
}

/// Calls `call` with a request for sparse results in `matrix`.
fn with_request<T>(
    purpose: Purpose,
    matrix: &mut SparseMatrix,
    call: impl FnOnce(Request<'_>) -> T,
) -> T {
    /// Has the matrix back also if the user's function panics.
    struct Borrowed<'a>(&'a mut SparseMatrix, RefCell<SparseMatrix>);
    impl Drop for Borrowed<'_> {
        fn drop(&mut self) {
            *self.0 = self.1.take();
        }
    }
    let taken = RefCell::new(core::mem::take(matrix));
    let borrowed = Borrowed(matrix, taken);
    let sparse = Some(SparseRequest { matrix: &borrowed.1, known: None });
    call(Request { sparse, ..purpose.into() })
}

sparse!(Recorded<F>, (&[Var]), ());
sparse!(RecordedWith<F>, (&[Var], &[Var]), (data: &[f64]));
