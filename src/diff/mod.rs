//! Differentiation: maps a graph to the graph of its gradient.

mod activity;
mod adjoints;
mod checkpoint;
mod gathered;
mod loops;
mod needed;
mod order;
mod reach;
mod regions;
mod relays;
mod reverse;
mod rows;
mod running;
mod split;
mod sums;
mod underflow;
mod vanish;

pub use checkpoint::{Checkpointed, checkpoint};
pub use order::reordered;
pub use reverse::{Wanted, reverse};
pub use vanish::without_rounding_errors;
