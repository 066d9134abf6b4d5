//! φ-calculus: loops of the graph become closed forms, by named rules.
//!
//! Source: PAPER sections 2 and 3 of "Coarsening Optimization for Differentiable
//! Programming" (OOPSLA 2021), whose formulas [`Rule`] lists.

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
