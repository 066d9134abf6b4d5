//! Closed forms: recurrences, sums, branches, and the accuracy contract.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "../common/mod.rs"]
mod common;

mod branch_rules;
mod contract;
mod descent;
mod exits;
mod formulas;
mod recurrences;
mod recurrences_random;
mod routines;
mod sums;
mod sums_accuracy;
mod sums_hoisted;
mod worst;
