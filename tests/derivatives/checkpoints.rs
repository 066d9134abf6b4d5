//! Loops with checkpoints: the same gradients, bit for bit, from less memory.
//!
//! Random graphs with checkpoints are in `random`, `regions` and `checkpoints_random`.

use crate::common::outcomes::{assert_as_interpreted, outputs};
use phigrad::internals::diff::{Checkpointed, Wanted, checkpoint, reverse};
use phigrad::internals::jit::{compile, saved_words};
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{
    AccessData, Array, ArrayData, Builder, Folding, Graph, Node, Region, eliminate_dead_code,
    parse, verify,
};

const INPUTS: [f64; 3] = [0.7, 1.3, -0.4];

/// A loop of at most `bound` iterations, as many as the inactive input says; `body` makes the
/// next values of its entry φs.
fn times(
    b: &mut Builder,
    bound: u32,
    firsts: &[Node],
    body: impl FnOnce(&mut Builder, Region, &[Node]) -> Vec<Node>,
) -> Vec<Node> {
    let (region, entries) = b.begin_loop(bound, firsts, None);
    let nexts = body(b, region, &entries);
    let (number, trips, one) = (b.iteration(region), b.input(3), b.constant(1.0));
    let done = b.apply(Op::Add, &[number, one]);
    let again = b.apply(Op::Lt, &[done, trips]);
    b.finish_block(&[&[again], &nexts[..], &nexts[..]].concat());
    b.end_loop(region, nexts.len())
}

fn at(array: Array, region: Region) -> AccessData {
    AccessData {
        array,
        base: 0,
        strides: [(region, 1)].into_iter().collect(),
        changes: Default::default(),
    }
}

/// Three active inputs, and an inactive one for the number of iterations.
fn graph(output: impl FnOnce(&mut Builder) -> Node) -> Graph {
    let mut builder = Builder::new(3, 1, Folding::Exact);
    let output = output(&mut builder);
    builder.finish_block(&[output]);
    let graph = builder.into_graph();
    assert_eq!(verify(&graph), Ok(()));
    graph
}

/// A pendulum with friction and a force from a table, from its iteration number and from inputs
/// in turn.
fn pendulum(bound: u32) -> Graph {
    graph(|b| {
        let inputs: Vec<Node> = (0..3).map(|i| b.input(i)).collect();
        let pushes = (0..bound).map(|i| f64::from(i).sin().to_bits()).collect();
        let pushes = b.array(ArrayData::Constants(pushes));
        let forces = (0..bound as usize).map(|i| inputs[1 + i * i % 3 % 2]).collect();
        let forces = b.array(ArrayData::Nodes(forces));
        let (angle, speed, friction) = (inputs[0], inputs[1], inputs[2]);
        let ends = times(b, bound, &[angle, speed], |b, region, state| {
            let (push, force) = (b.element(at(pushes, region)), b.element(at(forces, region)));
            let (number, small) = (b.iteration(region), b.constant(1e-3));
            let time = b.apply(Op::Mul, &[number, small]);
            let sine = b.apply(Op::Sin, &[state[0]]);
            let drag = b.apply(Op::Mul, &[state[1], friction]);
            let mut pull = b.apply(Op::MulAdd, &[push, force, drag]);
            for term in [sine, time] {
                pull = b.apply(Op::Sub, &[pull, term]);
            }
            let pull = b.apply(Op::Tanh, &[pull]);
            let (step, slow) = (b.constant(0.1), b.constant(0.9));
            let saved = b.apply(Op::Mul, &[state[1], slow]);
            let speed = b.apply(Op::MulAdd, &[pull, step, saved]);
            vec![b.apply(Op::MulAdd, &[speed, step, state[0]]), speed]
        });
        b.apply(Op::Mul, &[ends[0], ends[1]])
    })
}

/// The gradient and value without checkpoints, and with less and less memory.
fn gradients(graph: &Graph, folding: Folding) -> Vec<Graph> {
    let mut all = vec![reverse(graph, Wanted::GradientAndValue, folding)];
    let mut checkpointed = Checkpointed::new(graph);
    while let Some(next) = checkpoint(&checkpointed) {
        checkpointed = next;
        assert_eq!(verify(&checkpointed.graph), Ok(()), "{}", checkpointed.graph);
        all.push(checkpointed.reverse(Wanted::GradientAndValue, folding));
    }
    let all: Vec<Graph> = all.iter().map(eliminate_dead_code).collect();
    all.iter().for_each(|gradient| assert_eq!(verify(gradient), Ok(()), "{gradient}"));
    all
}

