//! Batches: values and gradients of a function of one output for many inputs.

use core::cell::Cell;
use core::ops::Range;

use super::error::{BatchError, ElementCause, ElementError};
use super::inputs::{Batch, BatchResults, Rows};
use crate::pipeline::Purpose;
use crate::runtime::outputs::Output;
use crate::runtime::recorded::{Recorded, RecordedWith};
use crate::trace::Var;

/// The outcome of a batch with these errors.
fn outcome<E>(errors: Vec<ElementError<E>>) -> Result<(), BatchError<E>> {
    match errors.is_empty() {
        true => Ok(()),
        false => Err(BatchError::Elements(errors)),
    }
}

macro_rules! batches {
    (
        $name:ident<F>, ($($args:ty),*), [$($lifetime:tt)*], $rows:ty, ($($data:ident: $type:ty)?),
        $example:literal, $par_example:literal
    ) => {
        /// Many calls at once, for less than as many single calls. The results are those of single
        /// calls, and so are paths, audits and the report: each element takes the kernel if that
        /// has its path, and otherwise the tape. Once a kernel serves and the thread has called it
        /// before, nothing is allocated.
        ///
        /// An error of one element does not keep the others from being called: see [`BatchError`].
        /// A panic of the function does.
        impl<O: Output<Outputs = Var>, F: Fn($($args),*) -> O> $name<F> {
            /// The values of a batch of `n` elements, written into `values`.
            ///
            /// # Errors
            ///
            /// As for `grad_batch_into`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Rows, Tape, Var};
            ///
            /// let mut values = [0.0; 2];
            /// let f = Tape::record(|x: &[Var]| x[0] * x[1]);
            /// f.eval_batch_into(&[1.0, 2.0, 3.0, 4.0], 2, &mut values)?;
            /// assert_eq!(values, [2.0, 12.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * data[0]);
            /// f.eval_batch_into(&[1.0, 2.0], Rows::Shared(&[5.0]), 2, &mut values)?;
            /// assert_eq!(values, [5.0, 10.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn eval_batch_into<$($lifetime)*>(
                &self,
                xs: $rows,
                $($data: $type,)?
                n: usize,
                values: &mut [f64],
            ) -> Result<(), BatchError<O::Error>> {
                self.batch(&[xs.into() $(, $data.into())?], n, Purpose::Value, (Some(values), None))
            }

            /// The gradients of a batch of `n` elements, written into `gradients` one after the
            /// other.
            ///
            /// # Errors
            ///
            /// Before any call when a slice has the wrong length ([`BatchError::Shape`]); after the
            /// calls when some elements have no result, for the reasons for which `grad_into` has
            /// none ([`BatchError::Elements`]).
            ///
            /// # Examples
            ///
            /// ```
            #[doc = $example]
            /// ```
            pub fn grad_batch_into<$($lifetime)*>(
                &self,
                xs: $rows,
                $($data: $type,)?
                n: usize,
                gradients: &mut [f64],
            ) -> Result<(), BatchError<O::Error>> {
                let results = (None, Some(gradients));
                self.batch(&[xs.into() $(, $data.into())?], n, Purpose::Gradient, results)
            }

            /// The values and the gradients of a batch of `n` elements, written into `values` and
            /// into `gradients`.
            ///
            /// # Errors
            ///
            /// As for `grad_batch_into`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Rows, Tape, Var};
            ///
            /// let (mut values, mut gradients) = ([0.0; 2], [0.0; 2]);
            /// let f = Tape::record(|x: &[Var]| x[0] * x[0]);
            /// f.value_and_grad_batch_into(&[1.0, 3.0], 2, &mut values, &mut gradients)?;
            /// assert_eq!((values, gradients), ([1.0, 9.0], [2.0, 6.0]));
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn value_and_grad_batch_into<$($lifetime)*>(
                &self,
                xs: $rows,
                $($data: $type,)?
                n: usize,
                values: &mut [f64],
                gradients: &mut [f64],
            ) -> Result<(), BatchError<O::Error>> {
                let results = (Some(values), Some(gradients));
                self.batch(&[xs.into() $(, $data.into())?], n, Purpose::ValueAndGradient, results)
            }

            fn batch(
                &self,
                rows: &[Rows<'_>],
                n: usize,
                purpose: Purpose,
                (values, gradients): (Option<&mut [f64]>, Option<&mut [f64]>),
            ) -> Result<(), BatchError<O::Error>> {
                let batch = Batch::new(rows, n).map_err(BatchError::Shape)?;
                let results = BatchResults::new(&batch, values, gradients);
                let results = results.map_err(BatchError::Shape)?;
                outcome(self.batch_range(&batch, 0..n, purpose, results))
            }

            /// Calls for the elements in a range; `results` begins with those of the first one.
            fn batch_range(
                &self,
                batch: &Batch<'_>,
                range: Range<usize>,
                purpose: Purpose,
                results: BatchResults<'_>,
            ) -> Vec<ElementError<O::Error>> {
                let failure = Cell::new(None);
                let f = self.only_output(&failure);
                let mut errors = Vec::new();
                self.core().call_batch(f, (batch, range), purpose, results, |element, error| {
                    let cause = match failure.take() {
                        Some(failure) if error.is_failed() => ElementCause::Function(failure),
                        _ => ElementCause::Call(error),
                    };
                    errors.push(ElementError { element, cause });
                });
                errors
            }
        }

        /// Batches on the threads of rayon's current pool. All elements have the same results as on
        /// one thread, and errors are in the same order.
        #[cfg(feature = "rayon")]
        impl<O: Output<Outputs = Var>, F: Fn($($args),*) -> O + Send + Sync> $name<F>
        where
            O::Error: Send,
        {
            /// As `eval_batch_into`, on several threads.
            ///
            /// # Errors
            ///
            /// As for `grad_batch_into`.
            ///
            /// # Examples
            ///
            /// See `par_grad_batch_into`.
            pub fn par_eval_batch_into<$($lifetime)*>(
                &self,
                xs: $rows,
                $($data: $type,)?
                n: usize,
                values: &mut [f64],
            ) -> Result<(), BatchError<O::Error>> {
                let results = (Some(values), None);
                self.par_batch(&[xs.into() $(, $data.into())?], n, Purpose::Value, results)
            }

            /// As `grad_batch_into`, on several threads.
            ///
            /// # Errors
            ///
            /// As for `grad_batch_into`.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = $par_example]
            /// ```
            pub fn par_grad_batch_into<$($lifetime)*>(
                &self,
                xs: $rows,
                $($data: $type,)?
                n: usize,
                gradients: &mut [f64],
            ) -> Result<(), BatchError<O::Error>> {
                let results = (None, Some(gradients));
                self.par_batch(&[xs.into() $(, $data.into())?], n, Purpose::Gradient, results)
            }

            /// As `value_and_grad_batch_into`, on several threads.
            ///
            /// # Errors
            ///
            /// As for `grad_batch_into`.
            ///
            /// # Examples
            ///
            /// See `par_grad_batch_into`.
            pub fn par_value_and_grad_batch_into<$($lifetime)*>(
                &self,
                xs: $rows,
                $($data: $type,)?
                n: usize,
                values: &mut [f64],
                gradients: &mut [f64],
            ) -> Result<(), BatchError<O::Error>> {
                let results = (Some(values), Some(gradients));
                self.par_batch(&[xs.into() $(, $data.into())?], n, Purpose::ValueAndGradient, results)
            }

            fn par_batch(
                &self,
                rows: &[Rows<'_>],
                n: usize,
                purpose: Purpose,
                (values, gradients): (Option<&mut [f64]>, Option<&mut [f64]>),
            ) -> Result<(), BatchError<O::Error>> {
                use rayon::iter::{IntoParallelIterator, ParallelIterator};

                let batch = Batch::new(rows, n).map_err(BatchError::Shape)?;
                let results = BatchResults::new(&batch, values, gradients);
                let ranges = results.map_err(BatchError::Shape)?.split(n, range_length(n));
                let errors = ranges.into_par_iter().map(|(range, results)| {
                    self.batch_range(&batch, range, purpose, results)
                });
                outcome(errors.collect::<Vec<_>>().into_iter().flatten().collect())
            }
        }
    };
}

/// The number of elements of a range that a thread takes: so many that handing it over costs
/// little, and so few that threads end at about the same time.
#[cfg(feature = "rayon")]
fn range_length(count: usize) -> usize {
    const MIN_LENGTH: usize = 64;
    const RANGES_PER_THREAD: usize = 8;
    count.div_ceil(RANGES_PER_THREAD * rayon::current_num_threads()).max(MIN_LENGTH)
}

batches!(
    Recorded<F>,
    (&[Var]),
    [],
    &[f64],
    (),
    "use phigrad::{Tape, Var};

let f = Tape::record(|x: &[Var]| x[0] * x[1]);
let mut gradients = [0.0; 4];
f.grad_batch_into(&[1.0, 2.0, 3.0, 4.0], 2, &mut gradients)?;
assert_eq!(gradients, [2.0, 1.0, 4.0, 3.0]);
# Ok::<(), phigrad::Error>(())",
    "use phigrad::{Tape, Var};

let f = Tape::record(|x: &[Var]| x[0].powi(2));
let xs: Vec<f64> = (0..1000).map(f64::from).collect();
let mut gradients = vec![0.0; 1000];
f.par_grad_batch_into(&xs, 1000, &mut gradients)?;
assert_eq!(gradients[999], 1998.0);
# Ok::<(), phigrad::Error>(())"
);
batches!(
    RecordedWith<F>,
    (&[Var], &[Var]),
    ['r],
    impl Into<Rows<'r>>,
    (data: impl Into<Rows<'r>>),
    "use phigrad::{Rows, Tape, Var};

let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * data[0] + x[1] * data[1]);
let (mut gradients, data) = ([0.0; 4], [1.0, 2.0, 3.0, 4.0]);
// One point with two rows of data.
f.grad_batch_into(Rows::Shared(&[0.5, 0.5]), &data, 2, &mut gradients)?;
assert_eq!(gradients, [1.0, 2.0, 3.0, 4.0]);
# Ok::<(), phigrad::Error>(())",
    "use phigrad::{Rows, Tape, Var};

let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0].powi(2) * data[0]);
let xs: Vec<f64> = (0..1000).map(f64::from).collect();
let mut gradients = vec![0.0; 1000];
f.par_grad_batch_into(&xs, Rows::Shared(&[0.5]), 1000, &mut gradients)?;
assert_eq!(gradients[999], 999.0);
# Ok::<(), phigrad::Error>(())"
);
