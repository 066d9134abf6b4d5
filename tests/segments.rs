//! Segments: they hold all applications, are bounded, and what goes in and out of
//! them is known; division where values are reused has fewer values that cross.

use phigrad::check::{GraphRecipe, Random};
use phigrad::op::Op;
use phigrad::soi::{divide, divide_evenly};
use phigrad::ssa::{Builder, Def, Folding, Graph, Segments, interpret};

/// Straight code in which each tenth value is used by the nine after it.
fn reused(groups: usize) -> Graph {
    let mut builder = Builder::new(1, 0, Folding::Exact);
    let mut last = builder.input(0);
    for _ in 0..groups {
        let shared = builder.apply(Op::Sin, &[last]);
        let first = builder.apply(Op::Cos, &[shared]);
        last = (0..8).fold(first, |sum, _| builder.apply(Op::Sub, &[shared, sum]));
    }
    builder.finish_block(&[last]);
    builder.into_graph()
}

fn check(graph: &Graph, segments: &Segments, limit: usize) {
    let applications =
        graph.nodes.iter().filter(|(_, data)| matches!(data.def, Def::Apply(..))).count();
    let members: usize = segments.list.iter().map(|segment| segment.nodes.len()).sum();
    assert_eq!(members, applications);
    for (number, segment) in segments.list.iter().enumerate() {
        assert!((1..=limit).contains(&segment.nodes.len()));
        for &node in &segment.nodes {
            assert_eq!(segments.of[node], Some(number as u32));
            for &arg in graph.nodes[node].args() {
                let is_member = segments.of[arg] == Some(number as u32);
                assert!(is_member != segment.inputs.contains(&arg), "{node} {arg}");
            }
        }
        assert!(segment.outputs.iter().all(|node| segment.nodes.contains(node)));
        // No value leaves and comes back: inputs are there before the segment begins,
        // if they stand in its block.
        let first = segment.nodes[0];
        assert!(segment.inputs.iter().all(|&input| input < first || segments.of[input].is_none()));
    }
}

#[test]
fn segments_of_random_graphs_hold_all_applications_and_are_bounded() {
    let recipe = GraphRecipe { loops: 0.3, elements: 0.1, sums: 0.05, ..GraphRecipe::default() };
    for seed in 0..200 {
        let graph = recipe.graph(&mut Random::new(seed));
        for limit in [1, 3, 8, 1000] {
            check(&graph, &divide(&graph, limit), limit);
            check(&graph, &divide_evenly(&graph, limit), limit);
        }
    }
}

#[test]
fn division_where_values_are_reused_lets_fewer_values_cross() {
    let graph = reused(100);
    let crossing = |segments: &Segments| -> usize {
        segments.list.iter().map(|segment| segment.inputs.len()).sum()
    };
    for limit in [16, 24, 48, 96] {
        let (aware, even) = (divide(&graph, limit), divide_evenly(&graph, limit));
        check(&graph, &aware, limit);
        assert!(aware.list.len() <= 2 * even.list.len() + 1);
        let inputs = |segments: &Segments| crossing(segments) as f64 / segments.list.len() as f64;
        assert!(inputs(&aware) <= inputs(&even), "{limit}: {} {}", inputs(&aware), inputs(&even));
    }
    // The graph is one that can be run.
    assert!(matches!(interpret(&graph, &[0.5]), phigrad::ssa::Outcome::Values(_)));
}
