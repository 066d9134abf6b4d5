//! Simplification: rebuilds a graph with folding and removes dead code.

use super::dead::eliminate_dead_code;
use super::fold::Folding;
use super::graph::Graph;
use super::rebuild::rebuild;
use super::rebuild_loops::has_invariant_entries;

/// A smaller graph with the same outputs.
///
/// Besides what [`Builder`](super::Builder) folds, branches are removed whose condition is
/// constant, or known from a guard or branch above. Where one region replays another, the
/// branches that they share stay or go in both. Entry φs that keep their initial values in all
/// iterations are replaced by these.
///
/// With [`Folding::Exact`] the outputs have the same bits; with [`Folding::Real`] as well, except
/// for the sign of NaN.
///
/// # Examples
///
/// ```
/// use phigrad::internals::ssa::{Folding, parse, simplify};
///
/// let text = "graph active 1 inactive 0\nv1 = const 1\nb0:\n  v2 = mul v0 v1\n  v3 = exp v0\n  return v2\n";
/// let small = simplify(&parse(text)?, Folding::Exact);
/// assert_eq!(small.to_string(), "graph active 1 inactive 0\nb0:\n  return v0\n");
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn simplify(graph: &Graph, folding: Folding) -> Graph {
    without_invariant_entries(folded(graph, folding), folding)
}

fn folded(graph: &Graph, folding: Folding) -> Graph {
    // Folding leaves dead nodes behind.
    eliminate_dead_code(&rebuild(graph, folding, |_, _| None))
}

/// `graph` simplified until no entry φ keeps its initial value in all iterations; the same graph if
/// there is none now. Such a φ may become a constant that folds what another one is passed.
pub(crate) fn without_invariant_entries(mut graph: Graph, folding: Folding) -> Graph {
    let entries =
        |graph: &Graph| graph.regions.keys().map(|region| graph.entries(region).len()).sum();
    let mut last = usize::MAX;
    while has_invariant_entries(&graph) && entries(&graph) < last {
        last = entries(&graph);
        graph = folded(&graph, folding);
    }
    graph
}
