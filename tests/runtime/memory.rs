//! No leak: functions that are recorded, compiled and dropped many times do not increase the
//! resident memory after a warm-up.
//!
//! By default as many functions as fit in five seconds are made, at least 100
//! of the 10,000; `PHIGRAD_LONG_TESTS=1` makes all (half a minute in the dev
//! profile). The memory may grow by [`SLACK`] bytes, the noise of the
//! allocator; each function that leaked its code alone would add
//! [`PAGES_OF_A_FUNCTION`] bytes. On systems without `/proc/self/statm` the
//! tests print that they measured nothing.

use std::time::{Duration, Instant};

use crate::common::served::manual;
use phigrad::{Numerics, Tape, Var};

/// The bound on the growth of resident memory after the warm-up.
const SLACK: usize = 8 << 20;

/// The least size of a leaked function: one page for each of its kernels.
const PAGES_OF_A_FUNCTION: usize = 3 * 4096;

/// The resident memory in bytes, if the system reports it.
fn resident() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

fn small(x: &[Var]) -> Var {
    if x[0] > 0.0 { (x[0] * x[1]).sin() } else { x[1].exp() }
}

/// The life of a function: record, compile, drop.
fn record_compile_drop() {
    let f = manual(Numerics::Real).record(small);
    f.grad(&[1.0, 2.0]).unwrap();
    f.grad(&[-1.0, 2.0]).unwrap();
    f.compile().unwrap();
    f.grad(&[1.5, 2.0]).unwrap();
    assert_eq!(f.report().kernel_calls, 1);
}

/// Repeats `work` and asserts that memory does not grow after the first 50.
fn assert_steady(name: &str, all: usize, work: impl Fn()) {
    (0..50).for_each(|_| work());
    let Some(before) = resident() else {
        eprintln!("{name}: this system does not tell the resident memory; nothing was measured");
        return;
    };
    let long = std::env::var_os("PHIGRAD_LONG_TESTS").is_some_and(|value| value == "1");
    let start = Instant::now();
    let mut done = 0;
    while done < all && (long || done < 100 || start.elapsed() < Duration::from_secs(5)) {
        work();
        done += 1;
    }
    let growth = || resident().unwrap_or(usize::MAX).saturating_sub(before);
    // Threads that still compile may take some time to end.
    while growth() > SLACK && start.elapsed() < Duration::from_secs(15) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let growth = growth();
    eprintln!("{name}: {done} functions in {:?}, growth of {growth} bytes", start.elapsed());
    assert!(growth <= SLACK, "{name}: growth of {growth} bytes over {done} functions");
    if done * PAGES_OF_A_FUNCTION <= SLACK {
        eprintln!("{name}: too few functions to tell a leak of the code alone");
    }
}

#[test]
fn dropped_functions_leave_nothing_behind() {
    // Other tests allocate in this process.
    let alone = "memory::resident_memory_stays_alone_in_a_process";
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", alone, "--ignored", "--nocapture"])
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
#[ignore = "measures the memory of its process; `dropped_functions_leave_nothing_behind` runs it"]
fn resident_memory_stays_alone_in_a_process() {
    assert_steady("compiled", 10_000, record_compile_drop);
    assert_steady("compiled in the background and dropped meanwhile", 2_000, || {
        let f = Tape::builder().hot_threshold(1).record(small);
        for _ in 0..4 {
            f.grad(&[1.0, 2.0]).unwrap();
        }
        // The thread that compiles outlives the function.
        drop(f);
    });
    assert_steady("ended by a panic", 1_000, || {
        let f = manual(Numerics::Real).record(|x: &[Var]| -> Var {
            let long = (0..1000).fold(x[0], |v, _| v.sin());
            std::panic::resume_unwind(Box::new(long.value()))
        });
        let call = std::panic::AssertUnwindSafe(|| f.grad(&[1.0]));
        assert!(std::panic::catch_unwind(call).is_err());
    });
}
