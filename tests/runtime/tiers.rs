//! Tiers of kernels: results, their order in the background, and the work to compile many paths.

use std::time::{Duration, Instant};

use phigrad::internals::{Tier, Tuning};
use phigrad::{Numerics, Purpose, Recorded, Tape, Var};

use crate::common::served::{NUMERICS, Pair, Served, agrees, manual};

/// A loop with a branch, a data-dependent exit and straight-line code.
fn mixed(x: &[Var]) -> Var {
    let mut state = x[0];
    for i in 0..100 {
        let term = (state * x[1] + f64::from(i) * 0.01).sin();
        state = if term > 0.3 { state * 0.5 + term } else { state - term * x[2] };
    }
    let (mut size, mut count) = (state.abs() + 1.0, 0);
    while size > 0.5 && count < 40 {
        (size, count) = (size * 0.7, count + 1);
    }
    (size * x[2]).exp() + (state * state + 1.0).ln() + x[0].powi(3)
}

fn points() -> impl Iterator<Item = [f64; 3]> {
    (0..12).map(|i| [0.3 + 0.01 * f64::from(i % 3), 0.7, 0.2 + 0.05 * f64::from(i % 2)])
}

#[test]
fn kernels_of_both_tiers_agree_with_the_tape() {
    for numerics in NUMERICS {
        for tier in [Tier::First, Tier::Optimised] {
            let tuning = Tuning { tier: Some(tier), ..Tuning::default() };
            let (tape, kernel) = (manual(numerics), manual(numerics).tuning(tuning));
            let (tape, kernel) = (tape.record(mixed), kernel.record(mixed));
            points().for_each(|x| _ = kernel.grad(&x).unwrap());
            kernel.compile().unwrap();
            let before = kernel.report().kernel_calls;
            for x in points() {
                let expected = tape.value_and_grad(&x).unwrap();
                let found = kernel.value_and_grad(&x).unwrap();
                assert!(agrees(numerics, expected.0, found.0), "{tier:?} {expected:?} {found:?}");
                for (&expected, &found) in expected.1.iter().zip(&found.1) {
                    assert!(agrees(numerics, expected, found), "{tier:?} {expected} {found}");
                }
            }
            assert_eq!(kernel.report().kernel_calls - before, points().count() as u64);
        }
    }
}

/// The size of the code of the gradient kernel.
fn code<F: Fn(&[Var]) -> Var + Send + Sync + 'static>(f: &Recorded<F>) -> usize {
    let report = f.report();
    let gradient = report.kernels.iter().find(|kernel| kernel.purpose == Purpose::Gradient);
    gradient.map_or(0, |kernel| kernel.code_bytes)
}

#[test]
fn the_optimised_kernel_is_in_use_in_the_end() {
    let x = [0.3, 0.7, 0.2];
    let of_tier = |tier| {
        let tuning = Tuning { tier: Some(tier), ..Tuning::default() };
        let f = manual(Numerics::Real).tuning(tuning).record(mixed);
        f.grad(&x).unwrap();
        f.compile().unwrap();
        code(&f)
    };
    let (first, optimised) = (of_tier(Tier::First), of_tier(Tier::Optimised));
    assert_ne!(first, optimised);
    let f = Tape::builder().hot_threshold(1).record(mixed);
    let start = Instant::now();
    while code(&f) != optimised {
        f.grad(&x).unwrap();
        assert!(start.elapsed() < Duration::from_secs(60), "{}", f.report());
    }
}

/// A recursion with a choice in each step.
fn chosen(x: &[Var]) -> Var {
    x.iter().fold(Var::from(0.0), |state, &x| {
        let step = state * 0.9 + x * (state * 0.1 + x).sin();
        if x > 0.5 { step * x } else { step + x * x }
    })
}

#[test]
fn the_size_of_a_kernel_does_not_grow_with_the_number_of_late_paths() {
    for numerics in NUMERICS {
        let pair = Pair::new(numerics, chosen);
        let point = |path: u32| -> Vec<f64> {
            let late = |i: usize| if path >> (i % 32) & 1 == 1 { 0.7 } else { 0.2 };
            // Without repetition that would become a loop.
            let early = |i: usize| if (i * i + i / 3) % 11 < 5 { 0.7 } else { 0.2 };
            (0..200).map(|i| if i < 190 { early(i) } else { late(i) }).collect()
        };
        for path in (0..32).map(|path| path << 26 | path << 1) {
            pair.kernel.grad(&point(path)).unwrap();
        }
        pair.kernel.compile().unwrap();
        for path in (0..32).map(|path| path << 26 | path << 1) {
            assert_eq!(pair.check(&point(path)), Served::Kernel);
        }
        let report = pair.kernel.report();
        assert!(report.paths > 16, "{report}");
        for kernel in &report.kernels {
            assert!(kernel.nodes < 3 * kernel.recorded_nodes, "{kernel:?}");
        }
    }
}
