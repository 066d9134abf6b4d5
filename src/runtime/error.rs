//! The public error: opaque, with predicates and the user's source location.

use super::report::Refusal;
use crate::ssa::Place;
use crate::trace::TraceError;

/// Why a call gave no result.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var};
///
/// let f = Tape::record(|x: &[Var]| x[0]);
/// let error = f.grad_into(&[1.0], &mut []).unwrap_err();
/// assert!(error.is_shape());
/// assert_eq!(error.to_string(), "the gradient has length 0, but there are 1 active inputs");
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] Kind);

#[derive(Debug, thiserror::Error)]
pub(super) enum Kind {
    #[error("the gradient has length {found}, but there are {expected} active inputs")]
    Shape { expected: usize, found: usize },
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("not compiled: {0}")]
    Refused(Refusal),
    #[error("not compiled: nothing has been recorded yet; call grad or eval first")]
    Unrecorded,
}

impl Error {
    /// Whether a slice had the wrong length.
    pub fn is_shape(&self) -> bool {
        matches!(self.0, Kind::Shape { .. })
    }

    /// Whether the function used a `Var` of another call or recording.
    pub fn is_foreign_var(&self) -> bool {
        matches!(self.0, Kind::Trace(TraceError::ForeignVar { .. }))
    }

    /// Whether the call took more operations than
    /// [`Limits::trace_events`](crate::Limits::trace_events) allows.
    pub fn is_too_long(&self) -> bool {
        matches!(self.0, Kind::Trace(TraceError::TooLong { .. }))
    }

    /// Whether `compile` declined; the error says why.
    pub fn is_refused(&self) -> bool {
        matches!(self.0, Kind::Refused(_) | Kind::Unrecorded)
    }

    /// The place in the user's source where it went wrong, if there is one.
    pub fn place(&self) -> Option<Place> {
        match &self.0 {
            Kind::Trace(
                TraceError::ForeignVar { used: site, .. } | TraceError::TooLong { at: site, .. },
            ) => Some(Place { file: site.file().into(), line: site.line(), column: site.column() }),
            Kind::Shape { .. } | Kind::Refused(_) | Kind::Unrecorded => None,
        }
    }
}

impl From<TraceError> for Error {
    fn from(error: TraceError) -> Self {
        Error(Kind::Trace(error))
    }
}
