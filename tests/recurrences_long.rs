//! Closed forms of long recurrences: of many steps, where powers have vanished, and where
//! they almost overflow. Values and derivatives are as good as those of the tape, against a
//! reference of twice the precision.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;
#[path = "support/recurrences.rs"]
mod support;

use bound::ulp;
use phigrad::check::Random;
use phigrad::phi::{CloseLimits, close};
use phigrad::ssa::{Graph, Outcome, interpret, parse};
use precise::Number;
use support::{Stepped, derived, precise, taped};

/// Rate, momentum, curvature, target, start.
struct Momentum;
impl Stepped for Momentum {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut w, mut v) = (x[4], T::from(0.0));
        for _ in 0..steps {
            v = v * x[1] - x[0] * (x[2] * w - x[3]);
            w = w + v;
        }
        w
    }
}

fn momentum_graph(steps: usize) -> String {
    format!(
        "graph active 5 inactive 0\nv5 = const 0.0\nv6 = const {}.0\nv9 = iteration r0\nb0:\n  \
         v17 = region r0 b1 bound {steps} entries v7=v4 v8=v5\n  return v17\nb1:\n  \
         v10 = mul v2 v7\n  v11 = sub v10 v3\n  v12 = mul v0 v11\n  v13 = mul v8 v1\n  \
         v14 = sub v13 v12\n  v15 = add v7 v14\n  v16 = lt v9 v6\n  return v16 v15 v14 v15\n",
        steps - 1
    )
}

/// A number from the two before it: two coefficients, two starts.
struct Filter;
impl Stepped for Filter {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut old, mut y) = (x[2], x[3]);
        for _ in 0..steps {
            (old, y) = (y, x[0] * y + x[1] * old);
        }
        y
    }
}

fn filter_graph(steps: usize) -> String {
    format!(
        "graph active 4 inactive 0\nv4 = const {}.0\nv7 = iteration r0\nb0:\n  \
         v12 = region r0 b1 bound {steps} entries v5=v2 v6=v3\n  return v12\nb1:\n  \
         v8 = mul v0 v6\n  v9 = mul v1 v5\n  v10 = add v8 v9\n  v11 = lt v7 v4\n  \
         return v11 v6 v10 v10\n",
        steps - 1
    )
}

/// A sum of powers: the only input.
struct Powers;
impl Stepped for Powers {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut sum, mut power) = (T::from(0.0), T::from(1.0));
        for _ in 0..steps {
            sum = sum + power;
            power = power * x[0];
        }
        sum
    }
}

fn powers_graph(steps: usize) -> String {
    format!(
        "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 1.0\nv3 = const {}.0\n\
         v6 = iteration r0\nb0:\n  v10 = region r0 b1 bound {steps} entries v4=v1 v5=v2\n  \
         return v10\nb1:\n  v7 = add v4 v5\n  v8 = mul v5 v0\n  v9 = lt v6 v3\n  \
         return v9 v7 v8 v7\n",
        steps - 1
    )
}

/// The graph of gradient and value.
fn closed(text: &str) -> Graph {
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    derived(&close(&graph, CloseLimits::default()).graph)
}

/// What is worse than four times the tape's error and four ulps, and `slack` of the largest
/// component.
fn worse(
    graph: &Graph,
    program: &impl Stepped,
    steps: usize,
    points: &[Vec<f64>],
    slack: f64,
) -> Vec<String> {
    let (mut found, mut compared) = (Vec::new(), 0);
    for point in points {
        let exact = precise(&program.of(steps), point);
        let got = match interpret(graph, point) {
            Outcome::Values(got) => got,
            other => panic!("{other:?} at {point:?}"),
        };
        // What is not finite is computed again on the tape.
        if !exact.iter().chain(&got).all(|number| number.is_finite()) {
            continue;
        }
        let tape = taped(&program.of(steps), point);
        let largest = exact.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        for (index, ((got, tape), exact)) in got.iter().zip(&tape).zip(&exact).enumerate() {
            compared += 1;
            let (error, of_tape) = ((got - exact).abs(), (tape - exact).abs());
            if error.is_nan() || error > 4.0 * of_tape + 4.0 * ulp(*exact) + slack * largest {
                found.push(format!(
                    "{steps} steps, {index} at {point:?}: {exact:e}, off by {error:e}, tape \
                     {of_tape:e}"
                ));
            }
        }
    }
    assert!(compared > 0);
    found
}

