//! Running recorded functions: kernels where they apply, the tape elsewhere.
//!
//! This layer alone knows all others. `recorded` is what users hold;
//! `specialisation` serves the calls with one length of input, and `profile` keeps
//! what they recorded, and `job` has kernels made of it by `pipeline`.

mod core;
mod error;
mod job;
mod options;
mod profile;
mod recorded;
mod report;
mod specialisation;

pub use error::Error;
pub use options::TapeBuilder;
pub use recorded::{Recorded, RecordedWith, Tape};
pub use report::{DecisionReport, KernelReport, Report, Wait, Waiting};
