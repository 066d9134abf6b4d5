//! Activity analysis: the values that derivatives pass through.

use smallvec::SmallVec;

use super::Flow;
use crate::entity::PrimaryMap;
use crate::op::{Numbers, Op, contribution};
use crate::ssa::arrays::ArrayData;
use crate::ssa::graph::{Def, End, Graph, Node};

/// The active nodes: those that a derivative of the first output with respect to an active input
/// passes through.
///
/// # Examples
///
/// ```
/// use phigrad::internals::ssa::{activity, parse};
///
/// let text = "graph active 1 inactive 1\nb0:\n  v2 = floor v0\n  v3 = mul v1 v1\n  \
///             v4 = mul v0 v3\n  v5 = mul v2 v4\n  return v5\n";
/// let active = activity(&parse(text)?);
/// assert_eq!(active.values().copied().collect::<Vec<_>>(), [true, false, false, false, true, true]);
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn activity(graph: &Graph) -> PrimaryMap<Node, bool> {
    let flow = Flow::of(graph);
    varied_and_active(graph, |node| targets(&flow, graph, node)).1
}

/// Varied and active nodes: varied nodes depend on an active input, and the first output depends
/// on active ones as well. `targets` returns the nodes to which a node passes its adjoint.
pub(crate) fn varied_and_active(
    graph: &Graph,
    targets: impl Fn(Node) -> SmallVec<[Node; 4]>,
) -> (PrimaryMap<Node, bool>, PrimaryMap<Node, bool>) {
    let targets: PrimaryMap<Node, SmallVec<[Node; 4]>> = graph.nodes.keys().map(targets).collect();
    let mut users: PrimaryMap<Node, SmallVec<[Node; 4]>> =
        PrimaryMap::filled(SmallVec::new(), graph.nodes.len());
    for (node, targets) in targets.iter() {
        targets.iter().for_each(|&target| users[target].push(node));
    }
    let is_active = |&node: &Node| match graph.nodes[node].def {
        Def::Input(number) => graph.is_active(number),
        Def::Element(access) => match graph.arrays[graph.accesses[access].array] {
            ArrayData::Inputs { first, .. } => graph.is_active(first),
            _ => false,
        },
        _ => false,
    };
    let inputs = graph.nodes.keys().filter(is_active).collect();
    let varied = reachable(graph, inputs, &users, |_| true);
    let output = |&leaf: &_| match &graph.blocks[leaf].end {
        End::Return(outputs) => outputs.first().copied(),
        End::Branch { .. } | End::Open => None,
    };
    let outputs = graph.leaves(graph.root()).iter().filter_map(output).collect();
    let active = reachable(graph, outputs, &targets, |node| varied[node]);
    (varied, active)
}

/// The nodes that are reachable from `pending` through allowed nodes.
fn reachable(
    graph: &Graph,
    mut pending: Vec<Node>,
    nexts: &PrimaryMap<Node, SmallVec<[Node; 4]>>,
    is_allowed: impl Fn(Node) -> bool,
) -> PrimaryMap<Node, bool> {
    let mut reachable = PrimaryMap::filled(false, graph.nodes.len());
    while let Some(node) = pending.pop() {
        if is_allowed(node) && !core::mem::replace(&mut reachable[node], true) {
            pending.extend(&nexts[node]);
        }
    }
    reachable
}

/// The nodes to which `node` passes its adjoint.
fn targets(flow: &Flow<'_>, graph: &Graph, node: Node) -> SmallVec<[Node; 4]> {
    let sources = flow.sources(node);
    let op = match graph.nodes[node].def {
        Def::Apply(op, _) => op,
        // The derivatives of calls are attached to their results.
        Def::Call(_) | Def::Result(..) => return SmallVec::new(),
        _ => return sources,
    };
    let passes = |&(operand, _): &(usize, Node)| passes_on(op, operand);
    sources.into_iter().enumerate().filter(passes).map(|(_, source)| source).collect()
}

/// Tests whether the partial derivative of `op` with respect to this operand is not zero
/// everywhere.
pub(crate) fn passes_on(op: Op, operand: usize) -> bool {
    contribution(&mut Numbers, op, operand, [1.0; 3], 1.0, 1.0).is_some()
}
