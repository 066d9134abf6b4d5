//! Position and value number of each node: the analysis behind the branch rules.
//!
//! Value numbering (Alpern, Wegman and Zadeck): congruent applications have the same number. A
//! builder with exact folding assigns the numbers, so a folded constant has that of the constant.

use hashbrown::HashMap;

use crate::entity::{Entity, PrimaryMap};
use crate::op::Op;
use crate::ssa::{ArrayData, Block, Builder, Def, End, Folding, Graph, Item, Node, Region};

/// A graph with the positions and value numbers of its nodes.
pub(super) struct Analysis<'a> {
    pub(super) graph: &'a Graph,
    /// The block of each node, and the index of its item there.
    positions: PrimaryMap<Node, Option<(Block, usize)>>,
    /// The parent of each block, and the index of the item there that leads to the block.
    parents: PrimaryMap<Block, Option<(Block, usize)>>,
    /// The block of each region, and the index of its item there.
    pub(super) regions: PrimaryMap<Region, Option<(Block, usize)>>,
    /// True for nodes whose values an array saves for later loops.
    pub(super) is_saved: PrimaryMap<Node, bool>,
    /// The value number of each node; congruent nodes have the same.
    pub(super) values: PrimaryMap<Node, Node>,
    /// Assigns value numbers, also to applications that are not in the graph.
    builder: Builder,
    /// The nodes of each value number, in order.
    members: HashMap<Node, Vec<Node>>,
}

impl<'a> Analysis<'a> {
    pub(super) fn of(graph: &'a Graph) -> Self {
        let mut positions = PrimaryMap::filled(None, graph.nodes.len());
        let mut parents = PrimaryMap::filled(None, graph.blocks.len());
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
                        parents[data.root] = at;
                        data.phis.iter().for_each(|&phi| positions[phi] = at);
                    }
                    Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => {
                    }
                }
            }
            if let End::Branch { then, otherwise, .. } = data.end {
                parents[then] = Some((block, data.items.len()));
                parents[otherwise] = Some((block, data.items.len()));
            }
        }
        let mut is_saved = PrimaryMap::filled(false, graph.nodes.len());
        for array in graph.arrays.values() {
            if let ArrayData::Saved(node) = array {
                is_saved[*node] = true;
            }
        }
        let builder = Builder::new(graph.nodes.len(), 0, Folding::Exact);
        let values = graph.nodes.keys().collect();
        let members = HashMap::new();
        let mut analysis =
            Analysis { graph, positions, parents, regions, is_saved, values, builder, members };
        for node in graph.nodes.keys() {
            // A node that is no application is an input of the builder of its own.
            let value = match graph.nodes[node].def {
                Def::Const(bits) => analysis.builder.constant(f64::from_bits(bits)),
                Def::Apply(op, args) => {
                    let args = args.map(|arg| analysis.values[arg]);
                    analysis.builder.apply(op, &args[..op.arity()])
                }
                _ => analysis.builder.input(node.index()),
            };
            analysis.values[node] = value;
            analysis.members.entry(value).or_default().push(node);
        }
        analysis
    }

    /// The value number of `op` applied to value numbers.
    pub(super) fn number_of(&mut self, op: Op, args: &[Node]) -> Node {
        self.builder.apply(op, args)
    }

    /// The constant of a value number, if it is one.
    pub(super) fn constant(&self, value: Node) -> Option<f64> {
        self.builder.graph().constant(value)
    }

    /// A node of this value number that is visible before item `number` of `block`.
    pub(super) fn available(&self, value: Node, block: Block, number: usize) -> Option<Node> {
        let nodes = self.members.get(&value)?;
        nodes.iter().copied().find(|&node| self.is_visible(node, block, number))
    }

    /// True if `node` is visible before item `number` of `block`, values of replayed regions apart.
    pub(super) fn is_visible(&self, node: Node, block: Block, number: usize) -> bool {
        let (own_block, after) = match (self.graph.nodes[node].def, self.positions[node]) {
            (Def::Input(_) | Def::Const(_), _) => return true,
            (Def::Entry(region, _) | Def::Iteration(region), _) => {
                (self.graph.regions[region].root, None)
            }
            (_, Some((own_block, number))) => (own_block, Some(number)),
            (_, None) => return false,
        };
        let mut at = Some((block, number));
        while let Some((block, number)) = at {
            if block == own_block {
                return after.is_none_or(|after| after < number);
            }
            at = self.parents[block];
        }
        false
    }

    pub(super) fn position(&self, node: Node) -> Option<(Block, usize)> {
        self.positions[node]
    }
}
