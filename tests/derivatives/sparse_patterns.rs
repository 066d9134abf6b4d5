//! Sparsity patterns: each second derivative that is not zero has an entry, in patterns of graphs
//! and of runs, with loops executed or summed up.

use std::panic::Location;

use phigrad::Var;
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, directional, reverse};
use phigrad::internals::loops::{RerollLimits, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::sparse::{MatrixKind, Pattern, pattern_of_graph, pattern_of_trace};
use phigrad::internals::ssa::{Folding, Graph, parse};
use phigrad::internals::trace::{Inputs, Tracer};

use crate::common::corpus::cases;
use crate::common::graphs::GraphRecipe;
use crate::common::programs::{Point, points};
use crate::common::random_programs::{Program, Recipe};

/// The limits for executed steps: of all loops, of short ones, of none.
const STEPS: [u64; 4] = [1 << 22, 60, 8, 0];

fn has(pattern: &Pattern, row: usize, column: usize) -> bool {
    pattern.row(row).contains(&column)
}

/// Asserts that the patterns of `graph` have all entries of its Hessian at `point` that are not
/// zero. Returns the number of these, and that of all entries of the first pattern.
fn assert_covered(graph: &Graph, gradient: &Graph, point: &[f64]) -> (usize, usize) {
    let patterns = STEPS.map(|steps| pattern_of_graph(graph, MatrixKind::Hessian, steps).unwrap());
    assert!(patterns.iter().all(|pattern| pattern.rows() == graph.active));
    let mut nonzero = 0;
    let mut direction = vec![0.0; graph.active];
    for column in 0..graph.active {
        direction[column] = 1.0;
        let Ok((_, products)) = directional(gradient, point, &direction) else { return (0, 0) };
        direction[column] = 0.0;
        for (row, &entry) in products.iter().enumerate().filter(|(_, entry)| **entry != 0.0) {
            nonzero += 1;
            for (pattern, steps) in patterns.iter().zip(STEPS) {
                assert!(
                    has(pattern, row, column),
                    "({row}, {column}) is {entry}, {steps} steps, at {point:?}\n{graph}"
                );
            }
        }
    }
    let all = (0..graph.active).map(|row| patterns[0].row(row).len()).sum();
    (nonzero, all)
}

/// The merged traces of `program` at `points`.
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

/// Graphs of one output without accumulators and replays, as recorded ones are.
fn with_one_output(recipe: GraphRecipe) -> GraphRecipe {
    GraphRecipe { outputs: 1, replays: 0.0, sums: 0.0, ..recipe }
}

#[test]
fn patterns_of_random_graphs_have_all_entries() {
    let base = with_one_output(GraphRecipe { active: 5, ..GraphRecipe::default() });
    let recipes = [
        base,
        GraphRecipe { loops: 0.6, elements: 0.1, ..base },
        GraphRecipe { loops: 0.9, elements: 0.2, regions: 0.3, steps: 60, ..base },
    ];
    let (mut nonzero, mut all, mut dense) = (0, 0, 0);
    for (seed, recipe) in recipes.iter().enumerate() {
        let mut random = Random::new(seed as u64);
        for _ in 0..400 {
            let graph = recipe.graph(&mut random);
            let gradient = reverse(&graph, Wanted::Gradient, Folding::Exact);
            for _ in 0..4 {
                let (one, other) = assert_covered(&graph, &gradient, &recipe.inputs(&mut random));
                nonzero += one;
                all += other;
                dense += usize::from(other > 0) * 25;
            }
        }
    }
    assert!(nonzero > 200 && all < dense * 4 / 5, "{nonzero} {all} {dense}");
}

#[test]
fn patterns_of_the_corpus_have_all_entries() {
    let mut nonzero = 0;
    for case in cases() {
        let gradient = reverse(&case.graph, Wanted::Gradient, Folding::Exact);
        let first = case.graph.outputs() == 1;
        for (point, _) in case.runs.iter().filter(|_| first) {
            nonzero += assert_covered(&case.graph, &gradient, point).0;
        }
    }
    assert!(nonzero > 20, "{nonzero}");
}

#[test]
fn patterns_of_rolled_programs_have_all_entries() {
    let base = Recipe { active: 5, ..Recipe::default() };
    let recipes = [
        Recipe { loops: 0.3, guards: 0.2, ..base },
        Recipe { annotated: true, loops: 0.3, guards: 0.3, jumps: 0.2, counters: 1, ..base },
    ];
    let mut nonzero = 0;
    for (seed, recipe) in recipes.iter().enumerate() {
        let mut random = Random::new(7 + seed as u64);
        for _ in 0..60 {
            let program = recipe.program(&mut random);
            let recorded = points(recipe, &mut random, 4);
            let graph = merged(&program, &recorded);
            let eager =
                RerollLimits { iterations: 2, weight: 2, exits: Some(2), ..Default::default() };
            let rolled = reroll(&graph, eager);
            let gradient = reverse(&rolled, Wanted::Gradient, Folding::Exact);
            for (x, data) in recorded.iter().chain(&points(recipe, &mut random, 4)) {
                let inputs = Inputs { active: x, inactive: data };
                let run = |x: &[Var], data: &[Var]| -> Var { program.eval(x, data) };
                let mut tracer = Tracer::default();
                let trace = tracer.run(run, inputs, 1 << 24, Location::caller()).unwrap();
                let of_run = pattern_of_trace(&trace, MatrixKind::Hessian).unwrap();
                nonzero += assert_covered(&rolled, &gradient, &[&x[..], data].concat()).0;
                let mut direction = vec![0.0; x.len()];
                for column in 0..x.len() {
                    direction[column] = 1.0;
                    let point = [&x[..], data].concat();
                    if let Ok((_, products)) = directional(&gradient, &point, &direction) {
                        let entries =
                            products.iter().enumerate().filter(|(_, entry)| **entry != 0.0);
                        for (row, entry) in entries {
                            assert!(has(&of_run, row, column), "{row} {column} {entry}\n{program}");
                        }
                    }
                    direction[column] = 0.0;
                }
            }
        }
    }
    assert!(nonzero > 500, "{nonzero}");
}

#[test]
fn accesses_in_loops_depend_on_single_elements() {
    // The sum of x[i + 1]·x[i] over 4 iterations; x[5] is not used.
    let text = "graph active 6 inactive 0 sparse\nv0 = const 0.0\nv1 = const 3.0\n\
                v2 = iteration r0\na0 = inputs 0 count 6\ni0 = a0 base 0 r0*1\n\
                i1 = a0 base 1 r0*1\nb0:\n  v9 = region r0 b1 bound 4 entries v3=v0\n  \
                return v9\nb1:\n  v4 = element i0\n  v5 = element i1\n  v6 = mul v4 v5\n  \
                v7 = add v3 v6\n  v8 = lt v2 v1\n  return v8 v7 v7\n";
    let graph = parse(text).unwrap();
    let pattern = pattern_of_graph(&graph, MatrixKind::Hessian, 1 << 10).unwrap();
    let rows: Vec<&[usize]> = (0..6).map(|row| pattern.row(row)).collect();
    assert_eq!(rows, [&[1][..], &[0, 2], &[1, 3], &[2, 4], &[3], &[]]);
    // Not executed, the loop is any function of all that it reads.
    let pattern = pattern_of_graph(&graph, MatrixKind::Hessian, 0).unwrap();
    assert_eq!(pattern.row(0).len(), 6);
}
