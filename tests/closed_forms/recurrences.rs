//! Recurrences: loops that close, loops that stay open with their reasons, and kernels that agree
//! with the tape, also if a routine rejects the call and the loop runs.

use crate::common::outcomes::values;
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::phi::{CloseLimits, close};
use phigrad::internals::ssa::{Def, Folding, parse, verify};
use phigrad::internals::{LoopForm, Tuning};
use phigrad::report::{Op, OpenReason, RecurrenceReason, Rule};
use phigrad::{Recorded, Report, Tape, Var};

/// Records `f` at the first point, compiles it, and compares kernel and tape at all points.
#[track_caller]
fn compared<F: Fn(&[Var]) -> Var>(points: &[Vec<f64>], f: F) -> Recorded<F> {
    let builder = Tape::builder().background(false).hot_threshold(u32::MAX);
    let f = builder.tuning(Tuning::with_loops(LoopForm::Closed)).record(f);
    let on_tape: Vec<_> = points.iter().map(|x| f.value_and_grad(x).unwrap()).collect();
    f.compile().unwrap();
    let before = f.report().kernel_calls;
    for (x, (value, gradient)) in points.iter().zip(on_tape) {
        let (found, partials) = f.value_and_grad(x).unwrap();
        let scale = gradient.iter().fold(value.abs(), |most, partial| most.max(partial.abs()));
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-10 * scale.max(1e-280);
        assert!(near(found, value), "{found:e} {value:e} at {x:?}");
        for (a, b) in partials.iter().zip(&gradient) {
            assert!(near(*a, *b), "{partials:?} {gradient:?} at {x:?}");
        }
    }
    assert_eq!(f.report().kernel_calls - before, points.len() as u64, "{}", f.report());
    f
}

fn points(inputs: usize) -> Vec<Vec<f64>> {
    let mut random = Random::new(inputs as u64);
    (0..6).map(|_| (0..inputs).map(|_| random.uniform(0.1, 0.9)).collect()).collect()
}

#[track_caller]
fn report(inputs: usize, f: impl Fn(&[Var]) -> Var) -> Report {
    compared(&points(inputs), f).report()
}

/// Asserts that the loop of `f` has a closed form as a recurrence.
#[track_caller]
fn closes(inputs: usize, f: impl Fn(&[Var]) -> Var) {
    let report = report(inputs, f);
    assert!(report.closed_forms.iter().any(|formula| formula.rule == Rule::C6), "{report}");
}

/// Asserts that the loop of `f` stays open, for this reason among others.
#[track_caller]
fn stays_open(inputs: usize, reason: RecurrenceReason, f: impl Fn(&[Var]) -> Var) {
    let report = report(inputs, f);
    assert!(report.closed_forms.iter().all(|formula| formula.rule != Rule::C6), "{report}");
    assert!(
        report.open_loops.iter().any(|open| open.reasons.contains(&OpenReason::Recurrence(reason))),
        "{reason}: {report}"
    );
}

#[test]
fn scalar_recurrences_close() {
    closes(2, |x| (0..1000).fold(x[0], |y, _| y * x[1]));
    closes(3, |x| (0..1000).fold(x[0], |y, _| y * x[1] + x[2]));
    closes(2, |x| (0..1000).fold(x[0], |y, _| (y - x[1] * 0.3) / 1.5));
    // Any function of live-ins is a live-in.
    closes(3, |x| (0..1000).fold(x[0], |y, _| y * x[1].sin() + (x[2] * x[0]).exp()));
    closes(3, |x| (0..1000).fold(x[0], |y, _| -(y / (x[1] + 1.0) - x[2])));
    closes(3, |x| (0..1000).fold(x[0], |y, _| y.mul_add(x[1], x[2])));
}

#[test]
fn systems_of_two_and_three_states_close() {
    closes(4, |x| {
        let (mut w, mut v) = (x[0], Var::from(0.0));
        for _ in 0..1000 {
            v = v * x[1] - x[2] * 0.1 * (w - x[3]);
            w += v;
        }
        w * w
    });
    closes(6, |x| {
        let mut y = [x[0], x[1], x[2]];
        for _ in 0..2000 {
            let sum = (y[0] + y[1] + y[2]) * 0.25;
            y = [y[0] * x[3] + sum * 0.1, y[1] * x[4] + sum * 0.1, y[2] * x[5]];
        }
        y[0] + y[1] * y[2]
    });
    // Values of different states, and two independent ones of one loop.
    closes(4, |x| {
        let (mut a, mut b) = (x[0], x[1]);
        for _ in 0..1000 {
            (a, b) = (a * x[2] + 0.1, b * x[3] + 0.2);
        }
        a * b
    });
}

#[test]
fn polynomials_of_the_iteration_number_close() {
    closes(3, |x| (0..1000).fold(x[0], |y, i| y * x[1] + x[2] * f64::from(i)));
    closes(2, |x| {
        let (mut sum, mut power) = (Var::from(0.0), Var::from(1.0));
        for i in 0..2000 {
            sum += power * (f64::from(i) * f64::from(i) - 3.0) * x[1];
            power *= x[0];
        }
        sum
    });
}

#[test]
fn affine_loops_in_affine_loops_close() {
    closes(4, |x| {
        let mut y = x[0];
        for _ in 0..100 {
            for _ in 0..50 {
                y += x[1] * (x[2] - y);
            }
            y = y * x[3] + 0.2;
        }
        y
    });
    // The inner loop reads the outer state.
    closes(3, |x| {
        let mut y = x[0];
        for _ in 0..100 {
            let mut z = x[1];
            for _ in 0..40 {
                z = z * x[2] + y * 0.01;
            }
            y = y * 0.5 + z;
        }
        y
    });
}

