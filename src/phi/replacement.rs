//! A graph in which nodes take the place of others.

use hashbrown::HashMap;

use crate::certificate::Claim;
use crate::ssa::{Def, End, Graph, Item, Nest, Node, SeriesData, in_order};

/// A graph with everything replaced, whose nodes are in no order yet: those of the
/// graph before have their ids, as blocks and regions have, and new ones come after them.
#[derive(Clone)]
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
                let is_number = matches!(graph.nodes[other].def, Def::Iteration(_));
                let is_beside = nest.node_block(other) == nest.node_block(node);
                if is_number || nest.node_loop(other).is_none() || !is_beside {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::Entity;
    use crate::op::Op;
    use crate::ssa::{Outcome, interpret, parse, verify};

    /// Powers of x, v4, of which the last but one is read, with node number `with` in their place:
    /// v5 is the sum of the one before and x.
    fn replaced(with: usize) -> Graph {
        let text = "graph active 1 inactive 0\nv1 = const 4.0\nv3 = iteration r0\na0 = history v4\n\
                    i0 = a0 base 3\nb0:\n  region r0 b1 bound 5 entries v2=v0\n  v7 = element i0\n  \
                    return v7\nb1:\n  v4 = mul v2 v0\n  v5 = add v2 v0\n  v6 = lt v3 v1\n  \
                    return v6 v4\n";
        let graph = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let nodes = HashMap::from([(Node::from_index(4), Node::from_index(with))]);
        let ordered = Replacement::new(graph, nodes).ordered().unwrap();
        verify(&ordered).unwrap_or_else(|error| panic!("{error}\n{ordered}"));
        ordered
    }

    #[test]
    fn histories_are_of_what_takes_a_place_in_the_same_block() {
        assert_eq!(interpret(&replaced(5), &[3.0]), Outcome::Values(vec![15.0]));
    }

    #[test]
    fn histories_stay_where_something_from_elsewhere_takes_a_place() {
        // The input, and the number of the iteration.
        for with in [0, 3] {
            let graph = replaced(with);
            assert!(graph.series.values().any(|series| {
                let SeriesData::History(node) = *series else { return false };
                matches!(graph.nodes[node].def, Def::Apply(Op::Mul, _))
            }));
        }
    }
}
