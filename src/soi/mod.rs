//! Segments of interest: which straight code is looked at together, so that
//! work on it is bounded and values used often are not torn apart.

mod divide;

pub use divide::{divide, divide_evenly};