#[track_caller]
fn assert_none(found: &[String]) {
    assert!(found.is_empty(), "{}: {}", found.len(), found[..found.len().min(20)].join("\n"));
}

const LENGTHS: [usize; 3] = [10_000, 100_000, 1_000_000];

#[test]
fn systems_of_many_steps() {
    let mut random = Random::new(51);
    let mut found = Vec::new();
    for steps in LENGTHS {
        let n = steps as f64;
        let mut points = Vec::new();
        for rate in [0.3, 10.0 / n, 1.0 / n] {
            for kept in [0.0, 0.9, 1.0 - 10.0 / n, 1.0] {
                let start = random.uniform(-1.0, 1.0);
                points.push(vec![rate, kept, random.uniform(0.3, 1.2), 0.7, start]);
                points.push(vec![rate, kept, 1.0, start, start]);
            }
        }
        let graph = closed(&momentum_graph(steps));
        assert!(graph.regions.is_empty());
        found.extend(worse(&graph, &Momentum, steps, &points, 1e-27));
        let mut points = Vec::new();
        let roots = [1.0, 1.0 - 1.0 / n, 1.0 - 20.0 / n, 1.0 + 5.0 / n, -1.0];
        for first in roots {
            for second in [first, 1.0, 0.5, -0.9] {
                let start = [random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0)];
                points.push(vec![first + second, -first * second, start[0], start[1]]);
            }
        }
        for angle in [1e-6, 1e-3, 0.3, 2.0f64] {
            points.push(vec![2.0 * angle.cos(), -1.0, 1.0, 0.5]);
        }
        let graph = closed(&filter_graph(steps));
        assert!(graph.regions.is_empty());
        found.extend(worse(&graph, &Filter, steps, &points, 1e-26));
    }
    assert_none(&found);
}

#[test]
fn what_the_end_does_not_depend_on_vanishes() {
    let (mut random, mut found) = (Random::new(52), Vec::new());
    for steps in [500, 2000, 5000] {
        let mut points = vec![vec![
            0.100_424_127_043_993_95,
            0.418_610_852_911_946_8,
            2.0,
            1.4,
            -1.316_956_155_759_353_7,
        ]];
        for _ in 0..60 {
            let (rate, kept) = (random.uniform(0.05, 0.3), random.uniform(0.0, 0.9));
            let (curvature, target) = (random.uniform(0.5, 2.0), random.uniform(-1.0, 1.0));
            points.push(vec![rate, kept, curvature, target, random.uniform(-1.0, 1.0)]);
            points.push(vec![rate, kept, 2.0, 1.4, random.uniform(-1.0, 1.0)]);
        }
        let graph = closed(&momentum_graph(steps));
        assert!(graph.regions.is_empty());
        for point in &points {
            let exact = precise(&Momentum.of(steps), point);
            let Outcome::Values(got) = interpret(&graph, point) else { panic!("{point:?}") };
            // The rate and the momentum.
            for index in [0, 1] {
                if exact[index].abs() < 1e-60 && got[index] != 0.0 {
                    found.push(format!("{steps}: {} is {:e} at {point:?}", index, got[index]));
                }
            }
        }
    }
    assert_none(&found);
}

#[test]
fn powers_that_almost_overflow() {
    let (mut random, mut points) = (Random::new(53), vec![vec![-689_044.997_662_170_8]]);
    for _ in 0..1000 {
        let size = 10f64.powf(random.uniform(-3.0, 5.9));
        points.push(vec![size.copysign(random.uniform(-1.0, 1.0))]);
    }
    for steps in [50, 51] {
        let graph = closed(&powers_graph(steps));
        assert_none(&worse(&graph, &Powers, steps, &points, 0.0));
    }
}
