//! Calls with more operations than `Limits::trace_events`: the tape repeats the function for
//! windows of steps, and the gradient is that of one sweep, bit for bit.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::common::programs::{all_same, points};
use crate::common::random_programs::Recipe;
use crate::common::served::{NUMERICS, limits, manual};
use phigrad::internals::Random;
use phigrad::{Error, Limits, Numerics, Refusal, Tape, Var, traced};

/// The limits with windows of this many operations.
fn windows(operations: usize) -> Limits {
    limits(|limits| limits.trace_events = operations)
}

type Function = fn(&[Var], &[Var]) -> Var;

fn steps(x: &[Var], data: &[Var]) -> Var {
    (0..100).fold(x[0], |y, i| (y * x[1] + f64::from(i)) / (data[0] + 2.0) - data[1].sin())
}

fn branches(x: &[Var], data: &[Var]) -> Var {
    let mut y = x[0];
    for i in 0..60 {
        y = if y > 1.0 { y.ln() * data[0] } else { (y * x[1]).exp() + f64::from(i) };
        y += x[0].value() * x[1];
    }
    y
}

fn three_operands(x: &[Var], data: &[Var]) -> Var {
    (0..50).fold(x[1], |y, i| {
        let z = y.mul_add(x[0], f64::from(i)).clamp(-3.0, data[1] + 4.0);
        z.less_than(2.0).select(z.sin(), x[1]) + z.hypot(x[0]).max(y)
    })
}

#[traced]
fn annotated(x: &[Var], data: &[Var]) -> Var {
    let (mut sum, mut count) = (x[0] + data[0], 0);
    for i in 0..30 {
        if sum > x[1] {
            sum = sum * 0.5 - x[0];
            count += 1;
        } else {
            sum += x[0] * x[1] + data[1];
        }
        if count > 12 {
            break;
        }
        sum += f64::from(i) * x[0];
    }
    sum
}

/// The output is followed by further operations.
fn early_output(x: &[Var], data: &[Var]) -> Var {
    let output = (0..70).fold(x[0], |y, _| (y * x[1]).sin() + data[0]);
    (0..150).fold(output, |y, _| y.cos() * x[1]);
    output
}

fn nested(x: &[Var], data: &[Var]) -> Var {
    let inner = Tape::builder().tape_only().record(|y: &[Var]| y[0] * y[0] * y[0] * y[1]);
    (0..40).fold(x[0], |y, i| {
        let slope = inner.grad(&[0.1 * f64::from(i), 2.0]).unwrap()[0];
        y * slope.sin() + x[1] * data[0]
    })
}

fn infinite(x: &[Var], data: &[Var]) -> Var {
    let y = (0..80).fold(x[0] * 0.0, |y, _| y.sqrt() * x[1] + y * data[0]);
    y.ln() * (y / (2.0 * y))
}

fn constant(x: &[Var], _: &[Var]) -> Var {
    (0..200).fold(x[0], |y, _| y.sin());
    Var::from(7.0)
}

fn active_input(x: &[Var], _: &[Var]) -> Var {
    (0..200).fold(x[0], |y, _| y.sin());
    x[1]
}

fn inactive_input(x: &[Var], data: &[Var]) -> Var {
    (0..200).fold(x[0], |y, _| y.sin());
    data[0]
}

const FUNCTIONS: [Function; 10] = [
    steps,
    branches,
    three_operands,
    annotated,
    early_output,
    nested,
    infinite,
    constant,
    active_input,
    inactive_input,
];

/// Asserts that the gradients of `f` under these limits are those of one sweep.
fn assert_same<F: Fn(&[Var], &[Var]) -> Var + Copy>(f: F, x: &[f64], data: &[f64]) -> usize {
    let mut long = 0;
    for numerics in NUMERICS {
        let whole = manual(numerics).record_with(f);
        let (value, gradient) = whole.value_and_grad(x, data).unwrap();
        let total = whole.report().trace_events - x.len() - data.len();
        let near = [total.saturating_sub(1), total, total / 2, total / 20];
        for limit in [1, 100, 127, 128, 129].into_iter().chain(near) {
            let windowed = manual(numerics).limits(windows(limit)).record_with(f);
            let same = |found: &[f64]| assert!(all_same(&gradient, found), "{found:?} {limit}");
            same(&windowed.grad(x, data).unwrap());
            let (both, found) = windowed.value_and_grad(x, data).unwrap();
            same(&found);
            assert!(all_same(&[value; 2], &[both, windowed.eval(x, data).unwrap()]));
            let report = windowed.report();
            let refused = matches!(report.refusals[..], [Refusal::LongRun { .. }]);
            assert_eq!(refused, total > limit, "{report}");
            assert_eq!((report.tape_calls, report.trace_events), (3, total + x.len() + data.len()));
            long += usize::from(refused);
        }
    }
    long
}