/// The bits from interpreter and native code for so many iterations.
fn run(gradient: &Graph, trips: u32) -> Option<Vec<u64>> {
    let [x, y, z] = INPUTS;
    let inputs = [x, y, z, f64::from(trips)];
    assert_as_interpreted(gradient, &compile(gradient).unwrap(), &inputs);
    let bits = |values: Vec<f64>| values.iter().map(|value| value.to_bits()).collect();
    outputs(gradient, &inputs).map(bits)
}

#[test]
fn gradients_have_the_same_bits_for_each_trip_count() {
    for bound in [1, 2, 3, 4, 5, 7, 10, 99, 100, 101, 1000] {
        let gradients = gradients(&pendulum(bound), Folding::Exact);
        assert!(bound < 10 || gradients.len() > 1, "{bound}");
        for trips in [1, 2, 3, 4, 5, 7, 9, 10, 11, 99, 100, 101, 999, 1000, 1001] {
            if trips > bound + 1 {
                break;
            }
            let expected = run(&gradients[0], trips);
            assert_eq!(expected.is_some(), trips <= bound);
            for gradient in &gradients[1..] {
                assert_eq!(run(gradient, trips), expected, "{trips} of {bound}: {gradient}");
            }
        }
    }
}

#[test]
fn memory_shrinks_with_each_step() {
    let words: Vec<u64> =
        gradients(&pendulum(10_000), Folding::Real).iter().map(saved_words).collect();
    // The values of one iteration.
    let each = words[0] / 10_000;
    assert!((3..12).contains(&each), "{words:?}");
    // The checkpoints, and the values of a strip.
    assert!(words[1] < (each + 4) * 100 + 10, "{words:?}");
    assert!(words.is_sorted_by(|a, b| a > b), "{words:?}");
    assert!(words[words.len() - 1] < 500, "{words:?}");
}

/// A nest of two loops; the inner one depends on the outer one and has branches and guards.
fn nest(outer: u32, inner: u32) -> Graph {
    graph(|b| {
        let (x, y, z) = (b.input(0), b.input(1), b.input(2));
        let ends = times(b, outer, &[x, y], |b, _, state| {
            let zero = b.constant(0.0);
            let number = b.apply(Op::Cos, &[state[1]]);
            let is_negative = b.apply(Op::Lt, &[number, zero]);
            let (region, state_of_inner) = b.begin_loop(inner, &[state[0], number], None);
            let sine = b.apply(Op::Sin, &[state_of_inner[0]]);
            let seen = b.constant(1e6);
            let is_small = b.apply(Op::Lt, &[sine, seen]);
            b.guard(is_small, true);
            let choice = b.begin_region(None);
            let is_low = b.apply(Op::Lt, &[sine, z]);
            let (then, otherwise) = b.branch(is_low);
            b.enter(then);
            let low = b.apply(Op::Mul, &[sine, state_of_inner[1]]);
            b.finish_block(&[low]);
            b.leave();
            b.enter(otherwise);
            let high = b.apply(Op::Exp, &[sine]);
            b.finish_block(&[high]);
            b.leave();
            let chosen = b.end_region(choice, 1)[0];
            let next = b.apply(Op::Atan, &[chosen]);
            let (number, last) = (b.iteration(region), b.constant(f64::from(inner) - 2.0));
            let more = b.apply(Op::Lt, &[number, last]);
            // The loop ends early if this is negative.
            let again = b.apply(Op::Select, &[is_negative, zero, more]);
            b.finish_block(&[again, next, sine, next, sine]);
            let results = b.end_loop(region, 2);
            let product = b.apply(Op::Mul, &[results[0], results[1]]);
            let sum = b.apply(Op::Add, &[product, state[0]]);
            let slow = b.apply(Op::Tanh, &[sum]);
            vec![slow, b.apply(Op::Add, &[state[1], product])]
        });
        b.apply(Op::MulAdd, &[ends[0], ends[1], x])
    })
}

#[test]
fn nested_loops_are_recomputed_or_split() {
    for (outer, inner) in [(7, 50), (50, 7), (30, 30), (100, 3)] {
        let gradients = gradients(&nest(outer, inner), Folding::Exact);
        assert!(gradients.len() > 1);
        for trips in [1, 2, 6, 7, 30, 50, 100, 101] {
            let expected = run(&gradients[0], trips);
            assert_eq!(expected.is_some(), trips <= outer);
            for gradient in &gradients[1..] {
                assert_eq!(run(gradient, trips), expected, "{trips} of {outer}: {gradient}");
            }
        }
        let words: Vec<u64> = gradients.iter().map(saved_words).collect();
        assert!(words.is_sorted_by(|a, b| a > b), "{words:?}");
    }
}

