//! Activity analysis: the values that derivatives pass through.

use smallvec::SmallVec;

use super::Flow;
use crate::entity::PrimaryMap;
use crate::op::{Numbers, Op, contribution};
use crate::ssa::arrays::{Access, ArrayData};
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
    Activity::of(&Flow::of(graph)).active
}

/// The values that derivatives pass through.
pub(crate) struct Activity {
    /// True for nodes that depend on an active input; for a φ on some path through its region.
    pub(crate) varied: PrimaryMap<Node, bool>,
    /// True for varied nodes that the first output depends on.
    pub(crate) active: PrimaryMap<Node, bool>,
}

impl Activity {
    /// The activity of the graph of `flow`.
    pub(crate) fn of(flow: &Flow<'_>) -> Activity {
        let graph = flow.graph();
        let targets = all_targets(flow);
        let varied = varied_from(graph, &users(&targets), |number| graph.is_active(number));
        let output = |&leaf: &_| match &graph.blocks[leaf].end {
            End::Return(outputs) => outputs.first().copied(),
            End::Branch { .. } | End::Open => None,
        };
        let outputs = graph.leaves(graph.root()).iter().filter_map(output).collect();
        let active = reachable(graph, outputs, &targets, |node| varied[node]);
        Activity { varied, active }
    }
}

/// For each of `inputs`, sets of inputs, the nodes that vary with them: as [`Activity::varied`].
pub(crate) fn varied_by<I: Fn(u32) -> bool>(
    flow: &Flow<'_>,
    inputs: impl IntoIterator<Item = I>,
) -> Vec<PrimaryMap<Node, bool>> {
    let users = users(&all_targets(flow));
    inputs.into_iter().map(|inputs| varied_from(flow.graph(), &users, inputs)).collect()
}

/// The nodes that the adjoint of each node propagates to.
fn all_targets(flow: &Flow<'_>) -> PrimaryMap<Node, SmallVec<[Node; 4]>> {
    flow.graph().nodes.keys().map(|node| adjoint_targets(flow, node)).collect()
}

/// The nodes whose adjoints propagate to each node.
fn users(targets: &PrimaryMap<Node, SmallVec<[Node; 4]>>) -> PrimaryMap<Node, SmallVec<[Node; 4]>> {
    let mut users = PrimaryMap::filled(SmallVec::new(), targets.len());
    for (node, targets) in targets.iter() {
        targets.iter().for_each(|&target: &Node| users[target].push(node));
    }
    users
}

/// The nodes that vary with the inputs for which `is_active` holds.
fn varied_from(
    graph: &Graph,
    users: &PrimaryMap<Node, SmallVec<[Node; 4]>>,
    is_active: impl Fn(u32) -> bool,
) -> PrimaryMap<Node, bool> {
    let is_active_input = |&node: &Node| match graph.nodes[node].def {
        Def::Input(number) => is_active(number),
        Def::Element(access) => match graph.arrays[graph.accesses[access].array] {
            ArrayData::Inputs { first, count } => (first..first + count).any(&is_active),
            _ => false,
        },
        _ => false,
    };
    let inputs = graph.nodes.keys().filter(is_active_input).collect();
    reachable(graph, inputs, users, |_| true)
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

/// The nodes that the adjoint of `node` propagates to: those that its value comes from, but for
/// operands with a partial derivative of zero, and values that no path passes on.
pub(crate) fn adjoint_targets(flow: &Flow<'_>, node: Node) -> SmallVec<[Node; 4]> {
    let graph = flow.graph();
    match graph.nodes[node].def {
        Def::Apply(op, args) => {
            let passing = (0..op.arity()).filter(|&operand| passes_on(op, operand));
            passing.map(|operand| args[operand]).collect()
        }
        Def::Call(call) => match graph.calls[call].routine.custom() {
            Some(_) => graph.calls[call].args.iter().copied().collect(),
            // `attach` operations on the results give its derivatives.
            None => SmallVec::new(),
        },
        Def::Result(call, _) => match graph.custom_routine(call) {
            Some(_) => core::iter::once(call).collect(),
            None => SmallVec::new(),
        },
        Def::Phi(region, number) => flow.phi_values(region, number as usize).collect(),
        Def::Entry(region, number) => {
            let first = graph.entries(region)[number as usize].first;
            core::iter::once(first).chain(flow.phi_nexts(region, number as usize)).collect()
        }
        Def::Element(access) => match known_element(graph, access) {
            Some(only) => core::iter::once(only).collect(),
            None => flow.sources(node),
        },
        Def::Input(_) | Def::Const(_) | Def::Iteration(_) => SmallVec::new(),
    }
}

/// The node at `access` to an array of nodes, if it is the same in all iterations.
pub(crate) fn known_element(graph: &Graph, access: Access) -> Option<Node> {
    let data = &graph.accesses[access];
    let ArrayData::Nodes(nodes) = &graph.arrays[data.array] else { return None };
    let only = *nodes.get(data.base as usize)?;
    let is_fixed =
        data.strides.iter().all(|&(region, stride)| stride == 0 || graph.bound(region) <= 1)
            && data.changes.is_empty();
    (is_fixed || nodes.iter().all(|&node| node == only)).then_some(only)
}

/// Tests whether the partial derivative of `op` with respect to this operand is not zero
/// everywhere.
pub(crate) fn passes_on(op: Op, operand: usize) -> bool {
    contribution(&mut Numbers, op, operand, [1.0; 3], 1.0, 1.0).is_some()
}
