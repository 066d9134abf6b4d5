//! Inner loops of several numbers, with constant factors, and loops between two others: what
//! they come to is the program's.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;
#[path = "support/recurrences.rs"]
mod support;

use phigrad::phi::recurrence::solve_all;
use phigrad::{Tape, Var};
use precise::Number;
use support::{Program, compare, rolled};

type Run = fn(&[Var]) -> Var;

/// The states of an inner loop that rests where they are equal, though their difference grows.
fn equals(x: &[Var], times: usize, added: impl Fn(usize) -> Var) -> [Var; 2] {
    let (mut u, mut v) = (x[3], x[3]);
    for _ in 0..times {
        let way = u - v;
        u = u + way * x[0] + added(0);
        v = v - way * x[1] + added(1);
    }
    [u, v]
}

#[test]
fn numbers_that_stay_equal_in_an_inner_loop_come_to_no_more() {
    let once: Run = |x| {
        (0..20).fold(x[2], |s, _| {
            let [u, _] = equals(x, 40, |at| s * x[4 + at]);
            s * 0.9 + u
        })
    };
    let both: Run = |x| {
        (0..20).fold(x[2], |s, _| {
            let [u, v] = equals(x, 64, |at| s * x[4 + at]);
            s * 0.5 + (u - v) * 0.25 + v * 0.125
        })
    };
    let deeper: Run = |x| {
        (0..6).fold(x[2], |s, _| {
            let (mut t, by) = (s, s * 0.01);
            for _ in 0..12 {
                let added = [by * x[4], by * x[5]];
                let [u, _] = equals(x, 30, |at| added[at]);
                t = t * 0.5 + u;
            }
            s * 0.25 + t * 0.1
        })
    };
    let programs = [("once", once), ("both", both), ("deeper", deeper)];
    for (name, program) in programs {
        let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
        let (tape, kernel) = (builder().record(program), builder().record(program));
        let lesson = [0.3, 0.2, 0.5, 0.1, 0.2, 0.3];
        kernel.value_and_grad(&lesson).unwrap();
        kernel.compile().unwrap();
        assert!(!kernel.report().closed.is_empty(), "{name}: {}", kernel.report());
        for factors in [[4.3, 5.3], [4.25, 5.25], [1.1, 1.3], [0.5, 0.25], [0.1, 0.3], [0.0, 0.0]] {
            for [start, added] in [[0.0, 0.25], [0.0, 0.01], [0.25, 0.25], [0.5, 0.0]] {
                let x = [factors[0], factors[1], 1.0, start, added, added];
                let (expected, slopes) = tape.value_and_grad(&x).unwrap();
                let (value, found) = (kernel.eval(&x).unwrap(), kernel.grad(&x).unwrap());
                let is_like = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs() || a == b;
                assert!(is_like(value, expected), "{name} at {x:?}: {value} for {expected}");
                // Nothing depends on these, but for the last digits of pairs.
                for (a, b) in [0, 1].map(|at| (found[at], slopes[at])) {
                    let is_nothing = (a - b).abs() <= 1e-20 * expected.abs();
                    assert!(
                        is_like(a, b) || is_nothing,
                        "{name} at {x:?}: {found:?} for {slopes:?}"
                    );
                }
                // All is a multiple of that; the tape has it without many digits.
                let is_tape = found[2].to_bits() == slopes[2].to_bits();
                let is_exact = start != 0.0 || is_like(found[2] * x[2], value);
                assert!(is_exact || is_tape, "{name} at {x:?}: {found:?} for {value}");
            }
        }
        let served = || kernel.report().kernel_calls - kernel.report().reserve_calls;
        let before = served();
        kernel.eval(&lesson).unwrap();
        assert_eq!(served(), before + 1, "{name}");
    }
}

