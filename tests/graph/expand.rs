//! Unrolling the loops of random programs keeps all bits; their closed forms agree within
//! rounding error.

#[allow(dead_code)] // Straight graphs are for other tests.
use std::panic::Location;

use crate::common::double_double_graphs::evaluate_tree;
use crate::common::programs::{Point, points};
use crate::common::random_programs::{Program, Recipe};
use crate::common::rolling::{agree, loops};
use phigrad::Var;
use phigrad::internals::Random;
use phigrad::internals::loops::{RerollLimits, expand, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::phi::{CloseLimits, close};
use phigrad::internals::ssa::{Folding, Graph, Outcome, Region, interpret, simplify, verify};
use phigrad::internals::trace::{Inputs, Tracer};

/// The merged traces of `program` at the points.
fn merged(program: &Program, points: &[Point]) -> Graph {
    let mut tracer = Tracer::default();
    let mut traces = MergedTraces::new(program.active(), program.inactive());
    for (x, data) in points {
        let inputs = Inputs { active: x, inactive: data };
        let run = |x: &[Var], data: &[Var]| program.eval(x, data);
        let trace = tracer.run(run, inputs, 1 << 20, Location::caller()).unwrap();
        traces.merge(&trace, MergeLimits { paths: usize::MAX, nodes: 1 << 22 }).unwrap();
    }
    Graph::clone(traces.graph())
}

#[test]
fn unrolled_random_programs_keep_their_results() {
    let base = Recipe { loops: 0.25, guards: 0.1, statements: 20, ..Recipe::default() };
    let recipes = [
        base,
        Recipe { annotated: true, jumps: 0.1, ..base },
        Recipe { wild: true, statements: 40, variety: 0.1, locals: 2, ..base },
    ];
    let eager = RerollLimits { iterations: 2, weight: 2, ..RerollLimits::default() };
    let (mut made, mut expanded, mut known, mut applied, mut calls) = (0, 0, 0, 0, 0);
    for (kind, recipe) in recipes.into_iter().enumerate() {
        let mut random = Random::new(kind as u64);
        for _ in 0..200 {
            let program = recipe.program(&mut random);
            let mut run = points(&recipe, &mut random, 3);
            let graph = merged(&program, &run);
            run.extend(points(&recipe, &mut random, 5));
            let rolled = simplify(&reroll(&graph, eager), Folding::Exact);
            made += loops(&rolled);
            let is_loop = |of: &Region| rolled.regions[*of].cycle.is_some();
            let all: Vec<Region> = rolled.regions.keys().filter(is_loop).collect();
            for every in [1, 2] {
                let chosen: Vec<Region> = all.iter().copied().step_by(every).collect();
                let Some(straight) = expand(&rolled, &chosen) else { continue };
                expanded += chosen.len();
                assert!(every > 1 || loops(&straight) == 0, "{straight}");
                verify(&straight).unwrap_or_else(|error| panic!("{error}\n{straight}\n{rolled}"));
                for (x, data) in &run {
                    let point = [x.as_slice(), data].concat();
                    known += usize::from(agree(&rolled, &straight, &point));
                }
            }
            let [closed, forced] = [false, true].map(|always| {
                let closed = close(&rolled, CloseLimits { always, ..CloseLimits::DEFAULT });
                verify(&closed.graph).unwrap_or_else(|error| panic!("{error}\n{}", closed.graph));
                closed
            });
            applied += forced.applied.len();
            let is_loop = |of: &Region| forced.graph.regions[*of].cycle.is_some();
            let all: Vec<Region> = forced.graph.regions.keys().filter(is_loop).collect();
            if let Some(straight) = expand(&forced.graph, &all) {
                calls += straight.calls.len();
                for (x, data) in &run {
                    agree(&forced.graph, &straight, &[x.as_slice(), data].concat());
                }
            }
            for (x, data) in &run {
                let point = [x.as_slice(), data].concat();
                let outcomes = (interpret(&rolled, &point), interpret(&closed.graph, &point));
                if let (Outcome::Values(a), Outcome::Values(b)) = outcomes {
                    let is_close = |(a, b): (&f64, &f64)| {
                        !a.is_finite() || !b.is_finite() || (a - b).abs() <= 1e-6 * a.abs().max(1.0)
                    };
                    // The loop may be less accurate than its closed form.
                    let is_better = || {
                        let exact = evaluate_tree(&graph, &point);
                        exact.is_some_and(|exact| exact.iter().zip(&b).all(is_close))
                    };
                    let same = a.iter().zip(&b).all(is_close);
                    assert!(same || is_better(), "{a:?} {b:?}\n{rolled}");
                }
            }
        }
    }
    println!("{made} {expanded} {known} {applied} {calls}");
    assert!(made > 300 && 2 * expanded > made && known > 500, "{made} {expanded} {known}");
}
