//! Which nodes of a graph depend on an active input.

use crate::entity::Array;
use crate::ssa::{Block, Def, End, Graph, Node, Region};

/// For each region the blocks where it ends, as [`Graph::leaves`] lists them.
pub(super) fn region_leaves(graph: &Graph) -> Array<Region, Vec<Block>> {
    graph.regions.values().map(|region| graph.leaves(region.root)).collect()
}

/// Which nodes depend on an active input; a φ if on any way through its region.
pub(super) fn active_nodes(graph: &Graph, leaves: &Array<Region, Vec<Block>>) -> Array<Node, bool> {
    let mut active = Array::filled(false, graph.nodes.len());
    // Operands, and what the ends of a region pass on to a φ, have smaller ids
    // than their users.
    for (node, data) in graph.nodes.iter() {
        active[node] = match data.def {
            Def::Input(i) => (i as usize) < graph.active,
            Def::Const(_) | Def::Entry(..) | Def::Iteration(_) | Def::Element(_) => false,
            Def::Apply(..) => data.args().iter().any(|&arg| active[arg]),
            Def::Phi(region, number) => {
                let passed = |leaf: &Block| match &graph.blocks[*leaf].end {
                    End::Return(values) => values.get(number as usize).copied(),
                    End::Branch { .. } | End::Open => None,
                };
                leaves[region].iter().filter_map(passed).any(|value| active[value])
            }
        };
    }
    active
}
