//! Random inner loops that run pairs of iterations, with loops that replay them, have the bits of
//! the interpreter.

use super::random::number;
use super::{LIMITS, assert_native, assert_native_when_cut};
use crate::jit::plan::{Next, REGISTERS, plan};
use crate::jit::schedule;
use crate::jit::vector::VectorLoop;
use crate::op::Op;
use crate::random::Random;
use crate::ssa::{
    Access, AccessData, Array, ArrayData, Block, End, Graph, Item, Node, Region, parse, verify,
};

/// The number of elements of each array.
const LEN: u32 = 64;
/// The bounds of the outer and the inner loop.
const BOUNDS: [u32; 2] = [3, 20];

struct Maker<'a> {
    graph: Graph,
    random: &'a mut Random,
    /// The outer and the inner loop.
    loops: [Region; 2],
    numbers: [Node; 2],
    inputs: Array,
    sums: [Array; 2],
    cells: Array,
    /// The cells that the inner loop stores, if it does.
    stored: Option<Access>,
}

/// An inner loop in an outer one, with `trips` iterations at first and `more` in each further
/// iteration of the outer one.
fn nest(random: &mut Random, trips: u32, more: i32) -> Graph {
    let mut graph = Graph::new(LEN as usize, 2);
    let root = graph.root();
    let inputs = graph.arrays.push(ArrayData::Inputs { first: 0, count: LEN });
    let sums = [(); 2].map(|()| graph.arrays.push(ArrayData::Sums(vec![None; LEN as usize])));
    let cells = graph.arrays.push(ArrayData::Cells(LEN));
    graph.blocks[root].items.extend(sums.map(Item::Fill));
    let outer = graph.push_region(root, None, None);
    let sum = graph.make_loop(outer, BOUNDS[0], &[graph.input(0)])[0];
    let body = graph.regions[outer].root;
    let outer_number = graph.push_iteration(outer);
    let [first, by, last] = [f64::from(trips) - 1.0, f64::from(more), f64::from(BOUNDS[0] - 1)]
        .map(|number| graph.push_const(number.to_bits()));
    let most = match more {
        0 => first,
        _ => graph.push_apply(body, Op::MulAdd, &[by, outer_number, first], None),
    };
    graph.blocks[body].items.push(Item::Fill(cells));
    let inner = graph.push_region(body, None, None);
    let mut maker = Maker {
        graph,
        random,
        loops: [outer, inner],
        numbers: [outer_number; 2],
        inputs,
        sums,
        cells,
        stored: None,
    };
    let inside = maker.inner_loop(most, sum);
    let phi = maker.graph.push_phi(inner);
    let is_outside = maker.random.chance(0.5);
    let mut outputs = Vec::new();
    if !is_outside {
        outputs.push(maker.replay(body, &inside));
    }
    let next = maker.graph.push_apply(body, Op::Add, &[sum, phi], None);
    let again = maker.graph.push_apply(body, Op::Lt, &[outer_number, last], None);
    let values = [again, next, next].into_iter().chain(outputs).collect();
    maker.graph.blocks[body].end = End::Return(values);
    let count = if is_outside { 1 } else { 2 };
    let mut outputs: Vec<Node> = (0..count).map(|_| maker.graph.push_phi(outer)).collect();
    if is_outside {
        let replay = maker.graph.push_region(root, Some(outer), None);
        maker.graph.make_loop(replay, BOUNDS[0], &[]);
        let body = maker.graph.regions[replay].root;
        let phi = maker.replay(body, &inside);
        maker.graph.blocks[body].end = End::Return([phi].into_iter().collect());
        outputs.push(maker.graph.push_phi(replay));
    }
    for array in sums {
        for base in 0..LEN {
            let data = AccessData {
                array,
                base,
                strides: Default::default(),
                changes: Default::default(),
            };
            let access = maker.graph.accesses.push(data);
            outputs.push(maker.graph.push_element(root, access, None));
        }
    }
    maker.graph.blocks[root].end = End::Return(outputs.into_iter().collect());
    maker.graph
}

