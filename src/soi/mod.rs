//! Segments of interest: which code is looked at together, so that work on it is
//! bounded and values used often are not torn apart. `divide` makes the segments of
//! expressions that are simplified, `cut` those of code that become native functions.
//!
//! A graph holds what its outputs need and nothing else, so all its nodes are on the
//! def-use chains of its outputs.

mod cut;
mod divide;

pub use cut::{crossing, cut, cut_evenly};
pub use divide::{divide, divide_evenly};
