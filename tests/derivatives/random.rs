//! Derivatives of random graphs with loops and arrays.

use crate::common::corpus::cases;
use crate::common::graphs::GraphRecipe;
use crate::common::outcomes::outputs;
use crate::oracle::{check, check_checkpoints};
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{
    AccessData, ArrayData, Block, Def, End, Folding, Graph, Item, Node, Region, parse,
};

/// True if no node is twice in one array of nodes, or in two different ones, or also in a range
/// of inputs.
fn has_exact_array(graph: &Graph) -> bool {
    let mut places: Vec<(Node, Vec<Node>)> = Vec::new();
    let is_in_row = |node: Node| match graph.nodes[node].def {
        Def::Input(number) => graph.arrays.values().any(|array| match *array {
            ArrayData::Inputs { first, count } => (first..first + count).contains(&number),
            _ => false,
        }),
        _ => false,
    };
    for array in graph.arrays.values() {
        let ArrayData::Nodes(nodes) = array else { continue };
        if nodes.iter().all(|&node| node == nodes[0]) {
            continue;
        }
        for &node in nodes {
            let is_leaf = matches!(graph.nodes[node].def, Def::Const(_) | Def::Iteration(_));
            if !is_leaf && (is_in_row(node) || places.iter().any(|(other, _)| *other == node)) {
                return false;
            }
            places.push((node, nodes.clone()));
        }
    }
    true
}

#[test]
fn gradients_of_random_graphs_agree_with_both_oracles() {
    let mut random = Random::new(7);
    let (mut compared, mut with_checkpoints) = ([0, 0], 0);
    for round in 0..600 {
        let recipe = GraphRecipe {
            outputs: 1,
            replays: 0.0,
            regions: 0.3,
            loops: 0.7,
            elements: [0.0, 0.15, 0.3][round % 3],
            ..GraphRecipe::default()
        };
        let graph = recipe.graph(&mut random);
        let bits = has_exact_array(&graph);
        for _ in 0..3 {
            let inputs = recipe.inputs(&mut random);
            compared[usize::from(bits)] += usize::from(check(&graph, &inputs, bits));
        }
        let inputs = recipe.inputs(&mut random);
        with_checkpoints += check_checkpoints(&graph, &inputs);
    }
    assert!(with_checkpoints > 200, "{with_checkpoints}");
    assert!(compared.iter().all(|&count| count > 100), "{compared:?}");
}

#[test]
fn gradients_of_the_corpus_agree_with_both_oracles() {
    for case in cases().into_iter().filter(|case| case.graph.calls.is_empty()) {
        for (inputs, _) in &case.gradients {
            assert!(check(&case.graph, inputs, has_exact_array(&case.graph)), "{}", case.name);
            check_checkpoints(&case.graph, inputs);
        }
    }
}

/// The number of active inputs of the graphs of [`Generator`].
const INPUTS: usize = 8;

/// Makes random graphs in which most nodes reach the output and have nonzero partials.
struct Generator<'a> {
    random: &'a mut Random,
    graph: Graph,
    /// True if all arrays of nodes are parts of one array of inputs.
    one_array: bool,
    /// True if parts of that array have no nodes.
    inputs: bool,
    /// The visible nodes.
    visible: Vec<Node>,
    /// The loops around.
    counted: Vec<Region>,
    /// The loops that have ended, with their least trip counts.
    past: Vec<(Region, usize)>,
    left: usize,
}

