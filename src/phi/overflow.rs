//! Overflow: a closed form may be NaN where the loop is infinite, or infinite where it is NaN.
//! What comes out of the program is then computed on the tape; but where something is decided
//! by it, or is finite all the same, the graph stops.

use super::replacement::Replacement;
use crate::op::Op;
use crate::ssa::{Def, Flow, Graph, Item, Nest, hidden_nodes};

/// Makes `new`, which takes the place of `before`, stop where a result of a loop that is in no
/// other one is not finite, if that could be hidden.
pub(super) fn require_what_is_hidden(before: &Graph, new: &mut Replacement) {
    let nest = Nest::of(before);
    let hidden = hidden_nodes(before, &Flow::of(before));
    let is_result = |node| match before.nodes[node].def {
        Def::Phi(region, _) => hidden[node] && nest.region_block(region) == Some(before.root()),
        _ => false,
    };
    let mut results: Vec<_> = new.nodes.keys().copied().filter(|&node| is_result(node)).collect();
    results.sort_unstable();
    let mut results: Vec<_> = results.into_iter().map(|node| new.resolved(node)).collect();
    results.dedup();
    let graph = &mut new.graph;
    let (root, infinity) = (graph.root(), graph.push_const(f64::INFINITY.to_bits()));
    for result in results {
        if graph.constant(result).is_none() {
            let size = graph.push_apply(root, Op::Abs, &[result], None);
            let condition = graph.push_apply(root, Op::Lt, &[size, infinity], None);
            graph.blocks[root].items.push(Item::Guard { condition, expect: true });
        }
    }
}
