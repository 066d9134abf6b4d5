//! Generates random graphs with regions and loops, for tests of passes.

use super::graph_loops::Loops;
use phigrad::internals::Random;
use phigrad::internals::entity::Entity;
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{
    ArrayData, Block, Def, End, Graph, Item, Node, Place, PlaceId, Region,
};

/// A distribution of random graphs.
///
/// The graphs have the constructs that passes handle: nested regions with several leaves, live
/// and dead φs, φs of equal values, branches on constants and on known conditions, guards, equal
/// nodes, products that are added, and replaying regions. Their values are small.
///
/// With `loops` they also have loops: with entry φs that are swapped, invariant, or exit
/// conditions, sometimes beyond the bound; with several leaves, replayed or not, nested; and
/// elements of all kinds of arrays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GraphRecipe {
    /// The number of active inputs.
    pub active: usize,
    /// The number of inactive inputs.
    pub inactive: usize,
    /// The number of outputs.
    pub outputs: usize,
    /// The approximate number of steps in all blocks together.
    pub steps: usize,
    /// The largest depth of nested regions.
    pub depth: usize,
    /// The probability that a step is a region.
    pub regions: f64,
    /// The probability that a region replays one, if one is visible.
    pub replays: f64,
    /// The probability that a region that replays none is a loop.
    pub loops: f64,
    /// The probability that a step is an element of constants, nodes or saved values.
    pub elements: f64,
    /// The probability that a step is a loop with accumulators, whose elements are read
    /// afterwards.
    pub sums: f64,
    /// The probability that a block ends in a branch.
    pub branches: f64,
    /// The probability that a step is a guard.
    pub guards: f64,
}

impl Default for GraphRecipe {
    fn default() -> Self {
        GraphRecipe {
            active: 3,
            inactive: 1,
            outputs: 2,
            steps: 40,
            depth: 3,
            regions: 0.2,
            replays: 0.3,
            loops: 0.0,
            elements: 0.0,
            sums: 0.0,
            branches: 0.5,
            guards: 0.03,
        }
    }
}

const SMALL_UNARY: [Op; 8] =
    [Op::Sin, Op::Cos, Op::Atan, Op::Tanh, Op::Neg, Op::Abs, Op::Signum, Op::Floor];
const SMALL_BINARY: [Op; 3] = [Op::Min, Op::Max, Op::CopySign];
const SUMS: [Op; 2] = [Op::Add, Op::Sub];
const COMPARISONS: [Op; 6] = [Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne];
pub(super) const CONSTANTS: [f64; 8] = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 1.5];
/// The largest number of steps of a block.
const BLOCK: usize = 8;
/// The largest number of branches on a path of a tree.
const BRANCHES: usize = 4;

impl GraphRecipe {
    /// A random graph; it passes [`verify`](phigrad::internals::ssa::verify).
    pub fn graph(&self, random: &mut Random) -> Graph {
        let mut graph = Graph::new(self.active, self.inactive);
        let (root, inputs) = (graph.root(), self.active + self.inactive);
        let mut visible: Vec<Node> = (0..inputs).map(|i| graph.input(i)).collect();
        visible.extend(CONSTANTS.map(|value| graph.push_const(value.to_bits())));
        let (conditions, regions, left) = (Vec::new(), Vec::new(), self.steps);
        let loops = Loops::default();
        let mut generator =
            Generator { recipe: self, random, graph, visible, conditions, regions, loops, left };
        let ends = Ends { again: None, values: &vec![None; self.outputs] };
        generator.tree(Position { block: root, forward: None, depth: 0, branches: 0 }, ends);
        in_order_of_text(&mut generator.graph);
        generator.graph
    }

    /// Inputs for such a graph, active before inactive: small, some of them equal to constants in
    /// comparisons.
    pub fn inputs(&self, random: &mut Random) -> Vec<f64> {
        let mut number = || match random.chance(0.2) {
            true => random.pick(&CONSTANTS),
            false => random.uniform(-2.0, 2.0),
        };
        (0..self.active + self.inactive).map(|_| number()).collect()
    }
}

