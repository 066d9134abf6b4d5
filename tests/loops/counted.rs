//! Loops with data-dependent trip counts: exit chains are rolled into loops with the same
//! results.

use std::panic::Location;

use crate::common::rolling::{agree, loops};
use phigrad::internals::Random;
use phigrad::internals::loops::{RerollLimits, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::ssa::{Folding, Graph, simplify, verify};
use phigrad::internals::trace::{Inputs, Tracer};
use phigrad::{Var, traced};

/// The merged traces of `f` at the points.
fn recorded(points: &[Vec<f64>], f: impl Fn(&[Var]) -> Var) -> Graph {
    let mut tracer = Tracer::default();
    let mut traces = MergedTraces::new(points[0].len(), 0);
    for point in points {
        let inputs = Inputs { active: point, inactive: &[] };
        let trace = tracer.run(|x, _| f(x), inputs, 1 << 24, Location::caller()).unwrap();
        traces.merge(&trace, MergeLimits { paths: usize::MAX, nodes: 1 << 24 }).unwrap();
    }
    assert!(traces.unmerged().is_empty(), "{:?}", traces.unmerged());
    Graph::clone(traces.graph())
}

/// Rolls the traces of `f` at `count` random points of these ranges, and compares at others,
/// which may have unseen trip counts.
fn roll(count: usize, ranges: &[(f64, f64)], f: impl Fn(&[Var]) -> Var) -> Graph {
    let mut random = Random::new(count as u64);
    let mut point = || ranges.iter().map(|&(a, b)| random.uniform(a, b)).collect::<Vec<f64>>();
    let points: Vec<Vec<f64>> = (0..count + 300).map(|_| point()).collect();
    let graph = recorded(&points[..count], f);
    verify(&graph).unwrap_or_else(|error| panic!("{error}\n{graph}"));
    let rolled = reroll(&graph, RerollLimits::default());
    verify(&rolled).unwrap_or_else(|error| panic!("{error}\n{rolled}\n{graph}"));
    let simple = simplify(&rolled, Folding::Exact);
    verify(&simple).unwrap_or_else(|error| panic!("{error}\n{simple}\n{rolled}"));
    for point in &points {
        agree(&graph, &rolled, point);
        agree(&graph, &simple, point);
    }
    rolled
}

fn grow(x: &[Var]) -> Var {
    let mut y = x[0];
    while y < 100.0 {
        y = y * x[1] + 1.0;
    }
    y.sin() * x[0]
}

#[traced]
fn grow_annotated(x: &[Var]) -> Var {
    let mut y = x[0];
    while y < 100.0 {
        y = y * x[1] + 1.0;
    }
    y.sin() * x[0]
}

#[test]
fn a_while_loop_is_one_loop() {
    for f in [grow, grow_annotated] {
        for count in [5, 30] {
            let graph = roll(count, &[(1.0, 10.0), (1.2, 2.0)], f);
            assert_eq!(loops(&graph), 1, "{graph}");
            assert!(graph.nodes.len() < 25, "{graph}");
        }
    }
}

fn newton(x: &[Var]) -> Var {
    let mut y = x[0];
    loop {
        let step = (y * y * y - x[1]) / (y * y * 3.0);
        y -= step;
        if step.abs() < 1e-9 {
            return y;
        }
    }
}

#[traced]
fn newton_annotated(x: &[Var]) -> Var {
    let mut y = x[0];
    loop {
        let step = (y * y * y - x[1]) / (y * y * 3.0);
        y -= step;
        if step.abs() < 1e-9 {
            break;
        }
    }
    y * x[1]
}

fn newton_while(x: &[Var]) -> Var {
    let (mut y, mut last) = (x[0], x[0] + 1.0);
    while (y - last).abs() > 1e-9 {
        last = y;
        y = y - (y * y * y - x[1]) / (y * y * 3.0);
    }
    y + last
}

#[traced]
fn newton_while_annotated(x: &[Var]) -> Var {
    let (mut y, mut last) = (x[0], x[0] + 1.0);
    while (y - last).abs() > 1e-9 {
        last = y;
        y = y - (y * y * y - x[1]) / (y * y * 3.0);
    }
    y + last
}

#[test]
fn newton_iterations_are_one_loop() {
    for f in [newton, newton_annotated, newton_while, newton_while_annotated] {
        let graph = roll(40, &[(0.5, 9.0), (1.0, 40.0)], f);
        assert_eq!(loops(&graph), 1, "{graph}");
        assert!(graph.nodes.len() < 45, "{graph}");
    }
}

#[traced]
fn bisection(x: &[Var]) -> Var {
    let (mut low, mut high) = (x[0], x[1]);
    while high - low > 1e-3 {
        let middle = (low + high) * 0.5;
        if middle * middle > 2.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    (low + high) * 0.5
}

#[test]
fn bisection_is_one_loop_with_a_branch() {
    let graph = roll(60, &[(0.0, 1.3), (1.5, 9.0)], bisection);
    assert_eq!(loops(&graph), 1, "{graph}");
    assert!(graph.nodes.len() < 60, "{graph}");
}

fn escape(x: &[Var]) -> Var {
    let (mut a, mut b, mut n) = (Var::from(0.0), Var::from(0.0), 0);
    while n < 12 && a * a + b * b < 4.0 {
        (a, b, n) = (a * a - b * b + x[0], a * b * 2.0 + x[1], n + 1);
    }
    a * a + b * b
}

#[traced]
fn escape_annotated(x: &[Var]) -> Var {
    let (mut a, mut b) = (Var::from(0.0), Var::from(0.0));
    for _ in 0..12 {
        (a, b) = (a * a - b * b + x[0], a * b * 2.0 + x[1]);
        if a * a + b * b > 4.0 {
            break;
        }
    }
    a * a + b * b
}

#[test]
fn escape_time_loops_are_one_loop() {
    for f in [escape, escape_annotated] {
        let graph = roll(60, &[(-2.0, 1.0), (-1.0, 1.0)], f);
        assert!(loops(&graph) > 0, "{graph}");
        assert!(graph.nodes.len() < 90, "{graph}");
    }
}

fn two_conditions(x: &[Var]) -> Var {
    let (mut y, mut z) = (x[0], x[1]);
    while y < 50.0 && z > 0.1 {
        (y, z) = (y * 1.4 + z, z * 0.7);
    }
    y * z
}

#[traced]
fn two_conditions_annotated(x: &[Var]) -> Var {
    let (mut y, mut z) = (x[0], x[1]);
    while y < 50.0 && z > 0.1 {
        (y, z) = (y * 1.4 + z, z * 0.7);
    }
    y * z
}

#[test]
fn loops_with_two_conditions_are_one_loop() {
    for f in [two_conditions, two_conditions_annotated] {
        let graph = roll(60, &[(1.0, 30.0), (0.2, 2.0)], f);
        assert_eq!(loops(&graph), 1, "{graph}");
    }
}

/// The code after the loop depends on the trip count: not one loop.
fn counting(x: &[Var]) -> Var {
    let (mut y, mut n) = (x[0], 0);
    while y < 100.0 {
        (y, n) = (y * x[1], n + 1);
    }
    if n % 2 == 0 { y.sin() } else { y * x[0] }
}

#[test]
fn chains_with_different_code_after_exits_stay() {
    let graph = roll(30, &[(1.0, 10.0), (1.2, 2.0)], counting);
    assert_eq!(loops(&graph), 0, "{graph}");
}

#[traced]
fn nested(x: &[Var]) -> Var {
    let (mut y, mut sum) = (x[0], Var::from(0.0));
    while y < 100.0 {
        let mut z = y;
        while z > 1.0 {
            z *= 0.4;
        }
        sum += z;
        y *= 1.7;
    }
    sum
}

#[test]
fn nested_exit_loops_keep_their_results() {
    roll(60, &[(1.0, 60.0)], nested);
}

#[traced]
fn residuals(x: &[Var]) -> Var {
    let mut rate = x[0];
    loop {
        let mut slope = Var::from(0.0);
        for i in 0..40 {
            let t = f64::from(i) * 0.1;
            slope += (rate * t - x[1] * t) * t;
        }
        rate -= slope * 0.001;
        if slope.abs() < 0.5 {
            break;
        }
    }
    rate
}

#[test]
fn inner_loops_with_constant_trip_counts_are_rolled() {
    let graph = roll(40, &[(0.0, 5.0), (1.0, 2.0)], residuals);
    assert_eq!(loops(&graph), 2, "{graph}");
}
