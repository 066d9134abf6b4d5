//! Recorded functions as users see them: who serves, reports, limits, memory.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "../common/mod.rs"]
mod common;

mod agreement;
mod allocation;
mod batches;
mod calls;
mod checkpoints;
mod control;
mod custom_contract;
mod custom_operations;
mod guards;
mod higher_order;
mod limits;
mod long_loops;
mod long_runs;
mod memory;
mod merging;
mod nested;
mod non_finite;
mod outputs;
mod profiling;
mod repeatable;
mod repeated_calls;
mod second_order;
#[cfg(feature = "serde")]
mod serialized;
mod sparse;
mod structure;
mod tiers;
mod tiny_divisors;
mod trip_counts;
