//! Tape, interpreter and kernels agree.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "../common/mod.rs"]
mod common;

mod fuzz;
mod graphs;
mod large;
mod programs;