pub(super) struct Generator<'a> {
    pub(super) recipe: &'a GraphRecipe,
    pub(super) random: &'a mut Random,
    pub(super) graph: Graph,
    /// The visible nodes, all with small values.
    pub(super) visible: Vec<Node>,
    /// The visible nodes that were used as conditions.
    pub(super) conditions: Vec<Node>,
    /// The visible regions that may be replayed.
    pub(super) regions: Vec<Region>,
    pub(super) loops: Loops,
    /// The number of steps that remain.
    left: usize,
}

/// The current position.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) block: Block,
    /// The forward block.
    pub(super) forward: Option<Block>,
    pub(super) depth: usize,
    /// The number of branches above in the tree.
    pub(super) branches: usize,
}

/// The values that the leaves of a tree pass on.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    /// The condition for another iteration, in a loop that replays none.
    pub(super) again: Option<Again>,
    /// The other values, or `None` where each leaf passes on any value.
    pub(super) values: &'a [Option<Node>],
}

#[derive(Clone, Copy)]
pub(super) struct Again {
    pub(super) node: Node,
    /// True if the tree begins with a branch on it, whose leaves pass on constants.
    pub(super) branches: bool,
    /// True if leaves may exit the loop.
    pub(super) breaks: bool,
}

impl Generator<'_> {
    /// Fills a block and those below it.
    pub(super) fn tree(&mut self, at: Position, ends: Ends<'_>) {
        let before = (self.visible.len(), self.conditions.len(), self.regions.len());
        let readable = self.loops.readable.len();
        if let Some(forward) = at.forward {
            self.show(forward);
        }
        let steps = self.random.below(self.left.min(BLOCK) + 1);
        (0..steps).for_each(|_| self.step(at));
        let branches = at.branches < BRANCHES && self.random.chance(self.recipe.branches);
        if let Some(again) = ends.again.filter(|again| again.branches) {
            self.branch_again(at, again, ends.values);
        } else if branches && (self.left > 0 || at.forward.is_some()) {
            self.branch(at, ends);
        } else {
            let again = ends.again.map(|again| self.again_or_break(again));
            let any = |value: &Option<Node>| value.unwrap_or_else(|| self.value());
            let passed = ends.values.iter().map(any);
            let passed = again.into_iter().chain(passed).collect();
            self.graph.blocks[at.block].end = End::Return(passed);
        }
        self.visible.truncate(before.0);
        self.conditions.truncate(before.1);
        self.regions.truncate(before.2);
        self.loops.readable.truncate(readable);
    }

    fn branch(&mut self, at: Position, ends: Ends<'_>) {
        let arm = at.forward.and_then(|forward| match self.graph.blocks[forward].end {
            End::Branch { condition, then, otherwise } => Some((condition, then, otherwise)),
            End::Return(_) | End::Open => None,
        });
        let followed = arm.filter(|_| self.random.chance(0.8));
        let condition = followed.map_or_else(|| self.condition(at.block), |arm| arm.0);
        // The condition may be that of the forward block by chance.
        let arms = arm.filter(|arm| arm.0 == condition).map(|arm| (arm.1, arm.2));
        let (then, otherwise) = self.branch_to_new(at.block, condition);
        let forwards = arms.map_or((at.forward, at.forward), |(t, o)| (Some(t), Some(o)));
        for (block, forward) in [(then, forwards.0), (otherwise, forwards.1)] {
            self.tree(Position { block, forward, branches: at.branches + 1, ..at }, ends);
        }
    }

    pub(super) fn branch_to_new(&mut self, block: Block, condition: Node) -> (Block, Block) {
        let (then, otherwise) = (self.graph.new_block(), self.graph.new_block());
        self.graph.blocks[block].end = End::Branch { condition, then, otherwise };
        (then, otherwise)
    }

    fn step(&mut self, at: Position) {
        self.left = self.left.saturating_sub(1);
        // No random number is drawn for an option that is off.
        let by = |random: &mut Random, chance: f64| chance > 0.0 && random.chance(chance);
        let nests = at.depth < self.recipe.depth;
        // A replaying region often replays inner regions as well.
        let replays = self.recipe.loops > 0.0 && at.forward.is_some() && !self.regions.is_empty();
        let regions = if replays { self.recipe.regions.max(0.5) } else { self.recipe.regions };
        if nests && self.random.chance(regions) {
            self.region(at);
        } else if nests && by(self.random, self.recipe.sums) {
            self.sums(at);
        } else if by(self.random, self.recipe.elements) {
            self.element(at);
        } else if self.random.chance(self.recipe.guards) {
            let (condition, expect) = match self.random.chance(0.6) {
                true => (self.certain(at.block), true),
                false => (self.condition(at.block), self.random.chance(0.5)),
            };
            self.graph.blocks[at.block].items.push(Item::Guard { condition, expect });
        } else {
            let node = self.compute(at.block);
            self.visible.push(node);
        }
    }

    pub(super) fn region(&mut self, at: Position) {
        let replays = !self.regions.is_empty() && self.random.chance(self.recipe.replays);
        let replayed = match self.recipe.loops > 0.0 && at.forward.is_some() {
            // Most often one of the most recent.
            true if self.random.chance(0.7) => self.regions.last().copied(),
            _ => replays.then(|| self.random.pick(&self.regions)),
        };
        let replayed = replayed.filter(|region| !self.loops.counted.contains(region));
        let is_loop = match replayed {
            Some(replayed) => self.graph.regions[replayed].cycle.is_some(),
            None => self.recipe.loops > 0.0 && self.random.chance(self.recipe.loops),
        };
        if is_loop {
            return self.cycle(at, replayed);
        }
        // Some values are the same at all leaves.
        let values: Vec<Option<Node>> = (0..self.random.below(4))
            .map(|_| self.random.chance(0.2).then(|| self.value()))
            .collect();
        let place = self.place();
        let region = self.graph.push_region(at.block, replayed, place);
        let forward = replayed.map(|replayed| self.graph.regions[replayed].root);
        let position = Position {
            block: self.graph.regions[region].root,
            forward: forward.or(at.forward),
            depth: at.depth + 1,
            branches: 0,
        };
        self.tree(position, Ends { again: None, values: &values });
        for _ in values {
            let phi = self.graph.push_phi(region);
            self.visible.push(phi);
        }
        if position.forward.is_none() {
            self.regions.push(region);
        }
    }

    /// Makes the nodes of a forward block visible.
    fn show(&mut self, forward: Block) {
        for item in &self.graph.blocks[forward].items {
            match *item {
                // Only nodes with small values: a comparison or the last of a few nodes.
                Item::Node(node) if is_small(&self.graph, node) => self.visible.push(node),
                Item::Region(region) => {
                    let data = &self.graph.regions[region];
                    self.visible.extend(&data.phis);
                    self.regions.extend(data.replays.is_none().then_some(region));
                }
                Item::Node(_)
                | Item::Guard { .. }
                | Item::Fill(_)
                | Item::Accumulate(..)
                | Item::Store(..) => {}
            }
        }
    }

    /// A new node, or a few, of which the last has a small value.
    fn compute(&mut self, block: Block) -> Node {
        let (a, b, c) = (self.value(), self.value(), self.value());
        match self.random.below(9) {
            0 | 1 => {
                let op = self.random.pick(&SMALL_UNARY);
                self.apply(block, op, &[a])
            }
            2 => {
                let op = self.random.pick(&SMALL_BINARY);
                self.apply(block, op, &[a, b])
            }
            3 | 4 => {
                let product = self.apply(block, Op::Mul, &[a, b]);
                let args = if self.random.chance(0.5) { [product, c] } else { [c, product] };
                let op = self.random.pick(&SUMS);
                let sum = self.apply(block, op, &args);
                self.apply(block, Op::Atan, &[sum])
            }
            5 => {
                let half = self.graph.push_const(0.5f64.to_bits());
                let positive = self.apply(block, Op::MulAdd, &[b, b, half]);
                let quotient = self.apply(block, Op::Div, &[a, positive]);
                self.apply(block, Op::Tanh, &[quotient])
            }
            6 => {
                let square = self.apply(block, Op::Mul, &[a, a]);
                let half = self.graph.push_const(0.5f64.to_bits());
                let positive = self.apply(block, Op::Add, &[square, half]);
                let root = self.apply(block, Op::Sqrt, &[positive]);
                self.apply(block, Op::Sin, &[root])
            }
            7 => {
                let condition = self.condition(block);
                self.apply(block, Op::Select, &[condition, a, b])
            }
            _ => self.again(block, a),
        }
    }

    /// A copy of `node`, if it can be computed here.
    fn again(&mut self, block: Block, node: Node) -> Node {
        match self.graph.nodes[node].def {
            Def::Apply(op, args) if args.iter().all(|arg| self.visible.contains(arg)) => {
                self.apply(block, op, &args[..op.arity()])
            }
            _ => self.apply(block, Op::Cos, &[node]),
        }
    }

    /// A condition: a visible node, or a new one.
    pub(super) fn condition(&mut self, block: Block) -> Node {
        let condition = if !self.conditions.is_empty() && self.random.chance(0.3) {
            let known = self.random.pick(&self.conditions);
            if self.random.chance(0.5) { known } else { self.again(block, known) }
        } else if self.random.chance(0.1) {
            self.value()
        } else {
            let (op, a, b) = (self.random.pick(&COMPARISONS), self.value(), self.value());
            self.apply(block, op, &[a, b])
        };
        self.conditions.push(condition);
        self.visible.push(condition);
        condition
    }

    /// A condition that always holds, but not by folding.
    pub(super) fn certain(&mut self, block: Block) -> Node {
        let (value, most) = (self.value(), self.graph.push_const(100.0f64.to_bits()));
        let condition = self.apply(block, Op::Lt, &[value, most]);
        self.conditions.push(condition);
        condition
    }

    pub(super) fn value(&mut self) -> Node {
        // Later nodes more often: they depend on more.
        let count = self.visible.len();
        let recent = count.min(12);
        match self.random.chance(0.6) {
            true => self.visible[count - 1 - self.random.below(recent)],
            false => self.visible[self.random.below(count)],
        }
    }

    pub(super) fn apply(&mut self, block: Block, op: Op, args: &[Node]) -> Node {
        let place = self.place();
        self.graph.push_apply(block, op, args, place)
    }

    pub(super) fn place(&mut self) -> Option<PlaceId> {
        if !self.random.chance(0.1) {
            return None;
        }
        let line = self.graph.places.len() as u32 + 1;
        let mut place = Place::new("graph.rs", line, 1);
        place.nth = line % 3;
        Some(self.graph.places.push(place))
    }
}