impl Maker<'_> {
    fn pick(&mut self, nodes: &[Node]) -> Node {
        nodes[self.random.below(nodes.len()).max(self.random.below(nodes.len()))]
    }

    /// An access to an array of `LEN` elements, with this stride of the inner loop.
    fn access(&mut self, array: Array, stride: i32) -> Access {
        let strides = [self.random.below(3) as i32, stride];
        let ends = [0, 1].map(|at| strides[at] * (BOUNDS[at] as i32 - 1));
        let [least, most] =
            [ends.map(|end| end.min(0)), ends.map(|end| end.max(0))].map(|of| of[0] + of[1]);
        let free = LEN as i32 - most + least;
        // Few distances, so that several accesses touch an element.
        let base = self.random.below(free.min(4) as usize) as i32 - least;
        let strides = self.loops.into_iter().zip(strides).filter(|stride| stride.1 != 0).collect();
        self.graph.accesses.push(AccessData {
            array,
            base: base as u32,
            strides,
            changes: Default::default(),
        })
    }

    fn stride(&mut self) -> i32 {
        [1, 1, 1, -1, -1, 2, -3, 0][self.random.below(8)]
    }

    fn items(&mut self, block: Block, nodes: &mut Vec<Node>, sums: Array) {
        const OPS: [Op; 8] =
            [Op::Add, Op::Sub, Op::Mul, Op::MulAdd, Op::Min, Op::Lt, Op::Select, Op::Abs];
        for _ in 0..2 + self.random.below(6) {
            match self.random.below(12) {
                0..3 => {
                    let stride = self.stride();
                    let access = self.access(self.inputs, stride);
                    nodes.push(self.graph.push_element(block, access, None));
                }
                3 => {
                    let most = self.graph.push_const(9.0f64.to_bits());
                    let args = [self.numbers[self.random.below(2)], most];
                    nodes.push(self.graph.push_apply(block, Op::Lt, &args, None));
                }
                4 => {
                    let (most, picked) =
                        (self.graph.push_const(2.9f64.to_bits()), self.pick(nodes));
                    let condition = self.graph.push_apply(block, Op::Gt, &[picked, most], None);
                    let guard = Item::Guard { condition, expect: false };
                    let is_rare = self.random.chance(0.2);
                    self.graph.blocks[block].items.extend(is_rare.then_some(guard));
                }
                _ => {
                    let op = OPS[self.random.below(OPS.len())];
                    let args = [(); 3].map(|()| self.pick(nodes));
                    nodes.push(self.graph.push_apply(block, op, &args[..op.arity()], None));
                }
            }
        }
        let (count, stride) = (self.random.below(4), self.stride());
        for _ in 0..count {
            let access = self.access(sums, stride);
            let node = self.pick(nodes);
            self.graph.blocks[block].items.push(Item::Accumulate(access, node));
        }
    }

    /// Fills in the body of the inner loop; returns the nodes that are visible in it.
    fn inner_loop(&mut self, most: Node, sum: Node) -> Vec<Node> {
        let region = self.loops[1];
        let zero = self.graph.push_const(0);
        let entries = self.graph.make_loop(region, BOUNDS[1], &[sum, zero, sum, sum]);
        let body = self.graph.regions[region].root;
        self.numbers[1] = self.graph.push_iteration(region);
        let mut nodes = vec![self.graph.input(1), zero, self.numbers[0], self.numbers[1]];
        // The second one is another number in the first iteration.
        nodes.extend(&entries[1..3]);
        self.items(body, &mut nodes, self.sums[0]);
        if self.random.chance(0.5) {
            let stride = [1, -1, 2][self.random.below(3)];
            let access = self.access(self.cells, stride);
            let node = self.pick(&nodes);
            self.graph.blocks[body].items.push(Item::Store(access, node));
            self.stored = Some(access);
        }
        let ops = [Op::Add, Op::Sub, Op::MulAdd, Op::Max];
        let op = ops[self.random.below(ops.len())];
        let (a, b) = (self.pick(&nodes), self.pick(&nodes));
        let args = if op == Op::MulAdd { [a, b, entries[0]] } else { [entries[0], a, a] };
        let next = self.graph.push_apply(body, op, &args[..op.arity()], None);
        let again = self.graph.push_apply(body, Op::Lt, &[self.numbers[1], most], None);
        let half = self.graph.push_const(0.5f64.to_bits());
        let greater = self.graph.push_apply(body, Op::Max, &[b, entries[3]], None);
        // Two recurrences of one node are no vector loop.
        let last = if self.random.chance(0.1) { next } else { greater };
        let end = [again, next, half, entries[2], last, next];
        self.graph.blocks[body].end = End::Return(end.into_iter().collect());
        nodes
    }

    /// Appends a loop to `block` that replays the inner one; returns its φ.
    fn replay(&mut self, block: Block, inside: &[Node]) -> Node {
        let region = self.graph.push_region(block, Some(self.loops[1]), None);
        let first = self.graph.input(2);
        let sum = self.graph.make_loop(region, BOUNDS[1], &[first])[0];
        let body = self.graph.regions[region].root;
        let mut nodes = inside.to_vec();
        // The next iteration of the outer loop forgets the cells.
        let is_inside = block == self.graph.regions[self.loops[0]].root;
        if let Some(access) = self.stored.filter(|_| is_inside) {
            nodes.push(self.graph.push_element(body, access, None));
        }
        self.items(body, &mut nodes, self.sums[1]);
        let added = self.pick(&nodes);
        let next = self.graph.push_apply(body, Op::Add, &[sum, added], None);
        self.graph.blocks[body].end = End::Return([next, next].into_iter().collect());
        self.graph.push_phi(region)
    }
}

