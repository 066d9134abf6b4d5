//! The blocks where reciprocals are computed, and the divisors that may be too small for one.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use super::Division;
use crate::entity::PrimaryMap;
use crate::op::Op;
use crate::ssa::{Block, BlockRanges, Def, End, Flow, Graph, Item, KnownRanges, Nest, Node};

/// The place of a reciprocal, with the divisions that use it.
pub(super) struct Place {
    pub(super) block: Block,
    /// True if the divisor is computed in the block, so that its reciprocal comes after it.
    pub(super) is_after_divisor: bool,
    pub(super) divisions: Vec<Division>,
}

/// The analyses that the places of reciprocals depend on.
pub(super) struct Places<'a> {
    graph: &'a Graph,
    ranges: KnownRanges<'a>,
    nest: Nest,
    parents: PrimaryMap<Block, Option<Block>>,
    /// The number of each block in preorder.
    order: PrimaryMap<Block, u32>,
    /// The blocks that use each node other than as the divisor of a candidate.
    other_uses: HashMap<Node, Vec<Block>>,
    least_exponents: PrimaryMap<Node, i32>,
}

impl<'a> Places<'a> {
    pub(super) fn of(
        graph: &'a Graph,
        flow: &Flow<'_>,
        nest: Nest,
        candidates: &PrimaryMap<Node, bool>,
    ) -> Self {
        let mut order = PrimaryMap::filled(0, graph.blocks.len());
        let mut other_uses: HashMap<Node, Vec<Block>> = HashMap::new();
        for (number, block) in graph.preorder().into_iter().enumerate() {
            order[block] = number as u32;
            let mut add = |node: Node| other_uses.entry(node).or_default().push(block);
            for item in &graph.blocks[block].items {
                match *item {
                    Item::Node(node) => match graph.operands(node) {
                        [others @ .., _] if candidates[node] => {
                            others.iter().copied().for_each(&mut add)
                        }
                        operands => operands.iter().copied().for_each(&mut add),
                    },
                    Item::Guard { condition: node, .. }
                    | Item::Accumulate(_, node)
                    | Item::Store(_, node) => add(node),
                    Item::Region(_) | Item::Fill(_) => {}
                }
            }
            match &graph.blocks[block].end {
                End::Return(values) => values.iter().copied().for_each(add),
                &End::Branch { condition, .. } => add(condition),
                End::Open => {}
            }
        }
        let ranges = KnownRanges::of(graph, flow);
        let least_exponents = least_exponents(graph, flow, &ranges.at(graph.root()));
        Places { graph, ranges, nest, parents: graph.parents(), order, other_uses, least_exponents }
    }

    /// The places for reciprocals of `divisor` that replace more than one of `divisions` on a path.
    pub(super) fn of_reciprocals(&self, divisor: Node, divisions: &[Division]) -> Vec<Place> {
        // A replaying region sees the divisor, but not what is computed in blocks below that.
        let mut groups: BTreeMap<Block, Vec<Division>> = BTreeMap::new();
        for &division in divisions {
            if let Some(outermost) = self.outermost(divisor, division.block) {
                groups.entry(outermost).or_default().push(division);
            }
        }
        let (own, mut places) = (self.block_of(divisor), Vec::new());
        let is_always_used = |direct: &Vec<Division>| Uses::of(self, own, direct).are_certain(own);
        if groups.get(&own).is_some_and(is_always_used) {
            let replaying = groups.keys().copied().filter(|&root| root != own);
            let sharing = replaying.filter(|&root| !self.would_save_both(divisor, root));
            let sharing: Vec<Block> = sharing.collect();
            if !sharing.is_empty() {
                let groups =
                    sharing.into_iter().chain([own]).filter_map(|root| groups.remove(&root));
                let divisions = groups.flatten().collect();
                places.push(self.place(divisor, own, divisions));
            }
        }
        for (outermost, divisions) in groups {
            let uses = Uses::of(self, outermost, &divisions);
            let shared = uses.shared(outermost).into_iter();
            places.extend(shared.map(|(block, divisions)| self.place(divisor, block, divisions)));
        }
        places
    }

