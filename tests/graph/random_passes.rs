//! Random graphs: they round-trip, and simplification, dead-code elimination and hoisting keep
//! their outcomes.

use crate::common::graphs::GraphRecipe;
use crate::common::outcomes::assert_agree;
use phigrad::check::{Tolerance, close, same};
use phigrad::internals::Random;
use phigrad::internals::explain::dot;
use phigrad::internals::loops::hoist;
use phigrad::internals::ssa::{
    Folding, Graph, Nest, Outcome, Region, eliminate_dead_code, interpret, parse, simplify, verify,
};

/// A random graph, with inputs.
type Sample = (Graph, Vec<Vec<f64>>);

fn samples(recipes: &[GraphRecipe], seed: u64, graphs: usize) -> Vec<Sample> {
    let mut random = Random::new(seed);
    let mut samples = Vec::new();
    for recipe in recipes {
        for _ in 0..graphs {
            let graph = recipe.graph(&mut random);
            assert_eq!(verify(&graph), Ok(()), "{graph}");
            let inputs = (0..8).map(|_| recipe.inputs(&mut random)).collect();
            samples.push((graph, inputs));
        }
    }
    samples
}

/// Graphs with regions and without loops.
fn regions(seed: u64, graphs: usize) -> Vec<Sample> {
    let default = GraphRecipe::default();
    let recipes = [
        default,
        GraphRecipe { replays: 0.8, branches: 0.8, steps: 60, ..default },
        GraphRecipe { guards: 0.0, regions: 0.4, depth: 6, ..default },
        GraphRecipe { replays: 0.9, regions: 0.3, branches: 0.7, steps: 100, ..default },
    ];
    samples(&recipes, seed, graphs)
}

fn loops(seed: u64, graphs: usize) -> Vec<Sample> {
    let default = GraphRecipe {
        loops: 0.7,
        elements: 0.2,
        sums: 0.05,
        guards: 0.01,
        ..GraphRecipe::default()
    };
    let recipes = [
        default,
        GraphRecipe { replays: 0.7, regions: 0.3, steps: 80, ..default },
        GraphRecipe { loops: 1.0, elements: 0.3, sums: 0.0, branches: 0.2, ..default },
        GraphRecipe { guards: 0.0, sums: 0.15, elements: 0.4, replays: 0.5, ..default },
    ];
    samples(&recipes, seed, graphs)
}

fn both(seed: u64, graphs: usize) -> Vec<Sample> {
    [regions(seed, graphs), loops(seed, graphs)].concat()
}

fn bits(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits()
}

#[test]
fn the_text_form_of_random_graphs_round_trips() {
    for (graph, _) in both(1, 100) {
        assert_eq!(parse(&graph.to_string()).unwrap(), graph);
    }
}

#[test]
fn random_loops_cover_all_constructs() {
    let (mut text, mut unseen, mut runs, mut nested) = (String::new(), 0, 0, 0);
    for (graph, inputs) in loops(1, 100) {
        let nest = Nest::of(&graph);
        let replays = |region: &Region| graph.regions[*region].replays.is_some();
        let loops = graph.regions.keys().filter(|&r| graph.regions[r].cycle.is_some());
        let inner = loops.filter(|&region| nest.loop_around(region).as_ref().is_some_and(replays));
        nested += inner.filter(replays).count();
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
    assert!(nested > 20, "{nested} replays of loops in replays of loops");
    let parts = [
        " bound ",
        " entries ",
        " replays ",
        " = iteration ",
        " = element ",
        " = constants ",
        " = nodes ",
        " = saved ",
        " = sums ",
        " accumulate ",
        " fill ",
        "*1",
        "*-1",
        "*2",
        " _",
    ];
    for piece in parts {
        assert!(text.matches(piece).count() > 30, "{piece}: {}", text.matches(piece).count());
    }
}

#[test]
fn dead_code_elimination_keeps_outcomes_and_is_idempotent() {
    for (graph, inputs) in both(2, 200) {
        let small = eliminate_dead_code(&graph);
        assert_agree(&graph, &small, &inputs, same);
        assert_eq!(eliminate_dead_code(&small), small, "{graph}\n{small}");
    }
}

#[test]
fn exact_simplification_keeps_every_bit() {
    for (graph, inputs) in both(3, 250) {
        let small = simplify(&graph, Folding::Exact);
        assert_agree(&graph, &small, &inputs, bits);
        let again = simplify(&small, Folding::Exact);
        assert_agree(&small, &again, &inputs, bits);
    }
}

#[test]
fn real_simplification_stays_near() {
    let near = |relative, absolute| move |a, b| close(a, b, Tolerance::new(relative, absolute));
    for (graph, inputs) in regions(4, 200) {
        assert_agree(&graph, &simplify(&graph, Folding::Real), &inputs, near(1e-9, 1e-12));
    }
    for (graph, inputs) in loops(4, 300) {
        assert_agree(&graph, &simplify(&graph, Folding::Real), &inputs, near(1e-7, 1e-9));
    }
}

#[test]
fn hoisting_keeps_bits() {
    let mut moved = 0;
    for (graph, inputs) in loops(6, 300) {
        let graph = simplify(&graph, Folding::Real);
        let hoisted = hoist(&graph);
        assert_agree(&graph, &hoisted, &inputs, same);
        moved += usize::from(hoisted != graph);
        assert_eq!(hoist(&hoisted).to_string(), hoist(&hoist(&hoisted)).to_string());
    }
    assert!(moved > 100, "{moved}");
}

#[test]
fn pictures_show_nodes_arrays_and_regions_in_their_blocks() {
    for (graph, _) in both(5, 25) {
        let picture = dot(&graph);
        let assert_one = |text: &str| assert_eq!(picture.matches(text).count(), 1, "{picture}");
        for node in graph.nodes.keys() {
            assert_one(&format!(" {node} [label=\""));
        }
        for array in graph.arrays.keys() {
            assert_one(&format!("  {array} [shape=folder"));
        }
        for block in graph.blocks.keys() {
            assert_one(&format!("subgraph cluster_{block} {{"));
        }
        for (region, data) in graph.regions.iter() {
            let (_, rest) = picture.split_once(&format!("subgraph cluster_{region} {{")).unwrap();
            assert!(rest.contains(&format!("cluster_{} {{", data.root)), "{picture}");
        }
        assert_eq!(picture.matches('{').count(), picture.matches('}').count());
    }
}
