//! The parts of a [`Report`](crate::Report): kernels, comparisons, loops, closed forms, and the
//! reasons why a faster way was not taken.
//!
//! ```
//! use phigrad::report::{OpenReason, RecurrenceReason};
//! use phigrad::{Tape, Var};
//!
//! let f = Tape::record(|x: &[Var]| (0..100).fold(x[0], |y, _| y.sin() + 1.0));
//! f.grad(&[0.5])?;
//! f.compile()?;
//! let open = &f.report().open_loops[0];
//! assert!(open.at.as_ref().is_some_and(|at| at.file.ends_with(".rs")));
//! let is_affine = |reason: &OpenReason| {
//!     !matches!(reason, OpenReason::Recurrence(RecurrenceReason::NotAffine(_)))
//! };
//! assert!(!open.reasons.iter().all(is_affine));
//! # Ok::<(), phigrad::Error>(())
//! ```

pub use crate::jit::CompileError;
pub use crate::merge::{
    Decision, MergeError, SideExit, TripCounts, UnmergedReason, UnmergedRegion,
};
pub use crate::op::Op;
pub use crate::phi::{Applied, OpenLoop, OpenReason, RecurrenceReason, Rule, SumReason};
pub use crate::runtime::{DecisionReport, KernelReport, Wait, Waiting};
