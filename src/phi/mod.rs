//! φ-calculus: loops of the graph become closed forms, by named rules.
//!
//! Source: PAPER sections 2 and 3 of "Coarsening Optimization for Differentiable
//! Programming" (OOPSLA 2021), whose formulas [`Rule`] lists.

mod branches;
mod close;
mod recurrence;
mod rule;
mod sums;
mod version;

pub use branches::{Branched, simplify_branches};
pub use close::{CloseLimits, Closed, close};
pub use recurrence::RecurrenceReason;
pub use rule::{Applied, OpenLoop, OpenReason, Rule};
pub use sums::SumReason;
