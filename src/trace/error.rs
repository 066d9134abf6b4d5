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
    #[error("the run recorded more than {limit} events (Limits::trace_events); reached at {at}")]
    TooLong {
        /// The limit that was reached.
        limit: usize,
        /// The operation that did not fit.
        at: Site,
    },
}

fn made_by(made: &Option<Site>) -> String {
    made.map_or_else(String::new, |site| {
        format!(" (it belongs to the function recorded at {site})")
    })
}
