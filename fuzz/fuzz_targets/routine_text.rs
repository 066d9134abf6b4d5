//! Runs `routine_text` of `tests/common/fuzz.rs` on the bytes of libFuzzer.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| common::fuzz::routine_text(bytes));
