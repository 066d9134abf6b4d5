//! Comparison of graphs before and after rerolling.

use phigrad::check::same;
use phigrad::internals::ssa::Graph;

use super::outcomes;

/// Asserts that both graphs have the same outcome; returns true if it is a result.
pub fn agree(graph: &Graph, rolled: &Graph, point: &[f64]) -> bool {
    outcomes::agree(graph, rolled, point, same)
}

/// The number of loops.
pub fn loops(graph: &Graph) -> usize {
    graph.regions.values().filter(|data| data.cycle.is_some()).count()
}