    fn place(&self, divisor: Node, block: Block, divisions: Vec<Division>) -> Place {
        let at_start = matches!(
            self.graph.nodes[divisor].def,
            Def::Input(_) | Def::Const(_) | Def::Entry(..) | Def::Iteration(_)
        );
        Place { block, is_after_divisor: block == self.block_of(divisor) && !at_start, divisions }
    }

    fn kind(&self, block: Block) -> Kind {
        match self.nest.block_region(block) {
            Some(region) if self.graph.regions[region].root == block => {
                match self.graph.regions[region].cycle {
                    Some(_) => Kind::Loop,
                    None => Kind::Region,
                }
            }
            _ => Kind::Arm,
        }
    }

    /// The block that defines `divisor`, or the root.
    fn block_of(&self, divisor: Node) -> Block {
        self.nest.node_block(divisor).unwrap_or(self.graph.root())
    }

    /// The outermost block above `block` such that `divisor` is visible in all between them.
    fn outermost(&self, divisor: Node, block: Block) -> Option<Block> {
        let own = self.block_of(divisor);
        core::iter::successors(Some(block), |&here| self.parents[here])
            .find(|&here| here == own || self.ranges.replays(here, own))
    }

    /// True if blocks below `root` replay the loop of `divisor` and also have other uses of it, so
    /// that the loop would have to save its reciprocal as well.
    fn would_save_both(&self, divisor: Node, root: Block) -> bool {
        let Some(own) = self.nest.node_loop(divisor) else { return false };
        let mut around = core::iter::successors(self.nest.block_loop(root), |&inner| {
            self.nest.loop_around(inner)
        });
        let is_used = || {
            let mut blocks = self.other_uses.get(&divisor).into_iter().flatten();
            blocks.any(|&block| self.outermost(divisor, block) == Some(root))
        };
        !around.any(|around| around == own) && is_used()
    }

    /// True if `divisor` may be so small in `block` that its reciprocal overflows.
    pub(super) fn may_overflow(&self, divisor: Node, block: Block) -> bool {
        /// The largest reciprocals are 2¹⁰²³ or somewhat more.
        const LEAST: i32 = -1023;
        let is_large = |exponent: i32| exponent >= LEAST;
        let range = self.ranges.at(block).range(divisor);
        !is_large(self.least_exponents[divisor])
            && !is_large(exponent(range.lower.max(-range.upper).max(0.0)))
    }
}

/// The divisions by a divisor, in the tree of blocks on the paths to them.
struct Uses {
    divisions: HashMap<Block, Vec<Division>>,
    children: HashMap<Block, Vec<Child>>,
    /// The largest number of divisions on a path from each block, twice those in loops.
    weights: HashMap<Block, usize>,
}

/// The root of a region, or an arm of a branch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Arm,
    Region,
    Loop,
}

#[derive(Clone, Copy)]
struct Child {
    block: Block,
    kind: Kind,
}

impl Uses {
    /// The uses `divisions` in `root` or below.
    fn of(places: &Places<'_>, root: Block, divisions: &[Division]) -> Uses {
        let mut uses =
            Uses { divisions: HashMap::new(), children: HashMap::new(), weights: HashMap::new() };
        let mut path: HashSet<Block> = [root].into_iter().collect();
        let mut order = vec![root];
        for &division in divisions {
            uses.divisions.entry(division.block).or_default().push(division);
            let mut here = division.block;
            while path.insert(here) {
                order.push(here);
                let Some(parent) = places.parents[here] else { break };
                let kind = places.kind(here);
                uses.children.entry(parent).or_default().push(Child { block: here, kind });
                here = parent;
            }
        }
        order.sort_by_key(|&block| core::cmp::Reverse(places.order[block]));
        for block in order {
            let (mut below, mut in_arms) = (0, 0);
            for child in uses.children.get(&block).into_iter().flatten() {
                let weight = uses.weights.get(&child.block).copied().unwrap_or(0);
                match child.kind {
                    Kind::Arm => in_arms = weight.max(in_arms),
                    Kind::Region => below += weight,
                    Kind::Loop => below += 2 * weight,
                }
            }
            let here = uses.divisions.get(&block).map_or(0, Vec::len);
            uses.weights.insert(block, here + below + in_arms);
        }
        uses
    }

