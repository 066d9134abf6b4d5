//! Invariants of the repository's own files.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

mod repository;
mod source;
