//! A region with all that is in it, and what that uses.

use hashbrown::HashSet;

use crate::ssa::{Block, Def, End, Graph, Item, Node, Region, SeriesData};

/// A region with all that is in it.
pub(super) struct Tree {
    pub(super) blocks: Vec<Block>,
    pub(super) regions: Vec<Region>,
    /// The nodes in it that are forms of something outside.
    pub(super) forms: HashSet<Node>,
}

impl Tree {
    pub(super) fn of(graph: &Graph, region: Region) -> Tree {
        let mut tree = Tree { blocks: Vec::new(), regions: vec![region], forms: HashSet::new() };
        let mut pending = vec![graph.regions[region].root];
        while let Some(block) = pending.pop() {
            tree.blocks.push(block);
            if let End::Branch { then, otherwise, .. } = graph.blocks[block].end {
                pending.extend([otherwise, then]);
            }
            for inner in graph.regions_of(block) {
                tree.regions.push(inner);
                pending.push(graph.regions[inner].root);
            }
        }
        tree
    }

    /// The nodes that get their values in it, but for iteration numbers.
    pub(super) fn defined(&self, graph: &Graph) -> Vec<Node> {
        let mut defined = Vec::new();
        for &region in &self.regions {
            defined.extend(&graph.regions[region].phis);
            defined.extend(graph.entries(region).iter().map(|entry| entry.phi));
        }
        for &block in &self.blocks {
            defined.extend(graph.blocks[block].items.iter().filter_map(|item| match *item {
                Item::Node(node) => Some(node),
                _ => None,
            }));
        }
        defined.retain(|node| !self.forms.contains(node));
        defined
    }

    /// The nodes that it uses and that get their values before it.
    pub(super) fn operands(&self, graph: &Graph) -> Vec<Node> {
        let mut used = Vec::new();
        for &region in &self.regions {
            used.extend(graph.entries(region).iter().map(|entry| entry.first));
        }
        for &block in &self.blocks {
            let data = &graph.blocks[block];
            for item in &data.items {
                if let Item::Node(node) = *item
                    && !self.forms.contains(&node)
                {
                    used.extend(operands(graph, node));
                }
            }
            match &data.end {
                End::Return(values) => used.extend(values),
                End::Branch { condition, .. } => used.push(*condition),
                End::Open => {}
            }
        }
        let mut known: HashSet<Node> = self.defined(graph).into_iter().collect();
        let is_own = |node: &Node| match graph.nodes[*node].def {
            Def::Iteration(region) => self.regions.contains(&region),
            _ => false,
        };
        used.retain(|node| !is_own(node) && known.insert(*node));
        used
    }
}

/// What `node` is computed from.
pub(super) fn operands(graph: &Graph, node: Node) -> Vec<Node> {
    match graph.nodes[node].def {
        Def::Element(access) => match &graph.series[graph.accesses[access].series] {
            SeriesData::Nodes(nodes) => nodes.clone(),
            _ => Vec::new(),
        },
        _ => graph.nodes[node].args().to_vec(),
    }
}
