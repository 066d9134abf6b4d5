//! Refusals: reasons why there is no kernel.

use crate::jit::CompileError;
use crate::merge::MergeError;
use crate::ssa::Place;

/// The reason why the tape serves although the function is hot.
///
/// The gradients are right all the same. A refusal names the limit or the place in the program to
/// change for a kernel; its `Display` is a readable sentence.
///
/// # Examples
///
/// ```
/// use std::cell::Cell;
///
/// use phigrad::{Refusal, Tape, Var};
///
/// // Hidden state: each call computes another function.
/// let calls = Cell::new(0.0);
/// let f = Tape::record(|x: &[Var]| x[0] * calls.replace(calls.get() + 1.0));
/// f.grad(&[1.0])?;
/// f.grad(&[1.0])?;
/// assert!(matches!(f.report().refusals[..], [Refusal::Path(_)]));
/// # Ok::<(), phigrad::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A path could not be added to the graph; see [`MergeError`].
    #[error(transparent)]
    Path(#[from] MergeError),
    /// A call took so many operations that it was not recorded.
    #[error(
        "a call takes more than {limit} operations (Limits::trace_events), reached at {at}; such \
         calls are not compiled, and the tape runs the function up to 17 times for the gradient"
    )]
    LongRun {
        /// The limit.
        limit: usize,
        /// The first operation beyond it.
        at: Place,
    },
    /// The graph could not be compiled; see [`CompileError`].
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The recorded paths take as much memory as they may.
    #[error(
        "the recorded paths take more than {limit} bytes (Limits::profile_bytes); no path is added"
    )]
    ProfileTooLarge {
        /// The limit.
        limit: usize,
    },
    /// Instances of one region no longer share the paths through them.
    #[error(
        "instances of the same region do not share their paths: sharing takes more than {limit} \
         steps (Limits::nodes)"
    )]
    TooManyToShare {
        /// The limit.
        limit: usize,
    },
    /// The graph with its loops is too large to compile.
    #[error("the graph to compile has {size} steps, more than {limit} (Limits::compiled)")]
    TooManyToCompile {
        /// The number of its steps.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The reverse sweep of the loops would take longer than the tape, and they cannot become
    /// straight-line code: that has more than 2¹⁸ operations, or more than
    /// [`Limits::compiled`](crate::Limits::compiled).
    #[error(
        "with its loops the kernel takes up to {steps} steps for {recorded} recorded ones, and \
         straight-line code is compiled up to 262144 operations (or Limits::compiled)"
    )]
    SlowLoops {
        /// An upper bound of the steps of a run of the kernel.
        steps: u64,
        /// The number of recorded steps.
        recorded: u64,
    },
    /// The loops would save too much for the reverse sweep, even with checkpoints.
    #[error(
        "the loops save {words} numbers for the reverse sweep, more than {limit} (Limits::saved_values)"
    )]
    SavedValues {
        /// The least number of values that they save.
        words: u64,
        /// The limit.
        limit: usize,
    },
    /// The sparsity pattern over all paths has too many entries.
    #[error("the sparsity pattern of all paths has more than {limit} entries")]
    TooDense {
        /// The largest number of entries.
        limit: usize,
    },
    /// A kernel for a second derivative calls an operation that has none.
    #[error("the operation `{operation}` has no second derivatives (Operation::vjp_tangent)")]
    NoSecondDerivative {
        /// The name of the operation.
        operation: String,
    },
    /// The compiler panicked, which is a bug of this library.
    #[error("the compiler failed unexpectedly; please report this")]
    Panicked,
    /// No thread could be started to compile on.
    #[error("no thread could be started to compile on: {reason}")]
    Thread {
        /// The message of the operating system.
        reason: String,
    },
    /// The function was called with more lengths of inputs, or had outputs of more lengths, than
    /// the limits allow.
    #[error("more than {limit} lengths of inputs and outputs (Limits::specialisations)")]
    TooManyLengths {
        /// The limit.
        limit: usize,
    },
}

#[cfg(feature = "serde")]
impl serde::Serialize for Refusal {
    /// As its sentence.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
