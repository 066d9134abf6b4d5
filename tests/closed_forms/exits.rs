//! Loops with data-dependent exits: the closed form at their trip count follows the loop.

use crate::common::numbers::{Dual, Number};
use crate::common::outcomes::values;
use crate::common::served::{Pair, Served};
use crate::common::ulp::ulp;
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::phi::{CloseLimits, Closed, close};
use phigrad::internals::ssa::{Folding, Graph, eliminate_dead_code, parse, verify};
use phigrad::internals::{LoopForm, Tuning};
use phigrad::report::{OpenReason, RecurrenceReason};
use phigrad::{Numerics, Tape, Var, traced};

/// Gradient descent on a parabola that exits at a small slope, or after a number of iterations.
/// Inputs: start, rate, curvature, intercept, and the limit of the slope.
fn descent(bound: u32) -> Graph {
    let text = format!(
        "graph active 4 inactive 1\nv5 = const 0.0\nv6 = const {}.0\nv8 = iteration r0\nb0:\n  \
         v16 = region r0 b1 bound {bound} entries v7=v0\n  return v16\nb1:\n  v9 = mul v2 v7\n  \
         v10 = sub v9 v3\n  v11 = abs v10\n  v12 = lt v11 v4\n  branch v12 b2 b3\nb2:\n  \
         return v5 v7 v7\nb3:\n  v13 = mul v1 v10\n  v14 = sub v7 v13\n  v15 = lt v8 v6\n  \
         return v15 v14 v14\n",
        bound - 1
    );
    let graph = parse(&text).unwrap();
    verify(&graph).unwrap();
    graph
}

fn steps<T: Number>(x: &[T], count: u32) -> T {
    (0..count).fold(x[0], |w, _| w - x[1] * (x[2] * w - x[3]))
}

fn closed(graph: &Graph) -> Closed {
    let closed = close(graph, CloseLimits::DEFAULT);
    verify(&closed.graph).unwrap_or_else(|error| panic!("{error}\n{}", closed.graph));
    closed
}

/// The gradient, and at last the value.
fn differentiated(graph: &Graph) -> Graph {
    let gradient = eliminate_dead_code(&reverse(graph, Wanted::GradientAndValue, Folding::Real));
    verify(&gradient).unwrap();
    gradient
}

#[test]
fn derivatives_are_those_of_the_form_at_the_trip_count() {
    let graph = descent(2000);
    let solved = closed(&graph);
    assert!(!solved.applied.is_empty(), "{:?}", solved.open);
    let (before, after) = (differentiated(&graph), differentiated(&solved.graph));
    let mut random = Random::new(7);
    for count in 0..=60_u32 {
        for _ in 0..8 {
            let (rate, curvature) = (random.uniform(0.02, 0.2), random.uniform(0.5, 3.0));
            let (start, intercept) = (random.uniform(1.0, 3.0), random.uniform(-1.0, 1.0));
            let slope = curvature * start - intercept;
            let power = f64::from(count) - 0.5;
            let least = slope.abs() * (1.0 - rate * curvature).powf(power);
            let x = [start, rate, curvature, intercept, least];
            let (tape, got) = (values(&before, &x), values(&after, &x));
            let inputs: Vec<Dual> =
                x[..4].iter().enumerate().map(|(i, &x)| Dual::input(x, i)).collect();
            let dual = steps(&inputs, count);
            let exact = (0..4).map(|i| dual.partial(i)).chain([dual.value()]);
            // The derivative by the rate is a difference of terms that cancel: the rate times the
            // slope, and times the intercept.
            let terms = (intercept / (rate * curvature)).abs() * 2.0;
            for ((got, tape), exact) in got.into_iter().zip(tape).zip(exact) {
                let allowed = 4.0 * (tape - exact).abs() + 4.0 * ulp(exact.abs().max(terms));
                assert!((got - exact).abs() <= allowed, "{count} at {x:?}: {got:e} for {exact:e}");
            }
        }
    }
}

