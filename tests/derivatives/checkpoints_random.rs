//! Checkpoints in loops of random programs: the same gradients, bit for bit, by the
//! interpreter and by native code.

use std::panic::Location;

use crate::common::outcomes::assert_as_interpreted;
use crate::common::programs::{Point, all_same, interpreted, points};
use crate::common::random_programs::{Program, Recipe};
use phigrad::Var;
use phigrad::internals::Random;
use phigrad::internals::diff::{Checkpointed, Wanted, checkpoint, reverse};
use phigrad::internals::jit::compile;
use phigrad::internals::loops::{RerollLimits, hoist, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::ssa::{Folding, Graph, eliminate_dead_code, simplify, verify};
use phigrad::internals::trace::{Inputs, Tracer};

/// The merged runs of `program` at the points, with as many loops as possible.
fn rolled(program: &Program, points: &[Point]) -> Graph {
    let mut tracer = Tracer::default();
    let mut traces = MergedTraces::new(program.active(), program.inactive());
    for (x, data) in points {
        let inputs = Inputs { active: x, inactive: data };
        let run = |x: &[Var], data: &[Var]| program.eval(x, data);
        let trace = tracer.run(run, inputs, 1 << 20, Location::caller()).unwrap();
        traces.merge(&trace, MergeLimits { paths: usize::MAX, nodes: 1 << 22 }).unwrap();
    }
    let eager =
        RerollLimits { iterations: 2, weight: 2, exits: Some(2), ..RerollLimits::default() };
    simplify(&reroll(traces.graph(), eager), Folding::Exact)
}

#[test]
fn random_programs_have_the_same_gradients() {
    let base = Recipe { loops: 0.4, guards: 0.1, statements: 20, ..Recipe::default() };
    let recipes = [
        base,
        Recipe { annotated: true, jumps: 0.1, ..base },
        Recipe { annotated: true, guards: 0.3, counters: 1, locals: 2, ..base },
    ];
    let (mut split, mut again, mut moved, mut known, mut unknown) = (0, 0, 0, 0, 0);
    for (kind, recipe) in recipes.into_iter().enumerate() {
        let mut random = Random::new(kind as u64);
        for _ in 0..160 {
            let program = recipe.program(&mut random);
            let mut run = points(&recipe, &mut random, 3);
            let graph = rolled(&program, &run);
            run.extend(points(&recipe, &mut random, 2));
            let plain = reverse(&graph, Wanted::GradientAndValue, Folding::Exact);
            let expected: Vec<_> = run.iter().map(|point| interpreted(&plain, point)).collect();
            let mut checkpointed = Checkpointed::new(&graph);
            while let Some(next) = checkpoint(&checkpointed) {
                checkpointed = next;
                let primal = &checkpointed.graph;
                verify(primal).unwrap_or_else(|error| panic!("{error}\n{primal}\n{graph}"));
                let gradient = checkpointed.reverse(Wanted::GradientAndValue, Folding::Exact);
                let gradient = eliminate_dead_code(&gradient);
                verify(&gradient).unwrap_or_else(|error| panic!("{error}\n{gradient}\n{primal}"));
                let small = simplify(&gradient, Folding::Real);
                let hoisted = hoist(&small);
                verify(&hoisted).unwrap_or_else(|error| panic!("{error}\n{hoisted}\n{small}"));
                moved += usize::from(hoisted != small);
                for (point, expected) in run.iter().zip(&expected) {
                    let found = interpreted(&gradient, point);
                    let [small, hoisted] = [&small, &hoisted].map(|one| interpreted(one, point));
                    let same = match (&small, &hoisted) {
                        (Some(small), Some(hoisted)) => all_same(small, hoisted),
                        (small, hoisted) => small == hoisted,
                    };
                    assert!(same, "{small:?} {hoisted:?}\n{gradient}");
                    assert_eq!(found.is_some(), expected.is_some(), "{gradient}\n{graph}");
                    let inputs = [point.0.as_slice(), &point.1].concat();
                    assert_as_interpreted(&gradient, &compile(&gradient).unwrap(), &inputs);
                    let (Some(found), Some(expected)) = (found, expected) else {
                        unknown += 1;
                        continue;
                    };
                    known += 1;
                    if expected.iter().all(|value| value.is_finite()) {
                        let same = all_same(&found, expected);
                        assert!(same, "{found:?} {expected:?}\n{gradient}\n{graph}\n{program}");
                    }
                }
            }
            split += checkpointed.graph.regions.len() - graph.regions.len();
            again += checkpointed.recomputed.len();
        }
    }
    assert!(split > 50 && again > split && moved > 50, "{split} {again} {moved}");
    assert!(known > 500, "{known} {unknown}");
}
