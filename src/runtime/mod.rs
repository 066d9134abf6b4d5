//! Running recorded functions: kernels where they apply, the tape elsewhere.
//!
//! | file | content |
//! | --- | --- |
//! | `tape`, `recorded` | the entry point, and the recorded functions |
//! | `derivatives`, `vector` | their methods: for one output, and for any number |
//! | `batch/` | many calls at once: methods, the kernel's part, its code for batches, errors |
//! | `non_finite` | the origin of a NaN or an infinity |
//! | `core`, `kernel_call` | one call: kernel or tape; the kernel's part |
//! | `nested` | recorded functions as operations of others |
//! | `function`, `outputs` | the results of a run on the tape, outputs of any shape |
//! | `sparse`, `patterns` | sparse derivatives, and the patterns of a specialisation |
//! | `specialisation` | calls with one length of input: kernels, counters, merging |
//! | `tracing_detail` | what the next runs on the tape record, and whether they are timed |
//! | `profile` | what the tape has recorded for a specialisation; when a kernel is due |
//! | `budget` | the work that profiling may do |
//! | `installed` | a kernel in use, and whether it pays |
//! | `job`, `workers` | a compilation, in the background or not, and the threads |
//! | `lengths` | lengths of input beyond the limit |
//! | `report`, `specialisation_report` | reports, and the part about one specialisation |
//! | `error`, `options` | the public error, the builder |
//!
//! This room alone imports both `trace` and `jit`.

mod batch;
mod budget;
mod core;
mod derivatives;
mod error;
mod function;
mod installed;
mod job;
mod kernel_call;
mod lengths;
mod nested;
mod non_finite;
mod options;
mod outputs;
mod patterns;
mod profile;
mod recorded;
mod report;
mod sparse;
mod specialisation;
mod specialisation_report;
mod tape;
mod tape_run;
mod tracing_detail;
mod vector;
mod workers;

pub use batch::{BatchError, ElementCause, ElementError, Rows};
pub use error::Error;
pub use non_finite::{NonFinite, NonFiniteOrigin, NonFiniteResult};
pub use options::TapeBuilder;
pub use outputs::{Output, OutputReader, OutputWriter, Outputs};
pub use recorded::{Recorded, RecordedWith};
pub use report::{DecisionReport, KernelReport, Report, Wait, Waiting};
pub use tape::Tape;