#[test]
fn loops_that_are_no_affine_recurrences_stay_open_with_their_reason() {
    stays_open(1, RecurrenceReason::NotAffine(Op::Sin), |x| (0..200).fold(x[0], |y, _| y.sin()));
    stays_open(1, RecurrenceReason::Product, |x| (0..200).fold(x[0], |y, _| y - y * y * 0.1));
    stays_open(2, RecurrenceReason::Quotient, |x| (0..200).fold(x[0], |y, _| x[1] / (y + 1.0)));
    let data: Vec<f64> = (0..200).map(|i| (f64::from(i) * 0.7).sin()).collect();
    stays_open(2, RecurrenceReason::ChangingCoefficient, move |x| {
        data.iter().fold(x[0], |y, d| y * (x[1] + d * 0.1) * 0.9 + 0.1)
    });
    stays_open(8, RecurrenceReason::TooManyStates, |x| {
        let mut y: Vec<Var> = x.to_vec();
        for _ in 0..200 {
            let next = |i: usize| match i % 3 {
                0 => y[i] * 0.5 + y[(i + 1) % 8] * 0.3,
                1 => y[(i + 1) % 8] * 0.2 - y[i],
                _ => (y[i] - y[(i + 1) % 8]) * 0.4 + y[(i + 3) % 8],
            };
            y = (0..8).map(next).collect();
        }
        y[0]
    });
}

#[test]
fn loops_of_few_steps_stay_open() {
    // The call of a routine takes longer than the loop.
    let f = Tape::builder().background(false).hot_threshold(u32::MAX);
    let f = f.record(|x: &[Var]| (0..40).fold(x[0], |y, _| y * 0.5 + x[1]));
    f.grad(&[0.3, 0.4]).unwrap();
    f.compile().unwrap();
    let report = f.report();
    assert!(report.closed_forms.iter().all(|formula| formula.rule != Rule::C6), "{report}");
    assert!(
        report
            .open_loops
            .iter()
            .any(|open| open.reasons.contains(&OpenReason::Recurrence(RecurrenceReason::Cost))),
        "{report}"
    );
}

#[test]
fn rejected_calls_run_the_loop_in_the_same_kernel() {
    let f = |x: &[Var]| (0..1700).fold(x[0], |y, _| y * x[1] + x[2]);
    // A power above 2^500, one that underflows, and others in range.
    let all = [[0.3, 1.5, 0.01], [0.3, 0.9, 0.01], [0.3, 1e-3, 0.0], [0.3, -1.4, 0.01]];
    let f = compared(&all.map(|x| x.to_vec()), f);
    assert!(!f.report().closed_forms.is_empty() && f.report().fallbacks == 0, "{}", f.report());
    // For an infinite state the tape computes the result.
    assert_eq!(f.eval(&[1.0, 1e3, 0.0]).unwrap(), f64::INFINITY);
    assert_eq!(f.report().non_finite, 1);
}

#[test]
fn the_closed_form_has_its_source_place() {
    let report = report(3, |x| (0..1000).fold(x[0], |y, _| y * x[1] + x[2]));
    let formula = &report.closed_forms[0];
    let expected = "a^1000·p + b·Σ_{j<1000} a^j, where p = x₀, a = x₁, b = x₂";
    assert_eq!((formula.rule, formula.form.as_str()), (Rule::C6, expected));
    assert!(formula.at.as_ref().unwrap().file.ends_with("recurrences.rs"));
}

#[test]
fn a_closed_loop_is_a_call_and_the_loop_behind_a_branch() {
    let text = "graph active 3 inactive 0\nv3 = const 999.0\nv5 = iteration r0\nb0:\n  \
                v9 = region r0 b1 bound 1000 entries v4=v0\n  return v9\nb1:\n  v6 = mul v4 v1\n  \
                v7 = add v6 v2\n  v8 = lt v5 v3\n  return v8 v7 v7\n";
    let graph = parse(text).unwrap();
    let closed = close(&graph, CloseLimits::default()).graph;
    verify(&closed).unwrap();
    assert_eq!(parse(&closed.to_string()).unwrap(), closed);
    let calls = closed.nodes.values().filter(|data| matches!(data.def, Def::Call(_))).count();
    assert_eq!((calls, closed.calls.len(), closed.regions.len()), (1, 1, 2), "{closed}");
    let gradient = reverse(&closed, Wanted::Gradient, Folding::Real);
    verify(&gradient).unwrap();
    for x in [[0.5, 0.99, 0.1], [0.5, 1.9, 0.1]] {
        let slow = reverse(&graph, Wanted::Gradient, Folding::Real);
        let (a, b) = (values(&gradient, &x), values(&slow, &x));
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-12 * b.abs()), "{a:?} {b:?}");
    }
}

#[test]
fn coefficients_may_be_starts() {
    let builder = Tape::builder().hot_threshold(u32::MAX).background(false);
    let f = builder.record(|x: &[Var]| {
        let c = x[0] * x[0];
        (0..1200).fold(c, |y, _| c * y + x[0] * 0.1 - c) + c
    });
    f.grad(&[0.9]).unwrap();
    f.compile().unwrap();
    assert!(!f.report().closed_forms.is_empty(), "{:?}", f.report().open_loops);
}
