//! Differentiation: maps a graph to the graph of its gradient.

mod reverse;

pub use reverse::{Wanted, reverse};
