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
