//! The reverse sweep of graphs: regions, loops, checkpoints, order of additions;
//! second derivatives.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "../common/mod.rs"]
mod common;

mod arrays;
mod checkpoints;
mod checkpoints_random;
mod loops;
mod oracle;
mod order;
mod order_random;
mod random;
mod regions;
mod second_derivatives;
mod sparse_patterns;
mod tangents;