#[test]
fn gradients_of_long_runs_are_those_of_one_sweep() {
    for f in FUNCTIONS {
        for x in [[0.5, 0.9], [3.0, -0.25], [0.0, 1.0]] {
            assert!(assert_same(f, &x, &[0.75, -0.5]) > 0);
        }
    }
}

#[test]
fn gradients_of_long_runs_of_random_programs_are_those_of_one_sweep() {
    let base = Recipe { guards: 0.3, loops: 0.3, statements: 20, ..Recipe::default() };
    let (mut random, mut long) = (Random::new(7), 0);
    for index in 0..40 {
        let recipe = Recipe { annotated: index % 2 == 0, wild: index % 4 > 1, ..base };
        let program = recipe.program(&mut random);
        for (x, data) in points(&recipe, &mut random, 2) {
            long += assert_same(|x: &[Var], data: &[Var]| program.eval(x, data), &x, &data);
        }
    }
    assert!(long > 200, "{long}");
}

#[test]
fn a_function_without_inputs_may_be_long() {
    let f = manual(Numerics::Real)
        .limits(windows(10))
        .record_with(|_: &[Var], data: &[Var]| data.iter().fold(Var::from(1.0), |y, d| y * d));
    assert_eq!(f.value_and_grad(&[], &[2.0; 20]).unwrap(), (1_048_576.0, vec![]));
    assert_eq!(f.value_and_grad(&[], &[]).unwrap(), (1.0, vec![]));
}

/// A function of 1,000 operations that counts its runs.
fn counted(runs: &Cell<usize>) -> impl Fn(&[Var]) -> Var {
    |x| {
        runs.set(runs.get() + 1);
        (0..500).fold(x[0], |y, _| y.sin() + x[0])
    }
}

#[test]
fn the_number_of_runs_is_bounded() {
    let runs = Cell::new(0);
    for (limit, expected) in [(1000, 1), (999, 2), (500, 2), (499, 3), (100, 10), (50, 17), (1, 17)]
    {
        let f = manual(Numerics::Real).limits(windows(limit)).record(counted(&runs));
        f.grad(&[0.5]).unwrap();
        assert_eq!(runs.replace(0), expected, "{limit}");
        f.eval(&[0.5]).unwrap();
        assert_eq!(runs.replace(0), 1, "the value needs no repetition");
    }
}

#[test]
fn beyond_the_limit_of_a_call_a_long_run_is_an_error() {
    let runs = Cell::new(0);
    for (most, is_error) in [(1000, false), (999, true), (10, true)] {
        let limits = limits(|limits| (limits.trace_events, limits.call_events) = (100, most));
        let f = manual(Numerics::Real).limits(limits).record(counted(&runs));
        let mut gradient = [7.0];
        match f.grad_into(&[0.5], &mut gradient) {
            Err(error) => {
                assert!(error.is_too_long() && !error.is_not_repeatable(), "{error}");
                assert!(error.to_string().contains("Limits::call_events"), "{error}");
                assert_eq!((gradient, error.place().is_some()), ([7.0], true));
            }
            Ok(()) => assert_ne!(gradient, [7.0]),
        }
        assert_eq!(f.eval(&[0.5]).is_err_and(|error| error.is_too_long()), is_error);
        assert_eq!(f.report().tape_calls, if is_error { 0 } else { 2 });
    }
}

/// The error of a function of more than 100 operations that does `change` in its second run.
fn unrepeated(change: impl Fn(Var, &[Var]) -> Var) -> Error {
    let runs = Cell::new(0);
    let f = manual(Numerics::Real).limits(windows(30)).record(|x: &[Var]| {
        let y = (0..40).fold(x[0], |y, _| y.sin() + x[1]);
        let run = runs.replace(runs.get() + 1);
        let z = if run == 1 { change(y, x) } else { y * 1.0 };
        (0..40).fold(z, |y, _| y.sin() + x[1])
    });
    let mut gradient = [7.0; 2];
    let error = f.grad_into(&[0.5, 0.25], &mut gradient).unwrap_err();
    assert_eq!(gradient, [7.0; 2], "unchanged");
    assert_eq!(f.report().tape_calls, 0);
    // All later runs are the same.
    let expected = manual(Numerics::Real).record(|x: &[Var]| {
        let y = (0..40).fold(x[0], |y, _| y.sin() + x[1]);
        (0..40).fold(y * 1.0, |y, _| y.sin() + x[1])
    });
    let x = [0.5, 0.25];
    assert!(all_same(&f.grad(&x).unwrap(), &expected.grad(&x).unwrap()));
    error
}

