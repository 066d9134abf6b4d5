//! A graph whose loops are being replaced.

use hashbrown::{HashMap, HashSet};

use crate::entity::Array;
use crate::ssa::{Block, Def, End, Graph, Item, Nest, Node, Region, SeriesData, in_order};

/// A graph with nodes that others take the place of. They are replaced wherever
/// they are used when all is done.
pub(super) struct Edit {
    pub(super) graph: Graph,
    replaced: HashMap<Node, Node>,
    gone: HashSet<Region>,
    /// The nodes whose histories elements read, by the loop that they are in.
    histories: HashMap<Region, Vec<Node>>,
    blocks: Array<Region, Option<Block>>,
}

impl Edit {
    pub(super) fn of(graph: &Graph) -> Edit {
        let nest = Nest::of(graph);
        let mut histories: HashMap<Region, Vec<Node>> = HashMap::new();
        for data in graph.nodes.values() {
            if let Def::Element(access) = data.def
                && let SeriesData::History(past) = graph.series[graph.accesses[access].series]
                && let Some(region) = nest.node_loop(past)
            {
                histories.entry(region).or_default().push(past);
            }
        }
        let blocks = graph.regions.keys().map(|region| nest.region_block(region)).collect();
        let graph = graph.clone();
        Edit { graph, replaced: HashMap::new(), gone: HashSet::new(), histories, blocks }
    }

    /// The node that stands for `node` now.
    pub(super) fn resolved(&self, mut node: Node) -> Node {
        while let Some(&other) = self.replaced.get(&node) {
            node = other;
        }
        node
    }

    pub(super) fn is_gone(&self, region: Region) -> bool {
        self.gone.contains(&region)
    }

    /// The nodes of `region` whose values in earlier iterations are read.
    pub(super) fn histories(&self, region: Region) -> &[Node] {
        self.histories.get(&region).map_or(&[], Vec::as_slice)
    }

    /// Puts `items` before `region`, and nodes in the place of some of its φs.
    pub(super) fn replace(
        &mut self,
        region: Region,
        items: Vec<Item>,
        phis: Vec<(Node, Node)>,
        is_gone: bool,
    ) {
        for (phi, node) in phis {
            self.replaced.insert(phi, node);
        }
        if let Some(block) = self.blocks[region] {
            let steps = &mut self.graph.blocks[block].items;
            let at = steps.iter().position(|&item| item == Item::Region(region));
            let at = at.unwrap_or(steps.len());
            steps.splice(at..at, items);
        }
        if is_gone {
            self.gone.insert(region);
            let root = self.graph.regions[region].root;
            let is_kept = |item: &Item| !matches!(item, Item::Guard { .. });
            self.graph.blocks[root].items.retain(is_kept);
        }
    }

    /// The graph with everything replaced; the loops that are gone are dead code.
    pub(super) fn finished(mut self) -> Option<Graph> {
        let replaced = core::mem::take(&mut self.replaced);
        let resolve = |node: &mut Node| {
            while let Some(&other) = replaced.get(node) {
                *node = other;
            }
        };
        let graph = &mut self.graph;
        for node in graph.nodes.keys() {
            if let Def::Apply(_, args) = &mut graph.nodes[node].def {
                args.iter_mut().for_each(resolve);
            }
        }
        for block in graph.blocks.keys() {
            let data = &mut graph.blocks[block];
            for item in &mut data.items {
                match item {
                    Item::Guard { condition: node, .. } | Item::Accumulate(_, node) => {
                        resolve(node);
                    }
                    Item::Node(_) | Item::Region(_) | Item::Fill(_) => {}
                }
            }
            match &mut data.end {
                End::Open => {}
                End::Return(values) => values.iter_mut().for_each(resolve),
                End::Branch { condition, .. } => resolve(condition),
            }
        }
        for region in graph.regions.keys() {
            let cycle = graph.regions[region].cycle.iter_mut();
            cycle.flat_map(|cycle| &mut cycle.entries).for_each(|entry| resolve(&mut entry.first));
        }
        for series in graph.series.keys() {
            match &mut graph.series[series] {
                SeriesData::Nodes(nodes) => nodes.iter_mut().for_each(resolve),
                SeriesData::Sums(firsts) => firsts.iter_mut().flatten().for_each(resolve),
                SeriesData::Constants(_) | SeriesData::History(_) => {}
            }
        }
        in_order(graph)
    }
}
