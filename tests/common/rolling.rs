//! Comparison of graphs before and after rerolling.

use phigrad::internals::ssa::{Graph, Outcome, interpret};

use super::programs::all_same;

/// Asserts that both graphs have the same outcome; returns true if it is a result.
pub fn agree(graph: &Graph, rolled: &Graph, point: &[f64]) -> bool {
    match (interpret(graph, point), interpret(rolled, point)) {
        (Outcome::Values(a), Outcome::Values(b)) => {
            assert!(all_same(&a, &b), "{a:?} {b:?} at {point:?}\n{graph}\n{rolled}");
            true
        }
        (Outcome::Unseen(_), Outcome::Unseen(_)) => false,
        (a, b) => panic!("{a:?} {b:?} at {point:?}\n{graph}\n{rolled}"),
    }
}

/// The number of loops.
pub fn loops(graph: &Graph) -> usize {
    graph.regions.values().filter(|data| data.cycle.is_some()).count()
}
