//! Loops in loops that are affine: one closed form stands for the whole nest, and its
//! values and gradients are as good as those of the tape.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;
#[path = "support/recurrences.rs"]
mod support;

use phigrad::check::Random;
use phigrad::phi::recurrence::solve_all;
use phigrad::{Tape, Var};
use precise::Number;
use support::{Program, compare, rolled};

/// A number of programs: which one, and how often both loops are gone through.
#[derive(Clone, Copy, Debug)]
struct Nest {
    kind: usize,
    outer: usize,
    inner: usize,
}

const KINDS: usize = 10;

impl Program for Nest {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut y, mut z) = (x[0], x[3]);
        for _ in 0..self.outer {
            for i in 0..self.inner {
                match self.kind {
                    // An account with interest and payments.
                    0 => y = y * (T::from(1.0) + x[1] * T::from(1.0 / 120.0)) + x[2],
                    1 => y = y * x[1] + x[2],
                    // Gradient descent.
                    2 | 3 => y = y - x[1] * (y - x[2]),
                    4 => y = y * x[1],
                    // The inner loop uses a number that only the outer one changes.
                    5 => y = y * x[1] + z,
                    6 => {
                        y = y * x[1] + z * x[2];
                        z = z * T::from(0.5) + x[3];
                    }
                    7 => y = y * T::from(0.9) + x[1] * T::from(0.25),
                    // Rounded numbers in even steps next to one of the outer loop.
                    8 => y = y * x[1] + z + x[2] * T::from(i as f64 / 12.0),
                    _ => {
                        for _ in 0..5 {
                            y = y * x[1] + x[2];
                        }
                        y = y - x[3];
                    }
                }
            }
            match self.kind {
                0 | 1 | 4 => y = y - x[3],
                2 => {}
                3 => y = y * x[3],
                5 => z = z * x[3],
                6 => y = y + x[3],
                7 => y = y * x[2],
                8 => z = z + x[3],
                _ => y = y * x[3] + x[2],
            }
        }
        if self.kind == 5 || self.kind == 6 { y * z } else { y }
    }
}

fn nests() -> Vec<Nest> {
    let sizes = [(30, 10), (60, 70)];
    // The smaller nests of two numbers are not worth their closed forms.
    let of = |kind| sizes.map(|(outer, inner)| Nest { kind, outer, inner });
    let is_worth = |nest: &Nest| ![6, 8].contains(&nest.kind) || nest.outer == 60;
    (0..KINDS).flat_map(of).filter(is_worth).collect()
}