#[test]
fn inner_loops_with_exits_have_closed_forms() {
    let text = "graph active 4 inactive 1\nv5 = const 0.0\nv6 = const 1999.0\nv7 = const 5.0\n\
                v9 = iteration r0\nv12 = iteration r1\nb0:\n  \
                v23 = region r0 b1 bound 6 entries v8=v5\n  return v23\nb1:\n  v10 = add v0 v9\n  \
                v20 = region r1 b2 bound 2000 entries v11=v10\n  v21 = add v8 v20\n  \
                v22 = lt v9 v7\n  return v22 v21 v21\nb2:\n  v13 = mul v2 v11\n  \
                v14 = sub v13 v3\n  v15 = abs v14\n  v16 = lt v15 v4\n  branch v16 b3 b4\nb3:\n  \
                return v5 v11 v11\nb4:\n  v17 = mul v1 v14\n  v18 = sub v11 v17\n  \
                v19 = lt v12 v6\n  return v19 v18 v18\n";
    let graph = parse(text).unwrap();
    verify(&graph).unwrap();
    let solved = closed(&graph);
    assert!(!solved.applied.is_empty(), "{:?}", solved.open);
    let (before, after) = (differentiated(&graph), differentiated(&solved.graph));
    for least in [8.0, 2.0, 0.5, 0.01, 1e-3, 0.0] {
        let x = [0.5, 0.1, 0.7, 0.3, least];
        let (tape, got) = (values(&before, &x), values(&after, &x));
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
        assert!(got.iter().zip(&tape).all(close), "{got:?} {tape:?}");
    }
}

#[test]
fn short_or_nonlinear_loops_keep_their_reverse_sweep() {
    let short = descent(4);
    assert_eq!(closed(&short).graph, short);
    // w·w instead of the curvature times w.
    let text = descent(60).to_string().replace("v9 = mul v2 v7", "v9 = mul v7 v7");
    let curved = parse(&text).unwrap();
    let solved = closed(&curved);
    assert_eq!(solved.graph, curved);
    let reason = OpenReason::Recurrence(RecurrenceReason::Product);
    assert!(solved.open[0].reasons.contains(&reason), "{:?}", solved.open);
}

#[test]
fn exits_may_return_different_values() {
    // At a small slope the loop returns the intercept; the other exit counts one more iteration.
    let text = descent(2000).to_string().replace("return v5 v7 v7", "return v5 v7 v3");
    let graph = parse(&text).unwrap();
    let solved = closed(&graph);
    assert_ne!(solved.graph, graph);
    let (before, after) = (differentiated(&graph), differentiated(&solved.graph));
    for least in [1.0, 0.1, 1e-9] {
        let x = [2.0, 0.1, 0.5, 0.25, least];
        let (tape, got) = (values(&before, &x), values(&after, &x));
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-13 * b.abs();
        assert!(got.iter().zip(&tape).all(close), "{got:?} {tape:?}");
    }
}

/// Descends until the slope is small, and counts the iterations.
#[traced]
fn solve(mut w: Var, rate: Var, curvature: Var, intercept: Var) -> Var {
    let mut count = 0;
    while count < 500 {
        let slope = curvature * w - intercept;
        if slope.abs() < 1e-6 {
            break;
        } else {
            w -= rate * slope;
        }
        count += 1;
    }
    w * w
}

#[test]
fn annotated_loops_that_converge_have_kernels() {
    let f = |x: &[Var]| solve(x[0], x[1], x[2], x[3]);
    let mut random = Random::new(9);
    let mut point = |rate: f64| {
        let start = random.uniform(0.5, 3.0);
        [start, rate, random.uniform(0.8, 1.6), random.uniform(0.2, 0.8)]
    };
    let mut points: Vec<[f64; 4]> = vec![point(0.15)];
    points.extend((0..30).map(|k| point(0.2 + 0.01 * f64::from(k))));
    let pair = Pair::new(Numerics::Real, f);
    pair.profile(&points);
    let served = points.iter().filter(|point| pair.check(&point[..]) == Served::Kernel).count();
    assert!(served > 25, "{served}: {:?}", pair.kernel.report());
}

