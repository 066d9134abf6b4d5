//! φ-calculus: loops of the graph become closed forms, by named rules.
//!
//! Source: PAPER sections 2 and 3 of "Coarsening Optimization for Differentiable
//! Programming" (OOPSLA 2021), whose formulas [`Rule`] lists.

mod branches;
mod close;
mod notation;
mod recurrence;
mod rule;
mod sums;
mod unroll;
mod version;

pub use branches::{Branched, simplify_branches};
pub use close::{CloseLimits, Closed, close};
pub use notation::{
    Notation, Phis, Told, closed_program, differentiated_phis, gradient_formula, loops, phis,
    program,
};
pub(crate) use notation::{display_form, number_loops};
pub use rule::{Applied, Refused, Rule};
pub use unroll::unroll;
