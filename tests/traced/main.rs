//! Annotated functions: their meaning, marks and captures, and soundness of merging.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "../common/mod.rs"]
mod common;

mod captures;
mod carried;
mod jumps;
mod marks;
mod meaning;
mod names;
mod plain_state;
mod projections;
mod soundness;
mod split_state;
