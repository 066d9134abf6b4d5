//! Reuse-aware division of straight-line code (section 4 of the paper).
//!
//! A leaf of the def-use region tree is here a basic block: the applications of a
//! block between two regions of it. What is inside a region is in basic blocks of
//! its own, so that only leaves have expressions of straight-line code. A basic block
//! larger than the limit is split in two at the value in it that has the most
//! references, again and again; small neighbours are merged up to the limit.

use crate::entity::PrimaryMap;
use crate::ssa::{Def, Graph, Item, Node, Segments};

/// The segments of `graph` of at most `limit` nodes each, divided where a value
/// has many references: it is computed once, in the segment before, and its
/// uses see it as one input.
///
/// Of the middle half of what is split the value with the most references counts,
/// of several the one closest to the middle. So the work is in proportion to the
/// number of nodes times the logarithm of the largest basic block.
///
/// # Examples
///
/// ```
/// use phigrad::internals::soi::divide;
/// use phigrad::internals::ssa::parse;
///
/// // v2 is used three times.
/// let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v2 = cos v1\n  v3 = exp v2\n  \
///             v4 = mul v3 v2\n  v5 = add v4 v2\n  v6 = sin v5\n  return v6\n";
/// let segments = divide(&parse(text)?, 4);
/// let sizes: Vec<_> = segments.list.iter().map(|segment| segment.nodes.len()).collect();
/// assert_eq!(sizes, [2, 4]);
/// assert_eq!(segments.list[0].outputs.len(), 1);
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn divide(graph: &Graph, limit: usize) -> Segments {
    let limit = limit.max(1);
    let references = references(graph);
    let mut parts = Vec::new();
    for basic_block in basic_blocks(graph) {
        let mut done: Vec<Vec<Node>> = Vec::new();
        // The next part last.
        let mut worklist = vec![&basic_block[..]];
        while let Some(part) = worklist.pop() {
            if part.len() > limit {
                let (before, after) = part.split_at(most_referenced(part, &references));
                worklist.extend([after, before]);
                continue;
            }
            match done.last_mut() {
                Some(last) if last.len() + part.len() <= limit => last.extend(part),
                _ => done.push(part.to_vec()),
            }
        }
        parts.extend(done);
    }
    Segments::new(graph, parts)
}

/// The segments of `graph` of `limit` nodes each, but for the last of a basic block:
/// what [`divide`] is compared with.
///
/// # Examples
///
/// ```
/// use phigrad::internals::soi::divide_evenly;
/// use phigrad::internals::ssa::parse;
///
/// let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v2 = cos v1\n  v3 = exp v2\n  return v3\n";
/// let segments = divide_evenly(&parse(text)?, 2);
/// let sizes: Vec<_> = segments.list.iter().map(|segment| segment.nodes.len()).collect();
/// assert_eq!(sizes, [2, 1]);
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn divide_evenly(graph: &Graph, limit: usize) -> Segments {
    let basic_blocks = basic_blocks(graph);
    let parts = basic_blocks.iter().flat_map(|basic_block| basic_block.chunks(limit.max(1)));
    Segments::new(graph, parts.map(<[Node]>::to_vec).collect())
}

/// The applications between regions, in order.
fn basic_blocks(graph: &Graph) -> Vec<Vec<Node>> {
    let mut basic_blocks = Vec::new();
    for block in graph.preorder() {
        let mut basic_block = Vec::new();
        for item in &graph.blocks[block].items {
            match *item {
                Item::Node(node) if matches!(graph.nodes[node].def, Def::Apply(..)) => {
                    basic_block.push(node);
                }
                // A value may go through a region and come back.
                Item::Region(_) => basic_blocks.push(core::mem::take(&mut basic_block)),
                Item::Node(_) | Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) => {}
            }
        }
        basic_blocks.push(basic_block);
    }
    basic_blocks.retain(|basic_block| !basic_block.is_empty());
    basic_blocks
}

/// How often applications use each node.
fn references(graph: &Graph) -> PrimaryMap<Node, u32> {
    let mut references = PrimaryMap::filled(0, graph.nodes.len());
    for node in graph.nodes.keys() {
        graph.operands(node).iter().for_each(|&arg| references[arg] += 1);
    }
    references
}

/// How many nodes come before the split of `part`, which has two at least: up to
/// the one with the most references, itself included.
fn most_referenced(part: &[Node], references: &PrimaryMap<Node, u32>) -> usize {
    let quarter = part.len() / 4;
    let middle = part.len() / 2;
    let candidates = quarter.max(1)..(part.len() - quarter).max(2);
    let best = candidates.max_by_key(|&split| {
        (references[part[split - 1]], core::cmp::Reverse(split.abs_diff(middle)))
    });
    best.unwrap_or(middle).clamp(1, part.len() - 1)
}
