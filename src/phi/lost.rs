//! What is lost: inputs that a loop depends on and its closed form does not, since what they
//! add is taken away again. Where such an input is NaN or infinite so is what the loop comes
//! to, and a comparison of it goes another way; so there the graph stops.

use std::collections::BTreeSet;

use super::replacement::Replacement;
use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{Def, Flow, Graph, Item, Node, SeriesData};

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
    for input in lost {
        let first = graph.blocks[root].items.len();
        let size = graph.push_apply(root, Op::Abs, &[input], None);
        let condition = graph.push_apply(root, Op::Lt, &[size, infinity], None);
        items.extend(graph.blocks[root].items.drain(first..));
        items.push(Item::Guard { condition, expect: true });
    }
    graph.blocks[root].items.splice(0..0, items);
    true
}

/// The nodes of the inputs that are lost; `None` if there are too many.
fn lost(before: &Graph, new: &Replacement) -> Option<BTreeSet<Node>> {
    // What comes out of loops, and what is read of their iterations.
    let is_result = |&node: &Node| match before.nodes[node].def {
        Def::Phi(..) => true,
        Def::Element(access) => {
            let series = before.accesses[access].series;
            matches!(before.series[series], SeriesData::History(_))
        }
        _ => false,
    };
    let results = new.nodes.keys().copied().filter(is_result);
    let (then, now) = (Flow::of(before), Flow::of(&new.graph));
    let node = |number: u32| {
        before.nodes.keys().find(|&node| before.nodes[node].def == Def::Input(number))
    };
    let mut lost = BTreeSet::new();
    for result in results {
        let (then, now) = (inputs(&then, result), inputs(&now, new.resolved(result)));
        for number in then.difference(&now) {
            lost.insert(node(*number)?);
        }
        if lost.len() > MOST_LOST {
            return None;
        }
    }
    Some(lost)
}

/// The numbers of the inputs that `node` is computed from.
fn inputs(flow: &Flow<'_>, node: Node) -> BTreeSet<u32> {
    let graph = flow.graph();
    let (mut inputs, mut pending) = (BTreeSet::new(), vec![node]);
    let mut seen = Array::filled(false, graph.nodes.len());
    let mut read = Array::filled(false, graph.series.len());
    while let Some(node) = pending.pop() {
        if core::mem::replace(&mut seen[node], true) {
            continue;
        }
        match graph.nodes[node].def {
            Def::Input(number) => {
                inputs.insert(number);
            }
            Def::Element(access) => {
                let series = graph.accesses[access].series;
                if core::mem::replace(&mut read[series], true) {
                    continue;
                }
                if let SeriesData::Inputs { first, count } = graph.series[series] {
                    inputs.extend(first..first + count);
                }
                pending.extend(flow.elements(series));
            }
            _ => pending.extend(flow.sources(node)),
        }
    }
    inputs
}
