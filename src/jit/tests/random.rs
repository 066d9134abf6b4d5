//! Random graphs with regions, for the tests of native code.

use crate::op::Op;
use crate::random::Random;
use crate::ssa::{Block, Def, End, Graph, Item, Node, Region};

/// A number that is often equal to others, and sometimes not finite.
pub(super) fn number(random: &mut Random) -> f64 {
    match random.below(12) {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => -0.0,
        _ => random.below(13) as f64 * 0.5 - 3.0,
    }
}

/// The shape of graphs.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) inputs: usize,
    /// The largest number of items of a block.
    pub(super) items: usize,
    /// The largest depth of nested blocks and regions.
    pub(super) depth: usize,
    /// The probability that an item is a region, and that it is a guard.
    pub(super) regions: f64,
    pub(super) guards: f64,
    /// The largest number of φs of a region.
    pub(super) phis: usize,
}

/// A random graph of this shape.
pub(super) fn graph(shape: Shape, random: &mut Random) -> Graph {
    let mut graph = Graph::new(shape.inputs, 1);
    let mut nodes: Vec<Node> = graph.nodes.keys().collect();
    for _ in 0..3 {
        nodes.push(graph.push_const(number(random).to_bits()));
    }
    let values = random.below(3) + 1;
    let root = graph.root();
    let known = Known { nodes, regions: Vec::new() };
    Generator { shape, random, graph: &mut graph }.block(root, known, None, values, 0);
    graph
}

/// The visible nodes, but for those of replayed regions.
#[derive(Clone)]
struct Known {
    nodes: Vec<Node>,
    /// The regions that may be replayed.
    regions: Vec<Region>,
}

struct Generator<'a> {
    shape: Shape,
    random: &'a mut Random,
    graph: &'a mut Graph,
}

impl Generator<'_> {
    /// Fills in `block` and the tree below it, whose ends return `values` values.
    fn block(
        &mut self,
        block: Block,
        mut known: Known,
        forward: Option<Block>,
        values: usize,
        depth: usize,
    ) {
        let items = self.random.below(self.shape.items + 1);
        if let Some(forward) = forward {
            self.see(forward, &mut known);
        }
        for _ in 0..items {
            if depth < self.shape.depth && self.random.chance(self.shape.regions) {
                self.region(block, &mut known, forward, depth);
            } else if self.random.chance(self.shape.guards) {
                let condition = self.condition(block, &mut known);
                let expect = self.random.chance(0.7);
                self.graph.blocks[block].items.push(Item::Guard { condition, expect });
            } else {
                self.node(block, &mut known);
            }
        }
        let replayed = match forward.map(|forward| &self.graph.blocks[forward].end) {
            Some(&End::Branch { condition, then, otherwise }) => {
                Some((condition, [Some(then), Some(otherwise)]))
            }
            _ => None,
        };
        let visible = replayed.map(|(condition, _)| condition);
        let visible = visible.filter(|condition| known.nodes.contains(condition));
        let condition = match visible {
            Some(condition) if self.random.chance(0.9) => condition,
            _ if depth < self.shape.depth && self.random.chance(0.7) => {
                self.condition(block, &mut known)
            }
            _ => {
                let passed = (0..values).map(|_| self.recent(&known)).collect();
                self.graph.blocks[block].end = End::Return(passed);
                return;
            }
        };
        let arms = replayed.filter(|&(of_forward, _)| of_forward == condition);
        let arms = arms.map_or([forward, forward], |(_, arms)| arms);
        let (then, otherwise) = (self.graph.new_block(), self.graph.new_block());
        self.graph.blocks[block].end = End::Branch { condition, then, otherwise };
        for (arm, forward) in [then, otherwise].into_iter().zip(arms) {
            self.block(arm, known.clone(), forward, values, depth + 1);
        }
    }

    fn see(&self, forward: Block, known: &mut Known) {
        for item in &self.graph.blocks[forward].items {
            match *item {
                Item::Node(node) => known.nodes.push(node),
                Item::Region(region) => {
                    let data = &self.graph.regions[region];
                    known.nodes.extend(&data.phis);
                    known.regions.extend(data.replays.is_none().then_some(region));
                }
                Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => {}
            }
        }
    }

    fn region(&mut self, block: Block, known: &mut Known, forward: Option<Block>, depth: usize) {
        let replays = match known.regions.len() {
            0 => None,
            count => self.random.chance(0.6).then(|| known.regions[self.random.below(count)]),
        };
        let region = self.graph.push_region(block, replays, None);
        let root = self.graph.regions[region].root;
        let forward = replays.map(|replayed| self.graph.regions[replayed].root).or(forward);
        let values = self.random.below(self.shape.phis + 1);
        self.block(root, known.clone(), forward, values, depth + 1);
        for _ in 0..values {
            known.nodes.push(self.graph.push_phi(region));
        }
        known.regions.extend(forward.is_none().then_some(region));
    }

    fn condition(&mut self, block: Block, known: &mut Known) -> Node {
        let op = [Op::Lt, Op::Ge, Op::Eq, Op::Ne, Op::Same][self.random.below(5)];
        let args = [self.recent(known), self.recent(known)];
        let node = self.graph.push_apply(block, op, &args, None);
        known.nodes.push(node);
        // Sometimes a condition is no comparison.
        if self.random.chance(0.2) { self.recent(known) } else { node }
    }

    fn node(&mut self, block: Block, known: &mut Known) {
        const OPS: [Op; 14] = [
            Op::Add,
            Op::Sub,
            Op::Mul,
            Op::Add,
            Op::Mul,
            Op::Div,
            Op::Neg,
            Op::Abs,
            Op::Min,
            Op::MulAdd,
            Op::Select,
            Op::Gt,
            Op::Sqrt,
            Op::Sin,
        ];
        let op = OPS[self.random.below(OPS.len())];
        let args: Vec<Node> = (0..op.arity()).map(|_| self.recent(known)).collect();
        let node = self.graph.push_apply(block, op, &args, None);
        debug_assert!(matches!(self.graph.nodes[node].def, Def::Apply(..)));
        known.nodes.push(node);
    }

    /// A visible node; later ones are more likely.
    fn recent(&mut self, known: &Known) -> Node {
        let count = known.nodes.len();
        let back = if self.random.chance(0.6) {
            self.random.below(count.min(6))
        } else {
            self.random.below(count)
        };
        known.nodes[count - 1 - back]
    }
}
