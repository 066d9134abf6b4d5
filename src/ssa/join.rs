//! Joins the leaves of a graph, so that a reverse sweep goes through what paths share once.

use super::graph::{Block, BlockData, End, Graph};
use crate::entity::PrimaryMap;

/// The factor by which the sweeps of all paths may be larger than the graph.
const MAX_SWEPT: u64 = 2;

/// `graph` with its tree of blocks in a region, whose φs are the outputs, if the paths share most
/// steps: each leaf of the graph's own tree has a reverse sweep of its own, while adjoints meet at
/// the branches of a region.
pub(crate) fn join_leaves(graph: Graph) -> Graph {
    let tree = graph.tree(graph.root());
    let mut leaves: PrimaryMap<Block, u64> = PrimaryMap::filled(1, graph.blocks.len());
    let (mut steps, mut swept) = (0u64, 0u64);
    for &block in tree.iter().rev() {
        if let End::Branch { then, otherwise, .. } = graph.blocks[block].end {
            leaves[block] = leaves[then] + leaves[otherwise];
        }
        let own = graph.blocks[block].items.len() as u64;
        steps += own;
        swept = swept.saturating_add(own.saturating_mul(leaves[block]));
    }
    if swept <= steps * MAX_SWEPT { graph } else { joined(graph, &tree) }
}

fn joined(mut graph: Graph, tree: &[Block]) -> Graph {
    let ends = tree.iter().map(|&block| &graph.blocks[block].end);
    let outputs = ends.filter_map(|end| match end {
        End::Return(values) => Some(values.len()),
        End::Branch { .. } | End::Open => None,
    });
    let Some(outputs) = outputs.max() else { return graph };
    let root = graph.root();
    let empty = BlockData { items: Vec::new(), end: End::Open };
    let data = core::mem::replace(&mut graph.blocks[root], empty);
    let region = graph.push_region(root, None, None);
    let inside = graph.regions[region].root;
    graph.blocks[inside] = data;
    let phis = (0..outputs).map(|_| graph.push_phi(region)).collect();
    graph.blocks[root].end = End::Return(phis);
    graph
}
