//! Loop transformations, graph to graph.
//!
//! - `reroll`: rolls repetition in straight-line code into loops
//! - `expand`: unrolls loops with constant trip counts
//! - `fuse`: recomputes saved values of one loop where another loop reads them
//! - `hoist`: loop-invariant code motion

mod cells;
mod expand;
mod fuse;
mod hoist;
mod reroll;

pub use cells::store_arrays;
pub use expand::expand;
pub(crate) use expand::{can_expand, trip_count};
pub use fuse::fuse;
pub use hoist::hoist;
pub use reroll::{RerollLimits, reroll};
