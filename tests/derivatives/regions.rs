//! Derivatives of graphs with regions, compared with the oracles.

use crate::common::outcomes::outputs;
use crate::oracle::check;
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{
    Block, End, Folding, Graph, Item, Node, Outcome, interpret, parse, verify,
};

/// Makes random graphs.
struct Generator<'a> {
    random: &'a mut Random,
    graph: Graph,
    constants: Vec<Node>,
}

impl Generator<'_> {
    fn graph(random: &mut Random) -> Graph {
        let mut graph = Graph::new(3, 1);
        let constants = [0.0f64, -0.0, 1.0, 0.5, -1.5].map(|c| graph.push_const(c.to_bits()));
        let (root, inputs) = (graph.root(), (0..4).map(|i| graph.input(i)).collect());
        let mut generator = Generator { random, graph, constants: constants.to_vec() };
        generator.tree(root, inputs, 1, 2, 0);
        generator.graph
    }

    fn operand(&mut self, visible: &[Node]) -> Node {
        if self.random.chance(0.15) {
            return self.random.pick(&self.constants);
        }
        let recent = if self.random.chance(0.5) { visible.len().min(5) } else { visible.len() };
        visible[visible.len() - 1 - self.random.below(recent)]
    }

    fn apply(&mut self, block: Block, visible: &mut Vec<Node>) {
        const OPS: [Op; 14] = [
            Op::Add,
            Op::Add,
            Op::Sub,
            Op::Mul,
            Op::Mul,
            Op::Neg,
            Op::Sin,
            Op::Tanh,
            Op::Atan,
            Op::MulAdd,
            Op::Max,
            Op::Abs,
            Op::Div,
            Op::Exp,
        ];
        let op = self.random.pick(&OPS);
        let args = [self.operand(visible), self.operand(visible), self.operand(visible)];
        visible.push(self.graph.push_apply(block, op, &args[..op.arity()], None));
    }

    /// The tree from `block` on, each end with `values` values.
    fn tree(
        &mut self,
        block: Block,
        mut visible: Vec<Node>,
        values: usize,
        branches: usize,
        depth: usize,
    ) {
        for _ in 0..self.random.below(5) {
            if depth < 4 && self.random.chance(0.35) {
                let region = self.graph.push_region(block, None, None);
                let (root, values) = (self.graph.regions[region].root, self.random.below(4));
                let branches = self.random.below(4);
                self.tree(root, visible.clone(), values, branches, depth + 1);
                visible.extend((0..values).map(|_| self.graph.push_phi(region)));
            } else if self.random.chance(0.03) {
                let condition = self.operand(&visible);
                let expect = self.random.chance(0.5);
                self.graph.blocks[block].items.push(Item::Guard { condition, expect });
            } else {
                self.apply(block, &mut visible);
            }
        }
        if branches > 0 && self.random.chance(0.7) {
            let args = [self.operand(&visible), self.operand(&visible)];
            let op = self.random.pick(&[Op::Lt, Op::Gt, Op::Eq]);
            let mut condition = self.graph.push_apply(block, op, &args, None);
            if self.random.chance(0.1) {
                condition = self.operand(&visible);
            }
            let (then, otherwise) = (self.graph.new_block(), self.graph.new_block());
            self.graph.blocks[block].end = End::Branch { condition, then, otherwise };
            let left = self.random.below(branches);
            self.tree(then, visible.clone(), values, left, depth);
            self.tree(otherwise, visible, values, branches - 1 - left, depth);
        } else {
            let passed = (0..values).map(|_| self.operand(&visible)).collect();
            self.graph.blocks[block].end = End::Return(passed);
        }
    }
}

#[test]
fn gradients_of_random_graphs_agree_with_both_oracles() {
    let mut random = Random::new(61);
    let mut compared = 0;
    for _ in 0..600 {
        let graph = Generator::graph(&mut random);
        for _ in 0..4 {
            let inputs: Vec<f64> = (0..4)
                .map(|_| match random.chance(0.2) {
                    true => random.pick(&[0.0, -0.0, 1.0, -1.5]),
                    false => random.uniform(-2.0, 2.0),
                })
                .collect();
            compared += usize::from(check(&graph, &inputs, true));
        }
    }
    assert!(compared > 1000, "{compared}");
}

/// A loop unrolled: up to `rounds` times x = sin(x)·y, until x < 1/10.
fn chain(rounds: usize) -> Graph {
    let mut graph = Graph::new(2, 0);
    let (root, mut x, y) = (graph.root(), graph.input(0), graph.input(1));
    let bound = graph.push_const(0.1f64.to_bits());
    let region = graph.push_region(root, None, None);
    let mut block = graph.regions[region].root;
    for _ in 0..rounds {
        let stop = graph.push_apply(block, Op::Lt, &[x, bound], None);
        let (then, otherwise) = (graph.new_block(), graph.new_block());
        graph.blocks[block].end = End::Branch { condition: stop, then, otherwise };
        graph.blocks[then].end = End::Return([x].into_iter().collect());
        let sine = graph.push_apply(otherwise, Op::Sin, &[x], None);
        x = graph.push_apply(otherwise, Op::Mul, &[sine, y], None);
        block = otherwise;
    }
    graph.blocks[block].end = End::Return([x].into_iter().collect());
    let phi = graph.push_phi(region);
    graph.blocks[root].end = End::Return([phi].into_iter().collect());
    graph
}

