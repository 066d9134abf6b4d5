//! Why there is no kernel.

use crate::jit::CompileError;
use crate::merge::MergeError;

/// Why the tape serves although the function is hot.
///
/// The gradients are right all the same; a refusal tells what to change to make
/// them fast. Its `Display` is a sentence for people.
///
/// # Examples
///
/// ```
/// use std::cell::Cell;
///
/// use phigrad::{Refusal, Tape, Var};
///
/// // Hidden state: each call does something else than the one before.
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
    /// The graph could not be compiled; see [`CompileError`].
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// Regions that run the same code share no more of the paths through them.
    #[error(
        "regions that run the same code record each path one by one: to share what is known would \
         take more than {limit} steps (Limits::nodes)"
    )]
    TooManyToShare {
        /// The limit.
        limit: usize,
    },
    /// What is left of the graph when loops have been made is too large to compile.
    #[error("what is to be compiled has {size} steps, more than {limit} (Limits::compiled)")]
    TooManyToCompile {
        /// How many steps it has.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// Of loops too much would have to be kept for the reverse sweep, also with
    /// checkpoints.
    #[error("the loops keep {words} numbers, more than {limit} (Limits::saved_values)")]
    SavedValues {
        /// How many numbers they keep at least.
        words: u64,
        /// The limit.
        limit: usize,
    },
    /// The compiler panicked, which is a bug of this library.
    #[error("the compiler failed unexpectedly; please report this")]
    Panicked,
    /// No thread could be started to compile on.
    #[error("no thread could be started to compile on: {reason}")]
    Thread {
        /// What the operating system says.
        reason: String,
    },
    /// The function was called with more lengths of input than the limits allow.
    #[error("more than {limit} lengths of input (Limits::specialisations)")]
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
