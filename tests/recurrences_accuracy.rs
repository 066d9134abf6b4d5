//! Closed forms of recurrences against a reference of twice the precision: their
//! values and gradients are as good as those of the tape.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/precise.rs"]
mod precise;

use std::panic::Location;

use phigrad::Var;
use phigrad::check::Random;
use phigrad::diff::{Wanted, reverse};
use phigrad::phi::recurrence::solve_all;
use phigrad::ssa::{
    Folding, Graph, Lifted, Outcome, Paths, RerollLimits, eliminate_dead_code, fuse, interpret,
    reroll, simplify, verify,
};
use phigrad::trace::{Adjoints, Inputs, Tracer, sweep};
use precise::{Dual, Number};

trait Program {
    fn eval<T: Number>(&self, x: &[T]) -> T;
}

struct Geometric(usize);
impl Program for Geometric {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let mut y = x[1];
        for _ in 0..self.0 {
            y = y * x[0];
        }
        y
    }
}

/// Σ r^j
struct Sum(usize);
impl Program for Sum {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let mut y = x[1];
        for _ in 0..self.0 {
            y = y * x[0] + x[2];
        }
        y
    }
}

/// Gradient descent on a parabola.
struct Descent(usize);
impl Program for Descent {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let mut w = x[0];
        for _ in 0..self.0 {
            let slope = w * x[2] - x[3];
            w = w - x[1] * slope;
        }
        w
    }
}

/// Gradient descent with momentum: rate, momentum, curvature, start.
struct Momentum(usize);
impl Program for Momentum {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut w, mut v) = (x[3], T::from(0.0));
        for _ in 0..self.0 {
            v = v * x[1] - x[0] * (x[2] * w);
            w = w + v;
        }
        w
    }
}

/// A spring: stiffness, damping, step, start, speed.
struct Spring(usize);
impl Program for Spring {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut p, mut v) = (x[3], x[4]);
        for _ in 0..self.0 {
            v = v - x[2] * (x[0] * p + x[1] * v);
            p = p + x[2] * v;
        }
        p
    }
}

/// Value and gradient in one list.
fn taped(program: &impl Program, x: &[f64]) -> Vec<f64> {
    let mut tracer = Tracer::default();
    let inputs = Inputs { active: x, inactive: &[] };
    let trace =
        tracer.run(|x, _| program.eval::<Var>(x), inputs, 1 << 24, Location::caller()).unwrap();
    let value = trace.value();
    let gradient = sweep(&trace, &mut Adjoints::default()).to_vec();
    [gradient, vec![value]].concat()
}

fn lifted(program: &impl Program, x: &[f64]) -> Graph {
    let mut tracer = Tracer::default();
    let mut lifted = Lifted::new(x.len(), 0);
    let inputs = Inputs { active: x, inactive: &[] };
    let trace =
        tracer.run(|x, _| program.eval::<Var>(x), inputs, 1 << 24, Location::caller()).unwrap();
    lifted.merge(&trace, Paths { paths: 1, nodes: 1 << 24 }).unwrap();
    Graph::clone(lifted.graph())
}

fn precise(program: &impl Program, x: &[f64]) -> Vec<f64> {
    let inputs: Vec<Dual> = x.iter().enumerate().map(|(i, &x)| Dual::input(x, i)).collect();
    let y = program.eval(&inputs);
    let mut all: Vec<f64> = (0..x.len()).map(|i| y.slope(i)).collect();
    all.push(y.value());
    all
}

fn closed(program: &impl Program, x: &[f64]) -> (Graph, usize) {
    let limits = RerollLimits::default();
    let rolled = reroll(&lifted(program, x), limits);
    let solved = solve_all(&rolled);
    verify(&solved.graph).unwrap_or_else(|error| panic!("{error}\n{}", solved.graph));
    if !solved.refused.is_empty() { println!("{:?} {rolled}", solved.refused); }
    let small = simplify(&solved.graph, Folding::Real);
    let gradient = reverse(&small, Wanted::GradientAndValue, Folding::Real);
    let gradient = eliminate_dead_code(&gradient);
    let fused = fuse(&gradient);
    verify(&fused).unwrap();
    let open = gradient.regions.len();
    (fused, open)
}

fn ulp(x: f64) -> f64 {
    let x = x.abs().max(f64::MIN_POSITIVE);
    f64::from_bits(x.to_bits() + 1) - x
}

fn explore(name: &str, program: impl Program, points: &[Vec<f64>]) {
    let (graph, open) = closed(&program, &points[0]);
    println!("== {name}: {} nodes, {open} regions", graph.nodes.len());
    for point in points {
        let Outcome::Values(got) = interpret(&graph, point) else { panic!() };
        let (tape, exact) = (taped(&program, point), precise(&program, point));
        print!("{point:?}:");
        for ((got, tape), exact) in got.iter().zip(&tape).zip(&exact) {
            let (a, b) = ((got - exact).abs() / ulp(*exact), (tape - exact).abs() / ulp(*exact));
            let bad = if a > 4.0 * b + 4.0 { " BAD" } else { "" };
            print!("  {exact:.3e}: {a:.1}/{b:.1}{bad}");
        }
        println!();
    }
}

#[test]
fn look() {
    let mut random = Random::new(1);
    for n in [100, 1000, 100_000] {
        let mut points = vec![];
        for r in [0.5, 0.0, 1.0, 1.0 - 1e-9, 1.0 - 1e-12, 1.0 + 1e-6, -1.0, -0.999, -0.5, 0.99, 0.9999] {
            points.push(vec![r, 1.0, 1.0]);
            points.push(vec![r * random.uniform(0.99999, 1.0), random.uniform(0.5, 1.5), random.uniform(-1.0, 1.0)]);
        }
        let first: Vec<_> = points.iter().map(|p| p[..2].to_vec()).collect();
        explore(&format!("geometric {n}"), Geometric(n), &first);
        explore(&format!("sum {n}"), Sum(n), &points);
        let points: Vec<_> = (0..10).map(|i| vec![random.uniform(0.5, 2.0), random.uniform(0.5, 1.5) * [0.1, 0.9, 1e-3, 1e-6][i % 4], random.uniform(0.1, 1.9), random.uniform(-1.0, 1.0)]).collect();
        explore(&format!("descent {n}"), Descent(n), &points);
        let points: Vec<_> = (0..10).map(|i| vec![random.uniform(0.5, 1.5) * [0.1, 0.9, 1e-3, 1e-6][i % 4], random.uniform(0.1, 1.0), random.uniform(0.1, 1.9), random.uniform(-1.0, 1.0)]).collect();
        explore(&format!("momentum {n}"), Momentum(n), &points);
        let points: Vec<_> = (0..10).map(|i| vec![random.uniform(0.5, 1.5), [0.1, 0.9, 0.0, 1e-3][i % 4], random.uniform(0.1, 1.0) * [0.1, 0.5, 1e-3, 1e-4][(i / 4) % 4], random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0)]).collect();
        explore(&format!("spring {n}"), Spring(n), &points);
    }
}
