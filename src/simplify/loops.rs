//! Loop invariance: the enclosing loops in which each value changes.
//!
//! A loop invariant is hoisted, so its cost is divided by the number of iterations. But its
//! rounding error is the same in every iteration and accumulates in carried values, where the
//! errors of varying numbers average out.

use super::egraph::Term;
use crate::entity::PrimaryMap;
use crate::op::latency;
use crate::ssa::{ArrayData, Block, Def, Graph, Nest, Node, Region};

/// A set of enclosing loops, one bit each, the outermost first. The deepest ones share the last
/// bit.
pub(super) type LoopSet = u64;

/// All enclosing loops.
pub(super) const ALL: LoopSet = LoopSet::MAX;

/// The loops that steps of a block can be hoisted out of, the innermost first: the bit of each, and
/// the largest number of its iterations. Each iteration runs the block.
pub(super) type Enclosing = Vec<(LoopSet, u64)>;

/// The loops of a graph.
pub(super) struct Loops {
    nest: Nest,
    /// The number of loops around each loop.
    depths: PrimaryMap<Region, u32>,
    /// The enclosing loops in which each node changes.
    changes: PrimaryMap<Node, LoopSet>,
    /// True for nodes that depend on a carried value of an enclosing loop.
    carried: PrimaryMap<Node, bool>,
}

fn bit(depth: u32) -> LoopSet {
    1 << depth.min(LoopSet::BITS - 1)
}

impl Loops {
    pub(super) fn of(graph: &Graph) -> Loops {
        let nest = Nest::of(graph);
        let mut depths = PrimaryMap::filled(0, graph.regions.len());
        // A loop comes before those in it.
        for block in graph.preorder() {
            for region in graph.regions_of(block) {
                depths[region] = nest.loop_around(region).map_or(0, |outer| depths[outer] + 1);
            }
        }
        let changes = PrimaryMap::filled(0, graph.nodes.len());
        let carried = PrimaryMap::filled(false, graph.nodes.len());
        let mut loops = Loops { nest, depths, changes, carried };
        if graph.regions.values().any(|data| data.cycle.is_some()) {
            for node in graph.nodes.keys() {
                loops.changes[node] = loops.find_changes(graph, node);
                loops.carried[node] = loops.find_carried(graph, node);
            }
        }
        loops
    }

    fn find_changes(&self, graph: &Graph, node: Node) -> LoopSet {
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
                let is_constant = matches!(
                    graph.arrays[data.array],
                    ArrayData::Constants(_) | ArrayData::Inputs { .. }
                );
                let changes = |region: Region| match self.encloses(region, here) {
                    true => bit(self.depths[region]),
                    false => ALL,
                };
                match is_constant {
                    true => data.loops().fold(0, |all, region| all | changes(region)),
                    false => ALL,
                }
            }
            // In every enclosing loop.
            Def::Phi(..) | Def::Entry(..) | Def::Call(_) | Def::Result(..) => {
                here.map_or(0, |innermost| match self.depths[innermost] {
                    depth if depth + 1 >= LoopSet::BITS => ALL,
                    depth => (1 << (depth + 1)) - 1,
                })
            }
        }
    }

    fn find_carried(&self, graph: &Graph, node: Node) -> bool {
        let is_in_loop = || self.nest.node_loop(node).is_some();
        match graph.nodes[node].def {
            Def::Input(_) | Def::Const(_) | Def::Iteration(_) => false,
            Def::Apply(..) => graph.nodes[node].args().iter().any(|&arg| self.carried[arg]),
            Def::Element(access) => match &graph.arrays[graph.accesses[access].array] {
                ArrayData::Constants(_) | ArrayData::Inputs { .. } => false,
                ArrayData::Nodes(nodes) => nodes.iter().any(|&node| self.carried[node]),
                // That loop has ended; a loop around it may carry the value.
                ArrayData::Saved(node) => {
                    let own = self.nest.node_loop(*node);
                    own.is_some_and(|region| self.nest.loop_around(region).is_some())
                }
                ArrayData::Sums(_) | ArrayData::Outputs { .. } | ArrayData::Cells(_) => {
                    is_in_loop()
                }
            },
            Def::Phi(..) | Def::Entry(..) | Def::Call(_) | Def::Result(..) => is_in_loop(),
        }
    }

    /// True if `node` depends on a carried value of an enclosing loop.
    pub(super) fn is_carried(&self, node: Node) -> bool {
        self.carried[node]
    }

    /// True if `region` is `innermost` or encloses it.
    fn encloses(&self, region: Region, innermost: Option<Region>) -> bool {
        core::iter::successors(innermost, |&inner| self.nest.loop_around(inner))
            .any(|outer| outer == region)
    }

    /// The loops from `innermost` outwards in which `node` changes. A value that another loop saved
    /// in each iteration may change in all.
    fn changes_in(&self, node: Node, innermost: Option<Region>) -> LoopSet {
        match self.nest.node_loop(node) {
            Some(own) if !self.encloses(own, innermost) => ALL,
            _ => self.changes[node],
        }
    }

    /// The enclosing loops of `block` in which `node` changes.
    pub(super) fn changes(&self, node: Node, block: Block) -> LoopSet {
        self.changes_in(node, self.nest.block_loop(block))
    }

    /// True if `node` is computed in a loop that does not enclose `block`, which saves it in each
    /// iteration.
    pub(super) fn is_saved(&self, node: Node, block: Block) -> bool {
        let here = self.nest.block_loop(block);
        self.nest.node_loop(node).is_some_and(|own| !self.encloses(own, here))
    }

    /// The loops that steps of `block` can be hoisted out of.
    pub(super) fn enclosing(&self, graph: &Graph, mut block: Block) -> Enclosing {
        let mut enclosing = Enclosing::new();
        while let Some(region) = self.nest.block_loop(block)
            && let data = &graph.regions[region]
            && data.root == block
            && let Some(outer) = self.nest.region_block(region)
        {
            let bound = data.cycle.as_ref().map_or(1, |cycle| cycle.bound);
            enclosing.push((bit(self.depths[region]), u64::from(bound)));
            block = outer;
        }
        enclosing
    }
}

/// The cost to compute `term` from its operands: its latency, divided by the iterations of the
/// loops in which it is invariant, the others being `changes`.
pub(super) fn cost(term: &Term, changes: LoopSet, enclosing: &[(LoopSet, u64)]) -> u64 {
    let Term::Apply(op, _) = term else { return 0 };
    let invariant = enclosing.iter().take_while(|&&(bit, _)| changes & bit == 0);
    let times = invariant.fold(1u64, |times, &(_, bound)| times.saturating_mul(bound));
    match latency(*op) {
        0 => 0,
        latency => (latency / times.max(1)).max(1),
    }
}