impl Generator<'_> {
    fn graph(random: &mut Random, one_array: bool, inputs: bool) -> Graph {
        let mut graph = Graph::new(INPUTS, 1);
        let mut visible: Vec<Node> = [0.5f64, -1.0].map(|c| graph.push_const(c.to_bits())).to_vec();
        visible.extend((0..=INPUTS).map(|i| graph.input(i)));
        let root = graph.root();
        let (counted, past, left) = (Vec::new(), Vec::new(), 40);
        let mut generator =
            Generator { random, graph, one_array, inputs, visible, counted, past, left };
        generator.steps(root, 8, 0);
        let mut sum = generator.visible[0];
        for node in generator.visible.clone().into_iter().rev().take(6) {
            sum = generator.push(root, Op::Add, &[sum, node]);
        }
        generator.graph.blocks[root].end = End::Return([sum].into_iter().collect());
        generator.graph
    }

    fn push(&mut self, block: Block, op: Op, args: &[Node]) -> Node {
        self.graph.push_apply(block, op, args, None)
    }

    fn constant(&mut self, value: f64) -> Node {
        self.graph.push_const(value.to_bits())
    }

    fn operand(&mut self) -> Node {
        let count = self.visible.len();
        let recent = if self.random.chance(0.7) { count.min(4) } else { count };
        self.visible[count - 1 - self.random.below(recent)]
    }

    fn steps(&mut self, block: Block, count: usize, depth: usize) {
        for _ in 0..count {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let node = match self.random.below(20) {
                0..4 if depth < 3 => {
                    self.cycle(block, depth);
                    continue;
                }
                4 | 5 if depth < 3 => {
                    self.region(block, depth);
                    continue;
                }
                6..12 if !self.counted.is_empty() || !self.past.is_empty() => {
                    let Some(access) = self.access() else { continue };
                    let access = self.graph.accesses.push(access);
                    self.graph.push_element(block, access, None)
                }
                _ => {
                    const OPS: [Op; 8] = [
                        Op::Add,
                        Op::Sub,
                        Op::Mul,
                        Op::MulAdd,
                        Op::Sin,
                        Op::Atan,
                        Op::Tanh,
                        Op::Max,
                    ];
                    let op = self.random.pick(&OPS);
                    let args = [self.operand(), self.operand(), self.operand()];
                    let node = self.push(block, op, &args[..op.arity()]);
                    self.visible.push(node);
                    self.push(block, Op::Atan, &[node])
                }
            };
            self.visible.push(node);
        }
    }

    fn access(&mut self) -> Option<AccessData> {
        let (array, len) = if !self.past.is_empty() && self.random.chance(0.5) {
            let (region, len) = self.random.pick(&self.past);
            let root = self.graph.regions[region].root;
            let mut nodes: Vec<Node> =
                self.graph.entries(region).iter().map(|entry| entry.phi).collect();
            for item in &self.graph.blocks[root].items {
                match *item {
                    Item::Node(node) => nodes.push(node),
                    Item::Region(region) => nodes.extend(&self.graph.regions[region].phis),
                    _ => {}
                }
            }
            nodes = nodes.split_off(nodes.len().saturating_sub(6));
            (ArrayData::Saved(self.random.pick(&nodes)), len)
        } else {
            let len = 5 + self.random.below(4);
            let first = self.random.below(INPUTS + 1 - len);
            let mut nodes: Vec<Node> = (first..first + len).map(|i| self.graph.input(i)).collect();
            if !self.one_array {
                nodes.iter_mut().for_each(|node| *node = self.operand());
            } else if self.random.chance(0.3) {
                nodes.reverse();
            }
            let has_nodes = !self.inputs || !self.one_array && nodes[0] < nodes[1];
            let inputs = ArrayData::Inputs { first: first as u32, count: len as u32 };
            (if has_nodes { ArrayData::Nodes(nodes) } else { inputs }, len)
        };
        let (mut least, mut span, mut strides) = (0, 0, Vec::new());
        for &region in self.counted.iter().rev() {
            let stride = self.random.pick(&[1, 1, 2, -1, -1]);
            let bound = self.graph.regions[region].cycle.as_ref()?.bound as usize;
            let reach = (bound - 1) * i32::unsigned_abs(stride) as usize;
            if span + reach < len && self.random.chance(0.8) {
                strides.push((region, stride));
                span += reach;
                least += if stride < 0 { reach } else { 0 };
            }
        }
        let base = (least + self.random.below(len - span)) as u32;
        let array = self.graph.arrays.push(array);
        Some(AccessData {
            array,
            base,
            strides: strides.into_iter().collect(),
            changes: Default::default(),
        })
    }

    fn region(&mut self, block: Block, depth: usize) {
        let region = self.graph.push_region(block, None, None);
        let (root, values) = (self.graph.regions[region].root, 1 + self.random.below(3));
        let (visible, past) = (self.visible.len(), self.past.len());
        self.tree(root, depth + 1, 2, &mut |generator, leaf, _| {
            let passed = (0..values).map(|_| generator.operand()).collect();
            generator.graph.blocks[leaf].end = End::Return(passed);
        });
        self.visible.truncate(visible);
        self.past.truncate(past);
        self.visible.extend((0..values).map(|_| self.graph.push_phi(region)));
    }

    fn cycle(&mut self, block: Block, depth: usize) {
        let firsts: Vec<Node> = (0..1 + self.random.below(3)).map(|_| self.operand()).collect();
        let (values, bound) = (self.random.below(4), 1 + self.random.below(5));
        let region = self.graph.push_region(block, None, None);
        let root = self.graph.regions[region].root;
        let (visible, past) = (self.visible.len(), self.past.len());
        let entries = self.graph.make_loop(region, bound as u32, &firsts);
        self.visible.extend(entries);
        let number = self.graph.push_iteration(region);
        self.counted.push(region);
        let is_full = self.random.chance(0.6);
        let last = self.constant(bound as f64 - 1.0);
        let mut again = self.push(root, Op::Lt, &[number, last]);
        if !is_full {
            let limit = self.operand();
            let more = self.push(root, Op::Gt, &[limit, self.visible[0]]);
            let none = self.constant(0.0);
            again = self.push(root, Op::Select, &[more, again, none]);
        }
        let ends = [self.constant(0.0), self.constant(1.0)];
        let splits = self.random.chance(0.5);
        let branches = if splits { 0 } else { 2 };
        self.tree(root, depth + 1, branches, &mut |generator, leaf, breaks| {
            let mut arms = vec![(leaf, again)];
            if splits {
                let (then, otherwise) = (generator.graph.new_block(), generator.graph.new_block());
                let end = End::Branch { condition: again, then, otherwise };
                generator.graph.blocks[leaf].end = end;
                arms = vec![(then, ends[1]), (otherwise, ends[0])];
            } else if !is_full && breaks {
                arms[0].1 = ends[0];
            }
            for (leaf, again) in arms {
                let visible = generator.visible.len();
                generator.steps(leaf, usize::from(splits), 3);
                let nexts: Vec<Node> = firsts.iter().map(|_| generator.operand()).collect();
                let mut passed = vec![again];
                passed.extend(&nexts);
                for index in 0..values {
                    let same = generator.random.chance(0.6);
                    let next = nexts[index.min(nexts.len() - 1)];
                    passed.push(if same { next } else { generator.operand() });
                }
                generator.graph.blocks[leaf].end = End::Return(passed.into_iter().collect());
                generator.visible.truncate(visible);
            }
        });
        self.counted.pop();
        self.visible.truncate(visible);
        self.past.truncate(past);
        self.visible.extend((0..values).map(|_| self.graph.push_phi(region)));
        self.past.push((region, if is_full { bound } else { 1 }));
    }

    /// Makes items from `block` on, and up to `branches` branches; `end` makes the ends.
    fn tree(
        &mut self,
        block: Block,
        depth: usize,
        branches: usize,
        end: &mut dyn FnMut(&mut Self, Block, bool),
    ) {
        let count = 2 + self.random.below(4);
        self.steps(block, count, depth);
        if branches == 0 || self.random.chance(0.4) {
            let breaks = self.random.chance(0.3);
            return end(self, block, breaks);
        }
        let (a, b) = (self.operand(), self.operand());
        let condition = self.push(block, Op::Lt, &[a, b]);
        let (then, otherwise) = (self.graph.new_block(), self.graph.new_block());
        self.graph.blocks[block].end = End::Branch { condition, then, otherwise };
        for arm in [then, otherwise] {
            let (visible, past) = (self.visible.len(), self.past.len());
            self.tree(arm, depth, branches - 1, end);
            self.visible.truncate(visible);
            self.past.truncate(past);
        }
    }
}