/// Tests whether the generator may use `node` as an operand.
pub(super) fn is_small(graph: &Graph, node: Node) -> bool {
    match graph.nodes[node].def {
        Def::Apply(op, _) => {
            SMALL_UNARY.contains(&op)
                || SMALL_BINARY.contains(&op)
                || op.is_comparison()
                || op == Op::Select
        }
        Def::Input(_) | Def::Const(_) | Def::Phi(..) | Def::Entry(..) => true,
        Def::Element(access) => {
            let array = graph.accesses[access].array;
            !matches!(graph.arrays[array], ArrayData::Sums(_))
        }
        Def::Iteration(_) | Def::Call(_) | Def::Result(..) => false,
    }
}

/// Numbers the places in the order of the text form, so that it round-trips.
fn in_order_of_text(graph: &mut Graph) {
    let mut order = Vec::new();
    for data in graph.blocks.values() {
        for item in &data.items {
            order.extend(match *item {
                Item::Node(node) => graph.nodes[node].place,
                Item::Region(region) => graph.regions[region].place,
                Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => None,
            });
        }
    }
    let mut renamed = vec![None; graph.places.len()];
    for (index, place) in order.iter().enumerate() {
        renamed[place.index()] = Some(PlaceId::from_index(index));
    }
    let rename = |place: Option<PlaceId>| place.and_then(|place| renamed[place.index()]);
    for node in graph.nodes.keys() {
        graph.nodes[node].place = rename(graph.nodes[node].place);
    }
    for region in graph.regions.keys() {
        graph.regions[region].place = rename(graph.regions[region].place);
    }
    graph.places = order.into_iter().map(|place| graph.places[place].clone()).collect();
}
