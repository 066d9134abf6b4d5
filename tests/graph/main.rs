//! The graph: text form, verifier, interpreter, regions, loops, calls, and passes over them.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod corpus;
mod expand;
mod loop_passes;
mod loop_rules;
mod random_passes;
mod recipes;
mod region_passes;
mod regions;
mod segments;
mod text;