#[test]
fn gradients_through_most_of_a_graph_agree_with_both_oracles() {
    let mut random = Random::new(11);
    let (mut compared, mut with_checkpoints) = (0, 0);
    for round in 0..400 {
        let one_array = round % 3 != 0;
        let graph = Generator::graph(&mut random, one_array, round % 2 == 0);
        for _ in 0..3 {
            let inputs: Vec<f64> = (0..=INPUTS).map(|_| random.uniform(-1.5, 1.5)).collect();
            compared += usize::from(check(&graph, &inputs, one_array));
        }
        let inputs: Vec<f64> = (0..=INPUTS).map(|_| random.uniform(-1.5, 1.5)).collect();
        with_checkpoints += check_checkpoints(&graph, &inputs);
    }
    assert!(with_checkpoints > 1000, "{with_checkpoints}");
    assert!(compared > 1000, "{compared}");
}

/// The elements of `a0` may be the first entry φ of the innermost loop, which is an alias of
/// those of the loops around it.
const ENTRIES_IN_ARRAY: &str = "\
graph active 8 inactive 1
v9 = const 0.5
v12 = const 0.0
v14 = iteration r1
v16 = const 0.0
a0 = nodes v17 v15 v17 v17 v10 v18 v17 v17
a1 = saved v21
i0 = a0 base 1 r2*1 r1*-1 r0*1
i1 = a1 base 0
b0:
  v10 = tanh v5
  v23 = region r0 b1 bound 5 entries v11=v1
  v24 = add v23 v1
  return v24
