//! Native code of large and deep graphs with regions, with more live values than registers and
//! many functions, against the interpreter.

use crate::common::outcomes::assert_as_interpreted;
use phigrad::internals::Random;
use phigrad::internals::jit::{Kernel, compile};
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{Builder, Folding, Graph, Node, Outcome, Region, interpret, verify};

/// A builder for the graphs below.
struct Make(Builder);

impl Make {
    fn new(inputs: usize) -> Self {
        Make(Builder::new(inputs, 0, Folding::Exact))
    }

    fn number(&mut self, value: f64) -> Node {
        self.0.constant(value)
    }

    fn op(&mut self, op: Op, args: &[Node]) -> Node {
        self.0.apply(op, args)
    }

    /// A region with two arms; returns it and its φs.
    fn choice(
        &mut self,
        condition: Node,
        replays: Option<Region>,
        then: impl FnOnce(&mut Self) -> Vec<Node>,
        otherwise: impl FnOnce(&mut Self) -> Vec<Node>,
    ) -> (Region, Vec<Node>) {
        let region = self.0.begin_region(replays);
        let (first, other) = self.0.branch(condition);
        self.0.enter(first);
        let values = then(self);
        self.0.finish_block(&values);
        self.0.leave();
        self.0.enter(other);
        let values = otherwise(self);
        self.0.finish_block(&values);
        self.0.leave();
        (region, self.0.end_region(region, values.len()))
    }

    fn finish(mut self, outputs: &[Node]) -> (Graph, Kernel) {
        self.0.finish_block(outputs);
        let graph = self.0.into_graph();
        verify(&graph).unwrap();
        let kernel = compile(&graph).unwrap();
        (graph, kernel)
    }

    /// Straight-line code with many live values.
    fn straight_line(&mut self, start: &[Node], steps: usize, seed: u64) -> Vec<Node> {
        let mut random = Random::new(seed);
        let mut values = start.to_vec();
        for step in 0..steps {
            let a = random.pick(&values);
            let op = random.pick(&[Op::Add, Op::Sub, Op::Min, Op::Max, Op::Sin, Op::Mul]);
            let args = [a, values[step % values.len()]];
            let node = self.op(op, &args[..op.arity()]);
            let place = random.below(values.len());
            values[place] = node;
        }
        values
    }
}

#[test]
fn more_values_than_registers_live_across_a_region() {
    for (live, steps) in [(12, 5), (40, 10), (40, 400), (200, 1200)] {
        let mut make = Make::new(2);
        let (x, y) = (make.0.input(0), make.0.input(1));
        let mut start: Vec<Node> = Vec::new();
        for i in 0..live {
            let number = make.number(f64::from(i) * 0.1 + 1.0);
            let product = make.op(Op::Mul, &[x, number]);
            start.push(make.op(Op::Sin, &[product]));
        }
        let condition = make.op(Op::Lt, &[x, y]);
        // All are φs, and all are used in both arms and afterwards.
        let (_, phis) = make.choice(
            condition,
            None,
            |make| make.straight_line(&start, steps, 1),
            |make| make.straight_line(&start, steps / 2, 2),
        );
        let sums: Vec<Node> =
            start.iter().zip(&phis).map(|(&a, &b)| make.op(Op::Add, &[a, b])).collect();
        let outputs: Vec<Node> = sums.iter().chain(&phis).chain(&start).copied().collect();
        let (graph, kernel) = make.finish(&outputs);
        for inputs in [[0.3, 0.7], [0.7, 0.3], [f64::NAN, 1.0]] {
            assert!(assert_as_interpreted(&graph, &kernel, &inputs));
        }
    }
}

/// `count` regions in sequence, and as many that replay them backwards; each arm has a value
/// for the replay. `steps` is the size of an arm.
fn forward_and_replay(count: usize, steps: usize) -> (Graph, Kernel) {
    let mut make = Make::new(2);
    let (mut x, y) = (make.0.input(0), make.0.input(1));
    let half = make.number(0.5);
    let mut regions = Vec::new();
    for i in 0..count {
        let limit = make.number((i % 7) as f64 * 0.3 - 0.9);
        let condition = make.op(Op::Gt, &[x, limit]);
        let [mut one, mut other] = [x; 2];
        let (region, phis) = make.choice(
            condition,
            None,
            |make| {
                one = make.straight_line(&[x, y, half], steps, i as u64)[0];
                vec![make.op(Op::Sub, &[one, half])]
            },
            |make| {
                let product = make.op(Op::Mul, &[x, half]);
                other = make.op(Op::Add, &[product, y]);
                vec![other]
            },
        );
        let bounded = make.op(Op::Sin, &[phis[0]]);
        regions.push((region, condition, [one, other], x));
        x = bounded;
    }
    let mut adjoint = make.number(1.0);
    for &(region, condition, inner, before) in regions.iter().rev() {
        let (_, phis) = make.choice(
            condition,
            Some(region),
            |make| {
                let product = make.op(Op::Mul, &[adjoint, inner[0]]);
                vec![make.op(Op::Add, &[product, before])]
            },
            |make| {
                let product = make.op(Op::Mul, &[adjoint, half]);
                vec![make.op(Op::Sub, &[product, inner[1]])]
            },
        );
        adjoint = make.op(Op::Sin, &[phis[0]]);
    }
    make.finish(&[x, adjoint])
}

