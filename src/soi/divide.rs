//! Reuse-aware division of basic blocks into segments for simplification (section 4 of the
//! paper).
//!
//! A leaf of the def-use region tree is here the run of applications of a block between two
//! regions. A run over the limit is split in two after its value with the most references,
//! recursively; small neighbours are merged up to the limit.

use crate::entity::PrimaryMap;
use crate::ssa::{Def, Graph, Item, Node, Segments};

/// The segments of `graph` of at most `limit` nodes each, split after values with many
/// references: such a value is computed once, and is one input of the next segment.
///
/// Only the middle half of a run is considered for a split, and among values with equally many
/// references the one closest to the middle. So the work is proportional to the number of nodes
/// times the logarithm of the longest run.
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
    let mut segments = Vec::new();
    for run in runs(graph) {
        let mut merged: Vec<Vec<Node>> = Vec::new();
        // A stack: the next piece is last.
        let mut worklist = vec![&run[..]];
        while let Some(piece) = worklist.pop() {
            if piece.len() > limit {
                let (before, after) = piece.split_at(most_referenced(piece, &references));
                worklist.extend([after, before]);
                continue;
            }
            match merged.last_mut() {
                Some(last) if last.len() + piece.len() <= limit => last.extend(piece),
                _ => merged.push(piece.to_vec()),
            }
        }
        segments.extend(merged);
    }
    Segments::new(graph, segments)
}

/// The segments of `graph` of `limit` nodes each, but for the last of a run: the baseline for
/// [`divide`].
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
    let runs = runs(graph);
    let segments = runs.iter().flat_map(|run| run.chunks(limit.max(1)));
    Segments::new(graph, segments.map(<[Node]>::to_vec).collect())
}

/// The runs of applications between regions, in order.
fn runs(graph: &Graph) -> Vec<Vec<Node>> {
    let mut runs = Vec::new();
    for block in graph.preorder() {
        let mut run = Vec::new();
        for item in &graph.blocks[block].items {
            match *item {
                Item::Node(node) if matches!(graph.nodes[node].def, Def::Apply(..)) => {
                    run.push(node);
                }
                // A value may enter a region and come back.
                Item::Region(_) => runs.push(core::mem::take(&mut run)),
                Item::Node(_)
                | Item::Guard { .. }
                | Item::Fill(_)
                | Item::Accumulate(..)
                | Item::Store(..) => {}
            }
        }
        runs.push(run);
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// The number of uses of each node by applications.
fn references(graph: &Graph) -> PrimaryMap<Node, u32> {
    let mut references = PrimaryMap::filled(0, graph.nodes.len());
    for node in graph.nodes.keys() {
        graph.operands(node).iter().for_each(|&arg| references[arg] += 1);
    }
    references
}

/// The number of nodes before the split of `run`, which has at least two: up to and including the
/// one with the most references.
fn most_referenced(piece: &[Node], references: &PrimaryMap<Node, u32>) -> usize {
    let quarter = piece.len() / 4;
    let middle = piece.len() / 2;
    let candidates = quarter.max(1)..(piece.len() - quarter).max(2);
    let best = candidates.max_by_key(|&split| {
        (references[piece[split - 1]], core::cmp::Reverse(split.abs_diff(middle)))
    });
    best.unwrap_or(middle).clamp(1, piece.len() - 1)
}
