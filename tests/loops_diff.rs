//! Derivatives of random graphs with loops and series.

mod oracle;

use oracle::check;
use phigrad::check::{GraphRecipe, Random};
use phigrad::ssa::{Def, Graph, Node, SeriesData};

/// Whether no node is twice in one series of nodes, or in two different ones.
fn has_exact_series(graph: &Graph) -> bool {
    let mut places: Vec<(Node, Vec<Node>)> = Vec::new();
    for series in graph.series.values() {
        let SeriesData::Nodes(nodes) = series else { continue };
        if nodes.iter().all(|&node| node == nodes[0]) {
            continue;
        }
        for &node in nodes {
            let is_leaf = matches!(graph.nodes[node].def, Def::Const(_) | Def::Iteration(_));
            if !is_leaf && places.iter().any(|(other, _)| *other == node) {
                return false;
            }
            places.push((node, nodes.clone()));
        }
    }
    true
}

#[test]
fn gradients_of_random_graphs_agree_with_both_oracles() {
    let mut random = Random::new(7);
    let mut compared = [0, 0];
    for round in 0..600 {
        let recipe = GraphRecipe {
            outputs: 1,
            replays: 0.0,
            regions: 0.3,
            loops: 0.7,
            elements: [0.0, 0.15, 0.3][round % 3],
            ..GraphRecipe::default()
        };
        let graph = recipe.graph(&mut random);
        let bits = has_exact_series(&graph);
        for _ in 0..3 {
            let inputs = recipe.inputs(&mut random);
            compared[usize::from(bits)] += usize::from(check(&graph, &inputs, bits));
        }
    }
    assert!(compared.iter().all(|&count| count > 100), "{compared:?}");
}
