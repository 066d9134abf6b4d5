//! Segments of interest ("Coarsening Optimization for Differentiable Programming", OOPSLA 2021,
//! section 4): divides code into segments of bounded size, cut where few values cross. `divide`
//! makes the segments that are simplified, `cut` those that are compiled to native functions.
//!
//! A graph has no dead nodes, so all its nodes are on def-use chains of its outputs.

mod cut;
mod divide;

pub use cut::{crossing, cut, cut_evenly};
pub use divide::{divide, divide_evenly};
