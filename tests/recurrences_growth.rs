//! Systems that grow in some iterations of an outer loop and shrink in others: what cancels there
//! has the digits that the tape has, or is the tape's.
#![allow(clippy::unwrap_used)] // Tests fail like this.

use phigrad::{Limits, Numerics, Recorded, Tape, Var};

type Run = fn(&[Var]) -> Var;

/// Two numbers, `x[0]` and `x[2]`, that level out at the rate `x[1]`, which is then changed.
fn levelling(x: &[Var], epochs: usize, change: impl Fn(Var) -> Var) -> [Var; 2] {
    let (mut a, mut b, mut rate) = (x[0], x[2], x[1]);
    for _ in 0..epochs {
        for _ in 0..400 {
            let way = a - b;
            (a, b) = (a - rate * way, b + rate * way);
        }
        rate = change(rate);
    }
    [a, b]
}

/// The function on the tape, and by kernels, the one in reserve included if a point wants it.
fn recorded(run: Run, points: &[[f64; 4]]) -> [Recorded<impl Fn(&[Var]) -> Var>; 2] {
    let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
    let (tape, kernel) = (builder().record(run), builder().record(run));
    kernel.value_and_grad(&[0.3, 0.2, 0.9, 0.7]).unwrap();
    kernel.compile().unwrap();
    for x in points {
        kernel.value_and_grad(x).unwrap();
    }
    kernel.compile().unwrap();
    [tape, kernel]
}

/// How much of one way the other number goes.
const PART: f64 = 0.5;

/// The first of two numbers, `x[0]` and `x[2]`, that level out at rates that fall.
fn falling(x: &[Var]) -> Var {
    let (mut a, mut b, mut rate) = (x[0], x[2], x[1]);
    for _ in 0..5 {
        for _ in 0..400 {
            let way = rate * (a - b);
            (a, b) = (a - way, b + way * PART);
        }
        rate *= x[3];
    }
    a
}

#[test]
fn what_two_numbers_pass_on_cancels_with_all_digits() {
    // Beyond rates of 4/3 the numbers grow, in the first iteration by up to 2^36.
    let rates = [0.3, 1.2, 1.3, 1.335, 1.34, 1.35, 1.36, 1.37, 1.375];
    let points = rates.map(|rate| [1.5, rate, -0.25, 0.9]);
    let [_, kernel] = recorded(falling, &points);
    let before = kernel.report();
    for x in &points {
        let (_, slopes) = kernel.value_and_grad(x).unwrap();
        let (mut way, mut rate) = (1.0, x[1]);
        for _ in 0..5 {
            way *= (1.0 - (1.0 + PART) * rate).powi(400);
            rate *= x[3];
        }
        let expected = [(PART + way) / (1.0 + PART), (1.0 - way) / (1.0 + PART)];
        for (slope, expected) in [slopes[0], slopes[2]].into_iter().zip(expected) {
            let most = 2.0 * f64::EPSILON + 1e-12 * way.abs();
            assert!((slope - expected).abs() <= most, "{x:?}: {slopes:?} for {expected}");
        }
    }
    let report = kernel.report();
    let served = report.kernel_calls - report.reserve_calls;
    assert_eq!(served - (before.kernel_calls - before.reserve_calls), 9, "{report}");
}

/// What two numbers have in common after so many iterations, which is what they had before.
fn in_common(x: &[Var], iterations: usize) -> Var {
    let (mut a, mut b) = (x[0], x[2]);
    for _ in 0..iterations {
        let way = x[1] * (a - b);
        (a, b) = (a - way, b + way * PART);
    }
    a * PART + b
}

#[test]
fn forms_before_a_branch_and_in_it_cancel_each_by_itself() {
    let run: Run = |x| {
        let first = in_common(x, 400);
        if x[3] > 0.0 { first + in_common(x, 300) } else { first }
    };
    let rates = [0.3, 1.2, 1.335, 1.345, 1.36];
    let points: Vec<[f64; 4]> =
        rates.iter().flat_map(|&rate| [1.0, -1.0].map(|side| [1.5, rate, -0.25, side])).collect();
    let [_, kernel] = recorded(run, &points);
    let before = kernel.report();
    for x in &points {
        let (_, slopes) = kernel.value_and_grad(x).unwrap();
        let times = if x[3] > 0.0 { 2.0 } else { 1.0 };
        for (slope, expected) in slopes.iter().zip([PART * times, 0.0, times, 0.0]) {
            assert!((slope - expected).abs() <= 1e-12, "{x:?}: {slopes:?}");
        }
    }
    let report = kernel.report();
    let served = |report: &phigrad::Report| report.kernel_calls - report.reserve_calls;
    assert!(served(&report) > served(&before) + 5, "{report}");
}

