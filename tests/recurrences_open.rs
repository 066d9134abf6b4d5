//! Affine loops in a loop that has no closed form itself: each has its own, with its
//! derivatives, if that is cheaper; values and gradients are as good as those of the tape.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;
#[path = "support/recurrences.rs"]
mod support;

use phigrad::check::Random;
use phigrad::phi::recurrence::solve_all;
use phigrad::phi::{Refused, Rule};
use phigrad::ssa::{Graph, verify};
use phigrad::{Tape, Var};
use precise::Number;
use support::{Compared, Program, derived, number, rolled};

/// Descent of a number, at a rate that changes from one epoch to the next.
struct Rates {
    epochs: usize,
    steps: usize,
}

impl Program for Rates {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut w, mut rate) = (x[2], x[0]);
        for _ in 0..self.epochs {
            for _ in 0..self.steps {
                w = w - rate * (w - T::from(1.0));
            }
            rate = rate * x[1];
        }
        w
    }
}

/// The same with a rate that falls after every 30 steps.
struct Schedule;

impl Program for Schedule {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut w, mut rate) = (x[2], x[0]);
        for i in 0..120 {
            w = w - rate * T::from(2.0) * (w - T::from(0.7));
            if i % 30 == 29 {
                rate = rate * x[1];
            }
        }
        w * w
    }
}

/// An account with interest in each month and a payment in each year, over periods between
/// which the rate changes.
struct Periods;

impl Program for Periods {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut y, mut rate) = (x[0], x[1]);
        for _ in 0..8 {
            for _ in 0..10 {
                for _ in 0..12 {
                    y = y * (T::from(1.0) + rate * T::from(1.0 / 12.0)) + x[2];
                }
                y = y - x[3];
            }
            rate = rate * x[4];
        }
        y
    }
}

/// What the number in an outer step does that is not affine.
#[derive(Clone, Copy, Debug)]
enum Opening {
    /// A coefficient is carried from one iteration to the next.
    Coefficient,
    /// What is added is.
    Product,
    Quotient,
}

/// Of a number what it is multiplied by, the other number that is added and what that is
/// multiplied by, and what is added: inputs.
type Row = (usize, Option<(usize, usize)>, Option<usize>);

/// Numbers of which an inner loop makes sums of products, and an outer one something else.
#[derive(Clone, Debug)]
struct Nest {
    outer: usize,
    inner: usize,
    opening: Opening,
    rows: Vec<Row>,
    /// Whether a number moves by what its row says, times an input.
    rate: Option<usize>,
}

impl Nest {
    fn random(random: &mut Random, states: usize, inputs: usize) -> Nest {
        let row = |random: &mut Random, state: usize| {
            let other = (states > 1 && random.chance(0.7))
                .then(|| ((state + 1 + random.below(states - 1)) % states, random.below(inputs)));
            let added = random.chance(0.7).then(|| random.below(inputs));
            (random.below(inputs), other, added)
        };
        Nest {
            outer: 2 + random.below(30),
            inner: random.pick(&[2, 3, 4, 5, 7, 16, 50, 133, 400]),
            opening: random.pick(&[Opening::Coefficient, Opening::Product, Opening::Quotient]),
            rows: (0..states).map(|state| row(random, state)).collect(),
            rate: random.chance(0.4).then(|| random.below(inputs)),
        }
    }
}

impl Program for Nest {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let mut z: Vec<T> = (0..self.rows.len()).map(|state| x[state % x.len()]).collect();
        let mut changed = x[0];
        for _ in 0..self.outer {
            for _ in 0..self.inner {
                let next = |(state, row): (usize, &Row)| {
                    let &(factor, other, added) = row;
                    let factor = if factor == 0 { changed } else { x[factor] };
                    let mut sum = z[state] * factor;
                    if let Some((other, factor)) = other {
                        sum = sum + z[other] * x[factor];
                    }
                    if let Some(added) = added {
                        sum = sum - x[added];
                    }
                    match self.rate {
                        Some(rate) => z[state] - x[rate] * sum,
                        None => sum,
                    }
                };
                z = self.rows.iter().enumerate().map(next).collect();
            }
            match self.opening {
                Opening::Coefficient => changed = changed * x[x.len() - 1],
                Opening::Product => z[0] = z[0] - T::from(0.25) * z[0] * z[0],
                Opening::Quotient => z[0] = z[0] / (T::from(1.0) + z[0] * z[0]),
            }
        }
        z[0]
    }
}

/// A graph of gradient and value, and what became of the loops.
struct Opened {
    graph: Graph,
    forms: usize,
    /// How many there are still, and why.
    loops: usize,
    refused: Vec<Refused>,
}

