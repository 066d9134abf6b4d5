//! Merging is sound: small programs written to break it. Each is checked on
//! thousands of inputs, against the tape, the same code without the attribute,
//! and the same code on plain numbers; and each states how much of what it can
//! do must be known after some runs, so that the test fails if paths that could be
//! merged no longer are. With `SHARES` in the environment the tests print how much
//! each knows, with regions and without. The programs in `ordinary` are checked on fewer.

#[macro_use]
mod check;
mod arrays;
mod breaks;
mod cells;
mod closures;
mod collections;
mod constants;
mod counters;
mod escapes;
mod helpers;
mod hidden;
mod jumps;
mod loops;
mod macro_calls;
mod macro_holes;
mod num;
mod ordinary;
mod path_sharing;
mod patterns;
mod plain_machine;
mod plain_state;
mod recursion;
mod references;
mod returns;
mod sharing;
mod state;
mod threads;
mod values;