#[test]
fn what_has_grown_by_more_is_the_tapes() {
    let programs: [(&str, Run); 3] = [
        ("levelling", |x| levelling(x, 2, |rate| rate.abs().sqrt() * 0.5)[0]),
        ("equal", |x| levelling(&[x[0], x[1], x[0]], 4, |rate| rate * x[3])[0] + x[2]),
        ("no target", |x| {
            let (mut s, mut rate) = (x[0], x[1]);
            for _ in 0..4 {
                for _ in 0..400 {
                    s -= rate * 2.2 * (s * x[3] - x[2]);
                }
                rate = rate.abs().sqrt() * 0.5;
            }
            s
        }),
    ];
    let points = [1.1, 1.2, 1.3, 1.42, 1.5].map(|rate| [1.5, rate, 0.5, 0.9]);
    for (name, program) in programs {
        let [tape, kernel] = recorded(program, &points);
        let before = kernel.report();
        for x in &points {
            let [(expected, wanted), (value, slopes)] =
                [&tape, &kernel].map(|recorded| recorded.value_and_grad(x).unwrap());
            let bits = |all: &[f64]| all.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
            assert_eq!(value.to_bits(), expected.to_bits(), "{name} at {x:?}");
            assert_eq!(bits(&slopes), bits(&wanted), "{name} at {x:?}: {slopes:?} for {wanted:?}");
        }
        let report = kernel.report();
        assert_eq!(report.reserve_calls - before.reserve_calls, 5, "{name}: {report}");
    }
}

/// Two numbers, of which one goes to the other, in turn.
#[test]
fn what_the_last_iteration_but_one_came_to_is_a_closed_form() {
    fn turns(x: &[Var]) -> Var {
        let (mut s, mut c, mut rate) = (x[0], x[1], x[2]);
        for _ in 0..10 {
            for _ in 0..100 {
                s -= rate * (s - c);
            }
            (s, c) = (c, s);
            rate *= x[3];
        }
        s - c
    }
    let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
    let kernel = builder().record(turns);
    kernel.value_and_grad(&[0.3, 0.2, 0.9, 0.7]).unwrap();
    kernel.compile().unwrap();
    let explanation = kernel.explain().unwrap().to_string();
    let (_, closed) = explanation.split_once("what it has become").unwrap();
    assert!(!closed.contains("loop 100 times"), "{closed}");
    for [rate, change] in [[2.5, 0.9], [2.1, 0.9], [2.01, 0.98], [0.1, 0.9], [0.01, 1.1]] {
        let x = [1.0, 1.5, rate, change];
        let (_, slopes) = kernel.value_and_grad(&x).unwrap();
        // The way between them is multiplied by each power, and turned.
        let mut expected = 1.0;
        let mut rate = rate;
        for _ in 0..10 {
            expected *= -(1.0 - rate).powi(100);
            rate *= change;
        }
        let most = 1e-12 * expected.abs();
        assert!((slopes[0] - expected).abs() <= most, "{x:?}: {slopes:?} for {expected}");
        assert!((slopes[1] + expected).abs() <= most, "{x:?}: {slopes:?} for {expected}");
    }
    assert_eq!(kernel.report().kernel_calls, 5);
}

/// Two numbers and the way between them, which is the same in all of `steps`.
fn mean(steps: usize, x: &[Var], rate: impl Fn() -> Var) -> Var {
    let (mut a, mut b) = (x[0], x[1]);
    for _ in 0..steps {
        let way = (a - b) * rate();
        (a, b) = (a - way, b + way);
    }
    a * 0.5 + b * 0.5
}

#[test]
fn sums_have_the_digits_of_the_tape_without_a_loop_around() {
    let programs: [(&str, Run); 6] = [
        ("100 literal", |x| mean(100, x, || x[2] * 0.0 + 1.2)),
        ("400", |x| mean(400, x, || x[2])),
        ("60", |x| mean(60, x, || x[2])),
        ("60 of a number", |x| {
            let (mut a, mut b) = (x[0], x[1]);
            for _ in 0..60 {
                (a, b) = (a - (a - b) * 1.2, b + (a - b) * 1.2);
            }
            a * 0.5 + b * 0.5
        }),
        ("100 of a number", |x| {
            let (mut a, mut b) = (x[0], x[1]);
            for _ in 0..100 {
                (a, b) = (a - (a - b) * 1.2, b + (a - b) * 1.2);
            }
            a * 0.5 + b * 0.5
        }),
        ("three numbers", |x| {
            let (mut a, mut b, mut c) = (x[0], x[1], x[0]);
            for _ in 0..200 {
                let (f, g) = ((a - b) * x[2], (b - c) * x[2]);
                (a, b, c) = (a - f, b + f - g, c + g);
            }
            a + b + c
        }),
    ];
    for (name, program) in programs {
        let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
        let (tape, kernel) = (builder().record(program), builder().record(program));
        let rates = [0.3, 0.9, 1.01, 1.1, 1.2, 1.3];
        for _ in 0..2 {
            rates.iter().for_each(|&rate| drop(kernel.grad(&[1.5, 0.5, rate]).unwrap()));
            kernel.compile().unwrap();
        }
        for rate in rates {
            let x = [1.5, -0.25, rate];
            let (expected, slopes) = (tape.grad(&x).unwrap(), kernel.grad(&x).unwrap());
            for (slope, expected) in slopes[..2].iter().zip(&expected) {
                let most = 8.0 * f64::EPSILON;
                assert!((slope - expected).abs() <= most, "{name} {x:?}: {slopes:?} {expected}");
            }
            // The mean does not move with the rate.
            assert!(slopes[2].abs() <= 1e-12, "{name} {x:?}: {slopes:?} {expected:?}");
        }
        let report = kernel.report();
        assert!(report.kernel_calls >= 6, "{name}: {report}");
    }
}

