//! Calls out of the limits, and hidden state: the tape serves with the right answer, and the
//! report gives the reason.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::served::{NUMERICS, Pair, Served, limits, manual};
use phigrad::internals::Tuning;
use phigrad::report::MergeError;
use phigrad::{Limits, Numerics, Refusal, Tape, Var};

/// One path for each integer part.
fn stairs(x: &[Var]) -> Var {
    let step = (0..50).find(|&i| x[0] < f64::from(i)).unwrap_or(50);
    x[0] * f64::from(step) + x[0].sin()
}

#[test]
fn paths_beyond_the_limit_are_served_by_the_tape() {
    for numerics in NUMERICS {
        let builder = manual(numerics).limits(limits(|limits| limits.paths = 3));
        let pair = Pair::with(builder, numerics, stairs);
        pair.profile(&[[0.5], [1.5], [2.5], [3.5]]);
        for _ in 0..3 {
            for x in [0.25, 2.75] {
                assert_eq!(pair.check(&[x]), Served::Kernel, "{x}");
            }
            for x in [3.5, 9.5, -2.5, 49.5] {
                assert_eq!(pair.check(&[x]), Served::Fallback, "{x}");
            }
            pair.kernel.compile().unwrap();
        }
        let report = pair.kernel.report();
        assert_eq!(report.paths, 3);
        assert_eq!(report.refusals, [Refusal::Path(MergeError::TooManyPaths { limit: 3 })]);
        assert!(report.to_string().contains("not compiled: the function has more than 3 paths"));
    }
}

#[test]
fn nodes_beyond_the_limit_are_served_by_the_tape() {
    // The first path fits, the second does not.
    fn f(x: &[Var]) -> Var {
        let steps = if x[0] > 0.0 { 5 } else { 50 };
        (0..steps).fold(x[0], |sum, i| sum.sin() + x[0] * f64::from(i))
    }
    for numerics in NUMERICS {
        let builder = manual(numerics).limits(limits(|limits| limits.nodes = 60));
        let pair = Pair::with(builder, numerics, f);
        pair.profile(&[[1.0], [-1.0]]);
        assert_eq!(pair.check(&[0.5]), Served::Kernel);
        assert_eq!(pair.check(&[-0.5]), Served::Fallback);
        let report = pair.kernel.report();
        assert_eq!(report.refusals, [Refusal::Path(MergeError::TooManyNodes { limit: 60 })]);
    }
}

#[test]
fn a_function_with_no_path_within_the_limits_says_why_it_is_not_compiled() {
    for builder in [
        manual(Numerics::Real).limits(limits(|limits| limits.nodes = 2)),
        manual(Numerics::Real).limits(limits(|limits| limits.paths = 0)),
    ] {
        let pair = Pair::with(builder, Numerics::Real, stairs);
        assert_eq!(pair.check(&[1.5]), Served::Tape);
        let error = pair.kernel.compile().unwrap_err();
        assert!(error.is_refused(), "{error}");
        assert!(error.to_string().starts_with("not compiled: "), "{error}");
        assert!(error.to_string().contains("(Limits::"), "{error}");
        assert!(error.place().is_none());
        assert_eq!(pair.check(&[2.5]), Served::Tape);
    }
}

#[test]
fn a_run_longer_than_the_limit_is_an_error_with_the_place() {
    fn sum(x: &[Var]) -> Var {
        let steps = if x[0] > 0.0 { 10 } else { 1000 };
        (0..steps).fold(x[0], |sum, _| sum + x[0])
    }
    let line = line!() - 2;
    let f = manual(Numerics::Real).limits(limits(|limits| limits.call_events = 100)).record(sum);
    assert_eq!(f.grad(&[1.0]).unwrap(), [11.0]);
    f.compile().unwrap();
    for _ in 0..3 {
        let mut gradient = [7.0];
        let error = f.grad_into(&[-1.0], &mut gradient).unwrap_err();
        assert!(error.is_too_long() && !error.is_foreign_var() && !error.is_shape());
        assert_eq!(gradient, [7.0]);
        let place = error.place().unwrap();
        assert!(place.file.ends_with("limits.rs"), "{place:?}");
        assert_eq!(place.line, line);
        assert!(error.to_string().contains("Limits::call_events"), "{error}");
        assert_eq!(f.grad(&[2.0]).unwrap(), [11.0]);
    }
    assert_eq!(f.report().kernel_calls, 3);
}

