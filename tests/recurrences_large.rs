//! Closed forms of systems in which all numbers depend on all: they are less code and less
//! work than their loops, values and derivatives are as good as those of the tape, and where
//! straight code would be too long a loop goes through the digits of the number of steps.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;

use std::panic::Location;

use bound::ulp;
use phigrad::Var;
use phigrad::check::Random;
use phigrad::diff::{Wanted, reverse};
use phigrad::phi::{CloseLimits, Closed, close};
use phigrad::ssa::{
    Folding, Graph, Node, Outcome, eliminate_dead_code, interpret, parse, simplify, verify,
};
use phigrad::trace::{Adjoints, Inputs, Tracer, sweep};
use precise::{Dual, Number};

/// The parameters of the coefficients.
const PARAMETERS: usize = 3;

/// So many numbers of which all depend on all, by coefficients that are made of three parameters.
#[derive(Clone, Copy)]
struct Dense {
    size: usize,
    /// Whether a parameter is added to each number.
    affine: bool,
    /// Whether the sum of all of them comes out, or the first one.
    all: bool,
    steps: usize,
}

impl Dense {
    /// Coefficients without their parameters: those of a row are 1 together.
    fn scale(&self, i: usize, j: usize) -> f64 {
        let weight = |j: usize| 1.0 + 0.3 * ((7 * i + 3 * j) as f64).sin();
        weight(j) / (0..self.size).map(weight).sum::<f64>()
    }

    fn eval<T: Number>(&self, x: &[T]) -> T {
        let mut z = x[PARAMETERS..].to_vec();
        for _ in 0..self.steps {
            let next = |i: usize| {
                let mut sum: Option<T> = None;
                for (j, &z) in z.iter().enumerate() {
                    let term = x[(i + j) % PARAMETERS] * T::from(self.scale(i, j)) * z;
                    sum = Some(sum.map_or(term, |sum| sum + term));
                }
                match self.affine {
                    true => sum.unwrap() + x[(i + 1) % PARAMETERS],
                    false => sum.unwrap(),
                }
            };
            z = (0..self.size).map(next).collect();
        }
        let first = z[0];
        match self.all {
            true => z[1..].iter().fold(first, |sum, &z| sum + z),
            false => first,
        }
    }