    fn children(&self, block: Block) -> &[Child] {
        self.children.get(&block).map_or(&[], |children| children)
    }

    /// True if a division is in `block`, or in a region that is a step of it.
    fn are_certain(&self, block: Block) -> bool {
        self.divisions.contains_key(&block)
            || self.children(block).iter().any(|child| child.kind != Kind::Arm)
    }

    /// The innermost blocks with several divisions on a path below, with those divisions.
    fn shared(&self, root: Block) -> Vec<(Block, Vec<Division>)> {
        let (mut shared, mut pending) = (Vec::new(), vec![root]);
        while let Some(block) = pending.pop() {
            if self.weights.get(&block).is_none_or(|&weight| weight < 2) {
                continue;
            }
            let children = self.children(block);
            let is_passed = match children {
                _ if self.divisions.contains_key(&block) => false,
                [Child { kind: Kind::Region, .. }] => true,
                _ => children.iter().all(|child| child.kind == Kind::Arm),
            };
            match is_passed {
                true => pending.extend(children.iter().map(|child| child.block)),
                false => shared.push((block, self.below(block))),
            }
        }
        shared
    }

    /// The divisions in `block` and below.
    fn below(&self, block: Block) -> Vec<Division> {
        let (mut all, mut pending) = (Vec::new(), vec![block]);
        while let Some(block) = pending.pop() {
            all.extend(self.divisions.get(&block).into_iter().flatten());
            pending.extend(self.children(block).iter().map(|child| child.block));
        }
        all
    }
}

/// An exponent for each node: its value is 0, NaN, or at least that power of two in magnitude.
fn least_exponents(
    graph: &Graph,
    flow: &Flow<'_>,
    ranges: &BlockRanges<'_>,
) -> PrimaryMap<Node, i32> {
    let mut least = PrimaryMap::filled(SUBNORMAL, graph.nodes.len());
    for (node, data) in graph.nodes.iter() {
        let range = ranges.range(node);
        let by_range = exponent(range.lower.max(-range.upper).max(0.0));
        let known = match data.def {
            Def::Const(bits) => exponent(f64::from_bits(bits)),
            Def::Iteration(_) => 0,
            Def::Phi(..) => {
                let sources = flow.sources(node);
                sources.iter().map(|&of| least[of]).min().unwrap_or(SUBNORMAL)
            }
            Def::Apply(op, [a, b, c]) => match op {
                Op::Sqrt => (least[a] - 1) / 2,
                Op::Neg | Op::Abs | Op::CopySign => least[a],
                Op::Min | Op::Max => least[a].min(least[b]),
                Op::Select => least[b].min(least[c]),
                Op::Mul => least[a].saturating_add(least[b]),
                // Logarithms of the neighbours of 1.
                Op::Ln | Op::Log2 | Op::Log10 => -55,
                Op::Signum | Op::Floor | Op::Ceil | Op::Round | Op::Trunc => 0,
                Op::Add if [a, b].iter().all(|&arg| ranges.range(arg).is_not_negative()) => {
                    least[a].min(least[b])
                }
                // A sum is a multiple of the last digit of its smaller operand.
                Op::Add | Op::Sub => {
                    let constants = [a, b].into_iter().filter_map(|arg| graph.constant(arg));
                    constants.map(|number| exponent(number) - 54).max().unwrap_or(SUBNORMAL)
                }
                _ if op.is_comparison() => 0,
                _ => SUBNORMAL,
            },
            _ => SUBNORMAL,
        };
        least[node] = known.max(by_range).max(SUBNORMAL);
    }
    least
}

/// The exponent of the smallest number.
const SUBNORMAL: i32 = -1074;

/// The exponent of `number`; that of the smallest number if it is not larger.
fn exponent(number: f64) -> i32 {
    if number.is_normal() { ((number.abs().to_bits() >> 52) as i32) - 1023 } else { SUBNORMAL }
}