#[test]
fn more_lengths_than_the_limit_are_served_by_the_tape() {
    let builder = manual(Numerics::Exact).limits(limits(|limits| limits.specialisations = 2));
    let f = builder.record(|x: &[Var]| x.iter().map(|v| v.sin()).sum::<Var>());
    for (index, length) in [1, 2, 3, 4, 1, 2, 3, 4].into_iter().enumerate() {
        assert_eq!(f.grad(&vec![0.0; length]).unwrap(), vec![1.0; length]);
        // Some lengths that were called are not served.
        assert_eq!(f.compile().is_err_and(|error| error.is_refused()), index >= 2, "{length}");
    }
    assert_eq!(f.report().kernel_calls, 2);
    assert_eq!(f.report().paths, 2);
}

#[test]
fn a_length_that_is_called_often_replaces_the_least_used() {
    let builder = manual(Numerics::Exact).limits(limits(|limits| limits.specialisations = 2));
    let f = builder.record(|x: &[Var]| x.iter().map(|v| v.sin()).sum::<Var>());
    let call = |length: usize, calls: usize| {
        let before = f.report().kernel_calls;
        for _ in 0..calls {
            assert_eq!(f.grad(&vec![0.0; length]).unwrap(), vec![1.0; length]);
        }
        f.report().kernel_calls - before
    };
    call(1, 100);
    call(2, 10);
    f.compile().unwrap();
    assert_eq!((call(1, 100), call(2, 10)), (100, 10));
    // It is called twice as often as length 2.
    assert_eq!(call(3, 60), 0);
    _ = f.compile();
    assert_eq!((call(1, 10), call(2, 1), call(3, 10)), (10, 0, 10));
}

#[test]
fn more_lengths_than_the_limit_are_reported() {
    let builder = manual(Numerics::Exact).limits(limits(|limits| limits.specialisations = 1));
    let f = builder.record(|x: &[Var]| x[0]);
    f.grad(&[1.0]).unwrap();
    f.grad(&[1.0, 2.0]).unwrap();
    assert_eq!(f.report().tape_calls, 2);
    assert_eq!(f.report().refusals, [Refusal::TooManyLengths { limit: 1 }]);
}

fn is_divergent(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Path(MergeError::Divergent { .. }))
}

#[test]
fn hidden_control_flow_is_detected_and_stays_on_the_tape() {
    let calls = AtomicUsize::new(0);
    let f = manual(Numerics::Real).record(|x: &[Var]| {
        // Not a guard: the recorder cannot see the counter.
        match calls.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => x[0] * x[0],
            _ => x[0].sin(),
        }
    });
    assert_eq!(f.grad(&[3.0]).unwrap(), [6.0]);
    assert_eq!(f.grad(&[3.0]).unwrap(), [3.0f64.cos()]);
    let error = f.compile().unwrap_err();
    assert!(error.is_refused() && error.to_string().contains("depends on state"), "{error}");
    for _ in 0..20 {
        assert_eq!(f.grad(&[3.0]).unwrap(), [6.0]);
        assert_eq!(f.grad(&[3.0]).unwrap(), [3.0f64.cos()]);
    }
    let report = f.report();
    assert_eq!((report.kernel_calls, report.kernels.len()), (0, 0));
    assert!(matches!(&report.refusals[..], [refusal] if is_divergent(refusal)), "{report}");
    assert!(report.refusals[0].to_string().contains("limits.rs:"), "{report}");
}

#[test]
fn a_hidden_constant_is_detected_on_the_tape() {
    let factor = Cell::new(2.0);
    let f = manual(Numerics::Real).record(|x: &[Var]| x[0] * factor.get());
    assert_eq!(f.grad(&[3.0]).unwrap(), [2.0]);
    factor.set(5.0);
    assert_eq!(f.grad(&[3.0]).unwrap(), [5.0]);
    assert!(f.report().refusals.iter().any(is_divergent));
    assert!(f.compile().unwrap_err().is_refused());
    factor.set(7.0);
    assert_eq!(f.grad(&[3.0]).unwrap(), [7.0]);
}

