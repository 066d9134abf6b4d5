//! Versions of loops: a routine's values where it accepts its operands, and otherwise the loop.

use super::fold::Folding;
use super::graph::{Def, Graph, Node};
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