/// Three epochs of so many steps from 1 and 0.5, at rates from `x[0]` on.
fn three(
    steps: usize,
    x: &[Var],
    step: impl Fn(Var, Var, Var) -> (Var, Var),
    change: impl Fn(Var) -> Var,
) -> [Var; 2] {
    let (mut w, mut v, mut rate) = (Var::from(1.0), Var::from(0.5), x[0]);
    for _ in 0..3 {
        for _ in 0..steps {
            (w, v) = step(w, v, rate);
        }
        rate = change(rate);
    }
    [w, v]
}

#[test]
fn loops_behind_loops_with_closed_forms_have_the_digits_of_the_tape() {
    let programs: [(&str, Run); 6] = [
        ("followed", |x| {
            let step = |w: Var, v: Var, rate: Var| {
                let next = w - rate * (w - x[1]);
                let next = next - rate * (next - x[1]);
                (next, v - x[0] * (v - next))
            };
            three(120, x, step, |rate| rate * 1.6 + 0.3)[1]
        }),
        ("averaged", |x| {
            let step = |w: Var, v: Var, rate: Var| {
                let next = w - rate * (w - x[1]);
                (next, v + (next - v) * 0.1)
            };
            three(60, x, step, |rate| rate + x[0])[1]
        }),
        ("two phases", |x| {
            let mut w = Var::from(1.0);
            for _ in 0..50 {
                w -= x[0] * 0.5 * (w - x[1]);
            }
            for _ in 0..50 {
                w -= x[0] * 1.8 * (w - x[1]);
            }
            w
        }),
        ("one number", |x| {
            let step = |w: Var, v: Var, rate: Var| (w - rate * (w - x[1]), v);
            three(60, x, step, |rate| rate * 1.3)[0]
        }),
        ("at the target", |x| {
            let step = |w: Var, v: Var, rate: Var| (w - rate * (w - x[1]), v - rate * (v - x[1]));
            let [w, v] = three(60, &[x[0], x[1]], step, |rate| rate * 1.6);
            w * v
        }),
        ("progress", |x| {
            let (mut w, mut rate) = (Var::from(1.0), x[0]);
            for _ in 0..6 {
                let before = w;
                for _ in 0..50 {
                    w -= rate * (w - x[1]);
                }
                let is_worse = (w - x[1]).abs() > (before - x[1]).abs();
                rate *= if is_worse { 0.5 } else { 1.3 };
            }
            w
        }),
    ];
    // So many calls are the closed form's at least, and so far from the tape's: that has lost digits
    // where what has almost come to rest grows again.
    let bounds = [(1, 1e-10), (2, 1e-10), (9, 1e-10), (9, 1e-3), (4, 2e-5), (3, 1e-10)];
    for ((name, program), (least, most)) in programs.into_iter().zip(bounds) {
        let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
        let (tape, kernel) = (builder().record(program), builder().record(program));
        let points = [0.3, 0.7, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.5].map(|rate| [rate, 0.333]);
        for _ in 0..2 {
            points.iter().for_each(|x| drop(kernel.value_and_grad(x).unwrap()));
            kernel.compile().unwrap();
        }
        let before = kernel.report();
        for x in &points {
            let [(expected, wanted), (value, slopes)] =
                [&tape, &kernel].map(|recorded| recorded.value_and_grad(x).unwrap());
            assert!((value - expected).abs() <= most * expected.abs(), "{name} {x:?}: {value}");
            // Where the tape has lost all digits of both, neither is known.
            let largest = wanted.iter().fold(1e-3f64, |largest, slope| largest.max(slope.abs()));
            for (slope, wanted) in slopes.iter().zip(&wanted) {
                let is_apart = (slope - wanted).abs() > most * largest;
                assert!(!is_apart, "{name} {x:?}: {slopes:?} for {wanted:?}");
            }
        }
        let report = kernel.report();
        assert_eq!(report.kernel_calls - before.kernel_calls, 9, "{name}: {report}");
        let by_forms = 9 - (report.reserve_calls - before.reserve_calls);
        assert!(by_forms >= least, "{name}: {by_forms} by closed forms, {report}");
    }
}

