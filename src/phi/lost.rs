//! What is lost: inputs that a loop depends on and its closed form does not, since what they
//! add is taken away again. Where such an input is NaN or infinite so is what the loop comes
//! to, and a comparison of it goes another way; so there the graph stops. So it does where an
//! expression of such inputs that a loop uses is NaN or infinite.

use std::collections::{BTreeMap, BTreeSet};

use super::overflow::is_result;
use super::replacement::Replacement;
use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{AT_ONCE, Def, Flow, Folding, Graph, Item, Node, Origins, SeriesData, rebuild};

/// Why there is no closed form.
pub(super) const LOST: &str = "it would forget which of many inputs are no numbers";

/// So many inputs, and expressions of them, are looked at at most. What loses more is no
/// closed form.
const MOST_LOST: usize = 64;

/// So many nodes such expressions are made of at most.
const MOST_COPIED: usize = 256;

/// Makes `new`, which takes the place of `before`, stop where an input that a value no longer
/// depends on is NaN or infinite, or an expression of it. Whether there are few enough.
pub(super) fn require_what_is_lost(before: &Graph, new: &mut Replacement) -> bool {
    let Some(lost) = lost(before, new) else { return false };
    if lost.is_empty() {
        return true;
    }
    let Some(expressions) = expressions(before, &lost) else { return false };
    let graph = &mut new.graph;
    let root = graph.root();
    let first = graph.blocks[root].items.len();
    let mut finite = BTreeSet::new();
    for number in lost {
        let known = graph.input_nodes().find(|&(_, of)| of == number);
        finite.insert(known.map_or_else(|| graph.push_input(number), |(node, _)| node));
    }
    let mut copies = BTreeMap::new();
    finite.extend(expressions.into_iter().map(|node| copied(graph, node, &mut copies)));
    let infinity = graph.push_const(f64::INFINITY.to_bits());
    for node in finite {
        let size = graph.push_apply(root, Op::Abs, &[node], None);
        let condition = graph.push_apply(root, Op::Lt, &[size, infinity], None);
        graph.blocks[root].items.push(Item::Guard { condition, expect: true });
    }
    let items = &mut graph.blocks[root].items;
    let count = items.len() - first;
    items.rotate_right(count);
    true
}

/// `graph` with zero for what is taken from itself; where that is no number or infinite it stops.
/// Closed forms show such differences of what loops carried by itself, and their derivatives
/// would be added to others, and taken away again without their last digits.
pub(super) fn without_differences(graph: &Graph) -> Graph {
    rebuild(graph, Folding::Real, |rebuild, node| match graph.nodes[node].def {
        Def::Apply(Op::Sub, [a, b, _]) if a == b => {
            let (a, infinity) = (rebuild.copied(a), rebuild.builder.constant(f64::INFINITY));
            let size = rebuild.builder.apply(Op::Abs, &[a]);
            let condition = rebuild.builder.apply(Op::Lt, &[size, infinity]);
            rebuild.builder.guard(condition, true);
            Some(rebuild.builder.constant(0.0))
        }
        _ => None,
    })
}

/// `node`, an expression of inputs, in the root.
fn copied(graph: &mut Graph, node: Node, copies: &mut BTreeMap<Node, Node>) -> Node {
    if let Some(&copy) = copies.get(&node) {
        return copy;
    }
    let Def::Apply(op, args) = graph.nodes[node].def else { return node };
    let args: Vec<Node> =
        args[..op.arity()].iter().map(|&arg| copied(graph, arg, copies)).collect();
    let (root, place) = (graph.root(), graph.nodes[node].place);
    let copy = graph.push_apply(root, op, &args, place);
    copies.insert(node, copy);
    copy
}

/// The numbers of the inputs that are lost; `None` if there are too many.
fn lost(before: &Graph, new: &Replacement) -> Option<BTreeSet<u32>> {
    let results: Vec<Node> =
        new.nodes.keys().copied().filter(|&node| is_result(before, node)).collect();
    let mut lost = BTreeSet::new();
    if results.is_empty() {
        return Some(lost);
    }
    let series = before.series.values().filter_map(|data| match *data {
        SeriesData::Inputs { first, count } => Some(first..first + count),
        _ => None,
    });
    let single = before.input_nodes().map(|(_, number)| number);
    let inputs: BTreeSet<u32> = single.chain(series.flatten()).collect();
    let inputs: Vec<u32> = inputs.into_iter().collect();
    // An input is lost, too, if only what hides an infinite one is left of it.
    for ways in [Origins::of, Origins::plain] {
        let (then, now) = (ways(Flow::of(before)), ways(Flow::of(&new.graph)));
        for inputs in inputs.chunks(AT_ONCE) {
            let (then, now) = (then.among(inputs), now.among(inputs));
            let missing = |&node: &Node| then[node] & !now[new.resolved(node)];
            let missing = results.iter().map(missing).fold(0, |all, some| all | some);
            let is_missing = |at: &usize| missing >> at & 1 == 1;
            lost.extend((0..inputs.len()).filter(is_missing).map(|at| inputs[at]));
            if lost.len() > MOST_LOST {
                return None;
            }
        }
    }
    Some(lost)
}

/// The expressions of inputs, `lost` ones among them, that more is computed from than other
/// such expressions; `None` if there are too many.
fn expressions(graph: &Graph, lost: &BTreeSet<u32>) -> Option<Vec<Node>> {
    // Of inputs alone, and of lost ones.
    let mut kinds = Array::filled((false, false), graph.nodes.len());
    loop {
        let mut is_done = true;
        for (node, data) in graph.nodes.iter() {
            let kind = match data.def {
                Def::Input(number) => (true, lost.contains(&number)),
                Def::Const(_) => (true, false),
                Def::Apply(..) => {
                    let args = || data.args().iter().map(|&arg| kinds[arg]);
                    (args().all(|(is_fixed, _)| is_fixed), args().any(|(_, is_lost)| is_lost))
                }
                _ => continue,
            };
            if kind.0 && kind != kinds[node] {
                (kinds[node], is_done) = (kind, false);
            }
        }
        if is_done {
            break;
        }
    }
    let flow = Flow::of(graph);
    let mut found = BTreeSet::new();
    for node in graph.nodes.keys().filter(|&node| !kinds[node].0) {
        let is_lost = |source: &Node| kinds[*source] == (true, true);
        found.extend(flow.sources(node).into_iter().filter(is_lost));
        if found.len() > MOST_LOST {
            return None;
        }
    }
    let found: Vec<Node> = found.into_iter().collect();
    // They are computed again, from the inputs on.
    let (mut seen, mut pending) = (BTreeSet::new(), found.clone());
    while let Some(node) = pending.pop() {
        if seen.insert(node) {
            pending.extend(graph.nodes[node].args());
        }
        if seen.len() > MOST_COPIED {
            return None;
        }
    }
    Some(found)
}
