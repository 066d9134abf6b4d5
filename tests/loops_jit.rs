//! Native code of graphs with loops: each thing that a loop can do, by hand, and
//! random graphs, against the interpreter.

#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/native.rs"]
mod native;

use native::assert_as_interpreted;
use phigrad::check::{GraphRecipe, Random};
use phigrad::jit::compile;

#[test]
fn random_graphs_agree_with_the_interpreter() {
    let recipe = GraphRecipe { loops: 0.2, elements: 0.1, sums: 0.03, ..GraphRecipe::default() };
    let recipes = [
        recipe,
        GraphRecipe { guards: 0.0, loops: 0.4, steps: 60, ..recipe },
        GraphRecipe { guards: 0.0, regions: 0.3, replays: 0.7, depth: 5, ..recipe },
        GraphRecipe { guards: 0.0, loops: 0.4, replays: 0.7, elements: 0.2, ..recipe },
        GraphRecipe { guards: 0.002, steps: 400, ..recipe },
    ];
    let mut random = Random::new(12);
    for recipe in recipes {
        let (mut values, mut unseen) = (0, 0);
        for _ in 0..100 {
            let graph = recipe.graph(&mut random);
            let kernel = compile(&graph).unwrap();
            for _ in 0..8 {
                match assert_as_interpreted(&graph, &kernel, &recipe.inputs(&mut random)) {
                    true => values += 1,
                    false => unseen += 1,
                }
            }
        }
        assert!(values > 100 && unseen > 0, "{values} {unseen}");
    }
}
