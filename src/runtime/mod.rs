//! Running recorded functions: kernels where they apply, the tape elsewhere.
//!
//! | file | content |
//! | --- | --- |
//! | `recorded` | `Tape`, `Recorded` and `RecordedWith`, the public types |
//! | `core` | one call: kernel or tape |
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

mod budget;
mod core;
mod error;
mod installed;
mod job;
mod lengths;
mod options;
mod profile;
mod recorded;
mod report;
mod specialisation;
mod specialisation_report;
mod tracing_detail;
mod workers;

pub use error::Error;
pub use options::TapeBuilder;
pub use recorded::{Recorded, RecordedWith, Tape};
pub use report::{DecisionReport, KernelReport, Report, Wait, Waiting};
