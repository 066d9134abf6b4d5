//! Differentiation: maps a graph to the graph of its gradient.

mod activity;
mod adjoints;
mod loops;
mod reach;
mod regions;
mod reverse;
mod sums;
mod vanish;

pub use reverse::{Wanted, reverse};
pub use vanish::without_rounding_errors;
