//! Closed forms in random programs: they are valid graphs, and mean the same.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

mod common;

use std::panic::Location;

use common::{Point, points};
use phigrad::Var;
use phigrad::check::{Program, Random, Recipe, Tolerance, close};
use phigrad::diff::{Wanted, reverse};
use phigrad::phi::recurrence::solve_all;
use phigrad::ssa::{
    Folding, Graph, Lifted, Outcome, Paths, RerollLimits, interpret, reroll, simplify, verify,
};
use phigrad::trace::{Inputs, Tracer};

/// What `program` does at the points, merged.
fn merged(program: &Program, points: &[Point]) -> Graph {
    let mut tracer = Tracer::default();
    let mut lifted = Lifted::new(program.active(), program.inactive());
    for (x, data) in points {
        let inputs = Inputs { active: x, inactive: data };
        let run = |x: &[Var], data: &[Var]| program.eval(x, data);
        let trace = tracer.run(run, inputs, 1 << 20, Location::caller()).unwrap();
        lifted.merge(&trace, Paths { paths: usize::MAX, nodes: 1 << 22 }).unwrap();
    }
    Graph::clone(lifted.graph())
}

fn verified(graph: Graph) -> Graph {
    verify(&graph).unwrap_or_else(|error| panic!("{error}\n{graph}"));
    graph
}

#[test]
fn random_programs_mean_the_same() {
    let base = Recipe { loops: 0.3, guards: 0.05, statements: 20, ..Recipe::default() };
    let recipes = [
        base,
        Recipe { guards: 0.0, ..base },
        Recipe { annotated: true, jumps: 0.1, ..base },
        Recipe { annotated: true, guards: 0.2, counters: 1, locals: 2, ..base },
        Recipe { wild: true, statements: 40, variety: 0.1, locals: 2, ..base },
    ];
    // Small limits, so that as much as possible becomes loops.
    let eager = RerollLimits { iterations: 2, weight: 2, ..RerollLimits::default() };
    let (mut applied, mut same, mut back, mut other) = (0, 0, 0, Vec::new());
    for (kind, recipe) in recipes.into_iter().enumerate() {
        let mut random = Random::new(kind as u64 + 20);
        for _ in 0..200 {
            let program = recipe.program(&mut random);
            let mut at = points(&recipe, &mut random, 2);
            let rolled = reroll(&merged(&program, &at), eager);
            let solved = solve_all(&rolled);
            if solved.applied.is_empty() {
                continue;
            }
            applied += solved.applied.len();
            let closed = verified(solved.graph);
            let gradient = |graph: &Graph| {
                let simple = simplify(graph, Folding::Real);
                verified(reverse(&simple, Wanted::GradientAndValue, Folding::Real))
            };
            let (open, closed) = (gradient(&rolled), gradient(&closed));
            at.extend(points(&recipe, &mut random, 2));
            for (x, data) in &at {
                let point = [x.as_slice(), data].concat();
                match (interpret(&open, &point), interpret(&closed, &point)) {
                    (Outcome::Values(a), Outcome::Values(b)) => {
                        let scale = a.iter().fold(0.0, |max: f64, a| max.max(a.abs()));
                        let tolerance = Tolerance::new(1e-8, 1e-10 * scale);
                        let finite = a.iter().chain(&b).all(|number| number.is_finite());
                        // What is not finite is computed again on the tape.
                        let agree = a.iter().zip(&b).all(|(&a, &b)| close(a, b, tolerance));
                        match agree || !finite {
                            true => same += 1,
                            false => other.push(format!("{a:?} {b:?} at {point:?}\n{rolled}")),
                        }
                    }
                    // A kernel may give any call back to the tape; it should be few.
                    (_, Outcome::Unseen(_)) => back += 1,
                    (a, b) => other.push(format!("{a:?} {b:?} at {point:?}\n{rolled}")),
                }
            }
        }
    }
    assert!(applied > 100 && same > 2 * back, "{applied} {same} {back}");
    assert!(other.is_empty(), "{} of {same}: {}", other.len(), other[0]);
}