#[test]
fn a_loop_of_two_thousand_exits_has_a_gradient_of_linear_size() {
    let on_a_small_stack = || {
        let size = |rounds| {
            let gradient = reverse(&chain(rounds), Wanted::Gradient, Folding::Exact);
            gradient.nodes.len() + gradient.blocks.len() + gradient.regions.len()
        };
        let (half, whole) = (size(1000), size(2000));
        assert!(whole <= 2 * half && whole < 25 * 2000, "{half}, {whole}");
        let graph = chain(2000);
        for inputs in [[0.05, 1.0], [1.0, 0.999], [1.0, 1.2]] {
            assert!(check(&graph, &inputs, true));
        }
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread.spawn(on_a_small_stack).unwrap().join().unwrap();
}

#[test]
fn values_that_no_end_returns_have_no_sweep() {
    // The other arm of the first branch is inactive.
    let text = "graph active 1 inactive 0\nv1 = const 0.0\nb0:\n  v2 = gt v0 v1\n  \
                v5 = region r0 b1\n  v6 = mul v5 v0\n  return v6\n\
                b1:\n  branch v2 b2 b3\n\
                b2:\n  v3 = sin v0\n  branch v3 b4 b5\n\
                b3:\n  v4 = exp v0\n  branch v4 b6 b7\n\
                b4:\n  return v3\n\
                b5:\n  return v1\n\
                b6:\n  return v1\n\
                b7:\n  return v1\n";
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}"));
    for x in [1.0, -1.0] {
        assert!(check(&graph, &[x], true));
    }
    let gradient = reverse(&graph, Wanted::Gradient, Folding::Exact);
    let branches = |graph: &Graph| {
        let ends = graph.blocks.values().filter(|data| matches!(data.end, End::Branch { .. }));
        ends.count()
    };
    assert_eq!((branches(&graph), branches(&gradient)), (3, 5), "{gradient}");
}

#[test]
fn adjoints_of_one_node_are_added_from_the_last_phi_on() {
    let text = "graph active 1 inactive 0\nv1 = const 0.1\nv2 = const 0.2\nv3 = const 0.3\nb0:\n  \
                v4 v5 v6 = region r0 b1\n  v7 = mul v4 v1\n  v8 = mul_add v5 v2 v7\n  \
                v9 = mul_add v6 v3 v8\n  return v9\n\
                b1:\n  return v0 v0 v0\n";
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}"));
    assert!(check(&graph, &[1.0], true));
    assert_ne!((0.3 + 0.2) + 0.1, (0.1 + 0.2) + 0.3);
    let gradient = reverse(&graph, Wanted::Gradient, Folding::Exact);
    assert_eq!(outputs(&gradient, &[1.0]), Some(vec![(0.3 + 0.2) + 0.1]));
}

#[test]
fn only_adjoints_of_outer_nodes_are_phis_of_a_sweep() {
    // Each region has a branch, since others dissolve.
    let text = "graph active 1 inactive 0\nv1 = const 1.0\nb0:\n  v7 = region r0 b1\n  return v7\n\
                b1:\n  branch v0 b2 b3\n\
                b2:\n  v2 = sin v0\n  v4 = region r1 b4\n  v6 = region r2 b7\n  return v6\nb3:\n  return v1\n\
                b4:\n  branch v2 b5 b6\nb5:\n  v3 = exp v2\n  return v3\nb6:\n  return v1\n\
                b7:\n  branch v4 b8 b9\nb8:\n  v5 = mul v4 v2\n  return v5\nb9:\n  return v1\n";
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let gradient = reverse(&graph, Wanted::Gradient, Folding::Exact);
    let replays = gradient.regions.values().filter(|region| region.replays.is_some());
    let phis: Vec<usize> = replays.map(|region| region.phis.len()).collect();
    // Of v0; of v2 and v4; of v2.
    assert_eq!(phis, [1, 2, 1], "{gradient}");
}

#[test]
fn steps_of_a_sweep_keep_the_place_of_their_region() {
    let text = "graph active 1 inactive 0\nb0:\n  v2 = region r0 b1 @ a.rs:1:2\n  return v2\n\
                b1:\n  branch v0 b2 b3\nb2:\n  v1 = sin v0 @ a.rs:3:4\n  return v1\nb3:\n  return v0\n";
    let gradient = reverse(&parse(text).unwrap(), Wanted::Gradient, Folding::Exact).to_string();
    assert!(gradient.contains("= region r0 b1 @ a.rs:1:2"), "{gradient}");
    assert!(gradient.contains("= region r1 b4 replays r0 @ a.rs:1:2"), "{gradient}");
    assert!(gradient.contains("= cos v0 @ a.rs:3:4"), "{gradient}");
}

#[test]
fn a_graph_that_replays_has_a_gradient_that_stops() {
    let graph = parse(include_str!("../corpus/inner_nodes.graph")).unwrap();
    let gradient = reverse(&graph, Wanted::Gradient, Folding::Exact);
    for wanted in [Wanted::Gradient, Wanted::GradientAndValue] {
        let second = reverse(&gradient, wanted, Folding::Exact);
        assert_eq!(verify(&second), Ok(()));
        assert_eq!(second.outputs(), if wanted == Wanted::Gradient { 2 } else { 3 });
        assert!(matches!(interpret(&second, &[2.0, 3.0]), Outcome::Unseen(_)));
    }
}
