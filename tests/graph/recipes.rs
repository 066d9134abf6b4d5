//! The generator of random graphs: it is deterministic, and its graphs are valid.

use phigrad::internals::Random;
use phigrad::internals::ssa::{Outcome, interpret, verify};

use crate::common::graphs::GraphRecipe;

#[test]
fn one_seed_gives_one_graph() {
    let graph = |seed| GraphRecipe::default().graph(&mut Random::new(seed));
    assert_eq!(graph(3), graph(3));
    assert_ne!(graph(3), graph(4));
}

#[test]
fn random_graphs_are_valid_and_cover_all_constructs() {
    let (mut random, recipe) = (Random::new(1), GraphRecipe::default());
    let (mut text, mut unseen) = (String::new(), 0);
    for _ in 0..300 {
        let graph = recipe.graph(&mut random);
        assert_eq!(verify(&graph), Ok(()));
        assert_eq!(graph.outputs(), recipe.outputs);
        match interpret(&graph, &recipe.inputs(&mut random)) {
            Outcome::Values(values) => {
                assert!(values.iter().all(|value| value.abs() <= 4.0), "{values:?}\n{graph}");
            }
            Outcome::Unseen(_) => unseen += 1,
        }
        text += &graph.to_string();
    }
    assert!((10..150).contains(&unseen), "{unseen}");
    for piece in [" = region r", " replays r", "guard v", "guard not v", "branch v", " @ "] {
        assert!(text.matches(piece).count() > 30, "{piece}");
    }
}