#[test]
fn another_length_of_run_is_detected() {
    for (first, second) in [(3, 4), (4, 3)] {
        let steps = Cell::new(first);
        let f =
            manual(Numerics::Real).record(|x: &[Var]| (0..steps.get()).fold(x[0], |v, _| v * x[0]));
        f.grad(&[1.0]).unwrap();
        steps.set(second);
        assert_eq!(f.grad(&[1.0]).unwrap(), [f64::from(second) + 1.0]);
        // The runs differ in their number of events, hence in their paths.
        assert!(f.report().refusals.iter().any(is_divergent), "{first} {second}");
    }
}

#[test]
fn another_result_of_the_same_run_is_detected() {
    let which = Cell::new(false);
    let f = manual(Numerics::Real).record(|x: &[Var]| {
        let (a, b) = (x[0].sin(), x[0].cos());
        if which.get() { a } else { b }
    });
    f.grad(&[1.0]).unwrap();
    which.set(true);
    assert_eq!(f.grad(&[1.0]).unwrap(), [1.0f64.cos()]);
    assert!(f.report().refusals.iter().any(is_divergent));
}

#[test]
fn a_captured_constant_is_frozen_in_the_kernel_until_the_tape_detects_a_change() {
    // The guarantee for captured state: the kernel keeps the constant that was recorded; a
    // later run on the tape detects the change, and the kernel is discarded.
    let factor = Cell::new(2.0);
    let f = manual(Numerics::Exact).record(|x: &[Var]| match x[0] > 0.0 {
        true => x[0] * factor.get(),
        false => x[0] * factor.get() * factor.get(),
    });
    f.grad(&[1.0]).unwrap();
    f.compile().unwrap();
    factor.set(5.0);
    assert_eq!(f.grad(&[1.0]).unwrap(), [2.0], "frozen");
    // A new path is recorded with the state of its own call.
    assert_eq!(f.grad(&[-1.0]).unwrap(), [25.0]);
    factor.set(3.0);
    assert_eq!(f.grad(&[-1.0]).unwrap(), [9.0]);
    assert!(f.report().refusals.iter().any(is_divergent));
    assert_eq!(f.grad(&[1.0]).unwrap(), [3.0], "no kernel any more");
    assert!(f.report().kernels.is_empty());
}

#[test]
fn hidden_state_without_effect_on_the_trace_is_harmless() {
    let calls = Cell::new(0);
    let f = manual(Numerics::Exact).record(|x: &[Var]| {
        calls.set(calls.get() + 1);
        x[0].exp()
    });
    f.grad(&[0.0]).unwrap();
    f.grad(&[1.0]).unwrap();
    f.compile().unwrap();
    assert_eq!(f.grad(&[0.0]).unwrap(), [1.0]);
    assert_eq!(calls.get(), 2, "the kernel runs no user code");
    assert!(f.report().refusals.is_empty());
}

#[test]
fn kernels_are_right_however_many_steps_are_simplified_together() {
    fn f(x: &[Var]) -> Var {
        (1..=20).fold(x[0].sin(), |sum, i| {
            let term = x[0] * f64::from(i) + x[1];
            sum * 0.5 + (1.0 + term.exp()).ln() / (term * term + x[1] * x[1]).sqrt()
        })
    }
    for simplified in [0, 1, 7, 64, 4096] {
        let builder = manual(Numerics::Real).tuning(Tuning { simplified, ..Tuning::default() });
        let pair = Pair::with(builder, Numerics::Real, f);
        pair.profile(&[[0.5, 0.1]]);
        for x in [[0.3, -0.2], [-40.0, 1e-3], [30.0, 7.0]] {
            assert_eq!(pair.check(&x), Served::Kernel, "{simplified} {x:?}");
        }
    }
}

#[test]
fn beyond_the_bytes_of_a_profile_no_path_is_added() {
    let steps = |x: &[Var]| {
        let mut y = x[0];
        while y > 1.0 {
            y *= 0.5;
        }
        y
    };
    let mut limits = Limits::default();
    limits.profile_bytes = 2000;
    let f = Tape::builder().hot_threshold(u32::MAX).limits(limits).record(steps);
    for trips in 0..40 {
        assert_eq!(f.grad(&[1.5 * f64::from(trips).exp2()]).unwrap(), [0.5f64.powi(trips + 1)]);
    }
    let report = f.report();
    assert!(report.paths < 30, "{report}");
    assert_eq!(report.refusals, [Refusal::ProfileTooLarge { limit: 2000 }]);
}

