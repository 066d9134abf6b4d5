//! The graphs of `tests/corpus`: every executor gives the expected results, with and without each
//! pass.

use std::fs;
use std::path::Path;

use phigrad::check::{Tolerance, close};
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::jit::{RunError, compile};
use phigrad::internals::loops::{expand, fuse, hoist};
use phigrad::internals::phi::{CloseLimits, close as close_loops, simplify_branches};
use phigrad::internals::ssa::{
    Folding, Graph, Outcome, Region, interpret, parse, simplify, verify,
};

/// A file with its directives.
struct Case {
    name: String,
    graph: Graph,
    /// Inputs with the outputs, or `None` where a guard fails.
    runs: Vec<(Vec<f64>, Option<Vec<f64>>)>,
    gradients: Vec<(Vec<f64>, Vec<f64>)>,
    rules: Option<Vec<String>>,
}

impl Case {
    fn read(path: &Path) -> Case {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).unwrap();
        let graph = parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (mut runs, mut gradients, mut rules) = (Vec::new(), Vec::new(), None);
        for line in text.lines().filter_map(|line| line.strip_prefix("; ")) {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            let sides = rest.split_once(" = ");
            match (kind, sides) {
                ("run", Some((at, values))) => runs.push((numbers(at), Some(numbers(values)))),
                ("gradient", Some((at, values))) => gradients.push((numbers(at), numbers(values))),
                ("unseen", None) => runs.push((numbers(rest), None)),
                ("rules", None) => rules = Some(sorted(rest.split(' ').map(str::to_owned))),
                _ => {}
            }
        }
        assert!(!runs.is_empty(), "{name} expects nothing");
        Case { name, graph, runs, gradients, rules }
    }

    /// Asserts that `graph`, made by `pass`, gives the outputs.
    fn assert_runs(&self, pass: &str, graph: &Graph) {
        for (at, expected) in &self.runs {
            self.assert_outputs(pass, graph, at, expected.as_deref());
        }
    }

    fn assert_outputs(&self, pass: &str, graph: &Graph, at: &[f64], expected: Option<&[f64]>) {
        let name = &self.name;
        assert_eq!(verify(graph), Ok(()), "{name} after {pass}");
        let interpreted = match interpret(graph, at) {
            Outcome::Values(values) => Some(values),
            Outcome::Unseen(_) => None,
        };
        let kernel = compile(graph).unwrap();
        let mut outputs = vec![0.0; kernel.outputs()];
        let (active, inactive) = at.split_at(graph.active);
        let native = match kernel.run(active, inactive, &mut Vec::new(), &mut outputs) {
            Ok(()) => Some(outputs),
            Err(RunError::SideExit) => None,
            Err(error) => panic!("{name} after {pass}: {error}"),
        };
        for (executor, found) in [("interpreter", interpreted), ("kernel", native)] {
            let agrees = match (&found, expected) {
                (Some(found), Some(expected)) => {
                    found.len() == expected.len()
                        && found.iter().zip(expected).all(|(&a, &b)| near(a, b))
                }
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(agrees, "{name} after {pass}, {executor} at {at:?}: {found:?}\n{graph}");
        }
    }
}

fn near(a: f64, b: f64) -> bool {
    close(a, b, Tolerance::new(1e-14, 1e-25)) || (a.is_nan() && b.is_nan())
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

fn sorted(items: impl Iterator<Item = String>) -> Vec<String> {
    let mut items: Vec<String> = items.collect();
    items.sort();
    items.dedup();
    items
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let cases: Vec<Case> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "graph"))
        .map(|path| Case::read(&path))
        .collect();
    assert!(cases.len() > 10);
    cases
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
        passes(&case.graph).iter().for_each(|(pass, graph)| case.assert_runs(pass, graph));
    }
}

#[test]
fn every_pass_and_executor_keeps_gradients() {
    for case in cases() {
        for (pass, graph) in passes(&case.graph) {
            for folding in [Folding::Exact, Folding::Real] {
                let gradient = reverse(&graph, Wanted::Gradient, folding);
                for (at, expected) in &case.gradients {
                    case.assert_outputs(pass, &gradient, at, Some(expected));
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
