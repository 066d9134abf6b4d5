//! Loops: rerolling, data-dependent trip counts, hoisting, and accuracy.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "../common/mod.rs"]
mod common;

mod accuracy;
mod carried_arrays;
mod counted;
mod exact_loops;
mod hoisted;
mod nests;
mod reroll;
mod reroll_random;
mod triangles;
mod trips;
