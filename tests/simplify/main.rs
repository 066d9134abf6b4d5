//! Simplification of segments.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "../common/mod.rs"]
mod common;

mod accuracy;
mod examples;
mod kernels;
mod limits;
mod random;
mod reciprocals;
mod rules;
