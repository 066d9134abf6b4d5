//! What makes loops and transforms them: graph to graph.
//!
//! `reroll` finds loops in straight-line code, `expand` makes straight-line code of loops, `fuse`
//! computes what one loop reads of another's iterations where it is read, and `hoist` computes what
//! no iteration changes before the loop.

mod expand;
mod fuse;
mod hoist;
mod reroll;

pub use expand::expand;
pub(crate) use expand::{can_expand, trip_count};
pub use fuse::fuse;
pub use hoist::hoist;
pub use reroll::{RerollLimits, reroll};
