//! Rerolling of random programs keeps all bits, with small limits as well.

use std::panic::Location;

use crate::common::programs::{Point, points};
use crate::common::random_programs::{Program, Recipe};
use crate::common::rolling::{agree, loops};
use phigrad::Var;
use phigrad::internals::Random;
use phigrad::internals::loops::{RerollLimits, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::ssa::{Folding, Graph, simplify, verify};
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
fn programs_without_loops_stay() {
    let recipe = Recipe { statements: 60, loops: 0.0, guards: 0.0, ..Recipe::default() };
    let mut random = Random::new(5);
    let mut unchanged = 0;
    for _ in 0..100 {
        let program = recipe.program(&mut random);
        let graph = merged(&program, &points(&recipe, &mut random, 1));
        unchanged += usize::from(reroll(&graph, RerollLimits::default()) == graph);
    }
    assert!(unchanged > 90, "{unchanged}");
}

#[test]
fn rolled_random_programs_keep_their_results() {
    let base = Recipe { loops: 0.25, guards: 0.1, statements: 20, ..Recipe::default() };
    let recipes = [
        base,
        Recipe { annotated: true, jumps: 0.1, ..base },
        Recipe { annotated: true, guards: 0.3, counters: 1, wild: true, locals: 2, ..base },
        Recipe { wild: true, statements: 40, variety: 0.1, locals: 2, ..base },
    ];
    // Small limits, to make as many loops as possible.
    let eager =
        RerollLimits { iterations: 2, weight: 2, exits: Some(2), ..RerollLimits::default() };
    let (mut made, mut known, mut unknown) = (0, 0, 0);
    for (kind, recipe) in recipes.into_iter().enumerate() {
        let mut random = Random::new(kind as u64);
        for _ in 0..300 {
            let program = recipe.program(&mut random);
            let mut run = points(&recipe, &mut random, 3);
            let graph = merged(&program, &run);
            run.extend(points(&recipe, &mut random, 5));
            for limits in [RerollLimits::default(), eager] {
                let small = reroll(&graph, limits);
                verify(&small).unwrap_or_else(|error| panic!("{error}\n{small}\n{graph}"));
                made += loops(&small);
                let smaller = simplify(&small, Folding::Exact);
                verify(&smaller).unwrap_or_else(|error| panic!("{error}\n{smaller}\n{small}"));
                for (x, data) in &run {
                    let point = [x.as_slice(), data].concat();
                    agree(&graph, &smaller, &point);
                    match agree(&graph, &small, &point) {
                        true => known += 1,
                        false => unknown += 1,
                    }
                }
            }
        }
    }
    assert!(made > 1000 && known > 1000 && unknown > 1000, "{made} {known} {unknown}");
}
