//! Annotated functions: the same meaning, the marks, and soundness.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "../common/mod.rs"]
mod common;

mod captures;
mod carried;
mod jumps;
mod marks;
mod meaning;
mod names;
mod parts;
mod soundness;
