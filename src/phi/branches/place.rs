//! Where the nodes of a graph get their values, and which are equal.

use hashbrown::HashMap;

use crate::entity::{Entity, PrimaryMap};
use crate::op::Op;
use crate::ssa::{ArrayData, Block, Builder, Def, End, Folding, Graph, Item, Node, Region};

/// A graph with what is known about its nodes.
pub(super) struct Places<'a> {
    pub(super) graph: &'a Graph,
    /// The block of each node, and the number of its item there.
    positions: PrimaryMap<Node, Option<(Block, usize)>>,
    /// The block above each block, and the number of the item that leads down.
    above: PrimaryMap<Block, Option<(Block, usize)>>,
    /// The block in which each region stands, and the number of its item there.
    pub(super) regions: PrimaryMap<Region, Option<(Block, usize)>>,
    /// Whether what a node was in past iterations is asked for.
    pub(super) past: PrimaryMap<Node, bool>,
    /// Equal nodes have the same number here.
    pub(super) values: PrimaryMap<Node, Node>,
    /// What is computed, for numbers of what might be.
    numbering: Builder,
    /// The first node of each number.
    first: HashMap<Node, Vec<Node>>,
}

impl<'a> Places<'a> {
    pub(super) fn of(graph: &'a Graph) -> Self {
        let mut positions = PrimaryMap::filled(None, graph.nodes.len());
        let mut above = PrimaryMap::filled(None, graph.blocks.len());
        let mut regions = PrimaryMap::filled(None, graph.regions.len());
        for block in graph.preorder() {
            let data = &graph.blocks[block];
            for (number, item) in data.items.iter().enumerate() {
                match *item {
                    Item::Node(node) => positions[node] = Some((block, number)),
                    Item::Region(region) => {
                        let at = Some((block, number));
                        regions[region] = at;
                        let data = &graph.regions[region];
                        above[data.root] = at;
                        data.phis.iter().for_each(|&phi| positions[phi] = at);
                    }
                    Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) => {}
                }
            }
            if let End::Branch { then, otherwise, .. } = data.end {
                above[then] = Some((block, data.items.len()));
                above[otherwise] = Some((block, data.items.len()));
            }
        }
        let mut past = PrimaryMap::filled(false, graph.nodes.len());
        for array in graph.arrays.values() {
            if let ArrayData::Saved(node) = array {
                past[*node] = true;
            }
        }
        let numbering = Builder::new(graph.nodes.len(), 0, Folding::Exact);
        let values = graph.nodes.keys().collect();
        let first = HashMap::new();
        let mut places =
            Places { graph, positions, above, regions, past, values, numbering, first };
        for node in graph.nodes.keys() {
            // What is no application is its own input of the numbering.
            let value = match graph.nodes[node].def {
                Def::Const(bits) => places.numbering.constant(f64::from_bits(bits)),
                Def::Apply(op, args) => {
                    let args = args.map(|arg| places.values[arg]);
                    places.numbering.apply(op, &args[..op.arity()])
                }
                _ => places.numbering.input(node.index()),
            };
            places.values[node] = value;
            places.first.entry(value).or_default().push(node);
        }
        places
    }

    /// The number of `op` applied to numbers.
    pub(super) fn value(&mut self, op: Op, args: &[Node]) -> Node {
        self.numbering.apply(op, args)
    }

    /// The bits of what has this number, if that is a constant.
    pub(super) fn constant(&self, value: Node) -> Option<f64> {
        self.numbering.graph().constant(value)
    }

    /// A node of this number that is visible before item `number` of `block`.
    pub(super) fn known(&self, value: Node, block: Block, number: usize) -> Option<Node> {
        let nodes = self.first.get(&value)?;
        nodes.iter().copied().find(|&node| self.is_visible(node, block, number))
    }

    /// Whether `node` is visible before item `number` of `block`, not by replaying.
    pub(super) fn is_visible(&self, node: Node, block: Block, number: usize) -> bool {
        let (home, after) = match (self.graph.nodes[node].def, self.positions[node]) {
            (Def::Input(_) | Def::Const(_), _) => return true,
            (Def::Entry(region, _) | Def::Iteration(region), _) => {
                (self.graph.regions[region].root, None)
            }
            (_, Some((home, number))) => (home, Some(number)),
            (_, None) => return false,
        };
        let mut at = Some((block, number));
        while let Some((block, number)) = at {
            if block == home {
                return after.is_none_or(|after| after < number);
            }
            at = self.above[block];
        }
        false
    }

    pub(super) fn position(&self, node: Node) -> Option<(Block, usize)> {
        self.positions[node]
    }
}
