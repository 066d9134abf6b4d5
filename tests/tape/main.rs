//! The tape: `Var`, primitives, recordings and their errors.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "../common/mod.rs"]
mod common;

mod errors;
mod jacobian_tapes;
mod order_statistics;
mod primitives;
mod properties;
mod recordings;
mod sharing;
mod special_derivatives;
mod special_functions;
mod untracked_runs;
mod var;
