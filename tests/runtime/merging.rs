//! Merging is sound: random structured programs, with loops, jumps and hidden
//! counters, recorded from some runs and checked against the tape on others.
//!
//! The merged graph must agree with the tape bit for bit, and must contain the recorded paths.

use std::panic::Location;

use crate::common::programs::{Point, all_same, interpreted, outputs, points, reversed, taped};
use crate::common::random_programs::{Program, Recipe};
use phigrad::internals::Random;
use phigrad::internals::merge::{MergeError, MergeLimits, MergedTraces};
use phigrad::internals::ssa::{Folding, Graph, simplify, verify};
use phigrad::internals::trace::{Detail, Inputs, Tracer};

fn recipes() -> [Recipe; 4] {
    let base = Recipe {
        annotated: true,
        guards: 0.3,
        loops: 0.2,
        jumps: 0.15,
        statements: 14,
        ..Recipe::default()
    };
    [
        base,
        Recipe { counters: 2, ..base },
        Recipe { counters: 1, reads: 0.05, ..base },
        Recipe { wild: true, counters: 1, locals: 2, ..base },
    ]
}

/// The merged runs of `program` at `points`.
fn profile(program: &Program, points: &[Point]) -> MergedTraces {
    let mut tracer = Tracer::default();
    tracer.detail(Detail::Captures);
    let mut traces = MergedTraces::new(program.active(), program.inactive());
    for (x, data) in points {
        let inputs = Inputs { active: x, inactive: data };
        let run = |x: &[_], data: &[_]| program.eval(x, data);
        let trace = tracer.run(run, inputs, 1 << 20, Location::caller()).unwrap();
        let limits = MergeLimits { paths: usize::MAX, nodes: 1 << 22 };
        match traces.merge(&trace, limits) {
            Ok(_) => {}
            Err(error @ MergeError::Divergent { .. }) => panic!("{error}\n{program}"),
            Err(error) => panic!("{error}\n{program}"),
        }
    }
    assert!(traces.unmerged().is_empty(), "{:?}\n{program}", traces.unmerged());
    traces
}

/// Checks the merged graph at `run`; returns the number of points whose path it contains.
fn check(program: &Program, graph: &Graph, recorded: usize, run: &[Point]) -> usize {
    verify(graph).unwrap_or_else(|error| panic!("{error}\n{graph}\n{program}"));
    let gradient = reversed(graph, Folding::Exact);
    verify(&gradient).unwrap_or_else(|error| panic!("{error}\n{gradient}\n{program}"));
    let small = simplify(&gradient, Folding::Exact);
    verify(&small).unwrap_or_else(|error| panic!("{error}\n{small}\n{program}"));
    let mut known = 0;
    for (index, point) in run.iter().enumerate() {
        let answer = taped(program, point);
        match interpreted(graph, point) {
            Some(value) => {
                known += 1;
                assert!(all_same(&value, &[answer.0]), "{value:?} {answer:?}\n{graph}\n{program}");
            }
            None => {
                let nan = point.0.iter().chain(&point.1).any(|x| x.is_nan());
                assert!(index >= recorded || nan, "{point:?}\n{graph}\n{program}");
                continue;
            }
        }
        for gradient in [&gradient, &small] {
            let found = interpreted(gradient, point).unwrap();
            if found.iter().all(|x| x.is_finite()) {
                let expected = outputs(&answer);
                assert!(
                    all_same(&found, &expected),
                    "{found:?} {expected:?} at {point:?}\n{gradient}\n{program}"
                );
            }
        }
    }
    known
}

#[test]
fn merged_graphs_agree_with_the_tape() {
    let (mut known, mut total) = (0, 0);
    for (kind, recipe) in recipes().into_iter().enumerate() {
        let mut random = Random::new(kind as u64);
        for _ in 0..400 {
            let program = recipe.program(&mut random);
            let recorded = points(&recipe, &mut random, 8);
            let mut traces = profile(&program, &recorded);
            let mut run = recorded.clone();
            run.extend(points(&recipe, &mut random, 12));
            known += check(&program, traces.graph(), recorded.len(), &run) - recorded.len();
            total += run.len() - recorded.len();
        }
    }
    assert!(known > total / 2, "{known} of {total}");
}
