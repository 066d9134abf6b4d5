//! What is lost: inputs that a loop depends on and its closed form does not, since what they
//! add is taken away again. Where such an input is NaN or infinite so is what the loop comes
//! to, and a comparison of it goes another way; so there the graph stops.

use std::collections::BTreeSet;

use super::replacement::Replacement;
use crate::op::Op;
use crate::ssa::{AT_ONCE, Def, Flow, Graph, Item, Node, Origins, SeriesData};

/// Why there is no closed form.
pub(super) const LOST: &str = "it would forget which of many inputs are no numbers";

/// So many inputs are looked at at most. What loses more is no closed form.
const MOST_LOST: usize = 64;

/// Makes `new`, which takes the place of `before`, stop where an input is NaN or infinite that
/// a value no longer depends on. Whether there are few enough.
pub(super) fn require_what_is_lost(before: &Graph, new: &mut Replacement) -> bool {
    let Some(lost) = lost(before, new) else { return false };
    let graph = &mut new.graph;
    let (root, mut items) = (graph.root(), Vec::new());
    let infinity = graph.push_const(f64::INFINITY.to_bits());
    for number in lost {
        let known = graph.input_nodes().find(|&(_, of)| of == number);
        let input = known.map_or_else(|| graph.push_input(number), |(node, _)| node);
        let first = graph.blocks[root].items.len();
        let size = graph.push_apply(root, Op::Abs, &[input], None);
        let condition = graph.push_apply(root, Op::Lt, &[size, infinity], None);
        items.extend(graph.blocks[root].items.drain(first..));
        items.push(Item::Guard { condition, expect: true });
    }
    graph.blocks[root].items.splice(0..0, items);
    true
}

/// The numbers of the inputs that are lost; `None` if there are too many.
fn lost(before: &Graph, new: &Replacement) -> Option<BTreeSet<u32>> {
    // What comes out of loops, and what is read of their iterations.
    let is_result = |&node: &Node| match before.nodes[node].def {
        Def::Phi(..) => true,
        Def::Element(access) => {
            let series = before.accesses[access].series;
            matches!(before.series[series], SeriesData::History(_))
        }
        _ => false,
    };
    let results: Vec<Node> = new.nodes.keys().copied().filter(is_result).collect();
    let mut lost = BTreeSet::new();
    if results.is_empty() {
        return Some(lost);
    }
    let (then, now) = (Origins::of(Flow::of(before)), Origins::of(Flow::of(&new.graph)));
    let series = before.series.values().filter_map(|data| match *data {
        SeriesData::Inputs { first, count } => Some(first..first + count),
        _ => None,
    });
    let single = before.input_nodes().map(|(_, number)| number);
    let inputs: BTreeSet<u32> = single.chain(series.flatten()).collect();
    for inputs in inputs.into_iter().collect::<Vec<u32>>().chunks(AT_ONCE) {
        let (then, now) = (then.among(inputs), now.among(inputs));
        let missing = |&node: &Node| then[node] & !now[new.resolved(node)];
        let missing = results.iter().map(missing).fold(0, |all, some| all | some);
        let is_missing = |at: &usize| missing >> at & 1 == 1;
        lost.extend((0..inputs.len()).filter(is_missing).map(|at| inputs[at]));
        if lost.len() > MOST_LOST {
            return None;
        }
    }
    Some(lost)
}