#[test]
fn kernels_in_reserve_say_how_they_round() {
    fn program(x: &[Var]) -> Var {
        levelling(x, 2, |rate| rate.abs().sqrt() * 0.5)[0]
    }
    let made = |in_order: usize, compiled: usize| {
        let mut limits = Limits::default();
        (limits.in_order, limits.compiled) = (in_order, compiled);
        let builder = Tape::builder().hot_threshold(u32::MAX).background(false).limits(limits);
        let f = builder.record(program);
        let mut failed = false;
        for _ in 0..2 {
            f.grad(&[1.5, 0.3, -0.25]).unwrap();
            f.grad(&[1.5, 1.5, -0.25]).unwrap();
            failed = f.compile().is_err();
        }
        let kernels = f.report().kernels;
        let of = |reserve: bool| -> Vec<Numerics> {
            let of = kernels.iter().filter(|kernel| kernel.reserve == reserve);
            of.map(|kernel| kernel.numerics).collect()
        };
        (of(false), of(true), failed)
    };
    for (in_order, numerics) in [(1 << 14, Numerics::Exact), (0, Numerics::Real)] {
        let (first, reserve, failed) = made(in_order, 1 << 21);
        assert!(!failed && !first.is_empty() && !reserve.is_empty());
        assert!(first.iter().all(|&of| of == Numerics::Real), "{in_order}: {first:?}");
        assert!(reserve.iter().all(|&of| of == numerics), "{in_order}: {reserve:?}");
    }
    assert_eq!(made(1 << 14, 1), (vec![], vec![], true));
}

#[test]
fn known_rates_keep_what_has_come_to_rest_before_where_it_is() {
    /// What comes to `x[1]` at the rate `x[0]`.
    fn rested(x: &[Var]) -> Var {
        let mut w = x[2];
        for _ in 0..200 {
            w -= x[0] * (w - x[1]);
        }
        w
    }
    /// A number that known powers take away from c, if it is not there, and c.
    type Program = (Run, fn(&[f64]) -> f64);
    let programs: [Program; 3] = [
        (
            |x| {
                let mut w = rested(x);
                for _ in 0..60 {
                    w -= 3.0 * (w - x[1]);
                }
                w
            },
            |x| x[1],
        ),
        (
            |x| {
                let mut w = rested(x) * 0.5;
                for _ in 0..60 {
                    w -= 3.0 * (w - x[1] * 0.5);
                }
                w
            },
            |x| 0.5 * x[1],
        ),
        (
            |x| {
                let mut w = -rested(x);
                for _ in 0..60 {
                    w -= 3.0 * (w + x[1]);
                }
                w
            },
            |x| -x[1],
        ),
    ];
    let points = [[0.5, 0.9, 0.2, 0.0], [0.9, 0.9, 0.2, 0.0], [0.55, 0.3, 0.2, 0.0]];
    for (number, (program, expected)) in programs.into_iter().enumerate() {
        let [_, kernel] = recorded(program, &points);
        for x in &points {
            let (value, slopes) = kernel.value_and_grad(x).unwrap();
            assert_eq!(value, expected(x), "{number} {x:?}");
            // 2⁶⁰ times what is left after 200 steps.
            assert!(slopes.iter().all(|slope| slope.abs() < 1e-38), "{number} {x:?}: {slopes:?}");
        }
        assert_eq!(kernel.report().reserve_calls, 0, "{number}");
    }
}

#[test]
fn coefficients_that_are_almost_zero_pass_derivatives_on() {
    const ALMOST: f64 = 1.0 / (1u128 << 100) as f64;
    let run: Run = |x| {
        let mut s = x[0];
        for _ in 0..10 {
            s = s * ALMOST + x[1] * 3.0;
        }
        s
    };
    let x = [0.25, 0.5, 0.0, 0.0];
    let points = [x];
    let [tape, kernel] = recorded(run, &points);
    let [(expected, wanted), (value, slopes)] =
        [&tape, &kernel].map(|recorded| recorded.value_and_grad(&x).unwrap());
    assert_eq!((value, slopes[0]), (expected, ALMOST.powi(10)));
    assert_eq!(slopes, wanted);
    assert_eq!(kernel.report().kernel_calls, 2);
}
