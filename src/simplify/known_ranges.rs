//! Known ranges of the nodes of a graph: from how they are computed, and from the conditions
//! on the path to a block; and which nodes are visible in a block.

use super::range::{Range, range_of};
use crate::entity::PrimaryMap;
use crate::op::Op;
use crate::ssa::{ArrayData, Block, Def, End, Flow, Graph, Item, Nest, Node};

/// How many conditions on the path to a block are looked at, the closest first.
const MOST_CONDITIONS: usize = 64;
/// How many enclosing blocks are looked at for what is visible in a block.
const MOST_BLOCKS: usize = 64;

/// What is known of each node, from how it is computed.
pub(super) struct Known<'a> {
    graph: &'a Graph,
    ranges: PrimaryMap<Node, Range>,
    parents: PrimaryMap<Block, Option<Block>>,
    nest: Nest,
    /// For each block that which it replays, whose values are visible in it.
    forwards: PrimaryMap<Block, Option<Block>>,
}

impl<'a> Known<'a> {
    pub(super) fn of(graph: &'a Graph, flow: &Flow<'_>) -> Known<'a> {
        let mut ranges = PrimaryMap::filled(Range::UNKNOWN, graph.nodes.len());
        let mut array = PrimaryMap::filled(None, graph.arrays.len());
        for (node, data) in graph.nodes.iter() {
            ranges[node] = match data.def {
                Def::Const(bits) => Range::constant(f64::from_bits(bits)),
                Def::Apply(op, args) => {
                    range_of(op, args.map(|arg| ranges[arg]), args[0] == args[1])
                }
                Def::Phi(..) => {
                    let sources = flow.sources(node);
                    // A constant may come later in the list.
                    let range = |&source: &Node| match graph.nodes[source].def {
                        Def::Const(bits) => Range::constant(f64::from_bits(bits)),
                        _ if source < node => ranges[source],
                        _ => Range::UNKNOWN,
                    };
                    sources.iter().map(range).reduce(Range::either).unwrap_or(Range::UNKNOWN)
                }
                Def::Element(access) => *array[graph.accesses[access].array]
                    .get_or_insert_with(|| elements(&graph.arrays[graph.accesses[access].array])),
                Def::Iteration(_) => Range::between(0.0, f64::from(u32::MAX)).or_nan(false),
                Def::Input(_) | Def::Entry(..) | Def::Call(_) | Def::Result(..) => Range::UNKNOWN,
            };
        }
        let (parents, nest) = (graph.parents(), Nest::of(graph));
        let forwards = forwards(graph, &parents, &nest);
        Known { graph, ranges, parents, nest, forwards }
    }

    /// Whether the value of `node` is visible in `block`, as for the verifier, up to
    /// the order of steps. Unknown means no.
    pub(super) fn is_visible(&self, node: Node, block: Block) -> bool {
        let Some(of_node) = self.nest.node_block(node) else { return true };
        core::iter::successors(Some(block), |&here| self.parents[here])
            .take(MOST_BLOCKS)
            .any(|here| of_node == here || self.forwards[here] == Some(of_node))
    }

    /// What is known in `block`, also from conditions.
    pub(super) fn at(&self, block: Block) -> KnownAt<'_> {
        // There are results only if all guards have held, also those that come later.
        let mut here = block;
        let mut conditions = Vec::new();
        while conditions.len() < MOST_CONDITIONS {
            // Those of a block that is replayed held for the values that are seen here.
            for block in [Some(here), self.forwards[here]].into_iter().flatten() {
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
        conditions.truncate(MOST_CONDITIONS);
        let mut known = KnownAt { known: self, refined: Vec::new() };
        conditions.iter().for_each(|&(condition, holds)| known.assume(condition, holds));
        known
    }
}

/// What is known of nodes in a block.
pub(super) struct KnownAt<'a> {
    known: &'a Known<'a>,
    /// What follows from conditions, by node.
    refined: Vec<(Node, Range)>,
}

impl KnownAt<'_> {
    pub(super) fn range(&self, node: Node) -> Range {
        self.refined(node).unwrap_or(self.known.ranges[node])
    }

    /// What is known of `node` with conditions, if they say anything of it.
    pub(super) fn refined(&self, node: Node) -> Option<Range> {
        self.refined.iter().find(|(refined, _)| *refined == node).map(|&(_, range)| range)
    }

    fn refine(&mut self, node: Node, range: Range) {
        let range = self.range(node).both(range);
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
            // Or one of them is NaN.
            Op::Lt | Op::Le => self.assume_order(b, a, op == Op::Le, false),
            Op::Gt | Op::Ge => self.assume_order(a, b, op == Op::Ge, false),
            Op::Eq | Op::Ne if holds == (op == Op::Eq) => {
                // Zeros of both signs are equal.
                let both = Range { nan: false, ..self.range(a).both(self.range(b)) };
                self.refine(a, both);
                self.refine(b, both);
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

    /// Assumes that `a` is less than `b`, or at most `b`; and that no one is NaN, if they are
    /// `ordered`. If not, a bound follows only from a number that is certainly not NaN.
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

/// What is known of all elements of `array`.
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

/// For each block the one that it replays, on the same path.
fn forwards(
    graph: &Graph,
    parents: &PrimaryMap<Block, Option<Block>>,
    nest: &Nest,
) -> PrimaryMap<Block, Option<Block>> {
    let mut forwards = PrimaryMap::filled(None, graph.blocks.len());
    for block in graph.preorder() {
        let Some(parent) = parents[block] else { continue };
        let of_parent: Option<Block> = forwards[parent];
        let region = nest.block_region(block).filter(|&region| graph.regions[region].root == block);
        forwards[block] = match region {
            Some(region) => {
                let replayed = graph.regions[region].replays;
                replayed.map(|replayed| graph.regions[replayed].root).or(of_parent)
            }
            None => of_parent.map(|forward| same_arm(graph, forward, parent, block)),
        };
    }
    forwards
}

/// The arm of `forward` that is taken where `parent` goes on with `block`, if both branch on
/// the same condition; otherwise `forward` itself.
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
