//! Removes dead nodes, blocks and regions, without folding or reordering.

use std::sync::Arc;

use super::analysis::Nest;
use super::analysis::is_value_used;
use super::arrays::{Access, AccessData, Array, ArrayData, Entry, Loop};
use super::dead::Live;
use super::graph::{
    Block, BlockData, Call, CallData, Def, End, Graph, Item, Node, NodeData, Region, RegionData,
};
use crate::entity::{Entity, PrimaryMap};

/// The graph without its dead parts; live nodes keep their order.
pub(super) fn retain(graph: &Graph, live: &Live) -> Graph {
    let nest = Nest::of(graph);
    // Blocks below live branches and in live regions.
    let mut reached = PrimaryMap::filled(false, graph.blocks.len());
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
    // φs and entry φs are numbered again, without the dead ones.
    let mut numbers = PrimaryMap::filled(0, graph.nodes.len());
    for data in graph.regions.values() {
        let phis = data.phis.iter().filter(|&&phi| live.nodes[phi]);
        phis.enumerate().for_each(|(number, &phi)| numbers[phi] = number as u32);
    }
    for region in graph.regions.keys() {
        let entries = graph.entries(region).iter().filter(|entry| live.nodes[entry.phi]);
        entries.enumerate().for_each(|(number, entry)| numbers[entry.phi] = number as u32);
    }
    let arrays = renumbered(&live.arrays);
    let accesses = renumbered(&live.accesses);
    let live_calls: Vec<Call> = graph
        .nodes
        .iter()
        .filter_map(|(node, data)| match data.def {
            Def::Call(call) if live.nodes[node] => Some(call),
            _ => None,
        })
        .collect();
    let mut calls = PrimaryMap::filled(Call::from_index(0), graph.calls.len());
    live_calls.iter().enumerate().for_each(|(i, &call)| calls[call] = Call::from_index(i));
    let retain =
        Retain { graph, live, nest, blocks, regions, nodes, numbers, arrays, accesses, calls };
    Graph {
        nodes: graph.nodes.keys().filter(|&node| is_kept(node)).map(|n| retain.node(n)).collect(),
        blocks: graph.blocks.keys().filter(|&b| reached[b]).map(|b| retain.block(b)).collect(),
        regions: graph
            .regions
            .keys()
            .filter(|&region| live.regions[region])
            .map(|region| retain.region(region))
            .collect(),
        arrays: graph
            .arrays
            .keys()
            .filter(|&array| live.arrays[array])
            .map(|array| retain.array(array))
            .collect(),
        accesses: graph
            .accesses
            .keys()
            .filter(|&access| live.accesses[access])
            .map(|access| retain.access(access))
            .collect(),
        calls: live_calls.iter().map(|&call| retain.call(call)).collect(),
        places: graph.places.clone(),
        active: graph.active,
        inactive: graph.inactive,
    }
}

/// The new id of each kept item. Dropped items map to id 0, so a use of one would show as a wrong
/// operand.
fn renumbered<K: Entity>(kept: &PrimaryMap<K, bool>) -> PrimaryMap<K, K> {
    let mut next = 0;
    let number = |&kept: &bool| {
        let index = if kept { next } else { 0 };
        next += usize::from(kept);
        K::from_index(index)
    };
    kept.values().map(number).collect()
}

/// The new ids of the live parts.
struct Retain<'a> {
    graph: &'a Graph,
    live: &'a Live,
    nest: Nest,
    blocks: PrimaryMap<Block, Block>,
    regions: PrimaryMap<Region, Region>,
    nodes: PrimaryMap<Node, Node>,
    /// The new number of each φ and entry φ that is kept.
    numbers: PrimaryMap<Node, u32>,
    arrays: PrimaryMap<Array, Array>,
    accesses: PrimaryMap<Access, Access>,
    calls: PrimaryMap<Call, Call>,
}

