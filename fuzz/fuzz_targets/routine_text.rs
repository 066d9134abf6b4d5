//! Runs `routine_text` of `tests/common/fuzz.rs` on the bytes of libFuzzer.
#![no_main]

#[path = "../../tests/common/fuzz.rs"]
#[allow(dead_code, missing_docs)]
mod fuzz;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::routine_text(bytes));
