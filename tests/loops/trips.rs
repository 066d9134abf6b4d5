//! Rolled loops: neither code nor the graph to compile grows with the trip count, and long loops
//! are within the limits.

use crate::common::served::limits;
use phigrad::report::KernelReport;
use phigrad::{Refusal, Tape, Var};

fn constant(index: usize) -> f64 {
    (index as f64 * 0.61).sin()
}

/// The kernel for gradients of `f`, whose results were compared with the tape's.
fn kernel(data: &[f64], f: impl Fn(&[Var], &[Var]) -> Var) -> KernelReport {
    let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
    let recorded = builder().record_with(&f);
    let x = [0.3, 0.7];
    let on_tape = recorded.grad(&x, data).unwrap();
    recorded.compile().unwrap();
    let in_kernel = recorded.grad(&x, data).unwrap();
    let report = recorded.report();
    assert_eq!((report.kernel_calls, report.fallbacks), (1, 0));
    for (a, b) in on_tape.iter().zip(&in_kernel) {
        assert!((a - b).abs() <= 1e-12 * a.abs().max(1.0), "{on_tape:?} {in_kernel:?}");
    }
    report.kernels[report.kernels.len() - 1].clone()
}

/// The size of the code. The graph to compile must be small as well.
fn size(iterations: usize, data: usize, f: fn(usize, &[Var], &[Var]) -> Var) -> usize {
    let data: Vec<f64> = (0..data).map(constant).collect();
    let report = kernel(&data, |x, data| f(iterations, x, data));
    assert!(report.nodes < 50, "{report:?}");
    report.code_bytes
}

#[test]
fn code_does_not_grow_with_an_array_of_constants() {
    fn table(iterations: usize, x: &[Var], _: &[Var]) -> Var {
        (0..iterations).fold(x[0], |state, i| (state * x[1] + constant(i)).sin())
    }
    assert_eq!(size(1_000, 0, table), size(100_000, 0, table));
}

#[test]
fn code_does_not_grow_with_inactive_inputs() {
    fn array(_: usize, x: &[Var], data: &[Var]) -> Var {
        data.iter().fold(x[0], |state, &term| (state * x[1] + term).cos())
    }
    assert_eq!(size(0, 1_000, array), size(0, 100_000, array));
}

#[test]
fn code_does_not_grow_with_nested_loops() {
    fn nested(iterations: usize, x: &[Var], _: &[Var]) -> Var {
        (0..iterations / 200).fold(x[0], |state, i| {
            let row = (0..200).fold(state, |row, j| (row * x[1] + constant(j)).sin());
            state * 0.5 + row * constant(i)
        })
    }
    // Not 200 times, because 200 is the trip count of the inner loop.
    assert_eq!(size(10_000, 0, nested), size(80_000, 0, nested));
}

#[test]
fn graphs_too_large_after_rolling_stay_on_the_tape() {
    let limits = limits(|limits| limits.compiled = 50);
    let loops = |x: &[Var]| (0..1000).fold(x[0], |state, i| (state + constant(i)).sin());
    let straight = |x: &[Var]| {
        (0..60).fold(x[0], |state, i| match i * i / 7 % 3 {
            0 => state.sin() * constant(i),
            1 => state + x[0] * state * constant(i),
            _ => state.exp().sqrt().ln() - x[0],
        })
    };
    let builder = || Tape::builder().hot_threshold(u32::MAX).background(false).limits(limits);
    let (loops, straight) = (builder().record(loops), builder().record(straight));
    loops.grad(&[0.5]).unwrap();
    loops.compile().unwrap();
    straight.grad(&[0.5]).unwrap();
    let error = straight.compile().unwrap_err();
    assert!(error.to_string().contains("(Limits::compiled)"), "{error}");
    let refusals = straight.report().refusals;
    assert!(matches!(refusals[..], [Refusal::TooManyToCompile { limit: 50, .. }]), "{refusals:?}");
    straight.grad(&[0.25]).unwrap();
    assert_eq!(straight.report().tape_calls, 2);
}

/// Relaxed paths between all pairs: rows and columns are read after some of their elements have
/// changed, and before others have. In its loops the kernel would add up the adjoints of these
/// elements in memory, eighteen steps for each recorded one.
#[test]
fn loops_slower_than_the_tape_are_no_kernels() {
    const POINTS: usize = 16;
    let paths = |x: &[Var]| {
        let mut distances = x.to_vec();
        for k in 0..POINTS {
            for i in 0..POINTS {
                for j in 0..POINTS {
                    let via = distances[i * POINTS + k] + distances[k * POINTS + j];
                    let known = distances[i * POINTS + j];
                    distances[i * POINTS + j] += (via - known).tanh() * 0.1;
                }
            }
        }
        distances.iter().copied().sum::<Var>()
    };
    let x: Vec<f64> = (0..POINTS * POINTS).map(|i| 0.5 + 0.3 * (i as f64 * 1.7).sin()).collect();
    // Straight-line code takes three steps for each recorded one.
    for compiled in [1 << 16, 1 << 14] {
        let limits = limits(|limits| limits.compiled = compiled);
        let builder = Tape::builder().hot_threshold(u32::MAX).background(false).limits(limits);
        let f = builder.record(paths);
        let expected = f.grad(&x).unwrap();
        let is_compiled = f.compile().is_ok();
        assert_eq!(is_compiled, compiled == 1 << 16);
        for (found, expected) in f.grad(&x).unwrap().iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0));
        }
        let report = f.report();
        assert_eq!(report.kernel_calls, u64::from(is_compiled), "{report}");
        let is_slow = |refusal: &Refusal| matches!(refusal, Refusal::SlowLoops { .. });
        assert_eq!(report.refusals.iter().any(is_slow), !is_compiled, "{report}");
    }
}
