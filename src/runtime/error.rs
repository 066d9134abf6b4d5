//! The public error: opaque, with predicates and the user's source location.

use core::convert::Infallible;

use super::batch::{ElementCause, ElementError};
use crate::merge::MergeError;
use crate::pipeline::Refusal;
use crate::ssa::Place;
use crate::trace::{Site, TraceError};

/// The reason why a call has no result.
///
/// Predicates tell the kind of error; the text may change.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var};
///
/// let f = Tape::record(|x: &[Var]| x[0]);
/// let error = f.grad_into(&[1.0], &mut []).unwrap_err();
/// assert!(error.is_shape());
/// assert_eq!(error.to_string(), "the gradient has length 0, and 1 is expected");
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] Kind);

#[derive(Debug, thiserror::Error)]
pub(super) enum Kind {
    #[error("the {slice} has length {found}, and {expected} is expected")]
    Shape { slice: &'static str, expected: usize, found: usize },
    #[error(
        "the operation `{operation}`, called at {at}, has no second derivatives \
         (Operation::vjp_tangent)"
    )]
    NoSecondDerivative { operation: String, at: Site },
    #[error(
        "the {slice} has length {found}, which is no multiple of {count}, the number of elements"
    )]
    Rows { slice: &'static str, count: usize, found: usize },
    #[error(transparent)]
    Element(Box<ElementError<Infallible>>),
    /// A list of elements with errors is empty, which the library never makes.
    #[error("no element of the batch has an error")]
    NoElement,
    /// The function has returned an error of its own, which the caller returns. Otherwise its
    /// outputs are not one number, as their type says.
    #[error("the function has not written one number, although its Outputs::COUNT is 1")]
    Failed,
    /// The outputs have another shape than expected; if that is repeated, it is an error.
    #[error(
        "the function recorded at {at} has other outputs when it is repeated: it depends on state \
         other than its inputs"
    )]
    OtherOutputs { at: Site },
    #[error("the sparsity pattern has more than {limit} entries")]
    TooDense { limit: usize },
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("not compiled: {0}")]
    NotCompiled(Refusal),
    #[error(
        "not compiled: nothing has been recorded; call `grad` or `eval` first (a function with \
         `tape_only`, and calls beyond `Limits::call_events`, are never recorded)"
    )]
    Unrecorded,
}

impl Error {
    /// An error unless the slice of this name has the length `expected`.
    pub(super) fn check_length(
        slice: &'static str,
        expected: usize,
        found: usize,
    ) -> Result<(), Error> {
        if found == expected { Ok(()) } else { Err(Kind::Shape { slice, expected, found }.into()) }
    }

    /// The kind of error, of the call itself if it was for an element of a batch.
    fn kind(&self) -> &Kind {
        match &self.0 {
            Kind::Element(element) => match &element.cause {
                ElementCause::Call(error) => error.kind(),
                ElementCause::Function(never) => match *never {},
            },
            kind => kind,
        }
    }

    /// The position of the first element without a result if a batch is not complete, from 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Limits, Tape, Var};
    ///
    /// let mut limits = Limits::default();
    /// limits.call_events = 10;
    /// let f = Tape::builder().limits(limits).record(|x: &[Var]| {
    ///     let mut product = x[0];
    ///     while product < 100.0 {
    ///         product *= x[0];
    ///     }
    ///     product
    /// });
    /// let mut values = [0.0; 3];
    /// let error = f.eval_batch_into(&[5.0, 1.001, 100.0], 3, &mut values).unwrap_err();
    /// let error = phigrad::Error::from(error);
    /// assert!(error.is_too_long());
    /// assert_eq!((error.element(), values), (Some(1), [125.0, 0.0, 100.0]));
    /// ```
    pub fn element(&self) -> Option<usize> {
        match self.0 {
            Kind::Element(ref element) => Some(element.element),
            _ => None,
        }
    }

    /// True if the function has returned an error of its own.
    pub(super) fn is_failed(&self) -> bool {
        matches!(self.0, Kind::Failed)
    }

    /// True if the outputs have another shape than expected.
    pub(super) fn is_other_outputs(&self) -> bool {
        matches!(self.0, Kind::OtherOutputs { .. })
    }

    /// True if a slice has the wrong length, also one that the function gave to
    /// [`linalg`](crate::linalg), a custom operation was called with a wrong number of arguments or
    /// has too many outputs, or a function did not write as many outputs as
    /// [`Outputs::COUNT`](crate::Outputs::COUNT) says. For an example see [`Error`].
    pub fn is_shape(&self) -> bool {
        let is_shape_of_call = |error: &TraceError| {
            matches!(
                error,
                TraceError::Arguments { .. }
                    | TraceError::TooManyOutputs { .. }
                    | TraceError::Shape { .. }
            )
        };
        match self.kind() {
            Kind::Shape { .. } | Kind::Rows { .. } | Kind::Failed => true,
            Kind::Trace(error) => is_shape_of_call(error),
            _ => false,
        }
    }