#[test]
fn state_that_changes_is_noticed_by_repeating_kernel_calls() {
    let scale = Cell::new(1.0);
    let f = Tape::record(|x: &[Var]| x[0] * x[0] * scale.get());
    f.grad(&[1.5]).unwrap();
    f.compile().unwrap();
    for _ in 0..500 {
        f.grad(&[1.5]).unwrap();
    }
    scale.set(-1.0);
    let stale = (0..2000).filter(|_| f.grad(&[1.5]).unwrap() != [-3.0]).count();
    assert!(stale < 1000, "{stale}");
    let report = f.report();
    assert!(
        matches!(report.refusals[..], [Refusal::Path(MergeError::Divergent { .. })]),
        "{report}"
    );
    // Without repetition nothing tells, and after invalidation nothing is stale.
    scale.set(1.0);
    let f = Tape::builder().audit(0).record(|x: &[Var]| x[0] * x[0] * scale.get());
    f.grad(&[1.5]).unwrap();
    f.compile().unwrap();
    scale.set(-1.0);
    assert!((0..500).all(|_| f.grad(&[1.5]).unwrap() == [3.0]));
    f.invalidate();
    assert_eq!(f.grad(&[1.5]).unwrap(), [-3.0]);
    assert_eq!((f.report().tape_calls, f.report().kernel_calls), (1, 0));
}

/// A count that begins elsewhere.
#[phigrad::traced]
fn counted(x: &[Var], first: i32) -> Var {
    let mut count = first;
    for &one in x {
        if one > 0.0 {
            count += 1;
        }
    }
    x[0] * f64::from(count)
}

#[test]
fn state_that_alternates_from_call_to_call_is_noticed() {
    let plain = |x: &[Var], first: i32| x[0] * f64::from(first);
    for program in [plain as fn(&[Var], i32) -> Var, counted] {
        for period in [1, 2, 7, 32] {
            let first = Cell::new(0);
            let f = Tape::record(|x: &[Var]| program(x, first.get()));
            let x = [0.5, -0.5, 0.25];
            for _ in 0..100 {
                f.grad(&x).unwrap();
            }
            f.compile().unwrap();
            for call in 0..40_000 {
                first.set(call / period % 2 * 3);
                f.grad(&x).unwrap();
            }
            let report = f.report();
            assert!(
                matches!(report.refusals[..], [Refusal::Path(MergeError::Divergent { .. }), ..]),
                "{period}: {report}"
            );
        }
    }
}

#[test]
fn a_sum_has_the_place_of_its_terms() {
    let limits = limits(|limits| limits.call_events = 9);
    let line = line!() + 1;
    let sum = |x: &[Var]| (0..10).map(|i| x[0] + f64::from(i)).sum::<Var>();
    let error = Tape::builder().limits(limits).record(sum).grad(&[0.5]).unwrap_err();
    let place = error.place().unwrap();
    assert!(place.file.ends_with("limits.rs") && place.line == line, "{place:?}");
}

/// A matrix in one run of a kernel is no way around the limit.
#[test]
fn matrices_are_compiled_within_the_limits() {
    for compiled in [20, 2000] {
        let limits = limits(|limits| limits.compiled = compiled);
        let f = manual(Numerics::Real)
            .limits(limits)
            .record(|x: &[Var]| (1..20).fold(x[0], |y, k| y.sin() * x[k % 3] + x[1]));
        let at = [0.5, 0.4, 0.3];
        let expected = f.hessian(&at).unwrap();
        assert_eq!(f.compile().is_ok(), compiled == 2000);
        for (found, expected) in f.hessian(&at).unwrap().iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0));
        }
        assert_eq!(f.report().kernel_calls, u64::from(compiled == 2000), "{}", f.report());
        let is_refused = |refusal: &Refusal| matches!(refusal, Refusal::TooManyToCompile { .. });
        assert_eq!(f.report().refusals.iter().any(is_refused), compiled == 20);
    }
}
