//! The order of additions in loops of all shapes: values that are first values again, that are
//! used more than one iteration later, that are read later or by other loops, and nests. The
//! gradient of the graph with loops has the bits of the gradient of straight-line code.

use std::panic::Location;

use crate::common::programs::{interpreted, reversed};
use crate::common::rolling::loops;
use phigrad::Var;
use phigrad::check::same;
use phigrad::internals::Random;
use phigrad::internals::diff::{Checkpointed, Wanted, checkpoint, reordered};
use phigrad::internals::loops::{RerollLimits, expand, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::ssa::{Folding, Graph, verify};
use phigrad::internals::trace::{Inputs, Tracer};

/// The largest number of inputs of a statement, besides loop-carried values.
const INPUTS: usize = 3;

/// The source of an operand.
#[derive(Clone, Copy, Debug)]
enum From {
    Carried(usize),
    Temporary(usize),
    Input(usize),
    /// The active input or the number with this offset to the iteration.
    Active(usize),
    Data,
    /// The value of an earlier loop in this iteration, or in one before its end.
    Saved {
        of: usize,
        backward: bool,
    },
    Fixed {
        of: usize,
        at: usize,
    },
}

#[derive(Clone, Debug)]
enum Statement {
    Apply(usize, From, From),
    /// A loop: its first values and its result.
    Loop(Box<Shape>),
    /// The loop ends here if this is large.
    Exit(From),
}

#[derive(Clone, Debug)]
struct Shape {
    times: usize,
    firsts: Vec<From>,
    body: Vec<Statement>,
    nexts: Vec<From>,
    saved: Option<From>,
}

#[derive(Clone, Debug)]
struct Program {
    loops: Vec<Shape>,
    outputs: Vec<From>,
}

/// The values that a statement may use.
#[derive(Clone, Copy)]
struct Known {
    carried: usize,
    temporaries: usize,
    pasts: usize,
    in_loop: bool,
}

fn operand(random: &mut Random, known: Known) -> From {
    loop {
        let from = match random.below(10) {
            0..=2 if known.carried > 0 => From::Carried(random.below(known.carried)),
            3..=5 if known.temporaries > 0 => From::Temporary(random.below(known.temporaries)),
            6 => From::Input(random.below(INPUTS)),
            7 if known.in_loop => match random.below(3) {
                0 => From::Active(random.below(3)),
                _ => From::Data,
            },
            8 if known.pasts > 0 && known.in_loop => {
                From::Saved { of: random.below(known.pasts), backward: random.chance(0.4) }
            }
            9 if known.pasts > 0 => {
                From::Fixed { of: random.below(known.pasts), at: random.below(6) }
            }
            _ => continue,
        };
        return from;
    }
}

fn shape(random: &mut Random, around: Known, depth: usize) -> Shape {
    let carried = 1 + random.below(3);
    let firsts: Vec<From> = (0..carried)
        .map(|_| match random.below(3) {
            0 if around.carried > 0 => From::Carried(random.below(around.carried)),
            1 => From::Input(random.below(2)),
            _ => operand(random, around),
        })
        .collect();
    let mut known = Known { carried, temporaries: 0, pasts: around.pasts, in_loop: true };
    let mut body = Vec::new();
    for _ in 0..2 + random.below(4) {
        if depth > 0 && random.chance(0.15) {
            body.push(Statement::Loop(Box::new(shape(random, known, depth - 1))));
        } else {
            let (op, a, b) = (random.below(6), operand(random, known), operand(random, known));
            body.push(Statement::Apply(op, a, b));
        }
        known.temporaries += 1;
    }
    if random.chance(0.1) {
        body.push(Statement::Exit(operand(random, known)));
    }
    // Some values pass from one variable to the next in each iteration.
    let nexts = (0..carried)
        .map(|_| match random.below(4) {
            0 => From::Carried(random.below(carried)),
            1 => operand(random, known),
            _ => From::Temporary(known.temporaries - 1 - random.below(known.temporaries.min(2))),
        })
        .collect();
    let saved = random.chance(0.5).then(|| operand(random, Known { pasts: 0, ..known }));
    Shape { times: 5 + random.below(4), firsts, body, nexts, saved }
}

fn program(random: &mut Random) -> Program {
    let mut known = Known { carried: 0, temporaries: 0, pasts: 0, in_loop: false };
    let loops: Vec<Shape> = (0..1 + random.below(3))
        .map(|_| {
            let shape = shape(random, known, 1);
            known.temporaries += 1;
            known.pasts += usize::from(shape.saved.is_some());
            shape
        })
        .collect();
    let outputs = (0..3).map(|_| operand(random, known)).collect();
    Program { loops, outputs }
}

struct Run<'a> {
    x: &'a [Var],
    data: &'a [Var],
    pasts: Vec<Vec<Var>>,
}

