//! Recurrences whose coefficients are made of the same inputs, in random programs of one
//! to four numbers: values and gradients of closed forms are as good as those of the tape,
//! against a reference of twice the precision.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;
#[path = "support/recurrences.rs"]
mod support;

use phigrad::check::Random;
use precise::Number;
use support::{Compared, Program, number, rolled, solved};

/// How a coefficient is made of inputs.
#[derive(Clone, Copy, Debug)]
enum Made {
    Constant(f64),
    Input(usize),
    LessFromOne(usize),
    Product(usize, usize),
    ProductLess(usize, usize),
    LessProduct(usize, usize),
    Quotient(usize, usize),
    Scaled(usize, f64),
}

impl Made {
    fn random(random: &mut Random, inputs: usize) -> Made {
        let [a, b] = [random.below(inputs), random.below(inputs)];
        match random.below(8) {
            0 => Made::Constant([0.5, -0.25, 0.1, 1.0][random.below(4)]),
            1 => Made::Input(a),
            2 => Made::LessFromOne(a),
            3 => Made::Product(a, b),
            4 => Made::ProductLess(a, b),
            5 => Made::LessProduct(a, b),
            6 => Made::Quotient(a, b),
            _ => Made::Scaled(a, random.uniform(-0.5, 0.5)),
        }
    }

    fn eval<T: Number>(self, x: &[T]) -> T {
        let one = T::from(1.0);
        match self {
            Made::Constant(number) => T::from(number),
            Made::Input(a) => x[a],
            Made::LessFromOne(a) => one - x[a],
            Made::Product(a, b) => x[a] * x[b],
            Made::ProductLess(a, b) => x[a] * (one - x[b]),
            Made::LessProduct(a, b) => one - x[a] * x[b],
            Made::Quotient(a, b) => x[a] / (T::from(2.0) + x[b] * x[b]),
            Made::Scaled(a, number) => x[a] * T::from(number),
        }
    }
}

/// Numbers, by which coefficient each is multiplied.
type Terms = Vec<(usize, Made)>;

/// Numbers of which each step makes sums of products.
#[derive(Clone, Debug)]
struct Steps {
    count: usize,
    /// For each number its terms, of numbers and coefficients, and what is added.
    rows: Vec<(Terms, Option<Made>)>,
    starts: Vec<Made>,
    /// Whether a number moves by what its row says, times this.
    rate: Option<usize>,
}

impl Steps {
    fn random(random: &mut Random, states: usize, inputs: usize, count: usize) -> Steps {
        let mut row = |state: usize| {
            let mut terms = vec![(state, Made::random(random, inputs))];
            if states > 1 {
                let other = (state + 1 + random.below(states - 1)) % states;
                terms.push((other, Made::random(random, inputs)));
            }
            let is_added = random.chance(0.8);
            (terms, is_added.then(|| Made::random(random, inputs)))
        };
        let rows = (0..states).map(&mut row).collect();
        let starts = (0..states).map(|_| Made::random(random, inputs)).collect();
        let rate = random.chance(0.3).then(|| random.below(inputs));
        Steps { count, rows, starts, rate }
    }

    fn next<T: Number>(&self, state: usize, z: &[T], x: &[T]) -> T {
        let (terms, added) = &self.rows[state];
        let products = terms.iter().map(|(other, made)| z[*other] * made.eval(x));
        let sum = products.chain(added.iter().map(|added| added.eval(x)));
        let sum = sum.reduce(|a, b| a + b).unwrap();
        match self.rate {
            Some(rate) => z[state] - x[rate] * sum,
            None => sum,
        }
    }
}

impl Program for Steps {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let mut z: Vec<T> = self.starts.iter().map(|start| start.eval(x)).collect();
        for _ in 0..self.count {
            z = (0..z.len()).map(|state| self.next(state, &z, x)).collect();
        }
        z[0]
    }
}

fn run(seed: u64, states: usize, counts: &[usize], cases: usize) {
    let mut random = Random::new(seed);
    let (mut compared, mut loops) = (Compared::default(), 0);
    for _ in 0..cases {
        let inputs = 1 + random.below(6);
        let count = random.pick(counts);
        let steps = Steps::random(&mut random, states, inputs, count);
        let mut points: Vec<Vec<f64>> =
            (0..4).map(|_| (0..inputs).map(|_| number(&mut random)).collect()).collect();
        points.push(vec![0.7; inputs]);
        let graph = solved(&rolled(&steps, &points[0]));
        if !graph.regions.is_empty() {
            loops += 1;
            continue;
        }
        compared.compare(&format!("{steps:?}"), &graph, &steps, &points);
    }
    let components = compared.components;
    println!("{components} components, {loops} of {cases} stay loops");
    assert!(components > 4 * cases / 10, "{components}");
    compared.assert_none();
}

#[test]
fn one_number() {
    run(61, 1, &[33, 50, 64, 100, 333, 1000, 4096], 2000);
}

#[test]
fn two_numbers() {
    run(62, 2, &[300, 400, 1000, 1777], 600);
}

#[test]
fn three_numbers() {
    run(63, 3, &[700, 1000], 150);
}

#[test]
fn four_numbers() {
    run(64, 4, &[1500], 60);
}