    /// True if the function used a `Var` of another call or recording.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::cell::Cell;
    ///
    /// use phigrad::{Tape, Var};
    ///
    /// // Stores a Var in one call and uses it in the next.
    /// let kept = Cell::new(Var::from(1.0));
    /// let f = Tape::record(|x: &[Var]| x[0] * kept.replace(x[0]));
    /// assert_eq!(f.grad(&[3.0])?, [1.0]);
    /// assert!(f.grad(&[3.0]).unwrap_err().is_foreign_var());
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    pub fn is_foreign_var(&self) -> bool {
        matches!(self.kind(), Kind::Trace(TraceError::ForeignVar { .. }))
    }

    /// True if the call took more operations than
    /// [`Limits::call_events`](crate::Limits::call_events) allows, or the pattern of a sparse
    /// matrix has too many entries. For an example see
    /// [`TapeBuilder::limits`](crate::TapeBuilder::limits).
    pub fn is_too_long(&self) -> bool {
        matches!(self.kind(), Kind::Trace(TraceError::TooLong { .. }) | Kind::TooDense { .. })
    }

    /// True if a call with more operations than
    /// [`Limits::trace_events`](crate::Limits::trace_events) was repeated for its gradient, and the
    /// repetition was different: the function depends on state other than its inputs. A recorded
    /// function that is called inside counts as such state where kernels round differently from the
    /// tape, so not with [`Numerics::Exact`](crate::Numerics::Exact) or
    /// [`TapeBuilder::tape_only`](crate::TapeBuilder::tape_only).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::cell::Cell;
    ///
    /// use phigrad::{Limits, Tape, Var};
    ///
    /// let runs = Cell::new(0.0);
    /// let mut limits = Limits::default();
    /// limits.trace_events = 2;
    /// let f = Tape::builder().limits(limits).record(|x: &[Var]| {
    ///     let scale = runs.replace(runs.get() + 1.0);
    ///     x[0] * scale * x[0] * x[0]
    /// });
    /// assert!(f.grad(&[1.0]).unwrap_err().is_not_repeatable());
    /// assert_eq!(f.eval(&[1.0])?, 2.0); // The function runs once.
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    pub fn is_not_repeatable(&self) -> bool {
        matches!(
            self.kind(),
            Kind::Trace(TraceError::NotRepeatable { .. }) | Kind::OtherOutputs { .. }
        )
    }

    /// True if a second derivative was asked for, and the function calls an operation that has none
    /// ([`Operation::vjp_tangent`](crate::Operation::vjp_tangent)), or the gradient of a function
    /// that calls an operation ([`Recorded::call_grad`](crate::Recorded::call_grad)).
    pub fn is_not_twice_differentiable(&self) -> bool {
        matches!(self.kind(), Kind::NoSecondDerivative { .. })
    }

    /// True if `compile` made no kernel; the text gives the reason, and so does
    /// [`Report::refusals`](crate::Report::refusals).
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0]);
    /// assert!(f.compile().unwrap_err().is_refused()); // No call has been made yet.
    /// ```
    pub fn is_refused(&self) -> bool {
        matches!(self.kind(), Kind::NotCompiled(_) | Kind::Unrecorded)
    }

    /// The place of the error in the user's source, if there is one: the operation that used
    /// a foreign `Var`, exceeded a limit or was not repeated, the call of a custom operation or of
    /// [`linalg`](crate::linalg) with a wrong shape or without second derivatives, the recording of
    /// a function whose outputs changed, or the step at which `compile` refused a path.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Limits, Tape, Var};
    ///
    /// let mut limits = Limits::default();
    /// limits.call_events = 1;
    /// let f = Tape::builder().limits(limits).record(|x: &[Var]| x[0] * x[0] * x[0]);
    /// let error = f.grad(&[1.0]).unwrap_err();
    /// assert_eq!(error.place().map(|place| place.line), Some(line!() - 2));
    /// ```
    pub fn place(&self) -> Option<Place> {
        match self.kind() {
            Kind::Trace(
                TraceError::ForeignVar { used: site, .. }
                | TraceError::TooLong { at: site, .. }
                | TraceError::Arguments { at: site, .. }
                | TraceError::TooManyOutputs { at: site, .. }
                | TraceError::TooManyOperations { at: site, .. }
                | TraceError::Shape { at: site, .. }
                | TraceError::NotRepeatable { at: site },
            )
            | Kind::NoSecondDerivative { at: site, .. }
            | Kind::OtherOutputs { at: site } => {
                Some(Place::new(site.file(), site.line(), site.column()))
            }
            Kind::NotCompiled(
                Refusal::Path(MergeError::Divergent { at }) | Refusal::LongRun { at, .. },
            ) => Some(at.clone()),
            Kind::Shape { .. } | Kind::Rows { .. } | Kind::Element(_) => None,
            Kind::NoElement | Kind::Failed | Kind::TooDense { .. } => None,
            Kind::NotCompiled(_) | Kind::Unrecorded => None,
        }
    }
}
