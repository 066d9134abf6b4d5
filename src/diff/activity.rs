//! Activity: the nodes that depend on an active input, and the operands that the adjoint of
//! each node propagates to.

use smallvec::SmallVec;

use crate::entity::PrimaryMap;
use crate::ssa::{
    Access, Array, ArrayData, Block, Def, End, Graph, Nest, Node, Region, passes_on,
    varied_and_active,
};

/// The operands that one end of a region gives its φs.
#[derive(Clone, Copy, Default)]
pub(super) struct PhiOperands<'a> {
    /// Those of the entry φs; empty if this end is never followed by an iteration.
    pub(super) nexts: &'a [Node],
    /// Those of the φs; empty if this end is always followed by an iteration.
    pub(super) values: &'a [Node],
    /// True if a condition decides whether another iteration follows.
    pub(super) is_open: bool,
}

/// The φ operands at `leaf`, an end of `region`.
pub(super) fn phi_operands(graph: &Graph, region: Region, leaf: Block) -> PhiOperands<'_> {
    let End::Return(all) = &graph.blocks[leaf].end else { return PhiOperands::default() };
    let (decides, nexts) = graph.passed_before_phis(region);
    let (again, rest) = all.split_at(decides.min(all.len()));
    let (nexts, values) = rest.split_at(nexts.min(rest.len()));
    match again.first().map(|&again| graph.constant(again)) {
        None => PhiOperands { nexts, values, is_open: false },
        Some(None) => PhiOperands { nexts, values, is_open: true },
        Some(Some(again)) if again != 0.0 => PhiOperands { nexts, ..PhiOperands::default() },
        Some(Some(_)) => PhiOperands { values, ..PhiOperands::default() },
    }
}

/// The propagation of adjoints through a graph.
pub(super) struct Activity<'a> {
    pub(super) graph: &'a Graph,
    /// For each region its ends, in the order of [`Graph::leaves`].
    pub(super) leaves: PrimaryMap<Region, Vec<Block>>,
    pub(super) nest: Nest,
    pub(super) parents: PrimaryMap<Block, Option<Block>>,
    /// True for nodes that depend on an active input; for a φ on some path through its region.
    pub(super) active: PrimaryMap<Node, bool>,
    /// For each region the arrays of nodes, some of them active, that it reads at a
    /// varying index.
    pub(super) reads: PrimaryMap<Region, Vec<Array>>,
    /// For each loop the nodes whose saved trajectory is read after it and gets adjoints.
    pub(super) trajectories: PrimaryMap<Region, Vec<Node>>,
    /// For each block its number in preorder.
    starts: PrimaryMap<Block, usize>,
    /// For each region the number in preorder after its last block.
    ends: PrimaryMap<Region, usize>,
}

impl<'a> Activity<'a> {
    pub(super) fn of(graph: &'a Graph) -> Self {
        let leaves = graph.regions.values().map(|region| graph.leaves(region.root)).collect();
        let mut activity = Activity {
            graph,
            leaves,
            nest: Nest::of(graph),
            parents: graph.parents(),
            active: PrimaryMap::filled(false, graph.nodes.len()),
            reads: PrimaryMap::filled(Vec::new(), graph.regions.len()),
            trajectories: PrimaryMap::filled(Vec::new(), graph.regions.len()),
            starts: PrimaryMap::filled(0, graph.blocks.len()),
            ends: PrimaryMap::filled(0, graph.regions.len()),
        };
        activity.number_blocks();
        let (varied, active) = varied_and_active(graph, |node| activity.targets(node));
        activity.active = varied;
        activity.find_reads(&active);
        activity
    }

    /// The operands that the adjoint of `node` propagates to, if they are active.
    pub(super) fn targets(&self, node: Node) -> SmallVec<[Node; 4]> {
        let graph = self.graph;
        match graph.nodes[node].def {
            Def::Input(_) | Def::Const(_) | Def::Iteration(_) => SmallVec::new(),
            // `attach` operations on the results give their derivatives.
            Def::Call(_) | Def::Result(..) => SmallVec::new(),
            Def::Apply(op, args) => {
                let passing = (0..op.arity()).filter(|&operand| passes_on(op, operand));
                passing.map(|operand| args[operand]).collect()
            }
            Def::Phi(region, number) => self.values(region, number as usize).collect(),
            Def::Entry(region, number) => {
                let first = graph.entries(region)[number as usize].first;
                core::iter::once(first).chain(self.nexts(region, number as usize)).collect()
            }
            Def::Element(access) => match &graph.arrays[graph.accesses[access].array] {
                ArrayData::Constants(_)
                | ArrayData::Inputs { .. }
                | ArrayData::Sums(_)
                | ArrayData::Outputs { .. } => SmallVec::new(),
                ArrayData::Saved(saved) => core::iter::once(*saved).collect(),
                ArrayData::Nodes(nodes) => match self.known_element(access) {
                    Some(only) => core::iter::once(only).collect(),
                    None => nodes.iter().copied().collect(),
                },
            },
        }
    }

    fn values(&self, region: Region, number: usize) -> impl Iterator<Item = Node> + '_ {
        let value = move |&leaf: &Block| phi_operands(self.graph, region, leaf).values.get(number);
        self.leaves[region].iter().filter_map(value).copied()
    }

    /// The operands of entry φ `number` of `region` at its ends.
    pub(super) fn nexts(&self, region: Region, number: usize) -> impl Iterator<Item = Node> + '_ {
        let next = move |&leaf: &Block| phi_operands(self.graph, region, leaf).nexts.get(number);
        self.leaves[region].iter().filter_map(next).copied()
    }

    /// The node at `access` to an array of nodes, if it is the same in all iterations.
    pub(super) fn known_element(&self, access: Access) -> Option<Node> {
        let data = &self.graph.accesses[access];
        let ArrayData::Nodes(nodes) = &self.graph.arrays[data.array] else { return None };
        let only = *nodes.get(data.base as usize)?;
        let is_fixed = data
            .strides
            .iter()
            .all(|&(region, stride)| stride == 0 || bound(self.graph, region) <= 1);
        (is_fixed || nodes.iter().all(|&node| node == only)).then_some(only)
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

/// The largest number of iterations of `region`; 1 if it is no loop.
pub(super) fn bound(graph: &Graph, region: Region) -> u32 {
    graph.regions[region].cycle.as_ref().map_or(1, |cycle| cycle.bound)
}
