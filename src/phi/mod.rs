//! φ-calculus: replaces loops of the graph by closed forms, by named rules.
//!
//! - `rule`: the list of rules
//! - `close`: the order in which loops are closed
//! - `recurrence`: affine recurrences (C5, C6, C9), evaluated by binary powering
//! - `sums`: sums and products over data (C7, C8, C9), folded to moments
//! - `branches`: φs of branches (F1 to F3, C1, C3, C4)
//! - `version`: loop versioning, a routine with the loop as its fallback
//! - `reason`: the reasons why a loop stays open
//!
//! The rules are those of sections 2 and 3 of "Coarsening Optimization for Differentiable
//! Programming" (OOPSLA 2021). C6 and C9 are extended to systems, to polynomials of the iteration
//! number, and to inner loops.

mod branches;
mod close;
mod reason;
mod recurrence;
mod rule;
mod sums;
mod version;

pub use branches::{Branched, simplify_branches};
pub use close::{CloseLimits, Closed, close};
pub use reason::{OpenReason, RecurrenceReason, SumReason};
pub use rule::{Applied, OpenLoop, Rule};
