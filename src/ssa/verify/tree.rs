//! Invariants of the tree of blocks, and the order of φs.

use super::{VerifyError, at_block, at_region};
use crate::entity::PrimaryMap;
use crate::ssa::graph::{Block, End, Graph, Item, Node, Region};

/// The numbers of edges to a block.
#[derive(Clone, Copy, Default)]
struct Predecessors {
    branches: usize,
    regions: usize,
}

/// Checks invariant 5, and the order of φs of invariant 2.
pub(super) fn check(graph: &Graph) -> Result<(), VerifyError> {
    let predecessors = count_predecessors(graph)?;
    for (block, Predecessors { branches, regions }) in predecessors.iter() {
        if *regions > 0 && (*regions > 1 || *branches > 0 || block == graph.root()) {
            return Err(at_block(
                graph,
                block,
                "is the root of a region and has another predecessor",
            ));
        }
        if branches + regions != usize::from(block != graph.root()) {
            return Err(at_block(graph, block, "is not the target of exactly one branch"));
        }
    }
    // Each block has at most one predecessor, so the walk terminates.
    let order = graph.preorder();
    let mut reached = PrimaryMap::filled(false, graph.blocks.len());
    order.iter().for_each(|&block| reached[block] = true);
    if let Some((block, _)) = reached.iter().find(|(_, reached)| !**reached) {
        return Err(at_block(graph, block, "is not below the root"));
    }
    check_order(graph, &order)
}

fn count_predecessors(graph: &Graph) -> Result<PrimaryMap<Block, Predecessors>, VerifyError> {
    let mut predecessors = PrimaryMap::filled(Predecessors::default(), graph.blocks.len());
    let mut steps: PrimaryMap<Region, usize> = PrimaryMap::filled(0, graph.regions.len());
    graph.regions.values().for_each(|data| predecessors[data.root].regions += 1);
    for (block, data) in graph.blocks.iter() {
        for region in graph.regions_of(block) {
            if graph.regions.get(region).is_none() {
                return Err(at_block(graph, block, "has a step for a region that does not exist"));
            }
            steps[region] += 1;
        }
        match data.end {
            End::Branch { then, otherwise, .. } => {
                for target in [then, otherwise] {
                    if graph.blocks.get(target).is_none() {
                        return Err(at_block(
                            graph,
                            block,
                            "branches to a block that does not exist",
                        ));
                    }
                    predecessors[target].branches += 1;
                }
            }
            End::Open => return Err(at_block(graph, block, "is open")),
            End::Return(_) => {}
        }
    }
    let misplaced = steps.iter().find(|(_, steps)| **steps != 1);
    misplaced.map_or(Ok(predecessors), |(region, _)| {
        Err(at_region(graph, region, "is not a step of exactly one block"))
    })
}

/// Checks that φs have larger ids than all nodes of their region.
fn check_order(graph: &Graph, order: &[Block]) -> Result<(), VerifyError> {
    let parents = graph.parents();
    // The largest id in each block and, after its regions and arms were visited, below it.
    let mut largest: PrimaryMap<Block, Option<Node>> = PrimaryMap::filled(None, graph.blocks.len());
    for &block in order.iter().rev() {
        let data = &graph.blocks[block];
        let computed = data.items.iter().filter_map(|item| match *item {
            Item::Node(node) => Some(node),
            Item::Region(region) => {
                let entries = graph.entries(region).iter().map(|entry| entry.phi);
                graph.regions[region].phis.iter().copied().chain(entries).max()
            }
            Item::Guard { .. } | Item::Fill(_) => None,
            Item::Accumulate(_, node) | Item::Store(_, node) => Some(node),
        });
        let passed = match &data.end {
            End::Return(values) => values.iter().copied().max(),
            End::Branch { .. } | End::Open => None,
        };
        let here = largest[block].max(computed.max()).max(passed);
        for region in graph.regions_of(block) {
            let entries = graph.entries(region).iter().map(|entry| entry.phi);
            let inside = largest[graph.regions[region].root].max(entries.max());
            if graph.regions[region].phis.iter().any(|&phi| Some(phi) <= inside) {
                return Err(at_region(graph, region, "has a φ with a smaller id than it needs"));
            }
        }
        largest[block] = here;
        if let Some(above) = parents[block] {
            largest[above] = largest[above].max(here);
        }
    }
    Ok(())
}
