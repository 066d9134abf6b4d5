//! Known ranges of the nodes of a graph, by their operations and by the conditions on the path to a
//! block; and visibility of nodes in a block.

use super::range::{Range, range_of};
use super::{Flow, Nest};
use crate::entity::PrimaryMap;
use crate::op::Op;
use crate::ssa::{ArrayData, Block, Def, End, Graph, Item, Node};

/// The largest number of conditions on the path to a block that are used, the closest first.
const MAX_CONDITIONS: usize = 64;
/// The largest number of enclosing blocks that are searched for visible nodes.
const MAX_BLOCKS: usize = 64;

/// The known range of each node, by its operation.
pub(crate) struct KnownRanges<'a> {
    graph: &'a Graph,
    ranges: PrimaryMap<Node, Range>,
    parents: PrimaryMap<Block, Option<Block>>,
    nest: Nest,
    /// The block that each block replays, whose values are visible in it.
    replayed_blocks: PrimaryMap<Block, Option<Block>>,
}

impl<'a> KnownRanges<'a> {
    pub(crate) fn of(graph: &'a Graph, flow: &Flow<'_>) -> KnownRanges<'a> {
        let mut ranges = PrimaryMap::filled(Range::UNKNOWN, graph.nodes.len());
        let mut element_ranges = PrimaryMap::filled(None, graph.arrays.len());
        for (node, data) in graph.nodes.iter() {
            ranges[node] = match data.def {
                Def::Const(bits) => Range::constant(f64::from_bits(bits)),
                Def::Apply(op, args) => {
                    range_of(op, args.map(|arg| ranges[arg]), args[0] == args[1])
                }
                Def::Phi(..) => {
                    let sources = flow.sources(node);
                    // A constant may have a larger id.
                    let range = |&source: &Node| match graph.nodes[source].def {
                        Def::Const(bits) => Range::constant(f64::from_bits(bits)),
                        _ if source < node => ranges[source],
                        _ => Range::UNKNOWN,
                    };
                    sources.iter().map(range).reduce(Range::union).unwrap_or(Range::UNKNOWN)
                }
                Def::Element(access) => *element_ranges[graph.accesses[access].array]
                    .get_or_insert_with(|| elements(&graph.arrays[graph.accesses[access].array])),
                Def::Iteration(_) => Range::between(0.0, f64::from(u32::MAX)).with_nan(false),
                Def::Input(_) | Def::Entry(..) | Def::Call(_) | Def::Result(..) => Range::UNKNOWN,
            };
        }
        let (parents, nest) = (graph.parents(), Nest::of(graph));
        let replayed_blocks = replayed_blocks(graph, &parents, &nest);
        KnownRanges { graph, ranges, parents, nest, replayed_blocks }
    }

    /// True if the value of `node` is visible in `block`, as in the verifier but for the order of
    /// steps. False if that is not known.
    pub(crate) fn is_visible(&self, node: Node, block: Block) -> bool {
        let Some(of_node) = self.nest.node_block(node) else { return true };
        core::iter::successors(Some(block), |&here| self.parents[here])
            .take(MAX_BLOCKS)
            .any(|here| of_node == here || self.replays(here, of_node))
    }

    /// True if the values of the block `replayed` are visible in `block` by replaying.
    pub(crate) fn replays(&self, block: Block, replayed: Block) -> bool {
        self.replayed_blocks[block] == Some(replayed)
    }

    /// The known ranges in `block`, also by conditions.
    pub(crate) fn at(&self, block: Block) -> BlockRanges<'_> {
        // A call has results only if all guards hold, also later ones.
        let mut here = block;
        let mut conditions = Vec::new();
        while conditions.len() < MAX_CONDITIONS {
            // The guards of a replayed block held for the values that are visible here.
            for block in [Some(here), self.replayed_blocks[here]].into_iter().flatten() {
                for item in &self.graph.blocks[block].items {
                    if let Item::Guard { condition, expect } = *item {
                        conditions.push((condition, expect));
                    }
                }
            }
            let Some(parent) = self.parents[here] else { break };
            if let End::Branch { condition, then, otherwise } = self.graph.blocks[parent].end
                && (then == here || otherwise == here)
            {
                conditions.push((condition, then == here));
            }
            here = parent;
        }
        conditions.truncate(MAX_CONDITIONS);
        let mut known = BlockRanges { known: self, refined: Vec::new() };
        conditions.iter().for_each(|&(condition, holds)| known.assume(condition, holds));
        known
    }
}

/// The known ranges of nodes in a block.
pub(crate) struct BlockRanges<'a> {
    known: &'a KnownRanges<'a>,
    /// The ranges that conditions imply, by node.
    refined: Vec<(Node, Range)>,
}

