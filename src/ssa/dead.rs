//! Dead code: what no output, guard or branch needs, and a graph without it.

use super::graph::{Block, BlockData, Def, End, Graph, Item, Node, NodeData, Region, RegionData};
use crate::entity::{Array, Entity};

/// The graph without the nodes that no output, guard or branch needs.
///
/// A region stays if it has a guard, or a node or φ that is needed, at any
/// depth, and in it the branches that lead to such or decide about such a φ. Its
/// other φs go, and what its ends pass on for them. The branches of the graph's
/// own tree all stay.
///
/// # Examples
///
/// ```
/// use phigrad::ssa::{eliminate_dead_code, parse};
///
/// let text = "graph active 1 inactive 0\nb0:\n  v1 = exp v0\n  v2 = sin v0\n  return v2\n";
/// let small = eliminate_dead_code(&parse(text)?);
/// assert_eq!(small.to_string(), "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1\n");
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn eliminate_dead_code(graph: &Graph) -> Graph {
    retain(graph, &Live::of(graph))
}

/// Which nodes an output, guard or branch needs.
///
/// # Examples
///
/// ```
/// use phigrad::ssa::{live_nodes, parse};
///
/// let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v2 = cos v0\n  return v2\n";
/// let live = live_nodes(&parse(text)?);
/// assert_eq!(live.values().copied().collect::<Vec<_>>(), [true, false, true]);
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn live_nodes(graph: &Graph) -> Array<Node, bool> {
    Live::of(graph).nodes
}

/// What is needed of a graph.
pub(super) struct Live {
    pub(super) nodes: Array<Node, bool>,
    pub(super) regions: Array<Region, bool>,
    /// For each block whether the branch at its end is needed. If not, either
    /// side does.
    pub(super) branches: Array<Block, bool>,
}

impl Live {
    /// The least that holds all that a guard, or an output or branch of the
    /// graph's own tree, or something in it needs.
    pub(super) fn of(graph: &Graph) -> Live {
        if !graph.series.is_empty() || graph.regions.values().any(|data| data.cycle.is_some()) {
            return Live::reachable(graph);
        }
        let mut search = Search::new(graph);
        for block in graph.preorder() {
            let data = &graph.blocks[block];
            let in_region = search.trees[block].is_some();
            for item in &data.items {
                if let Item::Guard { condition, .. } = *item {
                    search.need(condition);
                    search.need_block(block);
                }
            }
            match &data.end {
                End::Return(outputs) if !in_region => {
                    outputs.iter().for_each(|&output| search.need(output));
                }
                End::Branch { .. } if !in_region => search.need_branch(block),
                End::Return(_) | End::Branch { .. } | End::Open => {}
            }
        }
        while let Some(node) = search.pending.pop() {
            search.follow(node);
        }
        search.live
    }

    /// Everything but regions that are no step of a block.
    pub(super) fn reachable(graph: &Graph) -> Live {
        let mut regions = Array::filled(false, graph.regions.len());
        for block in graph.preorder() {
            graph.regions_of(block).for_each(|region| regions[region] = true);
        }
        let nodes = Array::filled(true, graph.nodes.len());
        Live { nodes, regions, branches: Array::filled(true, graph.blocks.len()) }
    }
}

