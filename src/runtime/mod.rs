//! Running recorded functions: kernels where they apply, the tape elsewhere.
//!
//! This layer alone knows all others. `recorded` is what users hold;
//! `specialisation` serves the calls with one length of input, and `learning` keeps
//! what they taught, and `job` makes kernels of it; `coarsen` decides the order of the
//! passes from graph to kernel.

mod coarsen;
mod core;
mod error;
mod job;
mod learning;
mod options;
mod recorded;
mod report;
mod specialisation;

pub(crate) use coarsen::{Recording, branched};
pub use error::Error;
#[doc(hidden)]
pub use options::ForcedLoopForm;
pub use options::{Limits, Numerics, TapeBuilder};
pub use recorded::{Recorded, RecordedWith, Tape};
pub use report::{DecisionReport, KernelReport, Purpose, Refusal, Report, Wait, Waiting};
