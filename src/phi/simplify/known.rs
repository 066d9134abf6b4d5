//! What is known of the nodes of a graph: from how they are computed, and from
//! the conditions that have come out on the way; and which nodes a block sees.

use super::range::{Range, range_of};
use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{Block, Def, End, Flow, Graph, Item, Nest, Node, SeriesData};

/// How many conditions on the way to a block are looked at, the closest first.
const MOST_CONDITIONS: usize = 64;
/// How many blocks around a block are looked at for what is visible in it.
const MOST_BLOCKS: usize = 64;

/// What is known of each node, from how it is computed.
pub(super) struct Known<'a> {
    graph: &'a Graph,
    ranges: Array<Node, Range>,
    parents: Array<Block, Option<Block>>,
    nest: Nest,
    /// For each block that which it replays, whose values are visible in it.
    forwards: Array<Block, Option<Block>>,
}

impl<'a> Known<'a> {
    pub(super) fn of(graph: &'a Graph, flow: &Flow<'_>) -> Known<'a> {
        let mut ranges = Array::filled(Range::UNKNOWN, graph.nodes.len());
        let mut series = Array::filled(None, graph.series.len());
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
                Def::Element(access) => *series[graph.accesses[access].series]
                    .get_or_insert_with(|| elements(&graph.series[graph.accesses[access].series])),
                Def::Iteration(_) => Range {
                    low: 0.0,
                    high: f64::from(u32::MAX),
                    nan: false,
                    nonzero: false,
                    integer: true,
                },
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
        let mut around = Some(block);
        for _ in 0..MOST_BLOCKS {
            let Some(here) = around else { return false };
            if of_node == here || self.forwards[here] == Some(of_node) {
                return true;
            }
            around = self.parents[here];
        }
        false
    }

    /// Whether `node` is computed in a loop that is not around `block`: there it is
    /// remembered for each iteration.
    pub(super) fn is_history(&self, node: Node, block: Block) -> bool {
        let Some(own) = self.nest.node_loop(node) else { return false };
        let mut around = self.nest.block_loop(block);
        while let Some(here) = around {
            if here == own {
                return false;
            }
            around = self.nest.loop_around(here);
        }
        true
    }

    /// What is known in `block`, also from conditions.
    pub(super) fn at(&self, block: Block) -> KnownAt<'_> {
        let mut known = KnownAt { known: self, refined: Vec::new() };
        // Results are given only if all guards have held, those to come included.
        let mut here = block;
        let mut conditions = Vec::new();
        loop {
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
            if conditions.len() >= MOST_CONDITIONS {
                break;
            }
        }
        conditions.truncate(MOST_CONDITIONS);
        conditions.iter().for_each(|&(condition, holds)| known.learn(condition, holds));
        known
    }
}

/// What is known of nodes in a block.
pub(super) struct KnownAt<'a> {
    known: &'a Known<'a>,
    /// What conditions tell, by node.
    refined: Vec<(Node, Range)>,
}

