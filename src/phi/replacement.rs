//! A graph in which nodes take the place of others.

use hashbrown::HashMap;

use crate::certificate::Claim;
use crate::ssa::{Def, End, Graph, Item, Nest, Node, SeriesData, in_order};

/// A graph with everything replaced, whose nodes are in no order yet: those of the
/// graph before have their ids, as blocks and regions have, and new ones come after them.
pub(super) struct Replacement {
    pub(super) graph: Graph,
    /// What has taken the place of a node; that may itself be replaced.
    pub(super) nodes: HashMap<Node, Node>,
}

impl Replacement {
    /// `graph` with `nodes` replaced wherever they are used. A history is that of what takes the
    /// node's place if this is computed in the same block, and else stays.
    pub(super) fn new(mut graph: Graph, nodes: HashMap<Node, Node>) -> Replacement {
        let resolve = |node: &mut Node| *node = resolved(&nodes, *node);
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
        let nest = Nest::of(&graph);
        for series in graph.series.keys() {
            if let SeriesData::History(node) = graph.series[series] {
                let other = resolved(&nodes, node);
                if nest.node_loop(other).is_none() || nest.node_loop(other) != nest.node_loop(node)
                {
                    continue;
                }
            }
            graph.series[series].nodes_mut().for_each(resolve);
        }
        Replacement { graph, nodes }
    }

    /// What stands for `node`.
    pub(super) fn resolved(&self, node: Node) -> Node {
        resolved(&self.nodes, node)
    }

    /// What is to be proven of it, where it comes after `before`.
    pub(super) fn claim<'a>(&'a self, before: &'a Graph) -> Claim<'a> {
        Claim { before, after: &self.graph, replaced: &self.nodes }
    }

    /// The graph, with its nodes in order.
    pub(super) fn ordered(&self) -> Option<Graph> {
        in_order(&self.graph)
    }
}

fn resolved(nodes: &HashMap<Node, Node>, mut node: Node) -> Node {
    while let Some(&other) = nodes.get(&node) {
        node = other;
    }
    node
}
