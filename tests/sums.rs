//! Sums out of loops: what comes of recorded loops, and that it means the same.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

use std::panic::Location;

use phigrad::phi::{CloseLimits, Closed, Rule, close};
use phigrad::ssa::{
    Folding, Graph, Lifted, Nest, Outcome, Paths, RerollLimits, interpret, parse, reroll, simplify,
    verify,
};
use phigrad::trace::{Inputs, Tracer};
use phigrad::{Tape, Var};

/// What `f` does at a point, with loops again.
fn rolled(active: &[f64], inactive: &[f64], f: impl Fn(&[Var], &[Var]) -> Var) -> Graph {
    let inputs = Inputs { active, inactive };
    let mut lifted = Lifted::new(active.len(), inactive.len());
    let mut tracer = Tracer::default();
    let trace = tracer.run(|x, d| f(x, d), inputs, 1 << 24, Location::caller()).unwrap();
    lifted.merge(&trace, Paths { paths: usize::MAX, nodes: 1 << 24 }).unwrap();
    simplify(&reroll(lifted.graph(), RerollLimits::default()), Folding::Real)
}

fn closed_with(active: &[f64], inactive: &[f64], f: impl Fn(&[Var], &[Var]) -> Var) -> Closed {
    let before = rolled(active, inactive, f);
    let closed = close(&before, CloseLimits::default());
    verify(&closed.graph).unwrap();
    assert_eq!(parse(&closed.graph.to_string()).unwrap().to_string(), closed.graph.to_string());
    for scale in [1.0, 0.9, 1.01, 3.0] {
        let active = active.iter().map(|x| x * scale);
        let point: Vec<f64> = active.chain(inactive.iter().copied()).collect();
        if let (Outcome::Values(a), Outcome::Values(b)) =
            (interpret(&before, &point), interpret(&closed.graph, &point))
        {
            let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * a.abs().max(1e-3);
            assert!(a.iter().zip(&b).all(is_close), "{a:?} {b:?}");
        }
    }
    closed
}

fn closed(point: &[f64], f: impl Fn(&[Var]) -> Var) -> Closed {
    closed_with(point, &[], |x, _| f(x))
}

/// For each loop how many are around it.
fn depths(graph: &Graph) -> Vec<usize> {
    let nest = Nest::of(graph);
    let loops = graph.regions.keys().filter(|&region| graph.regions[region].cycle.is_some());
    loops
        .map(|region| {
            std::iter::successors(nest.loop_around(region), |&outer| nest.loop_around(outer))
                .count()
        })
        .collect()
}

fn data(count: usize) -> (Vec<f64>, Vec<f64>) {
    let x: Vec<f64> = (0..count).map(|i| (0.7 * i as f64).sin()).collect();
    let y = x.iter().enumerate().map(|(i, x)| 0.7 * x + 0.1 * ((i * i) as f64).cos()).collect();
    (x, y)
}

/// The error of a fit by gradient descent; numbers are constants or inputs.
fn fit_error<T: Copy + Into<Var>>(rate: Var, x: &[T], y: &[T]) -> Var {
    let n = x.len() as f64;
    let mut w = Var::from(0.0);
    let mut iteration = 0;
    while iteration < 40 {
        let mut slope = Var::from(0.0);
        for (&xi, &yi) in x.iter().zip(y) {
            let (xi, yi): (Var, Var) = (xi.into(), yi.into());
            slope = slope + (w * xi - yi) * xi;
        }
        slope = slope * (2.0 / n);
        if slope.abs() < 1e-4 {
            break;
        } else {
            w = w - rate * slope;
        }
        iteration += 1;
    }
    let mut error = Var::from(0.0);
    for (&xi, &yi) in x.iter().zip(y) {
        let (xi, yi): (Var, Var) = (xi.into(), yi.into());
        let residual = yi - w * xi;
        error = error + residual * residual;
    }
    error / n
}

#[test]
fn gradient_descent_has_no_loop_over_its_data() {
    let (x, y) = data(200);
    let closed = closed(&[0.05], |r| fit_error(r[0], &x, &y));
    assert!(closed.applied.iter().all(|applied| applied.rule == Rule::C7));
    assert_eq!(closed.applied.len(), 2, "{closed:?}");
    // The `while` is all that is left.
    assert_eq!(depths(&closed.graph), [0], "{}", closed.graph);
    assert!(closed.graph.nodes.len() < 40);
    for phi in [true, false] {
        let f = Tape::builder().phi_calculus(phi).record(|r| fit_error(r[0], &x, &y));
        let on_tape = f.value_and_grad(&[0.05]).unwrap();
        f.compile().unwrap();
        let (value, gradient) = f.value_and_grad(&[0.05]).unwrap();
        assert_eq!(f.report().kernel_calls, 1);
        assert!((value - on_tape.0).abs() < 1e-13 * on_tape.0.abs());
        assert!((gradient[0] - on_tape.1[0]).abs() < 1e-13 * on_tape.1[0].abs());
    }
}

#[test]
fn sums_over_inactive_inputs_are_done_once() {
    let (x, y) = data(100);
    let both = [x, y].concat();
    let program = |r: &[Var], d: &[Var]| fit_error(r[0], &d[..100], &d[100..]);
    let closed = closed_with(&[0.05], &both, program);
    assert!(depths(&closed.graph).iter().all(|&depth| depth == 0), "{}", closed.graph);
    let f = Tape::record_with(program);
    let on_tape = f.value_and_grad(&[0.05], &both).unwrap();
    f.compile().unwrap();
    let (value, gradient) = f.value_and_grad(&[0.05], &both).unwrap();
    assert_eq!(f.report().kernel_calls, 1);
    assert!((value - on_tape.0).abs() < 1e-13 * on_tape.0.abs());
    assert!((gradient[0] - on_tape.1[0]).abs() < 1e-13 * on_tape.1[0].abs());
}