impl KnownAt<'_> {
    pub(super) fn range(&self, node: Node) -> Range {
        self.refinement(node).map_or(self.known.ranges[node], |&(_, range)| range)
    }

    /// What conditions tell of `node` beyond how it is computed.
    pub(super) fn told(&self, node: Node) -> Option<Range> {
        self.refinement(node).map(|&(_, range)| range)
    }

    fn refinement(&self, node: Node) -> Option<&(Node, Range)> {
        self.refined.iter().find(|(refined, _)| *refined == node)
    }

    fn refine(&mut self, node: Node, range: Range) {
        let range = self.range(node).both(range);
        match self.refined.iter_mut().find(|(refined, _)| *refined == node) {
            Some((_, known)) => *known = range,
            None => self.refined.push((node, range)),
        }
    }

    fn learn(&mut self, condition: Node, holds: bool) {
        let Def::Apply(op, [a, b, _]) = self.known.graph.nodes[condition].def else { return };
        match (op, holds) {
            (Op::Lt | Op::Le, true) => self.learn_order(a, b, op == Op::Lt),
            (Op::Gt | Op::Ge, true) => self.learn_order(b, a, op == Op::Gt),
            // Or one of them is NaN.
            (Op::Lt | Op::Le, false) => self.learn_no_order(b, a, op == Op::Le),
            (Op::Gt | Op::Ge, false) => self.learn_no_order(a, b, op == Op::Ge),
            (Op::Eq, true) | (Op::Ne, false) => {
                let both = self.range(a).both(self.range(b));
                // Zeros of both signs are equal.
                let both = Range { nan: false, ..both };
                self.refine(a, both);
                self.refine(b, both);
            }
            (Op::Ne, true) | (Op::Eq, false) => {
                for (one, other) in [(a, b), (b, a)] {
                    if self.known.graph.constant(other) == Some(0.0) {
                        self.refine(one, Range { nonzero: true, ..Range::UNKNOWN });
                    }
                }
            }
            _ => {}
        }
    }

    /// Learns that `a` is less than `b`, or at most `b`.
    fn learn_order(&mut self, a: Node, b: Node, strictly: bool) {
        let (below, above) = (self.range(a), self.range(b));
        let ordered = Range { nan: false, ..Range::UNKNOWN };
        let nonzero = strictly && above.high <= 0.0;
        self.refine(a, Range { high: above.high, nonzero, ..ordered });
        let nonzero = strictly && below.low >= 0.0;
        self.refine(b, Range { low: below.low, nonzero, ..ordered });
    }

    /// Learns the same, unless one of them is NaN. Bounds hold for what is not NaN;
    /// they follow from a number that is certainly none.
    fn learn_no_order(&mut self, a: Node, b: Node, strictly: bool) {
        let (below, above) = (self.range(a), self.range(b));
        if !above.nan {
            let nonzero = strictly && above.high <= 0.0;
            self.refine(a, Range { high: above.high, nonzero, ..Range::UNKNOWN });
        }
        if !below.nan {
            let nonzero = strictly && below.low >= 0.0;
            self.refine(b, Range { low: below.low, nonzero, ..Range::UNKNOWN });
        }
    }
}

/// What is known of all elements of `series`.
fn elements(series: &SeriesData) -> Range {
    match series {
        SeriesData::Constants(all) if !all.is_empty() => {
            let all = all.bounds();
            Range {
                low: all.low,
                high: all.high,
                nan: all.has_nan,
                nonzero: !all.has_zero,
                integer: all.are_integers,
            }
        }
        _ => Range::UNKNOWN,
    }
}

/// For each block the one that it replays, which is on the same way.
fn forwards(
    graph: &Graph,
    parents: &Array<Block, Option<Block>>,
    nest: &Nest,
) -> Array<Block, Option<Block>> {
    let mut forwards = Array::filled(None, graph.blocks.len());
    for block in graph.preorder() {
        let Some(parent) = parents[block] else { continue };
        let of_parent: Option<Block> = forwards[parent];
        let begun = nest.block_region(block).filter(|&region| graph.regions[region].root == block);
        forwards[block] = match begun {
            Some(region) => {
                let replayed = graph.regions[region].replays;
                replayed.map(|replayed| graph.regions[replayed].root).or(of_parent)
            }
            None => of_parent.map(|forward| same_side(graph, forward, parent, block)),
        };
    }
    forwards
}

/// The side of `forward` that is taken where `parent` goes on with `block`, if both
/// branch on the same condition; otherwise `forward` itself.
fn same_side(graph: &Graph, forward: Block, parent: Block, block: Block) -> Block {
    match (&graph.blocks[parent].end, &graph.blocks[forward].end) {
        (
            End::Branch { condition, then, .. },
            End::Branch { condition: same, then: on_then, otherwise },
        ) if condition == same => {
            if *then == block {
                *on_then
            } else {
                *otherwise
            }
        }
        _ => forward,
    }
}
