//! Where adjoints may go: what each node passes its own on to, and which nodes
//! depend on an active input.

use smallvec::SmallVec;

use crate::entity::PrimaryMap;
use crate::ssa::{
    Access, Array, ArrayData, Block, Def, End, Graph, Nest, Node, Region, passes_on,
    varied_and_active,
};

/// What an end of a region passes on.
#[derive(Clone, Copy, Default)]
pub(super) struct Passed<'a> {
    /// For the entry φs; empty where there is certainly no other iteration.
    pub(super) nexts: &'a [Node],
    /// For the φs; empty where there certainly is another iteration.
    pub(super) values: &'a [Node],
    /// Whether it is computed if there is another iteration.
    pub(super) is_open: bool,
}

/// What an end of `region` passes on.
pub(super) fn passed(graph: &Graph, region: Region, leaf: Block) -> Passed<'_> {
    let End::Return(all) = &graph.blocks[leaf].end else { return Passed::default() };
    let (decides, nexts) = graph.passed_before_phis(region);
    let (again, rest) = all.split_at(decides.min(all.len()));
    let (nexts, values) = rest.split_at(nexts.min(rest.len()));
    match again.first().map(|&again| graph.constant(again)) {
        None => Passed { nexts, values, is_open: false },
        Some(None) => Passed { nexts, values, is_open: true },
        Some(Some(again)) if again != 0.0 => Passed { nexts, ..Passed::default() },
        Some(Some(_)) => Passed { values, ..Passed::default() },
    }
}

/// The ways of adjoints through a graph.
pub(super) struct Activity<'a> {
    pub(super) graph: &'a Graph,
    /// For each region the blocks where it ends, as [`Graph::leaves`] lists them.
    pub(super) leaves: PrimaryMap<Region, Vec<Block>>,
    pub(super) nest: Nest,
    pub(super) parents: PrimaryMap<Block, Option<Block>>,
    /// Which nodes depend on an active input; a φ if on any way through its region.
    pub(super) active: PrimaryMap<Node, bool>,
    /// For each region the array of nodes, some of them active, that it reads by
    /// an index that changes.
    pub(super) reads: PrimaryMap<Region, Vec<Array>>,
    /// For each loop the nodes whose history is read later and gets adjoints.
    pub(super) pasts: PrimaryMap<Region, Vec<Node>>,
    /// For each block how many come before it as they are run.
    starts: PrimaryMap<Block, usize>,
    /// For each region how many blocks come before or belong to it.
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
            pasts: PrimaryMap::filled(Vec::new(), graph.regions.len()),
            starts: PrimaryMap::filled(0, graph.blocks.len()),
            ends: PrimaryMap::filled(0, graph.regions.len()),
        };
        activity.number_blocks();
        let (varied, active) = varied_and_active(graph, |node| activity.targets(node));
        activity.active = varied;
        activity.find_reads(&active);
        activity
    }

    /// What `node` passes its adjoint on to, as far as it may be active.
    pub(super) fn targets(&self, node: Node) -> SmallVec<[Node; 4]> {
        let graph = self.graph;
        match graph.nodes[node].def {
            Def::Input(_) | Def::Const(_) | Def::Iteration(_) => SmallVec::new(),
            // What is attached to a result tells its derivatives.
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
                ArrayData::Saved(past) => core::iter::once(*past).collect(),
                ArrayData::Nodes(nodes) => match self.fixed(access) {
                    Some(only) => core::iter::once(only).collect(),
                    None => nodes.iter().copied().collect(),
                },
            },
        }
    }

    fn values(&self, region: Region, number: usize) -> impl Iterator<Item = Node> + '_ {
        let value = move |&leaf: &Block| passed(self.graph, region, leaf).values.get(number);
        self.leaves[region].iter().filter_map(value).copied()
    }

    /// The values that the ends of `region` pass on to its entry φ of this number.
    pub(super) fn nexts(&self, region: Region, number: usize) -> impl Iterator<Item = Node> + '_ {
        let next = move |&leaf: &Block| passed(self.graph, region, leaf).nexts.get(number);
        self.leaves[region].iter().filter_map(next).copied()
    }

    /// The node that the element at `access`, of an array of nodes, always is.
    pub(super) fn fixed(&self, access: Access) -> Option<Node> {
        let data = &self.graph.accesses[access];
        let ArrayData::Nodes(nodes) = &self.graph.arrays[data.array] else { return None };
        let only = *nodes.get(data.base as usize)?;
        let is_fixed = data
            .strides
            .iter()
            .all(|&(region, stride)| stride == 0 || bound(self.graph, region) <= 1);
        (is_fixed || nodes.iter().all(|&node| node == only)).then_some(only)
    }

    /// Whether `node` gets its value in the tree of `region`.
    pub(super) fn is_inside(&self, node: Node, region: Region) -> bool {
        self.nest.node_block(node).is_some_and(|block| self.is_block_inside(block, region))
    }

    /// Whether `block` is in the tree of `region`, or of a region in that.
    pub(super) fn is_block_inside(&self, block: Block, region: Region) -> bool {
        let root = self.graph.regions[region].root;
        (self.starts[root]..self.ends[region]).contains(&self.starts[block])
    }

    fn number_blocks(&mut self) {
        let order = self.graph.preorder();
        // The blocks of a tree are in a row in this order.
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

    /// The number of the first input of the array of `access`, if those are active inputs.
    pub(super) fn input_row(&self, access: Access) -> Option<u32> {
        match self.graph.arrays[self.graph.accesses[access].array] {
            ArrayData::Inputs { first, .. } => Some(first).filter(|&n| self.graph.is_active(n)),
            _ => None,
        }
    }

    /// Finds what is read of array and histories by nodes through which derivatives pass.
    fn find_reads(&mut self, active: &PrimaryMap<Node, bool>) {
        for (node, data) in self.graph.nodes.iter() {
            let Def::Element(access) = data.def else { continue };
            let array = self.graph.accesses[access].array;
            match self.graph.arrays[array] {
                _ if !active[node] => {}
                ArrayData::Saved(past) => {
                    if let Some(region) = self.nest.node_loop(past)
                        && !self.pasts[region].contains(&past)
                    {
                        self.pasts[region].push(past);
                    }
                }
                ArrayData::Nodes(_) if self.fixed(access).is_none() => {
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

/// The largest number of iterations of `region`.
pub(super) fn bound(graph: &Graph, region: Region) -> u32 {
    graph.regions[region].cycle.as_ref().map_or(1, |cycle| cycle.bound)
}
