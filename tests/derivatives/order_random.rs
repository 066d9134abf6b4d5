//! The order of additions in loops: on random programs, the gradient of the graph with loops but
//! for those that `reordered` returns has the bits of the gradient of the straight-line code.

use std::panic::Location;

use crate::common::programs::{Point, interpreted, points, reversed};
use crate::common::random_programs::{Program, Recipe};
use crate::common::rolling::loops;
use phigrad::Var;
use phigrad::check::same;
use phigrad::internals::Random;
use phigrad::internals::diff::reordered;
use phigrad::internals::loops::{RerollLimits, expand, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::ssa::{Folding, Graph, verify};
use phigrad::internals::trace::{Inputs, Tracer};

/// The merged runs of `program` at the points.
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

/// The graph without the loops that change the order, and the number of these; none if they
/// cannot be expanded.
fn in_order(rolled: &Graph) -> (Option<Graph>, usize) {
    let (mut graph, mut expanded) = (rolled.clone(), 0);
    loop {
        let wrong = reordered(&graph);
        if wrong.is_empty() {
            return (Some(graph), expanded);
        }
        expanded += wrong.len();
        let Some(straight) = expand(&graph, &wrong) else { return (None, expanded) };
        verify(&straight).unwrap_or_else(|error| panic!("{error}\n{straight}\n{graph}"));
        assert!(loops(&straight) > 0 || reordered(&straight).is_empty());
        graph = straight;
    }
}

#[derive(Debug, Default)]
struct Counts {
    /// Loops that stay.
    in_order: usize,
    /// Loops that were expanded.
    expanded: usize,
    /// Programs whose bits would differ if nothing had been expanded.
    needed: usize,
    compared: usize,
}

fn check(program: &Program, recorded: &[Point], run: &[Point], counts: &mut Counts) {
    let graph = merged(program, recorded);
    let plain = reversed(&graph, Folding::Exact);
    let eager = RerollLimits {
        iterations: 2,
        weight: 2,
        exits: Some(2),
        threading: false,
        ..Default::default()
    };
    for limits in [eager, RerollLimits { exits: None, ..eager }] {
        let rolled = reroll(&graph, limits);
        let all = reversed(&rolled, Folding::Exact);
        let (ordered, expanded) = in_order(&rolled);
        let Some(ordered) = ordered else { continue };
        counts.in_order += loops(&ordered);
        counts.expanded += expanded;
        let gradient = reversed(&ordered, Folding::Exact);
        verify(&gradient).unwrap_or_else(|error| panic!("{error}\n{gradient}\n{ordered}"));
        let mut differs = false;
        for point in run {
            let (Some(expected), Some(found)) =
                (interpreted(&plain, point), interpreted(&gradient, point))
            else {
                assert_eq!(interpreted(&plain, point), interpreted(&gradient, point));
                continue;
            };
            if found.iter().any(|number| !number.is_finite()) {
                continue;
            }
            counts.compared += 1;
            let agree = expected.iter().zip(&found).all(|(&a, &b)| same(a, b));
            assert!(
                agree,
                "found {found:?}\nexpected {expected:?}\nat {point:?}\n{program}\n{ordered}"
            );
            let before = interpreted(&all, point).unwrap_or_default();
            differs |= !expected.iter().zip(&before).all(|(&a, &b)| same(a, b));
        }
        counts.needed += usize::from(differs);
    }
}

#[test]
fn gradients_of_loops_in_order_have_the_bits_of_straight_line_code() {
    let base = Recipe { loops: 0.3, guards: 0.1, statements: 20, ..Recipe::default() };
    let recipes = [
        Recipe { guards: 0.0, ..base },
        base,
        Recipe { guards: 0.0, statements: 40, variety: 0.1, locals: 2, ..base },
        Recipe { annotated: true, jumps: 0.1, ..base },
        Recipe { annotated: true, guards: 0.3, counters: 1, locals: 2, ..base },
        Recipe { wild: true, guards: 0.05, statements: 30, locals: 3, ..base },
    ];
    let mut counts = Counts::default();
    for (kind, recipe) in recipes.into_iter().enumerate() {
        let mut random = Random::new(kind as u64 + 70);
        for _ in 0..1500 {
            let program = recipe.program(&mut random);
            let mut run = points(&recipe, &mut random, 3);
            let recorded = run.clone();
            run.extend(points(&recipe, &mut random, 4));
            check(&program, &recorded, &run, &mut counts);
        }
    }
    println!("{counts:?}");
    assert!(counts.in_order > 200 && counts.expanded > 100, "{counts:?}");
    assert!(counts.needed > 10 && counts.compared > 2000, "{counts:?}");
}
