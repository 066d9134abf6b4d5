//! Simplification: rebuilds a graph with folding and removes dead code.

use super::dead::eliminate_dead_code;
use super::fold::Folding;
use super::graph::Graph;
use super::rebuild::rebuild;

/// A smaller graph with the same outputs.
///
/// Besides what [`Builder`](super::Builder) folds, branches are removed whose condition is
/// constant, or known from a guard or branch above. Where one region replays another, the
/// branches that they share stay or go in both.
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
    // Folding leaves dead nodes behind.
    eliminate_dead_code(&rebuild(graph, folding, |_, _| None))
}