#[test]
fn values_of_many_regions_and_functions_are_there_in_replays() {
    for (count, steps) in [(3, 2), (300, 3), (40, 60), (3, 1500)] {
        let (graph, kernel) = forward_and_replay(count, steps);
        let mut random = Random::new(count as u64);
        for _ in 0..10 {
            let inputs = [random.uniform(-2.0, 2.0), random.uniform(-2.0, 2.0)];
            assert!(assert_as_interpreted(&graph, &kernel, &inputs));
        }
    }
}

#[test]
fn values_of_different_paths_share_a_slot() {
    let (_, kernel) = forward_and_replay(100, 2);
    // One value for each path, and one from before; but not one for each arm.
    assert!((100..350).contains(&kernel.scratch_len()), "{}", kernel.scratch_len());
}

#[test]
fn regions_nest_deeply() {
    let depth = 700;
    let mut make = Make::new(1);
    let x = make.0.input(0);
    let step = make.number(0.01);
    let mut values = vec![x];
    let mut regions = Vec::new();
    for i in 0..depth {
        let limit = make.number(f64::from(i) * 0.01);
        let last = values[values.len() - 1];
        let condition = make.op(Op::Gt, &[x, limit]);
        regions.push(make.0.begin_region(None));
        let (then, otherwise) = make.0.branch(condition);
        make.0.enter(otherwise);
        make.0.finish_block(&[last]);
        make.0.leave();
        make.0.enter(then);
        values.push(make.op(Op::Add, &[last, step]));
    }
    make.0.finish_block(&[values[depth as usize]]);
    for (region, &value) in regions.into_iter().zip(&values).rev() {
        make.0.leave();
        let phi = make.0.end_region(region, 1)[0];
        let sum = make.op(Op::Sub, &[phi, value]);
        make.0.finish_block(&[sum]);
    }
    let graph = make.0.into_graph();
    verify(&graph).unwrap();
    let kernel = compile(&graph).unwrap();
    for x in [-1.0, 0.0, 0.005, 0.5, 3.3, 6.98, 7.0, 100.0, f64::NAN] {
        assert!(assert_as_interpreted(&graph, &kernel, &[x]));
    }
}

/// A loop with an exit in each of `rounds` iterations as nested branches: a tree as deep.
fn search(rounds: usize, in_region: bool) -> (Graph, Kernel) {
    let mut make = Make::new(2);
    let (x, y) = (make.0.input(0), make.0.input(1));
    let product = make.op(Op::Mul, &[x, y]);
    let region = in_region.then(|| make.0.begin_region(None));
    let (mut value, mut before) = (x, y);
    for _ in 0..rounds {
        let next = make.op(Op::Add, &[value, before]);
        let condition = make.op(Op::Gt, &[next, product]);
        let (then, otherwise) = make.0.branch(condition);
        make.0.enter(then);
        make.0.finish_block(&[next, value]);
        make.0.leave();
        make.0.enter(otherwise);
        (value, before) = (next, x);
    }
    make.0.finish_block(&[before, value]);
    (0..rounds).for_each(|_| make.0.leave());
    match region {
        Some(region) => {
            let phis = make.0.end_region(region, 2);
            let sum = make.op(Op::Mul, &[phis[0], product]);
            make.finish(&[sum, phis[1]])
        }
        None => {
            let graph = make.0.into_graph();
            let kernel = compile(&graph).unwrap();
            (graph, kernel)
        }
    }
}

#[test]
fn deep_trees_end_early_inside_and_outside_of_regions() {
    for (rounds, in_region) in [(5, true), (900, true), (900, false)] {
        let (graph, kernel) = search(rounds, in_region);
        for inputs in [[1.0, 0.5], [1.0, 3.0], [0.1, 77.0], [1.0, 500.5], [1.0, 1e9], [-1.0, 2.0]] {
            assert!(assert_as_interpreted(&graph, &kernel, &inputs));
        }
    }
}

#[test]
fn compile_time_and_size_are_linear_in_the_number_of_regions() {
    let bytes = [200, 800].map(|count| forward_and_replay(count, 3).1.bytes());
    assert!(bytes[1] < bytes[0] * 5, "{bytes:?}");
}

#[test]
fn threads_share_a_kernel_and_buffers_are_reused() {
    let (graph, kernel) = forward_and_replay(60, 4);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (graph, kernel) = (&graph, &kernel);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                let (mut scratch, mut outputs) = (Vec::new(), [0.0; 2]);
                for _ in 0..200 {
                    let inputs = [random.uniform(-2.0, 2.0), random.uniform(-2.0, 2.0)];
                    kernel.run(&inputs, &[], &mut scratch, &mut outputs).unwrap();
                    let expected = Outcome::Values(outputs.to_vec());
                    assert_eq!(interpret(graph, &inputs), expected, "{inputs:?}");
                }
            });
        }
    });
}
