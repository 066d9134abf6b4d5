//! Overflow: a closed form may be NaN where the loop is infinite, or infinite where it is NaN.
//! What comes out of the program is then computed on the tape; but where something is decided
//! by it, or is finite all the same, the graph stops.

use std::collections::BTreeSet;

use super::replacement::Replacement;
use crate::op::Op;
use crate::ssa::{Def, Flow, Graph, Item, Nest, hidden_nodes};

/// Makes `new`, which takes the place of `before`, stop where what a loop came to is not
/// finite, if that could be hidden.
pub(super) fn require_what_is_hidden(before: &Graph, new: &mut Replacement) {
    let hidden = hidden_nodes(before, &Flow::of(before));
    let is_result = |node| matches!(before.nodes[node].def, Def::Phi(..)) && hidden[node];
    let results = new.nodes.keys().filter(|&&node| is_result(node));
    let mut results: BTreeSet<_> = results.map(|&node| new.resolved(node)).collect();
    let nest = Nest::of(&new.graph);
    let graph = &mut new.graph;
    results.retain(|&result| graph.constant(result).is_none());
    let infinity = graph.push_const(f64::INFINITY.to_bits());
    for result in results {
        let block = nest.node_block(result).unwrap_or(graph.root());
        let size = graph.push_apply(block, Op::Abs, &[result], None);
        let condition = graph.push_apply(block, Op::Lt, &[size, infinity], None);
        graph.blocks[block].items.push(Item::Guard { condition, expect: true });
    }
}
