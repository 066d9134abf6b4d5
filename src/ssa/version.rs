//! Versions of loops: a routine's values where it accepts its operands, and otherwise the loop.

use hashbrown::HashSet;

use super::copy::blocks_inside;
use super::fold::Folding;
use super::graph::{Def, End, Graph, Node, Region};
use super::rebuild::rebuild;
use crate::op::Op;

/// Whether `node` says that calls are accepted.
pub(crate) fn is_acceptance(graph: &Graph, node: Node) -> bool {
    match graph.nodes[node].def {
        Def::Call(_) => true,
        Def::Apply(Op::Mul, [a, b, _]) => is_acceptance(graph, a) && is_acceptance(graph, b),
        _ => false,
    }
}

/// The loops that run only where a call is rejected.
pub(crate) fn fallback_loops(graph: &Graph) -> HashSet<Region> {
    let mut loops = HashSet::new();
    for data in graph.blocks.values() {
        match data.end {
            End::Branch { condition, otherwise, .. } if is_acceptance(graph, condition) => {
                for region in graph.regions_of(otherwise) {
                    loops.insert(region);
                    let inside = blocks_inside(graph, region).into_iter();
                    loops.extend(inside.flat_map(|block| graph.regions_of(block)));
                }
            }
            _ => {}
        }
    }
    loops
}

/// `graph` without custom derivatives: values alone.
pub(crate) fn without_attached(graph: &Graph, folding: Folding) -> Graph {
    if !graph.nodes.values().any(|data| matches!(data.def, Def::Apply(Op::Attach, _))) {
        return graph.clone();
    }
    rebuild(graph, folding, |rebuild, node| match rebuild.graph().nodes[node].def {
        Def::Apply(Op::Attach, [value, ..]) => Some(rebuild.copied(value)),
        _ => None,
    })
}

/// `graph` with the loops alone, for derivatives of a higher order than routines have.
pub(crate) fn without_versions(graph: &Graph, folding: Folding) -> Graph {
    if graph.calls.is_empty() {
        return graph.clone();
    }
    rebuild(graph, folding, |rebuild, node| {
        is_acceptance(rebuild.graph(), node).then(|| rebuild.builder.constant(0.0))
    })
}
