//! Which nodes change from one iteration to the next, in which of the loops around them.
//!
//! What is the same in all iterations of a loop is *free* of it: it is computed before the
//! loop, so what it costs there is shared by all iterations. But what a loop *carries* sees
//! the rounding error of a number that is free of it again in each iteration, always the
//! same; those of numbers that change go this way and that.

use crate::entity::Array;
use crate::ssa::{Block, Def, Graph, Nest, Node, Region, SeriesData};

/// Loops around a place, one bit each, the outermost first. Those nested deeper than there
/// are bits share the last one.
pub(super) type LoopSet = u64;

/// All loops around.
pub(super) const ALL: LoopSet = LoopSet::MAX;

/// The loops of a graph.
pub(super) struct Loops {
    nest: Nest,
    /// For each loop how many are around it.
    depths: Array<Region, u32>,
    /// For each node the loops in which its value changes, of those that are around it.
    changes: Array<Node, LoopSet>,
    /// For each node whether it depends on what a loop around it carries.
    carried: Array<Node, bool>,
    /// For each region how many iterations it has at most, if it is a loop.
    bounds: Array<Region, u32>,
    roots: Array<Region, Block>,
}

/// The loops that steps of a block can be moved out of, since each iteration computes
/// them, from the inside: for each its bit, and how many iterations it has at most.
pub(super) type Ways = Vec<(LoopSet, u64)>;

fn bit(depth: u32) -> LoopSet {
    1 << depth.min(LoopSet::BITS - 1)
}

/// The `count` outermost loops.
fn outermost(count: u32) -> LoopSet {
    if count >= LoopSet::BITS { ALL } else { (1 << count) - 1 }
}

impl Loops {
    pub(super) fn of(graph: &Graph) -> Loops {
        let nest = Nest::of(graph);
        let mut depths = Array::filled(0, graph.regions.len());
        // A loop comes before those in it.
        for block in graph.preorder() {
            for region in graph.regions_of(block) {
                depths[region] = nest.loop_around(region).map_or(0, |around| depths[around] + 1);
            }
        }
        let bound = |region: &Region| graph.regions[*region].cycle.as_ref().map_or(1, |c| c.bound);
        let mut loops = Loops {
            nest,
            depths,
            changes: Array::filled(0, graph.nodes.len()),
            carried: Array::filled(false, graph.nodes.len()),
            bounds: graph.regions.keys().map(|region| bound(&region)).collect(),
            roots: graph.regions.values().map(|data| data.root).collect(),
        };
        if graph.regions.values().any(|data| data.cycle.is_some()) {
            for node in graph.nodes.keys() {
                loops.changes[node] = loops.finds_changes(graph, node);
                loops.carried[node] = loops.finds_carried(graph, node);
            }
        }
        loops
    }

    fn finds_changes(&self, graph: &Graph, node: Node) -> LoopSet {
        let here = self.nest.node_loop(node);
        match graph.nodes[node].def {
            Def::Input(_) | Def::Const(_) => 0,
            Def::Apply(..) => {
                let args = graph.nodes[node].args().iter();
                args.fold(0, |all, &arg| all | self.changes_in(arg, here))
            }
            Def::Iteration(region) => bit(self.depths[region]),
            Def::Element(access) => {
                let data = &graph.accesses[access];
                let is_given = matches!(
                    graph.series[data.series],
                    SeriesData::Constants(_) | SeriesData::Inputs { .. }
                );
                let changes = |&(region, _): &(Region, i32)| match self.is_around(region, here) {
                    true => bit(self.depths[region]),
                    false => ALL,
                };
                if is_given { data.strides.iter().fold(0, |all, s| all | changes(s)) } else { ALL }
            }
            Def::Phi(..) | Def::Entry(..) | Def::Call(_) | Def::Result(..) => {
                outermost(self.count(here))
            }
        }
    }

    fn finds_carried(&self, graph: &Graph, node: Node) -> bool {
        let is_in_loop = || self.nest.node_loop(node).is_some();
        match graph.nodes[node].def {
            Def::Input(_) | Def::Const(_) | Def::Iteration(_) => false,
            Def::Apply(..) => graph.nodes[node].args().iter().any(|&arg| self.carried[arg]),
            Def::Element(access) => match &graph.series[graph.accesses[access].series] {
                SeriesData::Constants(_) | SeriesData::Inputs { .. } => false,
                SeriesData::Nodes(nodes) => nodes.iter().any(|&node| self.carried[node]),
                // That loop has ended; one around it goes on.
                SeriesData::History(node) => {
                    let own = self.nest.node_loop(*node);
                    own.is_some_and(|region| self.nest.loop_around(region).is_some())
                }
                SeriesData::Sums(_) | SeriesData::Outputs { .. } => is_in_loop(),
            },
            Def::Phi(..) | Def::Entry(..) | Def::Call(_) | Def::Result(..) => is_in_loop(),
        }
    }

    /// Whether the value of `node` depends on what a loop around it carries.
    pub(super) fn is_carried(&self, node: Node) -> bool {
        self.carried[node]
    }

    /// How many loops there are from the outside to `innermost`.
    fn count(&self, innermost: Option<Region>) -> u32 {
        innermost.map_or(0, |region| self.depths[region] + 1)
    }

    /// Whether `region` is `innermost` or around it.
    fn is_around(&self, region: Region, innermost: Option<Region>) -> bool {
        core::iter::successors(innermost, |&inner| self.nest.loop_around(inner))
            .any(|around| around == region)
    }

    /// In which loops the value of `node` changes, seen from where `innermost` is the
    /// innermost loop. A value that a loop elsewhere has kept of its iterations may change
    /// in all.
    fn changes_in(&self, node: Node, innermost: Option<Region>) -> LoopSet {
        match self.nest.node_loop(node) {
            Some(own) if !self.is_around(own, innermost) => ALL,
            _ => self.changes[node],
        }
    }

    /// In which loops around `block` the value of `node` changes.
    pub(super) fn changes(&self, node: Node, block: Block) -> LoopSet {
        self.changes_in(node, self.nest.block_loop(block))
    }

    /// The loops that steps of `block` can be moved out of.
    pub(super) fn ways(&self, mut block: Block) -> Ways {
        let mut ways = Ways::new();
        while let Some(region) = self.nest.block_loop(block)
            && self.roots[region] == block
            && let Some(above) = self.nest.region_block(region)
        {
            ways.push((bit(self.depths[region]), u64::from(self.bounds[region])));
            block = above;
        }
        ways
    }
}

/// How often what changes in these loops, and costs this much, is computed for each time that
/// something beside it is: `cost` shared by the iterations of the loops that it is free of.
pub(super) fn shared(cost: u64, changes: LoopSet, ways: &[(LoopSet, u64)]) -> u64 {
    let free = ways.iter().take_while(|&&(bit, _)| changes & bit == 0);
    let times = free.fold(1u64, |times, &(_, bound)| times.saturating_mul(bound));
    if cost == 0 { 0 } else { (cost / times.max(1)).max(1) }
}

/// Whether what changes in these loops is computed before the innermost of `ways`.
pub(super) fn is_free(changes: LoopSet, ways: &[(LoopSet, u64)]) -> bool {
    ways.first().is_some_and(|&(innermost, _)| changes & innermost == 0)
}
