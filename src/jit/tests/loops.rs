//! Random nests of loops with many entry φs and long bodies, and loops that replay them, with
//! cuts everywhere.

use super::random::number;
use super::{LIMITS, assert_native};
use crate::op::Op;
use crate::random::Random;
use crate::ssa::{AccessData, Array, ArrayData, Block, End, Graph, Item, Node, Region, verify};

/// The shape of nests.
#[derive(Clone, Copy)]
struct Shape {
    /// The largest number of entry φs of a loop.
    entries: usize,
    /// The largest number of items of a body, besides loops.
    items: usize,
    depth: usize,
}

/// A loop, with the nodes that are visible where it is replayed.
struct Replayable {
    region: Region,
    /// True if its trip count is its bound.
    bound: Option<u32>,
    nodes: Vec<Node>,
    /// The nodes of each iteration.
    steps: Vec<Node>,
    inner: Vec<Replayable>,
}

struct Maker<'a> {
    graph: Graph,
    random: &'a mut Random,
    shape: Shape,
    /// The loops around, with their bounds.
    around: Vec<(Region, u32)>,
}

fn nest(shape: Shape, random: &mut Random) -> Graph {
    let mut graph = Graph::new(3, 1);
    let mut nodes: Vec<Node> = graph.nodes.keys().collect();
    nodes.extend((0..3).map(|_| graph.push_const(number(random).to_bits())));
    let root = graph.root();
    let mut maker = Maker { graph, random, shape, around: Vec::new() };
    maker.block(root, &mut nodes, 0);
    let outputs = (0..4).map(|_| maker.pick(&nodes)).collect();
    maker.graph.blocks[root].end = End::Return(outputs);
    maker.graph
}

