//! Loop versions: the values of a routine if it accepts its operands, otherwise the loop.

use hashbrown::HashSet;

use super::fold::Folding;
use super::graph::{Block, BlockData, Def, End, Graph, Node, Region};
use super::interpret::interpret_while;
use super::rebuild::rebuild;
use crate::op::Op;

/// Tests whether `node` is the acceptance of calls: a call, or a product of calls.
pub(crate) fn is_acceptance(graph: &Graph, node: Node) -> bool {
    let (mut pending, mut remaining) = (vec![node], 2 * graph.calls.len());
    while let Some(node) = pending.pop() {
        match graph.nodes[node].def {
            _ if remaining == 0 => return false,
            Def::Call(call) if graph.calls[call].routine.custom().is_none() => {}
            Def::Apply(Op::Mul, [a, b, _]) => pending.extend([a, b]),
            _ => return false,
        }
        remaining -= 1;
    }
    true
}

/// The block of the fallback loop, if `data` ends with a choice between a routine and a loop.
fn fallback(graph: &Graph, data: &BlockData) -> Option<Block> {
    match data.end {
        End::Branch { condition, otherwise, .. } if is_acceptance(graph, condition) => {
            Some(otherwise)
        }
        _ => None,
    }
}

/// The loops that run only if a call is rejected.
pub(crate) fn fallback_loops(graph: &Graph) -> HashSet<Region> {
    let mut loops = HashSet::new();
    for block in graph.blocks.values().filter_map(|data| fallback(graph, data)) {
        for region in graph.regions_of(block) {
            loops.insert(region);
            let inside = graph.blocks_inside(region).into_iter();
            loops.extend(inside.flat_map(|block| graph.regions_of(block)));
        }
    }
    loops
}

/// Tests whether all calls that choose between loop versions are accepted at these inputs, active
/// before inactive; `None` if `graph`, a verified graph, stops without a result.
///
/// # Examples
///
/// ```
/// use phigrad::internals::ssa::{accepts_calls, parse};
///
/// let text = "graph active 1 inactive 0\n\
///             c0 = routine affine_power inputs 1 wrt x0 : t0 = x0 | t1 = const 1.0 | \
///             advance 300 states 1 matrix t0 offset - start t1 outputs 0\n\
///             b0:\n  v1 = call c0 v0\n  v2 = result v1 1\n  v3 = region r0 b1\n  return v3\n\
///             b1:\n  branch v1 b2 b3\nb2:\n  return v2\nb3:\n  return v0\n";
/// let graph = parse(text)?;
/// assert_eq!(accepts_calls(&graph, &[0.5]), Some(true));
/// // A power beyond 2^500 is out of range.
/// assert_eq!(accepts_calls(&graph, &[10.0]), Some(false));
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn accepts_calls(graph: &Graph, inputs: &[f64]) -> Option<bool> {
    let fallback: HashSet<Block> =
        graph.blocks.values().filter_map(|data| fallback(graph, data)).collect();
    let mut accepted = true;
    let outcome = interpret_while(graph, inputs, |block| {
        accepted &= !fallback.contains(&block);
        true
    });
    outcome.ok().map(|_| accepted)
}

/// `graph` without custom derivatives: values only.
pub(crate) fn without_attached(graph: &Graph, folding: Folding) -> Graph {
    if !graph.nodes.values().any(|data| matches!(data.def, Def::Apply(Op::Attach, _))) {
        return graph.clone();
    }
    rebuild(graph, folding, |rebuild, node| match rebuild.graph().nodes[node].def {
        Def::Apply(Op::Attach, [value, ..]) => Some(rebuild.copied(value)),
        _ => None,
    })
}

/// `graph` with the fallback loops only, for derivatives of a higher order than routines have.
pub(crate) fn without_versions(graph: &Graph, folding: Folding) -> Graph {
    if graph.calls.is_empty() {
        return graph.clone();
    }
    rebuild(graph, folding, |rebuild, node| {
        is_acceptance(rebuild.graph(), node).then(|| rebuild.builder.constant(0.0))
    })
}