struct Search<'a> {
    graph: &'a Graph,
    live: Live,
    /// Nodes that are live, but not yet what they need.
    pending: Vec<Node>,
    /// The blocks that something needed is in or below.
    ways: Array<Block, bool>,
    parents: Array<Block, Option<Block>>,
    /// For each block the region in whose tree it is.
    trees: Array<Block, Option<Region>>,
    /// The blocks of each region's tree, each before those below it.
    blocks: Array<Region, Vec<Block>>,
    /// For each applied node the block that computes it.
    homes: Array<Node, Option<Block>>,
    /// What all ends below a block pass on for the φ looked at, if that is one.
    passed: Array<Block, Option<Node>>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph) -> Self {
        let trees = trees(graph);
        let mut blocks = Array::filled(Vec::new(), graph.regions.len());
        let mut homes = Array::filled(None, graph.nodes.len());
        for block in graph.preorder() {
            if let Some(region) = trees[block] {
                blocks[region].push(block);
            }
            for item in &graph.blocks[block].items {
                if let Item::Node(node) = *item {
                    homes[node] = Some(block);
                }
            }
        }
        let live = Live {
            nodes: Array::filled(false, graph.nodes.len()),
            regions: Array::filled(false, graph.regions.len()),
            branches: Array::filled(false, graph.blocks.len()),
        };
        let ways = Array::filled(false, graph.blocks.len());
        let passed = Array::filled(None, graph.blocks.len());
        let (pending, parents) = (Vec::new(), graph.parents());
        Search { graph, live, pending, ways, parents, trees, blocks, homes, passed }
    }

    fn need(&mut self, node: Node) {
        if !self.live.nodes[node] {
            self.live.nodes[node] = true;
            self.pending.push(node);
        }
    }

    fn need_branch(&mut self, block: Block) {
        self.live.branches[block] = true;
        if let End::Branch { condition, .. } = self.graph.blocks[block].end {
            self.need(condition);
        }
    }

    /// Needs the way to `block`: the branches and regions around it.
    fn need_block(&mut self, block: Block) {
        let mut next = Some(block);
        while let Some(block) = next.filter(|&block| !self.ways[block]) {
            self.ways[block] = true;
            next = self.parents[block];
            match (next, self.trees[block]) {
                (Some(above), tree) if self.trees[above] == tree => self.need_branch(above),
                (_, Some(region)) => self.live.regions[region] = true,
                (_, None) => {}
            }
        }
    }

    fn follow(&mut self, node: Node) {
        let data = &self.graph.nodes[node];
        data.args().iter().for_each(|&arg| self.need(arg));
        if let Some(block) = self.homes[node] {
            self.need_block(block);
        }
        if let Def::Phi(region, number) = data.def {
            self.follow_phi(region, number as usize);
        }
    }

    fn follow_phi(&mut self, region: Region, number: usize) {
        self.need_block(self.graph.regions[region].root);
        for index in (0..self.blocks[region].len()).rev() {
            let block = self.blocks[region][index];
            self.passed[block] = match &self.graph.blocks[block].end {
                End::Return(values) => {
                    let value = values.get(number).copied();
                    value.into_iter().for_each(|value| self.need(value));
                    value
                }
                &End::Branch { then, otherwise, .. } => {
                    let same =
                        self.passed[then].filter(|_| self.passed[then] == self.passed[otherwise]);
                    if same.is_none() {
                        self.need_branch(block);
                    }
                    same
                }
                End::Open => None,
            };
        }
    }
}

/// For each block the region in whose tree it is, if that is not the graph's.
fn trees(graph: &Graph) -> Array<Block, Option<Region>> {
    let mut trees = Array::filled(None, graph.blocks.len());
    for block in graph.preorder() {
        if let End::Branch { then, otherwise, .. } = graph.blocks[block].end {
            trees[then] = trees[block];
            trees[otherwise] = trees[block];
        }
        for region in graph.regions_of(block) {
            trees[graph.regions[region].root] = Some(region);
        }
    }
    trees
}

/// The graph without what is not live, in the same order.
pub(super) fn retain(graph: &Graph, live: &Live) -> Graph {
    let trees = trees(graph);
    let mut reached = Array::filled(false, graph.blocks.len());
    reached[graph.root()] = true;
    for block in graph.preorder() {
        if !reached[block] {
            continue;
        }
        if let (true, End::Branch { then, otherwise, .. }) =
            (live.branches[block], &graph.blocks[block].end)
        {
            reached[*then] = true;
            reached[*otherwise] = true;
        }
        for region in graph.regions_of(block).filter(|&region| live.regions[region]) {
            reached[graph.regions[region].root] = true;
        }
    }
    let blocks = renumbered(&reached);
    let regions = renumbered(&live.regions);
    let is_kept = |node: Node| live.nodes[node] || matches!(graph.nodes[node].def, Def::Input(_));
    let nodes = renumbered(&graph.nodes.keys().map(is_kept).collect());
    let mut numbers = Array::filled(0, graph.nodes.len());
    for data in graph.regions.values() {
        let phis = data.phis.iter().filter(|&&phi| live.nodes[phi]);
        phis.enumerate().for_each(|(number, &phi)| numbers[phi] = number as u32);
    }
    let retain = Retain { graph, live, trees, blocks, regions, nodes, numbers };
    Graph {
        nodes: graph.nodes.keys().filter(|&node| is_kept(node)).map(|n| retain.node(n)).collect(),
        blocks: graph.blocks.keys().filter(|&b| reached[b]).map(|b| retain.block(b)).collect(),
        regions: graph
            .regions
            .keys()
            .filter(|&region| live.regions[region])
            .map(|region| retain.region(region))
            .collect(),
        series: graph.series.clone(),
        accesses: graph.accesses.clone(),
        places: graph.places.clone(),
        active: graph.active,
        inactive: graph.inactive,
    }
}