/// Gradient descent on data until the slope is small, then the error.
#[traced]
fn fit(mut w: Var, rate: Var, x: &[f64], y: &[f64]) -> Var {
    let n = x.len() as f64;
    let mut iteration = 0;
    while iteration < 500 {
        let mut slope = Var::from(0.0);
        for (&x, &y) in x.iter().zip(y) {
            slope += (w * x - y) * x;
        }
        slope *= 2.0 / n;
        if slope.abs() < 1e-4 {
            break;
        } else {
            w -= rate * slope;
        }
        iteration += 1;
    }
    let mut error = Var::from(0.0);
    for (&x, &y) in x.iter().zip(y) {
        error += (y - w * x) * (y - w * x);
    }
    error / n
}

#[test]
fn descents_with_different_trip_counts_are_one_loop_without_data() {
    let x: Vec<f64> = (0..50).map(|i| (0.7 * f64::from(i)).sin()).collect();
    let y: Vec<f64> = x.iter().map(|x| 0.7 * x + 0.1 * (9.0 * x).cos()).collect();
    let f = Tape::builder()
        .background(false)
        .record(|rate: &[Var]| fit(Var::from(0.3), rate[0], &x, &y));
    // They break after about 3, 5, 21 and 18 iterations.
    let rates = [0.99, 0.85, 0.35, 0.4];
    let taped: Vec<_> = rates.iter().map(|&rate| f.value_and_grad(&[rate]).unwrap()).collect();
    let explanation = f.explain().unwrap();
    let program = &explanation.program.text;
    let loops_with_exits = |text: &str| text.matches("loop at most").count();
    assert_eq!(loops_with_exits(program), 1, "{program}");
    assert!(program.contains("  loop 50 times in j, with w"), "{program}");
    let closed = &explanation.closed.text;
    assert!(loops_with_exits(closed) == 1 && !closed.contains("50 times"), "{closed}");
    let gradient = &explanation.gradient.as_ref().unwrap().text;
    // The reverse sweep of the loop over the digits of the number remains.
    assert_eq!(gradient.matches("backwards").count(), 1, "{gradient}");
    f.compile().unwrap();
    for (&rate, (value, gradient)) in rates.iter().zip(&taped) {
        let (found, partials) = f.value_and_grad(&[rate]).unwrap();
        assert!((found - value).abs() <= 1e-14 * value.abs(), "{found} {value}");
        // Near the end of the descent the terms of the tape's sum cancel.
        assert!(
            (partials[0] - gradient[0]).abs() <= 1e-12 * value.abs(),
            "{partials:?} {gradient:?}"
        );
    }
    assert_eq!(f.report().kernel_calls, 4);
}

#[test]
fn growth_until_a_limit_has_a_closed_form() {
    #[traced]
    fn saved(mut sum: Var, rate: Var, payment: Var) -> Var {
        while sum < 1000.0 {
            sum = sum * (rate + 1.0) - payment * rate + payment;
        }
        sum
    }
    let builder = Tape::builder().background(false).tuning(Tuning::with_loops(LoopForm::Closed));
    let f = builder.record(|x: &[Var]| saved(x[0], x[1], x[2]));
    let points: Vec<[f64; 3]> =
        (0..40).map(|k| [1.0 + f64::from(k), 0.004 + 0.001 * f64::from(k), 3.0]).collect();
    let taped: Vec<_> = points.iter().map(|x| f.value_and_grad(x).unwrap()).collect();
    f.compile().unwrap();
    let before = f.report().kernel_calls;
    for (x, (value, gradient)) in points.iter().zip(taped) {
        let (found, partials) = f.value_and_grad(x).unwrap();
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-11 * b.abs();
        assert!(close(found, value), "{found} {value}");
        assert!(
            partials.iter().zip(&gradient).all(|(&a, &b)| close(a, b)),
            "{partials:?} {gradient:?}"
        );
    }
    assert_eq!(f.report().kernel_calls - before, 40);
    assert!(f.explain().unwrap().to_string().contains("Σ_{j<k} a^j"));
}

fn assert_near(found: &[f64], expected: &[f64]) {
    let mut pairs = found.iter().zip(expected);
    let near = pairs.all(|(a, b)| (a - b).abs() <= 4.0 * ulp(*b));
    assert!(near && found.len() == expected.len(), "{found:?} {expected:?}");
}

