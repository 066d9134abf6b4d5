//! Differentiation: maps a graph to the graph of its gradient.

mod activity;
mod adjoints;
mod arrays;
mod checkpoint;
mod forward;
mod loops;
mod needed;
mod order;
mod reach;
mod regions;
mod reverse;
mod running;
mod split;
mod sums;

pub use checkpoint::{Checkpointed, checkpoint};
pub use forward::directional;
pub use order::reordered;
pub use reverse::{Wanted, reverse};
