//! Random loops with affine states, counted or with data-dependent exits: values and gradients are
//! the same with and without closed forms.

use std::fmt::Write;

use crate::common::outcomes::values;
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::phi::{CloseLimits, close};
use phigrad::internals::ssa::{Folding, Graph, accepts_calls, parse, verify};

/// The active inputs; the limit of an exit follows.
const INPUTS: usize = 5;

/// The text form of a loop, written node by node.
struct Writer<'a> {
    random: &'a mut Random,
    next: usize,
    text: String,
}

impl Writer<'_> {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len())]
    }

    fn node(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next - 1)
    }

    fn step(&mut self, op: &str, args: &[&str]) -> String {
        let node = self.node();
        writeln!(self.text, "  {node} = {op} {}", args.join(" ")).unwrap();
        node
    }

    /// An affine form of the states, whose coefficients are inputs or constants.
    fn affine(&mut self, states: &[String], others: &[String]) -> String {
        let state = self.random.below(states.len());
        let state = states[state].clone();
        if self.random.below(4) == 0 {
            return state;
        }
        let factor = self.random.below(others.len());
        let mut form = self.step("mul", &[&state, &others[factor].clone()]);
        for _ in 0..self.random.below(3) {
            let all = [states, others].concat();
            let term = self.random.below(all.len());
            let op = self.pick(&["add", "sub"]);
            form = self.step(op, &[&form, &all[term].clone()]);
        }
        form
    }
}

/// A loop of up to four states, with an exit or without.
fn random_loop(random: &mut Random) -> Graph {
    let mut writer = Writer { random, next: INPUTS + 1, text: String::new() };
    let trips = writer.pick(&[1, 2, 3, 7, 40]);
    let has_exit = writer.random.below(2) == 0;
    let (zero, half) = (writer.node(), writer.node());
    let (last, number) = (writer.node(), writer.node());
    let inputs: Vec<String> = (0..INPUTS).map(|input| format!("v{input}")).collect();
    let firsts = [&inputs[..], &[zero.clone(), half.clone()]].concat();
    let count = 1 + writer.random.below(4);
    let phis: Vec<String> = (0..count).map(|_| writer.node()).collect();
    let entries: Vec<String> = phis
        .iter()
        .map(|phi| format!("{phi}={}", firsts[writer.random.below(firsts.len())]))
        .collect();
    let others = [&inputs[..], std::slice::from_ref(&half)].concat();
    let exit = has_exit.then(|| {
        let value = writer.affine(&phis, &others);
        writer.step("lt", &[&value, &format!("v{INPUTS}")])
    });
    let head = core::mem::take(&mut writer.text);
    let mut with_number = others.clone();
    with_number.push(number.clone());
    let mut seen = phis.clone();
    for _ in 0..writer.random.below(4) {
        let form = writer.affine(&phis, &with_number);
        seen.push(form);
    }
    let nexts: Vec<String> =
        (0..count).map(|_| seen[writer.random.below(seen.len())].clone()).collect();
    let outs = 1 + writer.random.below(2);
    let values: Vec<String> =
        (0..outs).map(|_| seen[writer.random.below(seen.len())].clone()).collect();
    let again = writer.step("lt", &[&number, &last]);
    let body = core::mem::take(&mut writer.text);
    let outs_left = if has_exit { outs } else { 0 };
    let left: Vec<String> = (0..outs_left).map(|_| writer.affine(&phis, &others)).collect();
    let leave = core::mem::take(&mut writer.text);
    let joined: Vec<String> = (0..outs).map(|_| writer.node()).collect();
    let sum = writer.node();
    let mut text = format!(
        "graph active {INPUTS} inactive 1\n{zero} = const 0.0\n{half} = const 0.5\n\
         {last} = const {}.0\n{number} = iteration r0\nb0:\n  {} = region r0 b1 bound {trips} \
         entries {}\n",
        trips - 1,
        joined.join(" "),
        entries.join(" ")
    );
    let (first, second) = (&joined[0], joined.last().unwrap());
    write!(text, "  {sum} = mul {first} {second}\n  return {sum}\nb1:\n{head}").unwrap();
    let (phis, nexts) = (phis.join(" "), nexts.join(" "));
    let (values, left) = (values.join(" "), left.join(" "));
    match exit {
        None => writeln!(text, "{body}  return {again} {nexts} {values}").unwrap(),
        Some(exit) => write!(
            text,
            "  branch {exit} b2 b3\nb2:\n{body}  return {again} {nexts} {values}\n\
             b3:\n{leave}  return {zero} {phis} {left}\n"
        )
        .unwrap(),
    }
    let graph = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(&graph).unwrap_or_else(|error| panic!("{error}\n{graph}"));
    graph
}

#[test]
fn random_loops_keep_their_values_and_gradients() {
    let (mut closed, mut accepted) = (0, 0);
    for seed in 0..1500 {
        let mut random = Random::new(seed);
        let graph = random_loop(&mut random);
        let solved = close(&graph, CloseLimits { always: true, ..CloseLimits::DEFAULT });
        verify(&solved.graph).unwrap_or_else(|error| panic!("{error}\n{}", solved.graph));
        closed += u32::from(!solved.applied.is_empty());
        let gradient = |graph| reverse(graph, Wanted::GradientAndValue, Folding::Real);
        let (before, after) = (gradient(&graph), gradient(&solved.graph));
        for _ in 0..12 {
            let mut x: Vec<f64> = (0..INPUTS).map(|_| random.uniform(-1.2, 1.2)).collect();
            x.push(random.uniform(-1.0, 4.0));
            let is_accepted = accepts_calls(&solved.graph, &x) == Some(true);
            accepted += u32::from(is_accepted && !solved.applied.is_empty());
            let (expected, found) = (values(&before, &x), values(&after, &x));
            let scale = expected.iter().fold(1.0, |most: f64, value| most.max(value.abs()));
            let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * scale;
            assert!(
                found.iter().zip(&expected).all(is_close),
                "{seed} at {x:?}: {found:?} for {expected:?}\n{graph}\n{}",
                solved.graph
            );
        }
    }
    assert!(closed > 1000 && accepted > 10_000, "{closed} {accepted}");
}