#[test]
fn a_large_term_in_the_first_iteration_is_accurate() {
    #[traced]
    fn growth(mut y: Var, factor: Var, added: Var) -> Var {
        while y < 1e6 {
            y = y * factor + added;
        }
        y
    }
    let f = Tape::builder().background(false).record(|x: &[Var]| growth(x[0], x[1], x[2]));
    for k in 0..40 {
        f.grad(&[0.5, 1.01 + 0.001 * f64::from(k), 1.0 + f64::from(k)]).unwrap();
    }
    f.compile().unwrap();
    let before = f.report().kernel_calls;
    for added in [1e7, 1e60] {
        for factor in [1.01, 0.3, -2.0, 1.0] {
            assert_near(&f.grad(&[0.5, factor, added]).unwrap(), &[factor, 0.5, 1.0]);
        }
    }
    // Inputs with two iterations, and with none.
    for factor in [1.0 + 1e-5, 1.0, 1.01, 3.0] {
        let got = f.grad(&[0.5, factor, 6e5]).unwrap();
        assert_near(&got, &[factor * factor, factor + 6e5, factor + 1.0]);
        assert_near(&f.grad(&[1e6, factor, 6e5]).unwrap(), &[1.0, 0.0, 0.0]);
    }
    assert!(f.report().kernel_calls > before, "{}", f.report());
}

#[test]
fn a_guard_in_a_closed_loop_still_ends_calls() {
    // The recorded path: no iteration exceeds the limit.
    let growth = |x: &[Var]| {
        let mut y = x[0];
        for _ in 0..2000 {
            y = y * x[1] + x[2];
            if y > 50.0 {
                return y * y + x[0];
            }
        }
        y
    };
    let build = || Tape::builder().hot_threshold(u32::MAX).background(false).record(growth);
    let (kernel, tape) = (build(), build());
    for start in [1.0, 1.5, 2.0] {
        kernel.value_and_grad(&[start, 0.99, 0.1]).unwrap();
    }
    kernel.compile().unwrap();
    assert!(!kernel.report().closed_forms.is_empty(), "{}", kernel.report());
    let before = kernel.report();
    for x in [[1.0, 0.98, 0.2], [3.0, 0.99, -0.1], [0.5, -0.9, 0.3]] {
        let ((found, partials), (value, gradient)) =
            (kernel.value_and_grad(&x).unwrap(), tape.value_and_grad(&x).unwrap());
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-11 * b.abs().max(1.0);
        assert!(near(found, value), "{x:?}: {found} {value}");
        assert!(
            partials.iter().zip(&gradient).all(|(&a, &b)| near(a, b)),
            "{partials:?} {gradient:?}"
        );
    }
    assert_eq!(kernel.report().kernel_calls, before.kernel_calls + 3);
    // The limit is exceeded at the start, on the way (and again at the end), and at the end.
    for x in [[60.0, 0.99, 0.1], [1.0, -1.003, 0.1], [1.0, 1.002, 0.0], [1.0, 0.9995, 0.0394]] {
        assert_eq!(kernel.value_and_grad(&x).unwrap(), tape.value_and_grad(&x).unwrap(), "{x:?}");
    }
    assert_eq!(kernel.report().kernel_calls, before.kernel_calls + 3);
}

/// A carried value that equals a function of another one from the second iteration on.
mod following {
    use super::*;

    #[traced]
    pub fn by_while(s0: Var, d0: Var, limit: Var, c: Var) -> Var {
        let mut out = s0;
        if (c - 1.6).abs() < 0.01 {
            let (mut s, mut d, mut n) = (s0, d0, 0);
            while n < 60 {
                let v = s + d;
                let s1 = s + s * 0.5;
                let d1 = s1 * 0.5;
                out = v;
                if d > limit {
                    break;
                }
                s = s1;
                d = d1;
                n += 1;
            }
        }
        out * s0
    }