#[test]
fn a_run_that_is_not_repeated_is_an_error_and_the_function_stays_usable() {
    let changes: [fn(Var, &[Var]) -> Var; 6] = [
        |y, _| y * 2.0,
        |y, _| y,
        |y, _| y * 1.0 * 1.0,
        |y, x| y * x[0] * x[0],
        |y, _| if y > 0.0 { y * 1.0 } else { y },
        |y, _| (0..1000).fold(y, |y, _| y + 1.0),
    ];
    for change in changes {
        let error = unrepeated(change);
        assert!(error.is_not_repeatable() && !error.is_too_long() && !error.is_foreign_var());
        assert!(error.place().unwrap().file.ends_with("long_runs.rs"), "{error}");
        assert!(error.to_string().contains("depends on state"), "{error}");
    }
}

#[test]
fn another_output_of_a_repeated_run_is_an_error() {
    let runs = Cell::new(0);
    let f = manual(Numerics::Real).limits(windows(30)).record(|x: &[Var]| {
        let (a, b) = (x[0].sin(), x[0].cos());
        (0..100).fold(x[0], |y, _| y.sin());
        if runs.replace(runs.get() + 1) == 1 { a } else { b }
    });
    assert!(f.grad(&[1.0]).unwrap_err().is_not_repeatable());
    assert_eq!(f.grad(&[1.0]).unwrap(), [-1.0f64.sin()]);
}

#[test]
fn a_changed_value_has_its_place() {
    let runs = Cell::new(0.0);
    let f = manual(Numerics::Real).limits(windows(10)).record(|x: &[Var]| {
        let y = x[0] * runs.replace(runs.get() + 1.0);
        (0..15).fold(y, |y, _| y.sin())
    });
    let line = line!() - 3;
    let error = f.grad(&[1.0]).unwrap_err();
    assert_eq!(error.place().map(|place| place.line), Some(line), "{error}");
}

#[test]
fn a_foreign_var_in_a_repeated_run_is_an_error() {
    let kept = Cell::new(None);
    let f = manual(Numerics::Real).limits(windows(10)).record(|x: &[Var]| {
        let y = x[0] * kept.replace(Some(x[0])).unwrap_or(x[0]);
        (0..30).fold(y, |y, _| y.sin())
    });
    assert!(f.grad(&[1.0]).unwrap_err().is_foreign_var());
}

#[test]
fn a_panic_in_a_repeated_run_leaves_the_function_usable() {
    let runs = Cell::new(0);
    let f = manual(Numerics::Real).limits(windows(10)).record(|x: &[Var]| {
        let y = (0..30).fold(x[0], |y, _| y + x[0]);
        assert_ne!(runs.replace(runs.get() + 1), 1, "planted");
        y * 2.0
    });
    assert!(catch_unwind(AssertUnwindSafe(|| f.grad(&[1.0]))).is_err());
    assert_eq!(f.grad(&[1.0]).unwrap(), [62.0]);
    let outer = manual(Numerics::Real).record(|x: &[Var]| {
        runs.set(0);
        let y = x[0] * 3.0;
        assert!(catch_unwind(AssertUnwindSafe(|| f.grad(&[1.0]))).is_err());
        y * x[0]
    });
    assert_eq!(outer.grad(&[1.0]).unwrap(), [6.0]);
}

#[test]
fn a_long_run_inside_another_recording_is_a_constant_to_it() {
    let inner = manual(Numerics::Exact)
        .limits(windows(20))
        .record(|y: &[Var]| (0..100).fold(y[0], |v, _| v + y[0]));
    for limit in [3, 1000] {
        let outer = manual(Numerics::Exact).limits(windows(limit)).record(|x: &[Var]| {
            let y = x[0] * inner.grad(&[2.0]).unwrap()[0];
            let z = y * x[1] * inner.eval(&[1.0]).unwrap();
            z + inner.grad(&[1.0]).unwrap()[0] * x[0]
        });
        let found = outer.grad(&[1.0, 2.0]).unwrap();
        assert_eq!(found, [2.0 * 101.0 * 101.0 + 101.0, 101.0 * 101.0], "{limit}");
    }
}