/// The second loop reads the trajectory of the first one.
fn trajectory(bound: u32) -> Graph {
    graph(|b| {
        let (x, last) = (b.input(0), b.constant(f64::from(bound - 1)));
        let mut loops = [(); 2].map(|()| None);
        let mut value = x;
        for index in 0..2 {
            let (region, entries) = b.begin_loop(bound, &[value], None);
            let mut next = b.apply(Op::Sin, &[entries[0]]);
            if let Some((before, node)) = loops[0] {
                let past = b.saved(before, node, bound - 1, &[(region, -1)]);
                next = b.apply(Op::Mul, &[next, past]);
            }
            loops[index] = Some((region, next));
            let number = b.iteration(region);
            let again = b.apply(Op::Lt, &[number, last]);
            b.finish_block(&[again, next, next]);
            value = b.end_loop(region, 1)[0];
        }
        value
    })
}

#[test]
fn a_loop_whose_trajectory_is_read_is_not_split_but_others_are() {
    let graph = trajectory(100);
    let gradients = gradients(&graph, Folding::Exact);
    assert!(gradients.len() > 1);
    let expected = run(&gradients[0], 1);
    gradients[1..].iter().for_each(|gradient| assert_eq!(run(gradient, 1), expected));
    let least = saved_words(&gradients[gradients.len() - 1]);
    assert!((200..300).contains(&least), "{least}");
}

#[test]
fn a_million_iterations_need_ten_thousand_words() {
    const COUNT: u32 = 1_000_000;
    let graph = graph(|b| {
        let (x, c) = (b.input(0), b.input(1));
        times(b, COUNT, &[x], |b, _, state| {
            let sine = b.apply(Op::Sin, &[state[0]]);
            vec![b.apply(Op::Add, &[sine, c])]
        })[0]
    });
    let checkpointed = checkpoint(&Checkpointed::new(&graph)).unwrap();
    let gradient = checkpointed.reverse(Wanted::GradientAndValue, Folding::Real);
    let gradient = eliminate_dead_code(&gradient);
    assert!(saved_words(&gradient) <= 10_000, "{}", saved_words(&gradient));
    let kernel = compile(&gradient).unwrap();
    assert!(kernel.scratch_len() <= 10_000, "{}", kernel.scratch_len());
    let (mut scratch, mut found) = (Vec::new(), [0.0; 4]);
    kernel.run(&INPUTS, &[f64::from(COUNT)], &mut scratch, &mut found).unwrap();

    let mut states = vec![INPUTS[0]];
    for i in 0..COUNT as usize {
        states.push(states[i].sin() + INPUTS[1]);
    }
    let (mut adjoint, mut by_c) = (1.0, 0.0);
    for i in (0..COUNT as usize).rev() {
        by_c += adjoint;
        adjoint *= states[i].cos();
    }
    assert_eq!(found, [adjoint, by_c, 0.0, states[COUNT as usize]]);
}

#[test]
fn values_of_few_cheap_steps_are_rematerialised() {
    const BOUND: u32 = 100;
    let saved = |term: fn(&mut Builder, [Node; 3]) -> Node| {
        let graph = graph(|b| {
            let numbers = (0..BOUND).map(|i| f64::from(i).cos().to_bits()).collect();
            let numbers = b.array(ArrayData::Constants(numbers));
            let x = b.input(0);
            times(b, BOUND, &[x], |b, region, state| {
                let (element, number) = (b.element(at(numbers, region)), b.iteration(region));
                let term = term(b, [element, number, state[0]]);
                vec![b.apply(Op::Mul, &[state[0], term])]
            })[0]
        });
        // Also the state of each iteration, and the trip count.
        let gradient = reverse(&graph, Wanted::GradientAndValue, Folding::Exact);
        run(&gradient, 50).unwrap();
        saved_words(&eliminate_dead_code(&gradient)) - 1
    };
    assert_eq!(saved(|_, [element, ..]| element), 0);
    assert_eq!(saved(|b, [element, number, _]| b.apply(Op::Mul, &[element, number])), 0);
    let bound = u64::from(BOUND);
    assert_eq!(saved(|b, [element, _, state]| b.apply(Op::Add, &[element, state])), bound);
    assert_eq!(saved(|b, [_, _, state]| b.apply(Op::Tanh, &[state])), 2 * bound);
    assert_eq!(saved(|b, [element, ..]| b.apply(Op::Exp, &[element])), bound);
}

#[test]
fn the_text_form_of_recomputed_loops_round_trips() {
    let gradient = gradients(&nest(7, 7), Folding::Exact).pop().unwrap();
    let text = gradient.to_string();
    assert_eq!(parse(&text).map(|graph| graph.to_string()), Ok(text));
}