fn opened(program: &impl Program, point: &[f64]) -> Opened {
    let solved = solve_all(&rolled(program, point));
    verify(&solved.graph).unwrap_or_else(|error| panic!("{error}\n{}", solved.graph));
    let (forms, refused) = (solved.applied.len(), solved.refused);
    let loops = solved.graph.regions.values().filter(|data| data.cycle.is_some()).count();
    Opened { graph: derived(&solved.graph), forms, loops, refused }
}

#[test]
fn rates_that_change_in_epochs() {
    let (mut random, mut compared) = (Random::new(71), Compared::default());
    let mut points = vec![vec![0.110_046_442_853, 0.699_213_625_405_299, 0.698_375_662_737_382_9]];
    points.push(vec![0.110_046_442_852_940_41, 0.699_213_625_405_299, 0.698_375_662_737_382_9]);
    points.push(vec![0.130_816_948_358_075_6, 0.471_041_216_165_846_7, 0.051_393_271_963_830_59]);
    for _ in 0..400 {
        let rate = 10f64.powf(random.uniform(-4.0, -0.1));
        points.push(vec![rate, random.uniform(0.3, 1.0), random.uniform(-1.0, 2.0)]);
        points.push(vec![rate, 1.0, 1.0]);
    }
    for (epochs, steps) in [(20, 50), (5, 20), (12, 300)] {
        let program = Rates { epochs, steps };
        let opened = opened(&program, &points[0]);
        assert_eq!((opened.forms, opened.loops), (1, 1), "{:?}", opened.refused);
        compared.compare(&format!("{epochs} times {steps}"), &opened.graph, &program, &points);
    }
    let opened = opened(&Schedule, &points[0]);
    assert_eq!((opened.forms, opened.loops), (1, 1), "{:?}", opened.refused);
    compared.compare("schedule", &opened.graph, &Schedule, &points);
    compared.assert_none();
}

#[test]
fn nests_in_open_loops_have_one_form() {
    let (mut random, mut compared) = (Random::new(75), Compared::default());
    let mut point = |rate: f64| {
        let mut other = || random.uniform(-1.0, 2.0);
        vec![other(), rate, other(), other(), random.uniform(0.5, 1.2)]
    };
    let rates = [0.05, 0.0, 1e-3, 1e-9, -0.03, 0.2, -1.0, -12.0];
    let points: Vec<Vec<f64>> = rates.into_iter().flat_map(|r| [point(r), point(r)]).collect();
    let opened = opened(&Periods, &points[0]);
    assert_eq!((opened.forms, opened.loops), (2, 1), "{:?}", opened.refused);
    compared.compare("periods", &opened.graph, &Periods, &points);
    compared.assert_none();
    assert!(compared.components >= 6 * points.len() / 2);
}

fn run(seed: u64, states: usize, cases: usize) {
    let (mut random, mut compared) = (Random::new(seed), Compared::default());
    let (mut forms, mut loops) = (0, 0);
    for _ in 0..cases {
        let inputs = 1 + random.below(5);
        let nest = Nest::random(&mut random, states, inputs);
        let points: Vec<Vec<f64>> =
            (0..5).map(|_| (0..inputs).map(|_| number(&mut random)).collect()).collect();
        let opened = opened(&nest, &points[0]);
        assert!(opened.loops == 0 || opened.forms > 0 || !opened.refused.is_empty());
        forms += usize::from(opened.forms > 0);
        let costs = |refused: &Refused| refused.why.contains("would cost more than the loop");
        loops += usize::from(opened.loops > 1 && opened.refused.iter().any(costs));
        compared.compare(&format!("{nest:?}"), &opened.graph, &nest, &points);
    }
    let components = compared.components;
    println!("{components} components, {forms} with forms, {loops} of {cases} stay loops");
    compared.assert_none();
    assert!(forms > 0 && loops > 0 && compared.components > 4 * cases / 10);
}

#[test]
fn one_number() {
    run(72, 1, 1000);
}

#[test]
fn two_numbers() {
    run(73, 2, 300);
}

#[test]
fn three_numbers() {
    run(74, 3, 100);
}

#[test]
fn sums_are_found_over_what_a_loop_with_known_coefficients_comes_to() {
    let f = Tape::builder().background(false).record_with(|x: &[Var], data: &[Var]| {
        let mut total = Var::from(0.0);
        for _ in 0..50 {
            // It depends on the iteration before, so the loops around stay.
            let mut w = x[0] + total.sin();
            for _ in 0..40 {
                w = 0.5 * w + 1.0;
            }
            total += data.iter().map(|&d| (w - d) * (w - d)).sum::<Var>();
        }
        total
    });
    let data: Vec<f64> = (0..100).map(f64::from).collect();
    f.grad(&[1.0], &data).unwrap();
    f.compile().unwrap();
    let report = f.report();
    let rules: Vec<Rule> = report.closed.iter().map(|applied| applied.rule).collect();
    assert!(rules.contains(&Rule::C6) && rules.contains(&Rule::C7), "{report}");
}
