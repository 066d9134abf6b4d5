//! The primal graph as the reverse pass sees it: activity, region nest, and reads of arrays.

use smallvec::SmallVec;

use crate::entity::PrimaryMap;
use crate::ssa::{
    self, Access, Array, ArrayData, Block, Def, Flow, Graph, Item, Nest, Node, Region,
    known_element,
};

/// The primal graph and its analyses.
pub(super) struct Primal<'a> {
    pub(super) graph: &'a Graph,
    flow: Flow<'a>,
    pub(super) nest: Nest,
    pub(super) parents: PrimaryMap<Block, Option<Block>>,
    /// True for nodes that depend on an active input; for a φ on some path through its region.
    pub(super) varied: PrimaryMap<Node, bool>,
    /// For each region the arrays of nodes, some of them active, that it reads at a
    /// varying index.
    pub(super) reads: PrimaryMap<Region, Vec<Array>>,
    /// For each loop the nodes whose saved trajectory is read after it and gets adjoints.
    pub(super) trajectories: PrimaryMap<Region, Vec<Node>>,
    /// For each region the active nodes that it stores in cells, at any depth.
    pub(super) stored: PrimaryMap<Region, Vec<Node>>,
    /// True for cells that active nodes are stored in.
    pub(super) varied_cells: PrimaryMap<Array, bool>,
    /// For each block its number in preorder.
    starts: PrimaryMap<Block, usize>,
    /// For each region the number in preorder after its last block.
    ends: PrimaryMap<Region, usize>,
}

impl<'a> Primal<'a> {
    pub(super) fn of(graph: &'a Graph) -> Self {
        let flow = Flow::of(graph);
        let ssa::Activity { varied, active } = ssa::Activity::of(&flow);
        let mut primal = Primal {
            graph,
            flow,
            nest: Nest::of(graph),
            parents: graph.parents(),
            varied,
            reads: PrimaryMap::filled(Vec::new(), graph.regions.len()),
            stored: PrimaryMap::filled(Vec::new(), graph.regions.len()),
            varied_cells: PrimaryMap::filled(false, graph.arrays.len()),
            trajectories: PrimaryMap::filled(Vec::new(), graph.regions.len()),
            starts: PrimaryMap::filled(0, graph.blocks.len()),
            ends: PrimaryMap::filled(0, graph.regions.len()),
        };
        primal.number_blocks();
        primal.find_reads(&active);
        primal.find_stores(&active);
        primal
    }

    /// The ends of `region`, in the order of [`Graph::leaves`].
    pub(super) fn leaves(&self, region: Region) -> &[Block] {
        self.flow.leaves(region)
    }

    /// The nodes that the adjoint of `node` propagates to, if they are varied.
    pub(super) fn targets(&self, node: Node) -> SmallVec<[Node; 4]> {
        ssa::adjoint_targets(&self.flow, node)
    }

    /// The operands of entry φ `number` of `region` at its ends.
    pub(super) fn nexts(&self, region: Region, number: usize) -> impl Iterator<Item = Node> {
        self.flow.phi_nexts(region, number)
    }

    /// The node at `access` to an array of nodes, if it is the same in all iterations.
    pub(super) fn known_element(&self, access: Access) -> Option<Node> {
        known_element(self.graph, access)
    }

    /// True if `node` is computed in the tree of `region`.
    pub(super) fn is_inside(&self, node: Node, region: Region) -> bool {
        self.nest.node_block(node).is_some_and(|block| self.is_block_inside(block, region))
    }

    /// True if `block` is in the tree of `region` or of a region nested in it.
    pub(super) fn is_block_inside(&self, block: Block, region: Region) -> bool {
        let root = self.graph.regions[region].root;
        (self.starts[root]..self.ends[region]).contains(&self.starts[block])
    }

    fn number_blocks(&mut self) {
        let order = self.graph.preorder();
        // The blocks of a tree have consecutive numbers.
        let mut sizes = PrimaryMap::filled(1, self.graph.blocks.len());
        for (number, &block) in order.iter().enumerate().rev() {
            self.starts[block] = number;
            if let Some(above) = self.parents[block] {
                sizes[above] += sizes[block];
            }
        }
        for (region, data) in self.graph.regions.iter() {
            self.ends[region] = self.starts[data.root] + sizes[data.root];
        }
    }

    /// The number of the first input of the array of `access`, if it consists of active inputs.
    pub(super) fn first_input(&self, access: Access) -> Option<u32> {
        match self.graph.arrays[self.graph.accesses[access].array] {
            ArrayData::Inputs { first, .. } => Some(first).filter(|&n| self.graph.is_active(n)),
            _ => None,
        }
    }

    /// Finds the cells that active nodes are stored in.
    fn find_stores(&mut self, active: &PrimaryMap<Node, bool>) {
        for (block, data) in self.graph.blocks.iter() {
            for item in &data.items {
                let Item::Store(access, node) = *item else { continue };
                if !active[node] {
                    continue;
                }
                self.varied_cells[self.graph.accesses[access].array] = true;
                let mut around = self.nest.block_region(block);
                while let Some(region) = around {
                    self.stored[region].push(node);
                    around = self.nest.region_around(region);
                }
            }
        }
    }

    /// Finds the arrays and trajectories that active nodes read.
    fn find_reads(&mut self, active: &PrimaryMap<Node, bool>) {
        for (node, data) in self.graph.nodes.iter() {
            let Def::Element(access) = data.def else { continue };
            let array = self.graph.accesses[access].array;
            match self.graph.arrays[array] {
                _ if !active[node] => {}
                ArrayData::Saved(saved) => {
                    if let Some(region) = self.nest.node_loop(saved)
                        && !self.trajectories[region].contains(&saved)
                    {
                        self.trajectories[region].push(saved);
                    }
                }
                ArrayData::Nodes(_) if self.known_element(access).is_none() => {
                    let mut around = self.nest.node_region(node);
                    while let Some(region) = around {
                        if !self.reads[region].contains(&array) {
                            self.reads[region].push(array);
                        }
                        around = self.nest.region_around(region);
                    }
                }
                _ => {}
            }
        }
    }
}
