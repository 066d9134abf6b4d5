//! Everything that can go wrong, each with what the user needs to know.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A reason why a command could not finish or did not succeed.
#[derive(Debug, Error)]
pub enum Error {
    /// `--only` names no program.
    #[error("there is no program '{name}'; the programs are {}", .known.join(", "))]
    UnknownProgram {
        /// The name as given.
        name: String,
        /// All names.
        known: Vec<&'static str>,
    },
    /// `--config` is not a configuration of a selected program.
    #[error(
        "there is no configuration {config} of {program}; valid are {}",
        .known.iter().map(|(name, count)| format!("{name} 1 to {count}")).collect::<Vec<_>>().join(", ")
    )]
    UnknownConfig {
        /// The number as given.
        config: usize,
        /// The first selected program that lacks it.
        program: &'static str,
        /// All programs with their number of configurations.
        known: Vec<(&'static str, usize)>,
    },
    /// The file of `--json` or `--svg` cannot be opened for writing, or written.
    #[error("cannot write the {kind} file {}: {source}", .path.display())]
    File {
        /// Its content.
        kind: &'static str,
        /// The path as given.
        path: PathBuf,
        /// The message of the system.
        source: io::Error,
    },
    /// The expected values that are built into the program are damaged.
    #[error("the built-in vectors cannot be read: {0}")]
    Vectors(#[from] serde_json::Error),
    /// A program in the list has no expected values.
    #[error("the built-in vectors have no row for {program} {config}")]
    MissingVector {
        /// Name of the program.
        program: &'static str,
        /// Its configuration.
        config: usize,
    },
    /// Curves cannot be drawn.
    #[error("cannot draw the curves: {reason}")]
    Plot {
        /// The message of the drawing library.
        reason: String,
    },
    /// Standard output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// The library reported an error.
    #[error("{subject}: phigrad failed to {action}: {source}")]
    Library {
        /// The program and configuration.
        subject: String,
        /// The call of the library.
        action: &'static str,
        /// Its answer.
        source: phigrad::Error,
    },
    /// A batch has other results than single calls.
    #[error("{subject}: a batch has other results than single calls")]
    BatchDiffers {
        /// The program.
        subject: String,
    },
    /// A call that was to be measured in a kernel ran elsewhere.
    #[error(
        "{subject}: of {calls} calls meant for kernels they ran {kernel_calls}, \
         and {fallbacks} fell back to the tape"
    )]
    NotInKernel {
        /// The program and configuration.
        subject: String,
        /// Calls made.
        calls: u64,
        /// Calls that a kernel answered.
        kernel_calls: u64,
        /// Calls that a kernel gave back.
        fallbacks: u64,
    },
    /// Compiling succeeded, yet the report lists no such kernel.
    #[error("{subject}: the report lists no gradient kernel after compiling")]
    NoKernel {
        /// The program and configuration.
        subject: String,
    },
    /// A value or gradient is wrong.
    #[error("{subject}: {finding}")]
    Inaccurate {
        /// The program and configuration.
        subject: String,
        /// The results that deviate, and by how much.
        finding: String,
    },
    /// Some configurations are wrong or could not be measured; they were listed.
    #[error("{failed} of {total} configurations failed")]
    ConfigurationsFailed {
        /// Failed configurations.
        failed: usize,
        /// All that were selected.
        total: usize,
    },
    /// Compiling a straight-line program costs too many tape calls.
    #[error("compiling {events} events costs {ratio:.0} tape calls, more than {limit:.0}")]
    CompileTooSlow {
        /// Events of the trace.
        events: usize,
        /// Compile time over the time of one tape call.
        ratio: f64,
        /// The largest ratio allowed.
        limit: f64,
    },
}

impl Error {
    /// 2 for a mistake in the arguments, 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::UnknownProgram { .. } | Error::UnknownConfig { .. } => 2,
            _ => 1,
        }
    }

    /// True if the reader of standard output went away, as `head` does.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Error::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
