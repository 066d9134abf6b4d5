//! Differentiation: maps a graph to the graph of its gradient.

mod activity;
mod adjoints;
mod regions;
mod reverse;

pub use reverse::{Wanted, reverse};