    fn graph(&self) -> Graph {
        let inputs = PARAMETERS + self.size;
        let mut text = format!("graph active {inputs} inactive 0\n");
        let mut next = inputs;
        let mut new = || {
            next += 1;
            next - 1
        };
        let mut scales = vec![Vec::new(); self.size];
        for (i, row) in scales.iter_mut().enumerate() {
            for j in 0..self.size {
                let scale = new();
                text += &format!("v{scale} = const {:?}\n", self.scale(i, j));
                row.push(scale);
            }
        }
        let (last, number) = (new(), new());
        text += &format!("v{last} = const {}.0\nv{number} = iteration r0\n", self.steps - 1);
        let states: Vec<usize> = (0..self.size).map(|_| new()).collect();
        let mut body = String::new();
        let mut nexts = Vec::new();
        for (i, row) in scales.iter().enumerate() {
            let mut sum: Option<usize> = None;
            for (j, scale) in row.iter().enumerate() {
                let (factor, mut term) = (new(), new());
                body += &format!("  v{factor} = mul v{} v{scale}\n", (i + j) % PARAMETERS);
                body += &format!("  v{term} = mul v{factor} v{}\n", states[j]);
                if let Some(sum) = sum {
                    let both = new();
                    body += &format!("  v{both} = add v{sum} v{term}\n");
                    term = both;
                }
                sum = Some(term);
            }
            let mut sum = sum.unwrap();
            if self.affine {
                let both = new();
                body += &format!("  v{both} = add v{sum} v{}\n", (i + 1) % PARAMETERS);
                sum = both;
            }
            nexts.push(sum);
        }
        let list =
            |nodes: &[usize]| nodes.iter().map(|node| format!(" v{node}")).collect::<String>();
        let again = new();
        body += &format!("  v{again} = lt v{number} v{last}\n");
        let out = if self.all { &nexts[..] } else { &nexts[..1] };
        body += &format!("  return v{again}{}{}\n", list(&nexts), list(out));
        let phis: Vec<usize> = out.iter().map(|_| new()).collect();
        let entries = states.iter().enumerate();
        let entries = entries.map(|(i, state)| format!(" v{state}=v{}", PARAMETERS + i));
        let entries: String = entries.collect();
        text += &format!("b0:\n {} = region r0 b1 bound {} entries", list(&phis), self.steps);
        text += &format!("{entries}\n");
        let mut sum = phis[0];
        for phi in &phis[1..] {
            let both = new();
            text += &format!("  v{both} = add v{sum} v{phi}\n");
            sum = both;
        }
        text += &format!("  return v{sum}\nb1:\n{body}");
        parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn closed(&self) -> Closed {
        let closed = close(&self.graph(), CloseLimits::default());
        assert!(!closed.applied.is_empty(), "{:?}", closed.refused);
        closed
    }

    /// Parameters and starts. The largest eigenvalue is near `size`.
    fn points(&self, random: &mut Random, size: f64, count: usize) -> Vec<Vec<f64>> {
        let point = |_| {
            let far = 1.0 / self.steps as f64;
            let parameters = (0..PARAMETERS).map(|_| size * (1.0 + random.uniform(-far, far)));
            let parameters: Vec<f64> = parameters.collect();
            let starts = (0..self.size).map(|_| random.uniform(-1.0, 1.0));
            parameters.into_iter().chain(starts.collect::<Vec<f64>>()).collect()
        };
        (0..count).map(point).collect()
    }
}

/// The graph of gradient and value.
fn gradient(graph: &Graph) -> Graph {
    let gradient =
        reverse(&simplify(graph, Folding::Real), Wanted::GradientAndValue, Folding::Real);
    let gradient = eliminate_dead_code(&gradient);
    verify(&gradient).unwrap();
    gradient
}

fn taped(program: &Dense, x: &[f64]) -> Vec<f64> {
    let mut tracer = Tracer::default();
    let inputs = Inputs { active: x, inactive: &[] };
    let run = |x: &[Var], _: &[Var]| program.eval(x);
    let trace = tracer.run(run, inputs, 1 << 24, Location::caller()).unwrap();
    let value = trace.value();
    let gradient = sweep(&trace, &mut Adjoints::default()).to_vec();
    [gradient, vec![value]].concat()
}

fn precise(program: &Dense, x: &[f64]) -> Vec<f64> {
    let inputs: Vec<Dual> = x.iter().enumerate().map(|(i, &x)| Dual::input(x, i)).collect();
    let y = program.eval(&inputs);
    (0..x.len()).map(|i| y.slope(i)).chain([y.value()]).collect()
}

#[track_caller]
fn assert_precise(program: &Dense, graph: &Graph, points: &[Vec<f64>]) {
    for point in points {
        let exact = precise(program, point);
        let got = match interpret(graph, point) {
            Outcome::Values(got) => got,
            other => panic!("{other:?} at {point:?} for {exact:?}"),
        };
        // A tape of more steps takes too much room: nothing but the last digits is allowed.
        let tape = if program.steps > 100_000 { exact.clone() } else { taped(program, point) };
        let largest = exact.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
        for (index, ((got, tape), exact)) in got.iter().zip(&tape).zip(&exact).enumerate() {
            let (error, of_tape) = ((got - exact).abs(), (tape - exact).abs());
            // The reference has no more digits.
            let allowed = 4.0 * of_tape + 4.0 * ulp(*exact) + 1e-26 * largest;
            assert!(
                error <= allowed,
                "{index} at {point:?}: {exact:e}, off by {error:e}, tape {of_tape:e}"
            );
        }
    }
}

/// How many steps there are in straight code.
fn steps(graph: &Graph) -> usize {
    let is_step = |node: &Node| !graph.nodes[*node].args().is_empty();
    graph.nodes.keys().filter(is_step).count()
}

#[test]
fn dense_systems_of_three() {
    let mut random = Random::new(61);
    for (affine, all) in [(false, false), (true, false), (true, true)] {
        for length in [10_000, 1_000_000] {
            let program = Dense { size: 3, affine, all, steps: length };
            let open = steps(&program.graph());
            let closed = program.closed();
            assert!(closed.graph.regions.is_empty());
            let closed = gradient(&closed.graph);
            // The loop without its sweep is a hundred times more work at least.
            let is_long = length == 1_000_000;
            assert!(!is_long || 100 * steps(&closed) < length * open, "{}", steps(&closed));
            for size in [-300.0, -3.0, 0.0].map(|far| 1.0 + far / length as f64) {
                let points = program.points(&mut random, size, if is_long { 1 } else { 5 });
                assert_precise(&program, &closed, &points);
            }
        }
    }
}

#[test]
fn dense_systems_of_four() {
    let mut random = Random::new(62);
    for (affine, all) in [(false, false), (true, false), (false, true), (true, true)] {
        let program = Dense { size: 4, affine, all, steps: 1000 };
        let closed = program.closed();
        assert!(closed.graph.regions.is_empty());
        let closed = gradient(&closed.graph);
        for size in [0.5, 0.9, 0.999, 1.0, 1.01] {
            let points = program.points(&mut random, size, 10);
            assert_precise(&program, &closed, &points);
        }
    }
}

#[test]
fn long_code_is_a_loop_through_digits() {
    let mut random = Random::new(63);
    // Five numbers that come out of many steps.
    let program = Dense { size: 5, affine: true, all: true, steps: 20_011 };
    let closed = program.closed();
    let bounds: Vec<u32> =
        closed.graph.regions.values().map(|data| data.cycle.as_ref().unwrap().bound).collect();
    assert_eq!(bounds, [15]);
    let closed = gradient(&closed.graph);
    assert_eq!(closed.regions.len(), 1, "no sweep goes through it");
    for size in [0.99, 1.0] {
        assert_precise(&program, &closed, &program.points(&mut random, size, 3));
    }
}