#[test]
fn constants_that_grow_in_an_inner_loop_come_to_no_more() {
    let beside: Run = |x| {
        let (mut s, mut t) = (x[0], x[1]);
        for _ in 0..5 {
            let mut u = s;
            for _ in 0..40 {
                u += (u - x[1]) * 8.7;
            }
            t = t * 0.5 + u;
            s = x[1] + (s - x[1]) * x[2];
        }
        t
    };
    let known: Run = |x| {
        (0..5).fold(x[0], |s, _| {
            let mut u = s;
            for _ in 0..40 {
                u += (u - 0.25) * 8.75;
            }
            u * x[2] + 0.25 - x[2] * 0.25
        })
    };
    for (name, program) in [("beside", beside), ("known", known)] {
        let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
        let (tape, kernel) = (builder().record(program), builder().record(program));
        kernel.value_and_grad(&[0.5, 0.25, 0.7]).unwrap();
        kernel.compile().unwrap();
        assert!(!kernel.report().closed.is_empty(), "{name}: {}", kernel.report());
        for rest in [0.25, 0.3, 0.7, -1.0, 0.0] {
            for by in [0.5, 0.7, 0.0, 1e-3] {
                let x = if name == "known" { [0.25, 0.25, by] } else { [rest, rest, by] };
                let expected = tape.eval(&x).unwrap();
                let value = kernel.eval(&x).unwrap();
                let is_like = (value - expected).abs() <= 1e-12 * expected.abs();
                assert!(is_like, "{name} at {x:?}: {value} for {expected}");
            }
        }
    }
}

/// A loop with a term that depends on its number, between two others.
#[derive(Clone, Copy, Debug)]
enum Counted {
    Term,
    Square,
    Weighed,
    Pair,
}

impl Program for Counted {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut s, mut t) = (x[0], x[2]);
        for _ in 0..6 {
            if let Counted::Weighed = self {
                s = x[0];
            }
            for j in 0..33 {
                let number = T::from(f64::from(j));
                s = match self {
                    Counted::Square => s * x[1] + x[2] * (number * number + T::from(1.0)),
                    _ => s * x[1] + x[2] * number,
                };
                for _ in 0..45 {
                    s = s * (x[3] + x[0]);
                    if let Counted::Pair = self {
                        t = t * x[3] + s;
                    }
                }
            }
            s = s * x[3];
            if let Counted::Weighed = self {
                t = t * x[3] + s;
            }
        }
        s + t
    }
}

#[test]
fn what_a_loop_counts_between_two_others_is_added() {
    let points = [
        [0.5, 0.5, 2.0, 0.49],
        [0.5, 0.9, 1.3, 0.4],
        [0.3, 0.7, 0.9, 0.4],
        [0.45, 0.8, 1.3, 0.55],
        [0.25, 0.7, -1.5, 0.755],
    ];
    let points = points.map(Vec::from);
    for program in [Counted::Term, Counted::Square, Counted::Weighed, Counted::Pair] {
        let worse = compare(&program, &points, |_, _| 0.0);
        assert!(worse.components >= 20 && worse.found.is_empty(), "{program:?}: {:?}", worse.found);
    }
}

/// Loops in three others, of two numbers.
struct Deep;

impl Program for Deep {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut s, mut u) = (x[0], x[1]);
        for _ in 0..5 {
            for _ in 0..2 {
                for k in [0.5, 0.25, -0.5] {
                    s = s * x[3] + u * x[2];
                    for _ in 0..41 {
                        s = s * (T::from(1.0) - x[3]) + s * T::from(k);
                        u = u * x[1] + s * T::from(k);
                    }
                }
                s = s + x[2];
            }
            for _ in 0..41 {
                u = u * (x[2] * T::from(-0.3)) + u;
            }
        }
        u
    }
}

#[test]
fn what_is_told_of_deep_nests_is_short() {
    let solved = solve_all(&rolled(&Deep, &[0.5, 0.25, 0.75, 0.5]));
    assert!(!solved.applied.is_empty());
    for formula in solved.applied {
        assert!(formula.form.len() < 1 << 13, "{} bytes", formula.form.len());
    }
}