/// The new id of each kept item. Those of others would show, were they used:
/// the first is that of something else.
fn renumbered<K: Entity>(kept: &Array<K, bool>) -> Array<K, K> {
    let mut next = 0;
    let number = |&kept: &bool| {
        let index = if kept { next } else { 0 };
        next += usize::from(kept);
        K::from_index(index)
    };
    kept.values().map(number).collect()
}

struct Retain<'a> {
    graph: &'a Graph,
    live: &'a Live,
    trees: Array<Block, Option<Region>>,
    blocks: Array<Block, Block>,
    regions: Array<Region, Region>,
    nodes: Array<Node, Node>,
    /// The new number of each φ that is kept.
    numbers: Array<Node, u32>,
}

impl Retain<'_> {
    fn node(&self, node: Node) -> NodeData {
        let data = self.graph.nodes[node];
        let def = match data.def {
            Def::Apply(op, args) => Def::Apply(op, args.map(|arg| self.nodes[arg])),
            Def::Phi(region, _) => Def::Phi(self.regions[region], self.numbers[node]),
            Def::Entry(region, number) => Def::Entry(self.regions[region], number),
            Def::Iteration(region) => Def::Iteration(self.regions[region]),
            leaf @ (Def::Input(_) | Def::Const(_) | Def::Element(_)) => leaf,
        };
        NodeData { def, place: data.place }
    }

    fn region(&self, region: Region) -> RegionData {
        let data = &self.graph.regions[region];
        let phis = data.phis.iter().filter(|&&phi| self.live.nodes[phi]);
        RegionData {
            root: self.blocks[data.root],
            phis: phis.map(|&phi| self.nodes[phi]).collect(),
            // Of a region that is not live nothing is used.
            replays: data.replays.filter(|&r| self.live.regions[r]).map(|r| self.regions[r]),
            cycle: data.cycle.clone(),
            place: data.place,
        }
    }

    fn block(&self, block: Block) -> BlockData {
        let data = &self.graph.blocks[block];
        let item = |item: &Item| match *item {
            item @ (Item::Fill(_) | Item::Accumulate(..)) => Some(item),
            Item::Node(node) => self.live.nodes[node].then(|| Item::Node(self.nodes[node])),
            Item::Guard { condition, expect } => {
                Some(Item::Guard { condition: self.nodes[condition], expect })
            }
            Item::Region(region) => {
                self.live.regions[region].then(|| Item::Region(self.regions[region]))
            }
        };
        BlockData { items: data.items.iter().filter_map(item).collect(), end: self.end(block) }
    }

    fn end(&self, block: Block) -> End {
        match self.graph.blocks[block].end {
            End::Branch { condition, then, otherwise } if self.live.branches[block] => {
                let (then, otherwise) = (self.blocks[then], self.blocks[otherwise]);
                return End::Branch { condition: self.nodes[condition], then, otherwise };
            }
            _ => {}
        }
        // What is passed on below a branch that is not needed is the same everywhere.
        let mut leaf = block;
        while let End::Branch { then, .. } = self.graph.blocks[leaf].end {
            leaf = then;
        }
        let End::Return(values) = &self.graph.blocks[leaf].end else { return End::Open };
        let phis = self.trees[leaf].map(|region| &self.graph.regions[region].phis);
        // All outputs of the graph are live.
        let is_kept = |number: usize| phis.is_none_or(|phis| self.live.nodes[phis[number]]);
        let values = values.iter().enumerate().filter(|&(number, _)| is_kept(number));
        End::Return(values.map(|(_, &value)| self.nodes[value]).collect())
    }
}
