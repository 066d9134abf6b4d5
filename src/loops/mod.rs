//! Loop transformations, graph to graph.
//!
//! - `nests`: recognises nests of affine loops with arrays in straight-line code
//! - `reroll`: rolls repetition in straight-line code into loops
//! - `expand`: unrolls loops with constant trip counts
//! - `fuse`: recomputes saved values of one loop where another loop reads them
//! - `hoist`: loop-invariant code motion

mod cells;
mod expand;
mod fuse;
mod hoist;
mod nests;
mod reroll;

pub use cells::store_arrays;
pub use expand::expand;
pub(crate) use expand::{can_expand, trip_count};
pub use fuse::fuse;
pub use hoist::{hoist, hoist_inputs};
pub use nests::recognise_nests;
pub(crate) use reroll::without_loops;
pub use reroll::{RerollLimits, reroll};
