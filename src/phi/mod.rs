//! φ-calculus: loops of the graph become closed forms, by named rules.
//!
//! Source: PAPER sections 2 and 3 of "Coarsening Optimization for Differentiable
//! Programming" (OOPSLA 2021), whose formulas [`Rule`] lists.

mod branches;
mod notation;
mod rule;
mod simplify;

pub use branches::{Branched, simplify_branches};
pub use notation::{Notation, Told, closed_program, gradient_formula, loops, program};
pub use rule::{Applied, Refused, Rule};
pub use simplify::{SimplifyLimits, Stage, Tag, rewrite_rules, simplify_segments};
