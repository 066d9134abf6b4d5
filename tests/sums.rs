//! Sums out of loops: what comes of recorded loops, and that it means the same.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

use std::panic::Location;

use phigrad::phi::{CloseLimits, Closed, Rule, close};
use phigrad::ssa::{
    Folding, Graph, Lifted, Outcome, Paths, RerollLimits, interpret, reroll, simplify, verify,
};
use phigrad::trace::{Inputs, Tracer};
use phigrad::{Tape, Var};

/// What `f` does at a point, with loops again.
fn rolled(point: &[f64], f: impl Fn(&[Var]) -> Var) -> Graph {
    let inputs = Inputs { active: point, inactive: &[] };
    let mut lifted = Lifted::new(point.len(), 0);
    let mut tracer = Tracer::default();
    let trace = tracer.run(|x, _| f(x), inputs, 1 << 24, Location::caller()).unwrap();
    lifted.merge(&trace, Paths { paths: usize::MAX, nodes: 1 << 24 }).unwrap();
    simplify(&reroll(lifted.graph(), RerollLimits::default()), Folding::Real)
}

fn closed(point: &[f64], f: impl Fn(&[Var]) -> Var) -> Closed {
    let before = rolled(point, f);
    let closed = close(&before, CloseLimits::default());
    verify(&closed.graph).unwrap();
    for scale in [1.0, 0.9, 1.01] {
        let point: Vec<f64> = point.iter().map(|x| x * scale).collect();
        if let (Outcome::Values(a), Outcome::Values(b)) =
            (interpret(&before, &point), interpret(&closed.graph, &point))
        {
            assert!(
                a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-9 * a.abs().max(1e-3)),
                "{a:?} {b:?}"
            );
        }
    }
    closed
}

fn data(count: usize) -> (Vec<f64>, Vec<f64>) {
    let x: Vec<f64> = (0..count).map(|i| (0.7 * i as f64).sin()).collect();
    let y = x.iter().enumerate().map(|(i, x)| 0.7 * x + 0.1 * ((i * i) as f64).cos()).collect();
    (x, y)
}

fn fit_error(rate: Var, x: &[f64], y: &[f64]) -> Var {
    let n = x.len() as f64;
    let mut w = Var::from(0.0);
    let mut iteration = 0;
    while iteration < 40 {
        let mut slope = Var::from(0.0);
        for (&xi, &yi) in x.iter().zip(y) {
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
        let target: Var = yi.into();
        let residual = target - w * xi;
        error = error + residual * residual;
    }
    error / n
}

#[test]
fn gradient_descent_has_no_loop_over_its_data() {
    let (x, y) = data(200);
    let closed = closed(&[0.05], |r| fit_error(r[0], &x, &y));
    println!("{:#?}\n{:?}", closed.applied, closed.refused);
    println!("{}", closed.graph);
    assert!(closed.applied.iter().all(|applied| applied.rule == Rule::C7));
    let [with, without] = [true, false].map(|phi| {
        let f = Tape::builder().phi_calculus(phi).record(|r| fit_error(r[0], &x, &y));
        let on_tape = f.value_and_grad(&[0.05]).unwrap();
        f.compile().unwrap();
        (on_tape, f.value_and_grad(&[0.05]).unwrap())
    });
    println!("{with:?} {without:?}");
}