impl Run<'_> {
    fn get(&self, from: From, carried: &[Var], temporaries: &[Var], at: usize) -> Var {
        match from {
            From::Carried(number) => carried[number],
            From::Temporary(number) => temporaries[number],
            From::Input(number) => self.x[number],
            From::Active(offset) => self.x[at + offset],
            From::Data => self.data[at],
            From::Saved { of, backward } => {
                let past = &self.pasts[of];
                let last = past.len() - 1;
                past[if backward { last - at.min(last) } else { at.min(last) }]
            }
            From::Fixed { of, at } => self.pasts[of][at.min(self.pasts[of].len() - 1)],
        }
    }

    fn run(&self, shape: &Shape, around: &dyn Fn(From) -> Var) -> (Var, Vec<Var>) {
        let mut carried: Vec<Var> = shape.firsts.iter().map(|&from| around(from)).collect();
        let mut saved = Vec::new();
        'all: for at in 0..shape.times {
            let mut temporaries: Vec<Var> = Vec::new();
            for statement in &shape.body {
                let get = |from| self.get(from, &carried, &temporaries, at);
                let value = match statement {
                    Statement::Apply(op, a, b) => apply(*op, get(*a), get(*b)),
                    Statement::Loop(inner) => self.run(inner, &get).0,
                    Statement::Exit(from) => {
                        if at > 1 && get(*from) > 0.9 {
                            break 'all;
                        }
                        continue;
                    }
                };
                temporaries.push(value);
            }
            let get = |from: &From| self.get(*from, &carried, &temporaries, at);
            saved.extend(shape.saved.as_ref().map(get));
            carried = shape.nexts.iter().map(get).collect();
        }
        // All loop-carried values are used, some of them twice.
        (carried.iter().fold(carried[0] * 0.5, |sum, &value| sum + value * 0.7), saved)
    }
}

fn apply(op: usize, a: Var, b: Var) -> Var {
    match op {
        0 => a * b,
        1 => a - b * 0.3,
        2 => (a + b).sin(),
        3 => a * a + b,
        4 => (a * 0.4).cos() - b,
        _ => a * 0.7 + b * 0.1,
    }
}

fn eval(program: &Program, x: &[Var], data: &[Var]) -> Var {
    let mut run = Run { x, data, pasts: Vec::new() };
    let mut results: Vec<Var> = Vec::new();
    for shape in &program.loops {
        let (value, saved) = run.run(shape, &|from| run.get(from, &[], &results, 0));
        results.push(value);
        if shape.saved.is_some() {
            run.pasts.push(saved);
        }
    }
    let get = |&from: &From| run.get(from, &[], &results, 0);
    let sum = program.outputs.iter().map(get).fold(results[results.len() - 1], |sum, v| sum + v);
    sum * x[0] + x[1]
}

fn point(random: &mut Random) -> (Vec<f64>, Vec<f64>) {
    let mut numbers =
        |count: usize| (0..count).map(|_| random.uniform(-1.0, 1.0)).collect::<Vec<f64>>();
    (numbers(12), numbers(10))
}

#[derive(Debug, Default)]
struct Counts {
    saved: usize,
    expanded: usize,
    /// Programs whose bits would differ if nothing had been expanded.
    needed: usize,
    compared: usize,
    checkpointed: usize,
}

fn traces(program: &Program, points: &[(Vec<f64>, Vec<f64>)]) -> Graph {
    let (mut tracer, mut traces) = (Tracer::default(), MergedTraces::new(12, 10));
    for (x, data) in points {
        let run = |x: &[Var], data: &[Var]| eval(program, x, data);
        let inputs = Inputs { active: x, inactive: data };
        let trace = tracer.run(run, inputs, 1 << 20, Location::caller()).unwrap();
        traces.merge(&trace, MergeLimits { paths: usize::MAX, nodes: 1 << 22 }).unwrap();
    }
    Graph::clone(traces.graph())
}

fn check(program: &Program, points: &[(Vec<f64>, Vec<f64>)], counts: &mut Counts) {
    let graph = traces(program, points);
    let plain = reversed(&graph, Folding::Exact);
    let limits = RerollLimits {
        iterations: 3,
        weight: 2,
        exits: Some(3),
        threading: false,
        ..Default::default()
    };
    let rolled = reroll(&graph, limits);
    let mut ordered = rolled.clone();
    loop {
        let wrong = reordered(&ordered);
        if wrong.is_empty() {
            break;
        }
        counts.expanded += wrong.len();
        let Some(straight) = expand(&ordered, &wrong) else { return };
        ordered = straight;
    }
    counts.saved += loops(&ordered);
    let all = reversed(&rolled, Folding::Exact);
    let mut gradients = vec![reversed(&ordered, Folding::Exact)];
    let less = checkpoint(&Checkpointed::new(&ordered));
    if let Some(less) = less.filter(|less| reordered(&less.graph).is_empty()) {
        counts.checkpointed += 1;
        gradients.push(less.reverse(Wanted::GradientAndValue, Folding::Exact));
    }
    let mut differs = false;
    for gradient in &gradients {
        verify(gradient).unwrap_or_else(|error| panic!("{error}\n{gradient}\n{ordered}"));
        for point in points {
            let (expected, found) = (interpreted(&plain, point), interpreted(gradient, point));
            let (expected, found) = (expected.unwrap(), found.unwrap());
            if found.iter().any(|number| !number.is_finite()) {
                continue;
            }
            counts.compared += 1;
            let agree = expected.iter().zip(&found).all(|(&a, &b)| same(a, b));
            assert!(
                agree,
                "found {found:?}\nexpected {expected:?}\nat {point:?}\n{program:?}\n{ordered}\n{gradient}"
            );
            let before = interpreted(&all, point).unwrap_or_default();
            differs |= !expected.iter().zip(&before).all(|(&a, &b)| same(a, b));
        }
    }
    counts.needed += usize::from(differs);
}

#[test]
fn gradients_of_loops_of_all_shapes_have_the_bits_of_straight_line_code() {
    let mut counts = Counts::default();
    let mut random = Random::new(20);
    for _ in 0..8000 {
        let program = program(&mut random);
        let points: Vec<_> = (0..3).map(|_| point(&mut random)).collect();
        check(&program, &points, &mut counts);
    }
    println!("{counts:?}");
    assert!(counts.saved > 200 && counts.checkpointed > 50, "{counts:?}");
    assert!(counts.needed > 10 && counts.compared > 1000, "{counts:?}");
}