/// A loop of as many iterations as the second input says.
fn repeated(x: &[Var], data: &[Var]) -> Var {
    let (mut y, mut i) = (x[0], Var::from(0.0));
    while i < data[0] {
        y = y.sin() + x[1];
        i += 1.0;
    }
    y
}

fn is_long(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::LongRun { limit: 100, .. })
}

#[test]
fn short_runs_of_a_function_with_long_ones_have_kernels() {
    for numerics in NUMERICS {
        let builder = Tape::builder().background(false).numerics(numerics).hot_threshold(5);
        let f = builder.limits(windows(100)).record_with(|x: &[Var], data: &[Var]| {
            let steps = if data[0] > 5.0 { 200 } else { 5 };
            (0..steps).fold(x[0], |y, _| y.sin() + x[1])
        });
        let whole = manual(numerics).record_with(|x: &[Var], data: &[Var]| {
            let steps = if data[0] > 5.0 { 200 } else { 5 };
            (0..steps).fold(x[0], |y, _| y.sin() + x[1])
        });
        for call in 0..40 {
            let data = [f64::from(call % 2) * 10.0];
            let (x, found) = ([0.5, 0.25], f.grad(&[0.5, 0.25], &data).unwrap());
            let expected = whole.grad(&x, &data).unwrap();
            for (expected, found) in expected.iter().zip(found) {
                assert!((expected - found).abs() <= 1e-12 * expected.abs());
            }
        }
        let report = f.report();
        assert!(report.kernel_calls >= 10 && report.tape_calls >= 20, "{report}");
        assert!(matches!(&report.refusals[..], [refusal] if is_long(refusal)), "{report}");
        f.compile().unwrap();
    }
}

#[test]
fn long_runs_alone_have_no_kernel_and_the_report_names_place_and_limit() {
    let builder = Tape::builder().background(false).hot_threshold(2).limits(windows(100));
    let f = builder.record_with(repeated);
    for _ in 0..20 {
        f.grad(&[0.5, 0.25], &[100.0]).unwrap();
    }
    let report = f.report();
    assert_eq!((report.tape_calls, report.paths, report.kernel_calls), (20, 0, 0));
    assert!(report.waiting.is_empty(), "{report}");
    assert!(matches!(&report.refusals[..], [refusal] if is_long(refusal)), "{report}");
    let text = report.to_string();
    assert!(text.contains("100 operations (Limits::trace_events)"), "{text}");
    assert!(text.contains("long_runs.rs:"), "{text}");
    let error = f.compile().unwrap_err();
    assert!(error.is_refused() && error.to_string().contains("Limits::trace_events"), "{error}");
    assert!(error.place().is_some_and(|place| place.file.ends_with("long_runs.rs")));
}

/// Two loops with the trip counts of the data.
#[traced]
pub fn two_loops(x: &[Var], data: &[Var]) -> Var {
    let (mut y, mut i, mut j) = (x[0], Var::from(0.0), Var::from(0.0));
    while i < data[0] {
        y = y.sin() + x[1];
        i += 1.0;
    }
    while j < data[1] {
        y = y.cos() * x[1];
        j += 1.0;
    }
    y
}

#[test]
fn a_kernel_call_whose_repetition_is_long_has_the_answer_of_the_tape() {
    let builder = manual(Numerics::Exact).audit(1);
    let f = builder.limits(windows(1000)).record_with(two_loops);
    let whole = manual(Numerics::Exact).record_with(two_loops);
    let x = [0.5, 0.25];
    for data in [[90.0, 2.0], [80.0, 3.0], [2.0, 90.0], [3.0, 80.0]] {
        f.grad(&x, &data).unwrap();
    }
    f.compile().unwrap();
    let data = [90.0, 90.0];
    assert!(all_same(&whole.grad(&x, &data).unwrap(), &f.grad(&x, &data).unwrap()));
    assert!(whole.report().trace_events > 1000);
    let report = f.report();
    assert_eq!((report.kernel_calls, report.fallbacks), (1, 0), "{report}");
    assert!(report.refusals.is_empty(), "a kernel serves: {report}");
}

#[test]
fn a_number_of_inputs_without_a_record_may_have_long_runs() {
    let limits = limits(|limits| (limits.specialisations, limits.trace_events) = (0, 50));
    let f = manual(Numerics::Real)
        .limits(limits)
        .record(|x: &[Var]| (0..100).fold(x[0], |y, _| y * x[1]));
    assert_eq!(f.grad(&[3.0, 1.0]).unwrap(), [1.0, 300.0]);
    assert_eq!(f.report().refusals, [Refusal::TooManyLengths { limit: 0 }]);
}
