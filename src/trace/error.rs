//! Errors while the user's function is recorded.

use super::Site;

/// A reason why a recording gave no trace. Recorded functions return it as [`Error`](crate::Error).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A `Var` of another recording was used.
    #[error(
        "a Var of another recording was used at {used}{}; a Var is valid only inside the call \
         that made it", made_by(.made)
    )]
    ForeignVar {
        /// The place where it was used.
        used: Site,
        /// The place where the recorded function that it belongs to was made, if that is still
        /// known.
        made: Option<Site>,
    },
    /// The run recorded more events than the limit allows.
    #[error("the run recorded more than {limit} events (Limits::{name}); reached at {at}")]
    TooLong {
        /// The limit that was reached.
        limit: usize,
        /// Its name in [`Limits`](crate::Limits).
        name: &'static str,
        /// The operation that did not fit.
        at: Site,
    },
    /// A custom operation was called with another number of arguments than it has inputs.
    #[error("an operation of {expected} inputs was called with {found} arguments at {at}")]
    Arguments {
        /// The number of arguments.
        found: usize,
        /// The number of inputs.
        expected: usize,
        /// The call.
        at: Site,
    },
    /// A custom operation, or a recorded function called like one, has too many outputs.
    #[error("an operation of {found} outputs was called at {at}; {limit} is the largest number")]
    TooManyOutputs {
        /// The number of outputs.
        found: usize,
        /// The largest number.
        limit: usize,
        /// The call.
        at: Site,
    },
    /// A custom operation was called that was made after too many others.
    #[error("an operation was called at {at} that was made after {limit} others in this process")]
    TooManyOperations {
        /// The largest number of operations that can be called.
        limit: u64,
        /// The call.
        at: Site,
    },
    /// A slice of another shape than expected was given to a function of the library.
    #[error("the {quantity} is {found} in the call at {at}, and {expected} is expected")]
    Shape {
        /// The length or order, of an argument of the function that is named too.
        quantity: &'static str,
        /// The value that it has.
        found: usize,
        /// The value that it should have.
        expected: usize,
        /// The call.
        at: Site,
    },
    /// A long run is repeated for its gradient, and another run with the same inputs was different.
    #[error(
        "a run of more than Limits::trace_events operations is repeated for the gradient, and the \
         second run differs at {at}: the function depends on state other than its inputs"
    )]
    NotRepeatable {
        /// The operation at which the difference was noticed.
        at: Site,
    },
}

fn made_by(made: &Option<Site>) -> String {
    made.map_or_else(String::new, |site| {
        format!(" (it belongs to the function recorded at {site})")
    })
}
