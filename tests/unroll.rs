//! Unrolling of random programs that were rolled: they mean the same to the last
//! bit. Closed forms of random programs mean about the same.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

mod common;
#[allow(dead_code)] // Straight graphs are for other tests.
#[path = "common/precise.rs"]
mod precise;

use std::panic::Location;

use common::rolling::{agree, loops};
use common::{Point, points};
use phigrad::Var;
use phigrad::check::{Program, Random, Recipe};
use phigrad::phi::{CloseLimits, close, unroll};
use phigrad::ssa::{
    Folding, Graph, Lifted, Outcome, Paths, RerollLimits, interpret, reroll, simplify, verify,
};
use phigrad::trace::{Inputs, Tracer};
use precise::nearly;

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

#[test]
fn random_programs_mean_the_same() {
    let base = Recipe { loops: 0.25, guards: 0.1, statements: 20, ..Recipe::default() };
    let recipes = [
        base,
        Recipe { annotated: true, jumps: 0.1, ..base },
        Recipe { wild: true, statements: 40, variety: 0.1, locals: 2, ..base },
    ];
    let eager = RerollLimits { iterations: 2, weight: 2, ..RerollLimits::default() };
    let (mut made, mut left, mut known, mut applied) = (0, 0, 0, 0);
    for (kind, recipe) in recipes.into_iter().enumerate() {
        let mut random = Random::new(kind as u64);
        for _ in 0..200 {
            let program = recipe.program(&mut random);
            let mut run = points(&recipe, &mut random, 3);
            let graph = merged(&program, &run);
            run.extend(points(&recipe, &mut random, 5));
            let rolled = simplify(&reroll(&graph, eager), Folding::Exact);
            made += loops(&rolled);
            for (iterations, weight) in [(u32::MAX, u64::MAX), (4, 30)] {
                let straight = unroll(&rolled, iterations, weight);
                verify(&straight).unwrap_or_else(|error| panic!("{error}\n{straight}\n{rolled}"));
                if iterations == u32::MAX {
                    left += loops(&straight);
                }
                for (x, data) in &run {
                    let point = [x.as_slice(), data].concat();
                    known += usize::from(agree(&rolled, &straight, &point));
                }
            }
            let closed = close(&rolled, CloseLimits::default());
            applied += closed.applied.len();
            verify(&closed.graph).unwrap_or_else(|error| panic!("{error}\n{}", closed.graph));
            for (x, data) in &run {
                let point = [x.as_slice(), data].concat();
                let outcomes = (interpret(&rolled, &point), interpret(&closed.graph, &point));
                if let (Outcome::Values(a), Outcome::Values(b)) = outcomes {
                    let is_close = |(a, b): (&f64, &f64)| {
                        !a.is_finite() || !b.is_finite() || (a - b).abs() <= 1e-6 * a.abs().max(1.0)
                    };
                    // A loop may lose digits that its closed form keeps.
                    let exact = unroll(&rolled, u32::MAX, u64::MAX);
                    let is_better = || {
                        let exact = nearly(&exact, &point);
                        exact.is_some_and(|exact| exact.iter().zip(&b).all(is_close))
                    };
                    let same = a.iter().zip(&b).all(is_close);
                    assert!(same || is_better(), "{a:?} {b:?}\n{rolled}");
                }
            }
        }
    }
    println!("{made} {left} {known} {applied}");
    assert!(made > 300 && 4 * left < made && known > 500, "{made} {left} {known}");
}