b1:
  region r1 b2 bound 2 entries v13=v11
  v22 = element i1
  return v12 v12 v22
b2:
  v20 = region r2 b3 bound 3 entries v15=v13
  v21 = atan v20
  return v14 v9
b3:
  v17 = sub v9 v9
  v18 = atan v9
  v19 = element i0
  return v16 v16 v19
";

/// An element that is always `v12` has two indices in `a1`.
const ALIAS_AT_TWO_INDICES: &str = "\
graph active 8 inactive 1
v9 = const 0.5
v13 = const 0.0
v18 = const 0.0
v20 = const 0.0
a0 = nodes v12 v1 v14 v14 v11
a1 = nodes v22 v22 v22 v15 v22 v21 v22 v15
i0 = a0 base 0 r0*1
i1 = a1 base 5 r2*2 r0*1
b0:
  v10 = sub v3 v6
  v11 = atan v2
  v26 = region r0 b1 bound 1 entries v12=v10
  return v26
b1:
  v14 = sub v1 v9
  v15 = element i0
  v25 = region r1 b2
  return v13 v13 v25
b2:
  v24 = region r2 b3 bound 2 entries v16=v15
  return v24
b3:
  v17 = gt v16 v9
  v19 = select v17 v9 v18
  v21 = mul_add v9 v2 v9
  v22 = atan v9
  branch v19 b4 b5
b4:
  return v9 v9 v9
b5:
  v23 = element i1
  return v20 v20 v23
";

#[test]
fn contributions_to_elements_reach_the_nodes_that_they_are() {
    for (text, input) in [(ENTRIES_IN_ARRAY, 1), (ALIAS_AT_TWO_INDICES, 3)] {
        let graph = parse(text).expect("a graph");
        let inputs = [1.2, 0.6, 0.4, -0.7, 0.8, -0.3, -1.4, 1.4, -0.8];
        assert!(check(&graph, &inputs, false));
        let gradient = reverse(&graph, Wanted::Gradient, Folding::Exact);
        let derivatives = outputs(&gradient, &inputs).expect("a gradient");
        assert!(derivatives[input] != 0.0, "{derivatives:?}");
        check_checkpoints(&graph, &inputs);
    }
}