impl BlockRanges<'_> {
    pub(crate) fn range(&self, node: Node) -> Range {
        self.refined(node).unwrap_or(self.known.ranges[node])
    }

    /// The range of `node` with conditions, if they imply anything for it.
    pub(crate) fn refined(&self, node: Node) -> Option<Range> {
        self.refined.iter().find(|(refined, _)| *refined == node).map(|&(_, range)| range)
    }

    fn refine(&mut self, node: Node, range: Range) {
        let range = self.range(node).intersection(range);
        match self.refined.iter_mut().find(|(refined, _)| *refined == node) {
            Some((_, known)) => *known = range,
            None => self.refined.push((node, range)),
        }
    }

    fn assume(&mut self, condition: Node, holds: bool) {
        let Def::Apply(op, [a, b, _]) = self.known.graph.nodes[condition].def else { return };
        match op {
            Op::Lt | Op::Le if holds => self.assume_order(a, b, op == Op::Lt, true),
            Op::Gt | Op::Ge if holds => self.assume_order(b, a, op == Op::Gt, true),
            // The comparison is also false if an operand is NaN.
            Op::Lt | Op::Le => self.assume_order(b, a, op == Op::Le, false),
            Op::Gt | Op::Ge => self.assume_order(a, b, op == Op::Ge, false),
            Op::Eq | Op::Ne if holds == (op == Op::Eq) => {
                // Zeros of both signs are equal.
                let intersection =
                    Range { nan: false, ..self.range(a).intersection(self.range(b)) };
                self.refine(a, intersection);
                self.refine(b, intersection);
            }
            Op::Eq | Op::Ne => {
                for (one, other) in [(a, b), (b, a)] {
                    if self.known.graph.constant(other) == Some(0.0) {
                        self.refine(one, Range { nonzero: true, ..Range::UNKNOWN });
                    }
                }
            }
            _ => {}
        }
    }

    /// Assumes that `a` is less than `b` (`strictly`) or at most `b`, and that neither is NaN if
    /// they are `ordered`. If not, only a number that is certainly not NaN implies a bound.
    fn assume_order(&mut self, a: Node, b: Node, strictly: bool, ordered: bool) {
        let (smaller, larger) = (self.range(a), self.range(b));
        let unknown = Range { nan: !ordered, ..Range::UNKNOWN };
        if ordered || !larger.nan {
            let nonzero = strictly && larger.upper <= 0.0;
            self.refine(a, Range { upper: larger.upper, nonzero, ..unknown });
        }
        if ordered || !smaller.nan {
            let nonzero = strictly && smaller.lower >= 0.0;
            self.refine(b, Range { lower: smaller.lower, nonzero, ..unknown });
        }
    }
}

/// The range of all elements of `array`.
fn elements(array: &ArrayData) -> Range {
    match array {
        ArrayData::Constants(all) if !all.is_empty() => {
            let all = all.bounds();
            let (lower, upper, nan) = (all.low, all.high, all.has_nan);
            Range { lower, upper, nan, nonzero: !all.has_zero }
        }
        _ => Range::UNKNOWN,
    }
}

/// The block that each block replays, on the same path.
fn replayed_blocks(
    graph: &Graph,
    parents: &PrimaryMap<Block, Option<Block>>,
    nest: &Nest,
) -> PrimaryMap<Block, Option<Block>> {
    let mut replayed_blocks = PrimaryMap::filled(None, graph.blocks.len());
    for block in graph.preorder() {
        let Some(parent) = parents[block] else { continue };
        let of_parent: Option<Block> = replayed_blocks[parent];
        let region = nest.block_region(block).filter(|&region| graph.regions[region].root == block);
        replayed_blocks[block] = match region {
            Some(region) => {
                let replayed = graph.regions[region].replays;
                replayed.map(|replayed| graph.regions[replayed].root).or(of_parent)
            }
            None => of_parent.map(|forward| same_arm(graph, forward, parent, block)),
        };
    }
    replayed_blocks
}

/// The arm of `forward` that corresponds to the arm `block` of `parent`, if both branch on the same
/// condition; otherwise `forward` itself.
fn same_arm(graph: &Graph, forward: Block, parent: Block, block: Block) -> Block {
    match (&graph.blocks[parent].end, &graph.blocks[forward].end) {
        (
            End::Branch { condition, then, .. },
            End::Branch { condition: same, then: on_then, otherwise },
        ) if condition == same => match *then == block {
            true => *on_then,
            false => *otherwise,
        },
        _ => forward,
    }
}
