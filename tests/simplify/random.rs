//! Simplification of random graphs: the verifier accepts the result, its values and comparisons are
//! the same, and runs are deterministic.

use crate::common::graphs::GraphRecipe;
use crate::common::outcomes::agree;
use phigrad::check::{Tolerance, close};
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::simplify::{SimplifyLimits, Stage, simplify_segments};
use phigrad::internals::soi::divide;
use phigrad::internals::ssa::{Folding, Graph, eliminate_dead_code, simplify, verify};

fn simplified(graph: &Graph, limit: usize, stage: Stage) -> Graph {
    let segments = divide(graph, limit);
    let result = simplify_segments(graph, &segments, stage, SimplifyLimits::DEFAULT).graph;
    assert_eq!(verify(&result), Ok(()), "{result}");
    let again = simplify_segments(graph, &segments, stage, SimplifyLimits::DEFAULT).graph;
    assert_eq!(result, again);
    result
}

fn is_near(old: f64, new: f64) -> bool {
    !old.is_finite() || close(old, new, Tolerance::new(1e-9, 1e-9))
}

#[test]
fn simplified_graphs_keep_values_and_gradients() {
    let recipe = GraphRecipe { loops: 0.25, elements: 0.1, sums: 0.05, ..GraphRecipe::default() };
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let graph = simplify(&recipe.graph(&mut random), Folding::Real);
        let limit = [4, 16, 200][random.below(3)];
        let primal = simplified(&graph, limit, Stage::Primal);
        let derive = |graph: &Graph| {
            eliminate_dead_code(&reverse(graph, Wanted::GradientAndValue, Folding::Real))
        };
        let gradient = simplified(&derive(&primal), limit, Stage::Final);
        let expected = derive(&graph);
        for _ in 0..4 {
            let inputs = recipe.inputs(&mut random);
            agree(&graph, &primal, &inputs, is_near);
            agree(&expected, &gradient, &inputs, is_near);
        }
    }
}