impl Retain<'_> {
    fn node(&self, node: Node) -> NodeData {
        let data = self.graph.nodes[node];
        let def = match data.def {
            Def::Apply(op, args) => Def::Apply(op, args.map(|arg| self.nodes[arg])),
            Def::Phi(region, _) => Def::Phi(self.regions[region], self.numbers[node]),
            Def::Entry(region, _) => Def::Entry(self.regions[region], self.numbers[node]),
            Def::Iteration(region) => Def::Iteration(self.regions[region]),
            Def::Element(access) => Def::Element(self.accesses[access]),
            Def::Call(call) => Def::Call(self.calls[call]),
            Def::Result(call, number) => Def::Result(self.nodes[call], number),
            leaf @ (Def::Input(_) | Def::Const(_)) => leaf,
        };
        NodeData { def, place: data.place }
    }

    fn call(&self, call: Call) -> CallData {
        let CallData { routine, args } = &self.graph.calls[call];
        let args = args.iter().map(|&arg| self.nodes[arg]).collect();
        CallData { routine: Arc::clone(routine), args }
    }

    fn region(&self, region: Region) -> RegionData {
        let data = &self.graph.regions[region];
        let phis = data.phis.iter().filter(|&&phi| self.live.nodes[phi]);
        RegionData {
            root: self.blocks[data.root],
            phis: phis.map(|&phi| self.nodes[phi]).collect(),
            // A dead region has no visible nodes, so nothing depends on the replay.
            replays: data.replays.filter(|&r| self.live.regions[r]).map(|r| self.regions[r]),
            cycle: data.cycle.as_ref().map(|cycle| {
                let live = cycle.entries.iter().filter(|entry| self.live.nodes[entry.phi]);
                let entry = |entry: &Entry| Entry {
                    phi: self.nodes[entry.phi],
                    first: self.nodes[entry.first],
                };
                Loop { bound: cycle.bound, entries: live.map(entry).collect() }
            }),
            place: data.place,
        }
    }

    fn array(&self, array: Array) -> ArrayData {
        let mut data = self.graph.arrays[array].clone();
        data.nodes_mut().for_each(|node| *node = self.nodes[*node]);
        data
    }

    fn access(&self, access: Access) -> AccessData {
        let data = &self.graph.accesses[access];
        data.with_loops(self.arrays[data.array], |region| Some(self.regions[region]))
    }

    fn block(&self, block: Block) -> BlockData {
        let data = &self.graph.blocks[block];
        let item = |item: &Item| match *item {
            Item::Node(node) => self.live.nodes[node].then(|| Item::Node(self.nodes[node])),
            Item::Guard { condition, expect } => {
                Some(Item::Guard { condition: self.nodes[condition], expect })
            }
            Item::Region(region) => {
                self.live.regions[region].then(|| Item::Region(self.regions[region]))
            }
            Item::Fill(array) => self.live.arrays[array].then(|| Item::Fill(self.arrays[array])),
            Item::Accumulate(access, node) => {
                let is_live = self.live.arrays[self.graph.accesses[access].array];
                is_live.then(|| Item::Accumulate(self.accesses[access], self.nodes[node]))
            }
            Item::Store(access, node) => {
                let is_live = self.live.arrays[self.graph.accesses[access].array];
                is_live.then(|| Item::Store(self.accesses[access], self.nodes[node]))
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
        // All leaves below a dead branch pass on the same values: take those of the first.
        let mut leaf = block;
        while let End::Branch { then, .. } = self.graph.blocks[leaf].end {
            leaf = then;
        }
        let End::Return(values) = &self.graph.blocks[leaf].end else { return End::Open };
        let region = self.nest.block_region(leaf);
        let values = region
            .map_or(values.to_vec(), |region| passed_on(self.graph, self.live, region, values));
        End::Return(values.into_iter().map(|value| self.nodes[value]).collect())
    }
}

/// The values for live φs among the `values` that a leaf of `region` passes on. A value that is
/// not used there is replaced by `again`, which is visible.
pub(super) fn passed_on(graph: &Graph, live: &Live, region: Region, values: &[Node]) -> Vec<Node> {
    let (conditions, _) = graph.passed_before_phis(region);
    let entries = graph.entries(region).iter().map(|entry| entry.phi);
    let targets = entries.chain(graph.regions[region].phis.iter().copied());
    let kept = (conditions..).zip(targets).filter(|&(_, target)| live.nodes[target]);
    let kept = kept.map(|(number, _)| match is_value_used(graph, region, values, number) {
        true => values[number],
        false => values[0],
    });
    values[..conditions].iter().copied().chain(kept).collect()
}
