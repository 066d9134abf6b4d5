//! Loops whose number of iterations depends on the inputs: chains of branches
//! become loops, and mean the same.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

mod common;

use std::panic::Location;

use common::rolling::{agree, loops};
use phigrad::check::Random;
use phigrad::ssa::{Folding, Graph, Lifted, Paths, RerollLimits, reroll, simplify, verify};
use phigrad::trace::{Inputs, Tracer};
use phigrad::{Var, traced};

/// What `f` does at the points, merged.
fn learnt(points: &[Vec<f64>], f: impl Fn(&[Var]) -> Var) -> Graph {
    let mut tracer = Tracer::default();
    let mut lifted = Lifted::new(points[0].len(), 0);
    for point in points {
        let inputs = Inputs { active: point, inactive: &[] };
        let trace = tracer.run(|x, _| f(x), inputs, 1 << 24, Location::caller()).unwrap();
        lifted.merge(&trace, Paths { paths: usize::MAX, nodes: 1 << 24 }).unwrap();
    }
    assert!(lifted.unmerged().is_empty(), "{:?}", lifted.unmerged());
    Graph::clone(lifted.graph())
}

/// Rolls what `f` does at `count` random points of these ranges, and compares at
/// others, where not all numbers of iterations have been seen.
fn roll(count: usize, ranges: &[(f64, f64)], f: impl Fn(&[Var]) -> Var) -> Graph {
    let mut random = Random::new(count as u64);
    let mut point = || ranges.iter().map(|&(a, b)| random.uniform(a, b)).collect::<Vec<f64>>();
    let points: Vec<Vec<f64>> = (0..count + 300).map(|_| point()).collect();
    let graph = learnt(&points[..count], f);
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
