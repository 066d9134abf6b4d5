//! Derivatives of graphs with regions, compared with two oracles that share
//! nothing with them: dual numbers along the way that a run takes, and, bit for
//! bit, a sweep over the list of what the run computed, as the tape's is.
#![allow(clippy::unwrap_used, clippy::panic)] // A failing helper fails its test.

use phigrad::check::{Random, same};
use phigrad::diff::{Wanted, reverse};
use phigrad::entity::Array;
use phigrad::op::{Numbers, Op, contribution, eval};
use phigrad::ssa::{
    Block, Def, End, Folding, Graph, Item, Node, Region,
};

/// What one run of a graph computed.
struct Run {
    values: Array<Node, f64>,
    /// What was computed, in order; a φ with the value that it copies.
    events: Vec<(Node, Option<Node>)>,
    outputs: Vec<Node>,
}

/// Runs `graph`; `None` where a guard stops it. Regions that replay others need
/// no rule: what they see has its value from the one time it was computed.
fn run(graph: &Graph, inputs: &[f64]) -> Option<Run> {
    let mut values = Array::filled(f64::NAN, graph.nodes.len());
    for (node, data) in graph.nodes.iter() {
        match data.def {
            Def::Input(i) => values[node] = inputs[i as usize],
            Def::Const(bits) => values[node] = f64::from_bits(bits),
            Def::Apply(..) | Def::Phi(..) => {}
        }
    }
    let mut events = Vec::new();
    // Where to go on after each open region.
    let mut open: Vec<(Region, Block, usize)> = Vec::new();
    let (mut block, mut next) = (graph.root(), 0);
    loop {
        let data = &graph.blocks[block];
        if let Some(&item) = data.items.get(next) {
            next += 1;
            match item {
                Item::Node(node) => {
                    let Def::Apply(op, args) = graph.nodes[node].def else { panic!("{node}") };
                    values[node] = eval(op, args.map(|arg| values[arg]));
                    events.push((node, None));
                }
                Item::Guard { condition, expect } => {
                    if (values[condition] != 0.0) != expect {
                        return None;
                    }
                }
                Item::Region(region) => {
                    open.push((region, block, next));
                    (block, next) = (graph.regions[region].root, 0);
                }
            }
            continue;
        }
        match &data.end {
            &End::Branch { condition, then, otherwise } => {
                (block, next) = (if values[condition] != 0.0 { then } else { otherwise }, 0);
            }
            End::Return(passed) => {
                let Some((region, above, after)) = open.pop() else {
                    return Some(Run { values, events, outputs: passed.to_vec() });
                };
                for (&phi, &value) in graph.regions[region].phis.iter().zip(passed) {
                    values[phi] = values[value];
                    events.push((phi, Some(value)));
                }
                (block, next) = (above, after);
            }
            End::Open => panic!("{block} is open"),
        }
    }
}

/// The outputs of `graph`.
fn outputs(graph: &Graph, inputs: &[f64]) -> Option<Vec<f64>> {
    let run = run(graph, inputs)?;
    Some(run.outputs.iter().map(|&node| run.values[node]).collect())
}

/// The gradient of the first output, then its value, as the tape computes them.
fn swept(graph: &Graph, inputs: &[f64]) -> Option<Vec<f64>> {
    let Run { values, events, outputs } = run(graph, inputs)?;
    let mut adjoints = Array::filled(0.0, graph.nodes.len());
    adjoints[outputs[0]] = 1.0;
    for &(node, copied) in events.iter().rev() {
        let adjoint: f64 = adjoints[node];
        if adjoint == 0.0 {
            continue;
        }
        if let Some(value) = copied {
            adjoints[value] += adjoint;
        } else if let Def::Apply(op, args) = graph.nodes[node].def {
            let x = args.map(|arg| values[arg]);
            for (operand, &arg) in args.iter().enumerate().take(op.arity()) {
                let passed = contribution(&mut Numbers, op, operand, x, values[node], adjoint);
                adjoints[arg] += passed.unwrap_or(0.0);
            }
        }
    }
    let gradient = (0..graph.active).map(|i| adjoints[graph.input(i)]);
    Some(gradient.chain([values[outputs[0]]]).collect())
}

/// The derivative of the first output along the active input `index`, and the
/// same with the absolute value of all terms, which scales rounding errors.
fn forward(graph: &Graph, Run { values, events, outputs }: &Run, index: usize) -> (f64, f64) {
    let mut tangents = Array::filled((0.0, 0.0), graph.nodes.len());
    tangents[graph.input(index)] = (1.0, 1.0);
    for &(node, copied) in events {
        tangents[node] = match (copied, graph.nodes[node].def) {
            (Some(value), _) => tangents[value],
            (None, Def::Apply(op, args)) => {
                let x = args.map(|arg| values[arg]);
                let mut sum = (0.0, 0.0);
                for (operand, &arg) in args.iter().enumerate().take(op.arity()) {
                    let slope = contribution(&mut Numbers, op, operand, x, values[node], 1.0);
                    let (slope, tangent) = (slope.unwrap_or(0.0), tangents[arg]);
                    sum.0 += slope * tangent.0;
                    sum.1 += slope.abs() * tangent.1;
                }
                sum
            }
            other => panic!("{other:?}"),
        };
    }
    tangents[outputs[0]]
}

/// Compares the gradient graphs of `graph` with the oracles at `inputs`. Returns
/// whether there was a finite gradient to compare.
fn check(graph: &Graph, inputs: &[f64]) -> bool {
    let expected = swept(graph, inputs);
    for folding in [Folding::Exact, Folding::Real] {
        let gradient = reverse(graph, Wanted::GradientAndValue, folding);
        let found = outputs(&gradient, inputs);
        assert_eq!(found.is_some(), expected.is_some(), "at {inputs:?} of\n{graph}");
        let (Some(found), Some(expected)) = (found, &expected) else { continue };
        let way = run(graph, inputs).unwrap();
        // Zero times an infinite slope is NaN in a graph, and nothing to a sweep.
        if !way.events.iter().all(|&(node, _)| way.values[node].abs() < 1e100) {
            return false;
        }
        for index in 0..graph.active {
            let (derivative, scale) = forward(graph, &way, index);
            let error = (found[index] - derivative).abs();
            let say = || format!("{found:?} for {derivative} (input {index}), {folding:?}");
            assert!(error <= 1e-11 * scale, "{} at {inputs:?} of\n{graph}", say());
        }
        if folding == Folding::Exact {
            let agree = found.iter().zip(expected).all(|(&a, &b)| same(a, b));
            assert!(agree, "{found:?} for {expected:?} at {inputs:?} of\n{graph}");
        }
    }
    expected.is_some()
}

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
    for _ in 0..3000 {
        let graph = Generator::graph(&mut random);
        for _ in 0..4 {
            let inputs: Vec<f64> = (0..4)
                .map(|_| match random.chance(0.2) {
                    true => random.pick(&[0.0, -0.0, 1.0, -1.5]),
                    false => random.uniform(-2.0, 2.0),
                })
                .collect();
            compared += usize::from(check(&graph, &inputs));
        }
    }
    assert!(compared > 5000, "{compared}");
}