    #[traced]
    fn body(s0: Var, d0: Var, limit: Var) -> Var {
        let (mut s, mut d, mut n) = (s0, d0, 0);
        loop {
            let v = s + d;
            let s1 = s + s * 0.5;
            let d1 = s1 * 0.5;
            if d > limit || n == 59 {
                return v;
            }
            s = s1;
            d = d1;
            n += 1;
        }
    }

    #[traced]
    pub fn by_return(s0: Var, d0: Var, limit: Var, c: Var) -> Var {
        if (c - 1.6).abs() < 0.01 { body(s0, d0, limit) * s0 } else { s0 * s0 }
    }
}

#[test]
fn exits_of_the_first_iteration_read_the_start() {
    for program in [following::by_while, following::by_return] {
        let build = || {
            let builder = Tape::builder().hot_threshold(u32::MAX).background(false);
            builder.record(move |x: &[Var]| program(x[0], x[1], x[2], x[3]))
        };
        let (kernel, tape) = (build(), build());
        for n in (0..62).rev() {
            let limit = 0.5 * 1.5f64.powf(f64::from(n) - 0.5);
            for c in [1.6, 0.6] {
                kernel.value_and_grad(&[1.0, 0.5, limit, c]).unwrap();
            }
        }
        kernel.compile().unwrap();
        for x in [
            [1.0, 0.5, 5.0, 1.6],
            [1.0, 7.0, 0.5, 1.6],
            [1.0, 7.0, 9.0, 1.6],
            [2.0, -7.0, -9.0, 1.6],
        ] {
            let (found, partials) = kernel.value_and_grad(&x).unwrap();
            let (value, gradient) = tape.value_and_grad(&x).unwrap();
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
            assert!(close(found, value), "{x:?}: {found} {value}");
            let all = partials.iter().zip(&gradient).all(|(&a, &b)| close(a, b));
            assert!(all, "{x:?}: {partials:?} {gradient:?}");
        }
    }
}

#[test]
fn straight_line_code_before_a_loop_is_examined_once() {
    // Shorter paths are straight-line code before the longest one's loop.
    let f = Tape::builder().background(false).hot_threshold(u32::MAX).record(|x: &[Var]| {
        let (mut balance, mut number) = (x[0], 0.0);
        while balance > 0.0 {
            balance = balance * (1.0 + x[1]) - x[2];
            number += 1.0;
        }
        number + balance / x[2]
    });
    for trips in [27, 34, 31, 24, 12, 15, 26, 20, 18, 22, 14, 13, 46, 39] {
        f.grad(&[7.0 * f64::from(trips) - 3.0, 1e-5, 7.0]).unwrap();
    }
    f.compile().unwrap();
    f.explain().unwrap();
}

/// y ← a·y + b until y ≥ limit, with the two preceding values of y.
fn before_the_exit() -> Graph {
    let text = "graph active 5 inactive 1\nv6 = const 0.0\nv7 = const 1999.0\n\
                v11 = iteration r0\nb0:\n  \
                v18 = region r0 b1 bound 2000 entries v8=v0 v9=v1 v10=v2\n  \
                return v18\nb1:\n  v12 = lt v8 v5\n  branch v12 b2 b3\nb2:\n  \
                v13 = mul v3 v8\n  v14 = add v13 v4\n  v15 = lt v11 v7\n  \
                return v15 v14 v8 v8 v14\nb3:\n  v16 = mul v9 v10\n  v17 = add v16 v8\n  \
                return v6 v8 v9 v10 v17\n";
    let graph = parse(text).unwrap();
    verify(&graph).unwrap();
    graph
}

#[test]
fn loops_without_a_second_iteration_return_their_start() {
    let graph = before_the_exit();
    let solved = closed(&graph);
    assert!(!solved.applied.is_empty(), "{:?}", solved.open);
    let (before, after) = (differentiated(&graph), differentiated(&solved.graph));
    for limit in [0.5, 1.5, 2.0, 10.0, 1e3, 1e5] {
        let x = [1.0, 0.7, -0.3, 1.01, 0.02, limit];
        let (tape, got) = (values(&before, &x), values(&after, &x));
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
        assert!(got.iter().zip(&tape).all(close), "{limit}: {got:?} {tape:?}");
    }
}
