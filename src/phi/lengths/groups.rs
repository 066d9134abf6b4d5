//! Lengths that are looked at together: one branch for all of a group.

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::{LEAST, MOST_SQUARES, PER_HUGE, scaled_root};
use crate::op::Op;
use crate::ssa::{Block, Builder, Graph, Item, Node};

/// More have no registers.
const MOST: usize = 8;

/// What is added up in a length of a group, in the graph that is built.
pub(super) struct Part<'a> {
    pub(super) sum: Node,
    pub(super) squared: SmallVec<[Node; MOST_SQUARES]>,
    pub(super) constants: &'a [f64],
}

/// The graph in which the sums of a group come before the first of its roots, and by that root
/// the group: of the same block, and none depends on another. `roots` are the lengths, with what
/// is under the root.
pub(super) fn grouped(
    graph: &Graph,
    roots: &HashMap<Node, Node>,
) -> (Graph, HashMap<Node, Vec<Node>>) {
    let (mut ordered, mut groups) = (graph.clone(), HashMap::new());
    for block in graph.blocks.keys() {
        let mut finish = |group: &[usize]| {
            let items = &mut ordered.blocks[block].items;
            let found: Vec<Node> = group.iter().filter_map(|&at| node_of(items[at])).collect();
            move_sums(graph, roots, items, group);
            if let Some(&first) = found.first() {
                groups.insert(first, found);
            }
        };
        let mut group: Vec<usize> = Vec::new();
        // The lengths of the group, and what depends on them.
        let mut later: HashSet<Node> = HashSet::new();
        for (at, &item) in items_of(graph, block).iter().enumerate() {
            let Some(node) = node_of(item) else {
                finish(&core::mem::take(&mut group));
                later.clear();
                continue;
            };
            if let Some(under) = roots.get(&node) {
                if group.len() == MOST || later.contains(under) {
                    finish(&core::mem::take(&mut group));
                    later.clear();
                }
                group.push(at);
                later.insert(node);
            } else if graph.nodes[node].args().iter().any(|arg| later.contains(arg)) {
                later.insert(node);
            }
        }
        finish(&group);
    }
    (ordered, groups)
}

fn items_of(graph: &Graph, block: Block) -> &[Item] {
    &graph.blocks[block].items
}

fn node_of(item: Item) -> Option<Node> {
    match item {
        Item::Node(node) => Some(node),
        _ => None,
    }
}

/// Moves what the roots at `group` need to where the first of them is. All items in between are
/// nodes.
fn move_sums(graph: &Graph, roots: &HashMap<Node, Node>, items: &mut [Item], group: &[usize]) {
    let (Some(&first), Some(&last)) = (group.first(), group.last()) else { return };
    let mut needed: HashSet<Node> = HashSet::new();
    let between = &mut items[first..=last];
    for node in between.iter().rev().filter_map(|&item| node_of(item)) {
        match roots.get(&node) {
            Some(&under) => _ = needed.insert(under),
            None if needed.contains(&node) => needed.extend(graph.nodes[node].args()),
            None => {}
        }
    }
    let is_needed = |item: &Item| {
        let node = node_of(*item);
        node.is_some_and(|node| needed.contains(&node) && !roots.contains_key(&node))
    };
    between.sort_by_key(|item| !is_needed(item));
}

/// The roots of `parts`.
pub(super) fn lengths(builder: &mut Builder, parts: &[Part<'_>]) -> Vec<Node> {
    let are_usual = are_usual(builder, parts);
    let region = builder.begin_region(None);
    let (usual, unusual) = builder.branch(are_usual);
    builder.enter(usual);
    let roots: Vec<Node> = parts.iter().map(|part| builder.apply(Op::Sqrt, &[part.sum])).collect();
    builder.finish_block(&roots);
    builder.leave();
    builder.enter(unusual);
    let roots: Vec<Node> = parts.iter().map(|part| any_root(builder, part, parts.len())).collect();
    builder.finish_block(&roots);
    builder.leave();
    builder.end_region(region, parts.len())
}

/// The root of a sum that may be tiny or huge, if it is not the only one of a group.
fn any_root(builder: &mut Builder, part: &Part<'_>, group: usize) -> Node {
    let scaled = scaled_root(builder, part);
    if group == 1 {
        return scaled;
    }
    let is_usual = are_usual(builder, core::slice::from_ref(part));
    let plain = builder.apply(Op::Sqrt, &[part.sum]);
    builder.apply(Op::Select, &[is_usual, plain, scaled])
}

/// Whether no sum of `parts`, which are not negative, is below [`LEAST`] or from 1 / [`PER_HUGE`]
/// on. One comparison, so that there is one branch: of the least s and the total t,
/// s·(1 - t·p) is s itself where t is small, and no more than zero, or no number, where t is
/// huge or none.
fn are_usual(builder: &mut Builder, parts: &[Part<'_>]) -> Node {
    let is_never_small =
        |part: &&Part<'_>| part.constants.iter().any(|&constant| constant >= LEAST);
    let all = parts.iter().map(|part| part.sum);
    let may_be_small = parts.iter().filter(|part| !is_never_small(part)).map(|part| part.sum);
    let total = reduced(builder, Op::Add, all);
    let Some(least) = reduced(builder, Op::Min, may_be_small) else {
        let largest = builder.constant(f64::MAX);
        let total = total.unwrap_or(largest);
        return builder.apply(Op::Le, &[total, largest]);
    };
    let [one, per_huge, limit] = [1.0, PER_HUGE, LEAST].map(|number| builder.constant(number));
    let share = builder.apply(Op::Mul, &[total.unwrap_or(least), per_huge]);
    let rest = builder.apply(Op::Sub, &[one, share]);
    let product = builder.apply(Op::Mul, &[least, rest]);
    builder.apply(Op::Ge, &[product, limit])
}

fn reduced(builder: &mut Builder, op: Op, mut nodes: impl Iterator<Item = Node>) -> Option<Node> {
    let first = nodes.next()?;
    Some(nodes.fold(first, |all, node| builder.apply(op, &[all, node])))
}