/// The number of vector loops of `graph`.
fn vector_loops(graph: &Graph) -> usize {
    let plan = plan(&schedule(graph).unwrap(), &[], REGISTERS);
    let mut headers: Vec<usize> = Vec::new();
    for block in &plan.blocks {
        headers.extend(match block.next {
            Next::Jump(to, _) => Some(to),
            _ => None,
        });
    }
    headers.iter().filter(|&&header| VectorLoop::of(graph, &plan, header).is_some()).count()
}

#[test]
fn pairs_of_iterations_have_the_bits_of_single_ones() {
    let mut random = Random::new(8);
    let (mut vectors, mut values, mut runs) = (0, 0, 0);
    for case in 0..400 {
        let trips = 1 + case % 20;
        let most = BOUNDS[1] as i32 - trips;
        let more = [0, most / 2, (1 - trips) / 2, most.min(2) / 2][random.below(4)];
        let graph = nest(&mut random, trips as u32, more);
        verify(&graph).unwrap_or_else(|error| panic!("{error}\n{graph}"));
        vectors += vector_loops(&graph);
        let point = |_| (0..LEN + 2).map(|_| number(&mut random)).collect();
        let points: Vec<Vec<f64>> = (0..3).map(point).collect();
        values += assert_native(&graph, LIMITS[case as usize % LIMITS.len()], &points);
        runs += points.len();
    }
    assert!(vectors > 250, "{vectors}");
    assert!(values * 4 > runs && values < runs, "{values} of {runs}");
}

/// A loop in a loop stores a constant, which the code before both has in a register. The outer loop
/// may come back from another segment.
#[test]
fn vector_loops_load_their_constants() {
    let text = "graph active 1 inactive 0
v1 = const 0.5
v2 = const 9.0
v3 = iteration r1
v7 = iteration r0
a0 = cells 203
i0 = a0 base 0
i1 = a0 base 3 r0*10 r1*1
i2 = a0 base 103 r0*10 r1*1
i3 = a0 base 3 r0*10
b0:
  fill a0
  store i0 v1
  v11 = region r0 b1 bound 10 entries v4=v0
  v12 = element i0
  v13 = mul v11 v12
  return v13
b1:
  region r1 b2 bound 10
  v6 = element i3
  v8 = mul v4 v6
  v9 = sin v8
  v10 = lt v7 v2
  return v10 v9 v9
b2:
  store i1 v1
  store i2 v1
  v5 = lt v3 v2
  return v5
";
    let graph = parse(text).unwrap();
    assert_eq!(vector_loops(&graph), 1);
    let steps = schedule(&graph).unwrap().sequence().steps;
    for cut in 1..steps {
        assert_eq!(assert_native_when_cut(&graph, &[cut], REGISTERS, &[vec![3.0]]), 1);
    }
}