#[test]
fn nests_are_as_good_as_the_tape() {
    let (mut random, mut found) = (Random::new(0x4E57), Vec::new());
    for nest in nests() {
        let points: Vec<Vec<f64>> = (0..16)
            .map(|at| {
                let factor = match at % 4 {
                    0 => random.uniform(0.0, 1.0),
                    1 => 1.0 - random.uniform(0.0, 1e-3) * random.uniform(0.0, 1.0),
                    2 => 1.0 + random.uniform(-1e-9, 1e-9),
                    _ => random.uniform(-1.0, 1.0),
                };
                let mut others = || random.uniform(-2.0, 2.0);
                let mut point = vec![others(), factor, others(), others()];
                if at == 0 {
                    point[1] = 1.0;
                } else if at == 4 {
                    point[1] = 0.0;
                }
                // Rates of descent are not negative, and products are to stay finite.
                if nest.kind == 2 || nest.kind == 3 {
                    point[1] = point[1].abs();
                }
                if nest.kind == 3 || nest.kind == 9 {
                    point[3] *= 0.5;
                }
                point
            })
            .collect();
        let worse = compare(&nest, &points, |_, _| 0.0);
        assert!(worse.components > 0);
        found.extend(worse.found.into_iter().map(|worse| format!("{nest:?}: {worse}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_form_of_a_nest_is_told_from_the_inside_out() {
    let nest = Nest { kind: 0, outer: 100, inner: 120 };
    let solved = solve_all(&rolled(&nest, &[1.0, 0.5, 0.25, 2.0]));
    let forms: Vec<&str> = solved.applied.iter().map(|formula| formula.form.as_str()).collect();
    let growth = "(0.008333333333333333·x₁ + 1)";
    let inner = "a^120·p + b·Σ_{j<120} a^j, where p = φ_L(x₀, …), \
                 a = 0.008333333333333333·x₁ + 1, b = x₂";
    let outer = format!(
        "a^100·p + b·Σ_{{j<100}} a^j, where p = x₀, a = {growth}^120, \
         b = x₂·Σ_{{j<120}} {growth}^j + −x₃"
    );
    assert_eq!(forms, [inner, &outer]);
    assert!(solved.graph.regions.is_empty());
}

/// A number that only the last iteration of the outer loop matters to.
struct Beside;

impl Program for Beside {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut s, mut q) = (x[1], x[0]);
        for _ in 0..100 {
            for _ in 0..101 {
                s = s * x[0];
            }
            q = s * T::from(0.02);
        }
        q * s
    }
}

#[test]
fn powers_of_powers_keep_their_digits_where_the_nest_is_none() {
    let rates = [1.0001, 0.9999, 0.99, 1.0 + 3e-7, 0.999, 1.001, 0.3, 1.0, 0.0];
    let points: Vec<Vec<f64>> = rates.iter().map(|&rate| vec![rate, 1.5]).collect();
    let worse = compare(&Beside, &points, |_, _| 0.0);
    assert!(worse.components > 20 && worse.found.is_empty(), "{:?}", worse.found);
}

/// What an inner loop comes to is the same each time, and counts more each time; or not the same.
#[derive(Clone, Copy, Debug)]
enum Weighted {
    Same,
    Decaying,
    Squared,
}

impl Program for Weighted {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let mut t = T::from(0.0);
        for i in 0..4 {
            let mut s = x[1];
            for _ in 0..40 {
                s = s * x[0] + x[2];
            }
            let weight = T::from(0.25 + f64::from(i));
            t = match self {
                Weighted::Same => t + s * weight,
                Weighted::Decaying => t * T::from(0.9) + s * weight,
                Weighted::Squared => t + s * s * weight,
            };
        }
        t
    }
}

#[test]
fn what_inner_loops_come_to_keeps_its_derivatives() {
    let ways = (0..60).map(|k| 10f64.powf(-f64::from(k) / 5.0));
    let points: Vec<Vec<f64>> =
        ways.flat_map(|way| [1.0 - way, 1.0 + way].map(|x| vec![x, 1.0, 0.5])).collect();
    for program in [Weighted::Same, Weighted::Decaying, Weighted::Squared] {
        let worse = compare(&program, &points, |_, _| 0.0);
        assert!(worse.components > 300 && worse.found.is_empty(), "{program:?}: {:?}", worse.found);
    }
}

type Run = fn(&[Var]) -> Var;

/// What the outer loop takes away is where it begins, so that its first iteration comes to zero;
/// that is multiplied by large powers.
fn removed(x: &[Var], mut v: Option<&mut Var>) -> Var {
    let mut s = x[1];
    for _ in 0..5 {
        s -= x[1];
        if let Some(v) = &mut v {
            **v += s * 0.001;
        }
        for _ in 0..33 {
            s *= x[0];
            s *= x[2];
        }
    }
    s
}

#[test]
fn what_cancels_before_large_powers_is_not_made_up() {
    let alone = |x: &[Var]| removed(x, None);
    let together = |x: &[Var]| {
        let mut v = x[2];
        removed(x, Some(&mut v)) + v
    };
    let programs: [(&str, Run); 2] = [("alone", alone), ("together", together)];
    for (name, program) in programs {
        let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
        let (tape, kernel) = (builder().record(program), builder().record(program));
        kernel.value_and_grad(&[1.1, 0.5, 0.4]).unwrap();
        kernel.compile().unwrap();
        assert!(!kernel.report().closed.is_empty(), "{}", kernel.report());
        let is_like = |a: f64, b: f64| {
            (a - b).abs() <= 1e-12 * b.abs() || a == b || (a.is_nan() && b.is_nan())
        };
        for k in 0..40 {
            for [p, v] in [[0.5, 0.9], [2.0, 1.1], [-3.0, -2.0], [1.0, 2.0]] {
                let x = [1.3f64.powi(k - 10), p, v];
                let (expected, gradient) = tape.value_and_grad(&x).unwrap();
                let (value, found) = (kernel.eval(&x).unwrap(), kernel.grad(&x).unwrap());
                assert!(is_like(value, expected), "{name} at {x:?}: {value} for {expected}");
                // What cancels in the derivative by p the tape has without many digits.
                for (a, b) in [0, 2].map(|at| (found[at], gradient[at])) {
                    assert!(is_like(a, b), "{name} at {x:?}: {a} for {b}");
                }
            }
        }
        let served = || kernel.report().kernel_calls - kernel.report().reserve_calls;
        let before = served();
        kernel.eval(&[0.9, 0.5, 1.1]).unwrap();
        assert_eq!(served(), before + 1, "{name}");
    }
}

/// Away from `x[1]`, where it rests.
fn repelled(mut s: Var, x: &[Var]) -> Var {
    for _ in 0..33 {
        s += (s - x[1]) * x[0];
    }
    s
}

#[test]
fn what_rests_in_an_inner_loop_is_not_made_up() {
    let used_after: Run = |x| {
        let mut s = x[1];
        for _ in 0..5 {
            s = repelled(s, x) * x[2] + x[1];
            s = repelled(s, x);
        }
        s
    };
    let added_up: Run = |x| {
        let (mut s, mut t) = (x[1], x[1]);
        for _ in 0..5 {
            s = repelled(s, x);
            t = t * 0.5 + s;
            s = s * x[2] + x[1];
        }
        t
    };
    let weighed: Run = |x| (0..4).fold(x[1], |s, _| repelled(s, x) * x[2] + x[1]);
    let programs = [("used after", used_after), ("added up", added_up), ("weighed", weighed)];
    for (name, program) in programs {
        let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
        let (tape, kernel) = (builder().record(program), builder().record(program));
        kernel.value_and_grad(&[-0.2, 0.5, 0.4]).unwrap();
        kernel.compile().unwrap();
        assert!(!kernel.report().closed.is_empty(), "{}", kernel.report());
        let is_like = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs() || a == b;
        for factor in [9.0, 8.0, 5.0, 1.5, 0.5, 0.1, -0.2, -0.5, -1.0, 0.0] {
            for [rest, by] in [[0.3, 0.0], [0.7, 0.0], [1.0, 0.0], [0.3, 1e-40]] {
                let x = [factor, rest, by];
                let (expected, slopes) = tape.value_and_grad(&x).unwrap();
                let (value, found) = (kernel.eval(&x).unwrap(), kernel.grad(&x).unwrap());
                assert!(is_like(value, expected), "{name} at {x:?}: {value} for {expected}");
                let [by, exact] = [found[2], slopes[2]];
                assert!(is_like(by, exact), "{name} at {x:?}: {found:?} for {slopes:?}");
            }
        }
        let served = || kernel.report().kernel_calls - kernel.report().reserve_calls;
        let before = served();
        kernel.eval(&[-0.2, 0.3, 0.4]).unwrap();
        assert_eq!(served(), before + 1, "{name}");
    }
}

/// Descent at a rate that falls after each epoch.
struct Epochs;

impl Program for Epochs {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut w, mut rate) = (x[0], x[1]);
        for _ in 0..20 {
            for _ in 0..50 {
                w = w - rate * (w - T::from(1.0));
            }
            rate = rate * x[2];
        }
        w
    }
}

#[test]
fn a_nest_that_is_not_affine_stays() {
    let solved = solve_all(&rolled(&Epochs, &[0.5, 0.1, 0.9]));
    assert!(!solved.graph.regions.is_empty());
    assert!(!solved.refused.is_empty());
}
