//! The graphs of `tests/corpus`: every executor gives the expected results, with and without each
//! pass.

use crate::common::corpus::{Case, cases, sorted};
use crate::common::outcomes::{assert_as_interpreted, outputs};
use phigrad::check::{Tolerance, close};
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::jit::compile;
use phigrad::internals::loops::{expand, fuse, hoist};
use phigrad::internals::phi::{CloseLimits, close as close_loops, simplify_branches};
use phigrad::internals::ssa::{Folding, Graph, Outcome, Region, interpret, simplify, verify};

/// Asserts that interpreter and kernel of `graph`, made of that of `case` by `pass`, give
/// `expected`.
fn assert_outputs(case: &Case, pass: &str, graph: &Graph, at: &[f64], expected: Option<&[f64]>) {
    let name = &case.name;
    assert_eq!(verify(graph), Ok(()), "{name} after {pass}");
    assert_as_interpreted(graph, &compile(graph).unwrap(), at);
    let found = outputs(graph, at);
    let agrees = match (&found, expected) {
        (Some(found), Some(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(&a, &b)| near(a, b))
        }
        (found, expected) => found.is_none() && expected.is_none(),
    };
    assert!(agrees, "{name} after {pass} at {at:?}: {found:?}\n{graph}");
}

fn near(a: f64, b: f64) -> bool {
    close(a, b, Tolerance::new(1e-14, 1e-25)) || (a.is_nan() && b.is_nan())
}

/// The graph after each pass that keeps its meaning, by the name of the pass.
fn passes(graph: &Graph) -> Vec<(&'static str, Graph)> {
    let loops: Vec<Region> = graph.regions.keys().collect();
    let loops: Vec<Region> =
        loops.into_iter().filter(|&region| graph.regions[region].cycle.is_some()).collect();
    let closed = close_loops(graph, CloseLimits { always: true, ..CloseLimits::default() });
    let mut all = vec![
        ("nothing", graph.clone()),
        ("exact folding", simplify(graph, Folding::Exact)),
        ("real folding", simplify(graph, Folding::Real)),
        ("hoisting", hoist(graph)),
        ("closing loops", closed.graph.clone()),
        ("branches", simplify_branches(graph).graph),
    ];
    all.extend(fuse(graph).map(|fused| ("fusion", fused)));
    all.extend(expand(graph, &loops).map(|expanded| ("expansion", expanded)));
    all
}

#[test]
fn every_pass_and_executor_keeps_values() {
    for case in cases() {
        for (pass, graph) in passes(&case.graph) {
            for (at, expected) in &case.runs {
                assert_outputs(&case, pass, &graph, at, expected.as_deref());
            }
        }
    }
}

#[test]
fn graphs_stop_at_the_condition_that_fails() {
    for case in cases() {
        for (at, condition) in &case.failures {
            let Outcome::Unseen(node) = interpret(&case.graph, at) else { panic!("{}", case.name) };
            assert_eq!(node.to_string(), *condition, "{} at {at:?}", case.name);
        }
    }
}

#[test]
fn every_pass_and_executor_keeps_gradients() {
    for case in cases().into_iter().filter(|case| !case.gradients.is_empty()) {
        for (pass, graph) in passes(&case.graph) {
            for folding in [Folding::Exact, Folding::Real] {
                let gradient = reverse(&graph, Wanted::Gradient, folding);
                for (at, expected) in &case.gradients {
                    assert_outputs(&case, pass, &gradient, at, Some(expected));
                }
            }
        }
    }
}

#[test]
fn expected_rules_apply() {
    for case in cases() {
        let limits = CloseLimits { always: true, ..CloseLimits::default() };
        let closed = close_loops(&case.graph, limits).applied.into_iter();
        let branched = simplify_branches(&case.graph).applied.into_iter();
        let found = sorted(closed.chain(branched).map(|formula| formula.rule.to_string()));
        if let Some(rules) = &case.rules {
            assert_eq!(&found, rules, "{}", case.name);
        }
    }
}
