//! Explanations of recorded functions.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

mod explanations;
mod notation;
mod values;
