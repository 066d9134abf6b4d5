//! A scope: the whole graph, or what is in a loop.

use hashbrown::HashSet;

use super::graph::{Block, Graph, Item, Node, Region};

/// Blocks, the regions whose blocks they are, and the nodes that are computed there.
pub(crate) struct Scope {
    pub(super) blocks: Vec<Block>,
    pub(super) regions: Vec<Region>,
    /// Nothing if these are all nodes.
    inside: Option<HashSet<Node>>,
}

impl Scope {
    pub(crate) fn whole(graph: &Graph) -> Scope {
        let (blocks, regions) = (graph.blocks.keys().collect(), graph.regions.keys().collect());
        Scope { blocks, regions, inside: None }
    }

    /// All in `region`, at any depth.
    pub(crate) fn of(graph: &Graph, region: Region) -> Scope {
        let mut regions = vec![region];
        let (mut blocks, mut inside) = (Vec::new(), HashSet::new());
        let mut seen = 0;
        while let Some(&region) = regions.get(seen) {
            seen += 1;
            inside.extend(graph.entries(region).iter().map(|entry| entry.phi));
            let all = graph.tree(graph.regions[region].root);
            for &block in &all {
                for item in &graph.blocks[block].items {
                    match *item {
                        Item::Node(node) => _ = inside.insert(node),
                        Item::Region(inner) => {
                            inside.extend(&graph.regions[inner].phis);
                            regions.push(inner);
                        }
                        Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) => {}
                    }
                }
            }
            blocks.extend(all);
        }
        Scope { blocks, regions, inside: Some(inside) }
    }

    pub(crate) fn contains(&self, node: Node) -> bool {
        self.inside.as_ref().is_none_or(|inside| inside.contains(&node))
    }
}