impl Maker<'_> {
    fn pick(&mut self, nodes: &[Node]) -> Node {
        // Later ones are more likely.
        let index = self.random.below(nodes.len()).max(self.random.below(nodes.len()));
        nodes[index]
    }

    fn items(&mut self, block: Block, nodes: &mut Vec<Node>) {
        for _ in 0..=self.random.below(self.shape.items) {
            let (a, b) = (self.pick(nodes), self.pick(nodes));
            let ops = [Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Atan, Op::Lt];
            let op = ops[self.random.below(ops.len())];
            let node = self.graph.push_apply(block, op, &[a, b][..op.arity()], None);
            nodes.push(node);
            if self.random.chance(0.1) {
                let elements = (0..8).map(|_| self.pick(nodes)).collect();
                let array = self.graph.arrays.push(ArrayData::Nodes(elements));
                self.element(block, array, 8, nodes);
            }
        }
    }

    /// An access to an array of at least 8 elements.
    fn access(&mut self, array: Array, len: u32) -> crate::ssa::Access {
        let mut strides = smallvec::SmallVec::new();
        let mut base = 0;
        if let Some(&(region, bound)) = self.around.last()
            && bound <= len
        {
            let backwards = self.random.chance(0.5);
            strides.push((region, if backwards { -1 } else { 1 }));
            base = if backwards { bound - 1 } else { 0 };
        }
        self.graph.accesses.push(AccessData { array, base, strides, changes: Default::default() })
    }

    fn element(&mut self, block: Block, array: Array, len: u32, nodes: &mut Vec<Node>) {
        let access = self.access(array, len);
        nodes.push(self.graph.push_element(block, access, None));
    }

    /// Makes items, loops, and loops that replay those.
    fn block(&mut self, block: Block, nodes: &mut Vec<Node>, depth: usize) -> Vec<Replayable> {
        let mut loops = Vec::new();
        self.items(block, nodes);
        for _ in 0..2 {
            if depth < self.shape.depth && self.random.chance(0.8) {
                let firsts = (0..8).map(|_| self.random.chance(0.5).then(|| self.pick(nodes)));
                let firsts = firsts.collect();
                let sums = self.graph.arrays.push(ArrayData::Sums(firsts));
                self.graph.blocks[block].items.push(Item::Fill(sums));
                let made = self.forward(block, nodes, sums, depth);
                self.items(block, nodes);
                self.element(block, sums, 8, nodes);
                if self.random.chance(0.7) {
                    self.replay(block, nodes, &made);
                    self.items(block, nodes);
                }
                loops.push(made);
            }
        }
        loops
    }

    fn open(
        &mut self,
        block: Block,
        nodes: &[Node],
        replays: Option<Region>,
        bound: u32,
    ) -> (Region, Block, Vec<Node>) {
        let count = self.random.below(self.shape.entries + 1);
        let firsts: Vec<Node> = (0..count).map(|_| self.pick(nodes)).collect();
        let region = self.graph.push_region(block, replays, None);
        let entries = self.graph.make_loop(region, bound, &firsts);
        self.around.push((replays.unwrap_or(region), bound));
        (region, self.graph.regions[region].root, entries)
    }

    fn close(
        &mut self,
        (region, body, entries): (Region, Block, Vec<Node>),
        again: Option<Node>,
        inside: &[Node],
        nodes: &mut Vec<Node>,
    ) {
        let mut values: Vec<Node> = again.into_iter().collect();
        for index in 0..entries.len() {
            values.push(match self.random.below(3) {
                0 => entries[(index + 1) % entries.len()],
                1 => entries[self.random.below(entries.len())],
                _ => self.pick(inside),
            });
        }
        for _ in 0..3 {
            values.push(self.pick(inside));
        }
        self.graph.blocks[body].end = End::Return(values.into_iter().collect());
        nodes.extend((0..3).map(|_| self.graph.push_phi(region)));
        self.around.pop();
    }

    fn forward(
        &mut self,
        block: Block,
        nodes: &mut Vec<Node>,
        sums: Array,
        depth: usize,
    ) -> Replayable {
        let bound = 1 + self.random.below(4) as u32;
        let opened = self.open(block, nodes, None, bound);
        let (region, body, entries) = opened.clone();
        let number = self.graph.push_iteration(region);
        let mut inside = nodes.clone();
        inside.extend(&entries);
        inside.push(number);
        let inner = self.block(body, &mut inside, depth + 1);
        let access = self.access(sums, 8);
        let added = self.pick(&inside);
        self.graph.blocks[body].items.push(Item::Accumulate(access, added));
        let short = self.random.chance(0.25);
        let last = if short { self.random.below(bound as usize) as u32 } else { bound - 1 };
        let last = self.graph.push_const(f64::from(last).to_bits());
        let again = self.graph.push_apply(body, Op::Lt, &[number, last], None);
        if self.random.chance(0.05) {
            let (condition, expect) = (self.pick(&inside), self.random.chance(0.5));
            self.graph.blocks[body].items.push(Item::Guard { condition, expect });
        }
        let steps = inside[nodes.len()..].to_vec();
        let steps = steps.into_iter().filter(|&node| node != number).collect();
        self.close(opened, Some(again), &inside, nodes);
        let bound = (!short).then_some(bound);
        Replayable { region, bound, nodes: inside, steps, inner }
    }

    fn replay(&mut self, block: Block, nodes: &mut Vec<Node>, made: &Replayable) {
        if let (Some(bound), false) = (made.bound, made.steps.is_empty()) {
            let past = self.pick(&made.steps);
            let array = self.graph.arrays.push(ArrayData::Saved(past));
            self.element(block, array, bound, nodes);
        }
        let bound = self.graph.regions[made.region].cycle.as_ref().unwrap().bound;
        let opened = self.open(block, nodes, Some(made.region), bound);
        let (_, body, entries) = opened.clone();
        let mut inside = nodes.clone();
        inside.extend(&made.nodes);
        inside.extend(&entries);
        self.items(body, &mut inside);
        for inner in made.inner.iter().rev() {
            self.replay(body, &mut inside, inner);
            self.items(body, &mut inside);
        }
        self.close(opened, None, &inside, nodes);
    }
}

fn assert_nests(shape: Shape, seed: u64, graphs: usize) {
    let mut random = Random::new(seed);
    let (mut values, mut runs) = (0, 0);
    for _ in 0..graphs {
        let graph = nest(shape, &mut random);
        verify(&graph).unwrap_or_else(|error| panic!("{error}\n{graph}"));
        let point = |_| (0..4).map(|_| number(&mut random)).collect();
        let points: Vec<Vec<f64>> = (0..4).map(point).collect();
        for limits in LIMITS {
            values += assert_native(&graph, limits, &points);
            runs += points.len();
        }
    }
    assert!(values * 2 > runs, "{values} of {runs}");
}

#[test]
fn nests_of_loops_agree_with_the_interpreter() {
    assert_nests(Shape { entries: 4, items: 6, depth: 3 }, 5, 15);
}

#[test]
fn loops_with_many_entries_agree_with_the_interpreter() {
    assert_nests(Shape { entries: 30, items: 20, depth: 2 }, 6, 9);
}

#[test]
fn loops_with_long_bodies_agree_with_the_interpreter() {
    assert_nests(Shape { entries: 6, items: 400, depth: 2 }, 7, 4);
}
