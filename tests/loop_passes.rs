//! What the passes do to loops: random graphs with loops keep their outcomes,
//! and examples show what goes.

#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

use phigrad::check::{GraphRecipe, Random, Tolerance, close, same};
use phigrad::ssa::{
    Folding, Graph, Outcome, dot, eliminate_dead_code, fuse, interpret, parse, simplify, verify,
};

/// Random graphs of several kinds with inputs for them.
fn random_graphs(seed: u64, count: usize) -> Vec<(Graph, Vec<Vec<f64>>)> {
    let mut random = Random::new(seed);
    let usual = GraphRecipe {
        loops: 0.7,
        elements: 0.2,
        sums: 0.05,
        guards: 0.01,
        ..GraphRecipe::default()
    };
    let recipes = [
        usual,
        GraphRecipe { replays: 0.7, regions: 0.3, steps: 80, ..usual },
        GraphRecipe { loops: 1.0, elements: 0.3, sums: 0.0, branches: 0.2, ..usual },
        GraphRecipe { guards: 0.0, sums: 0.15, elements: 0.4, replays: 0.5, ..usual },
    ];
    let mut graphs = Vec::new();
    for recipe in recipes {
        for _ in 0..count {
            let graph = recipe.graph(&mut random);
            let inputs = (0..6).map(|_| recipe.inputs(&mut random)).collect();
            graphs.push((graph, inputs));
        }
    }
    graphs
}

/// Asserts that `after` is sound and comes to what `before` does.
fn assert_agree(before: &Graph, after: &Graph, inputs: &[Vec<f64>], agree: fn(f64, f64) -> bool) {
    assert_eq!(verify(after), Ok(()), "{before}\n{after}");
    for x in inputs {
        match (interpret(before, x), interpret(after, x)) {
            (Outcome::Values(a), Outcome::Values(b)) => {
                let all = a.len() == b.len() && a.iter().zip(&b).all(|(&a, &b)| agree(a, b));
                assert!(all, "{x:?}: {a:?} {b:?}\n{before}\n{after}");
            }
            (Outcome::Unseen(_), Outcome::Unseen(_)) => {}
            (a, b) => panic!("{x:?}: {a:?} {b:?}\n{before}\n{after}"),
        }
    }
}

fn bits(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits()
}

fn near(a: f64, b: f64) -> bool {
    close(a, b, Tolerance::new(1e-7, 1e-9))
}

#[test]
fn random_loops_are_sound_read_back_and_hold_what_they_should() {
    let (mut text, mut unseen, mut runs) = (String::new(), 0, 0);
    for (graph, inputs) in random_graphs(1, 100) {
        assert_eq!(verify(&graph), Ok(()), "{graph}");
        assert_eq!(parse(&graph.to_string()).unwrap(), graph);
        for x in inputs {
            runs += 1;
            match interpret(&graph, &x) {
                Outcome::Values(values) => {
                    assert!(values.iter().all(|value| value.abs() <= 8.0), "{values:?}\n{graph}");
                }
                Outcome::Unseen(_) => unseen += 1,
            }
        }
        text += &graph.to_string();
    }
    assert!(unseen * 20 > runs && unseen * 2 < runs, "{unseen} of {runs}");
    let parts = [
        " bound ",
        " entries ",
        " replays ",
        " = iteration ",
        " = element ",
        " = constants ",
        " = nodes ",
        " = history ",
        " = sums ",
        " accumulate ",
        " fill ",
        "*1",
        "*-1",
        "*2",
        " _",
    ];
    for part in parts {
        assert!(text.matches(part).count() > 30, "{part}: {}", text.matches(part).count());
    }
}

#[test]
fn dead_code_elimination_keeps_every_outcome_and_is_done_after_once() {
    for (graph, inputs) in random_graphs(2, 200) {
        let small = eliminate_dead_code(&graph);
        assert_agree(&graph, &small, &inputs, same);
        assert_eq!(eliminate_dead_code(&small), small, "{graph}\n{small}");
    }
}

#[test]
fn exact_simplification_keeps_every_bit() {
    for (graph, inputs) in random_graphs(3, 300) {
        let small = simplify(&graph, Folding::Exact);
        assert_agree(&graph, &small, &inputs, bits);
        let again = simplify(&small, Folding::Exact);
        assert_agree(&small, &again, &inputs, bits);
    }
}

#[test]
fn real_simplification_and_fusion_stay_near() {
    for (graph, inputs) in random_graphs(4, 300) {
        let small = simplify(&graph, Folding::Real);
        assert_agree(&graph, &small, &inputs, near);
        assert_agree(&graph, &fuse(&small), &inputs, near);
    }
}

#[test]
fn pictures_show_loops_and_series() {
    for (graph, _) in random_graphs(5, 20) {
        let picture = dot(&graph);
        for node in graph.nodes.keys() {
            assert_eq!(picture.matches(&format!(" {node} [label=\"")).count(), 1, "{picture}");
        }
        for series in graph.series.keys() {
            let shape = format!("  {series} [shape=folder");
            assert_eq!(picture.matches(&shape).count(), 1, "{picture}");
        }
        assert_eq!(picture.matches('{').count(), picture.matches('}').count());
    }
}
