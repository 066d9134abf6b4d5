//! Closed forms of random affine loops, and of loops in them: as good as the tape.
//! `PHIGRAD_LONG_TESTS=1` looks at thirty times as many: under a minute in release builds.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;
#[path = "support/recurrences.rs"]
mod support;

use std::sync::Arc;

use phigrad::check::Random;
use phigrad::{Report, Tape, Var};
use precise::Number;
use support::{Compared, Program, number};

const INPUTS: usize = 3;

/// A number that stays in all iterations.
#[derive(Clone, Copy, Debug)]
enum Leaf {
    Known(f64),
    Input(usize),
    /// What is left of one.
    Rest(usize),
    Product(usize, usize),
    Multiple(f64, usize),
    Inverse(usize),
    /// The number of the iteration, scaled.
    Number(f64),
}

impl Leaf {
    fn of(random: &mut Random) -> Leaf {
        let input = random.below(INPUTS);
        let known = [0.0, 1.0, -1.0, 0.5, 2.0, 0.1, 0.9, -0.3, 1.0 / 3.0, 0.01];
        match random.below(13) {
            0..=3 => Leaf::Known(random.pick(&known)),
            4..=6 => Leaf::Input(input),
            7 | 8 => Leaf::Rest(input),
            9 => Leaf::Product(input, random.below(INPUTS)),
            10 => Leaf::Multiple(random.pick(&known), input),
            11 => Leaf::Inverse(input),
            _ => Leaf::Number(random.pick(&[1.0, 0.125, 1e-3, -1.0 / 3.0])),
        }
    }

    fn eval<T: Number>(self, x: &[T], i: usize) -> T {
        let one = T::from(1.0);
        match self {
            Leaf::Known(value) => T::from(value),
            Leaf::Input(input) => x[input],
            Leaf::Rest(input) => one - x[input],
            Leaf::Product(a, b) => x[a] * x[b],
            Leaf::Multiple(value, input) => T::from(value) * x[input],
            Leaf::Number(scale) => T::from(scale * i as f64),
            Leaf::Inverse(input) => one / (one + x[input] * x[input]),
        }
    }
}

/// What becomes of a number in an iteration, with another one where it says so.
#[derive(Clone, Copy, Debug)]
enum Step {
    Times(Leaf),
    Plus(Leaf),
    Affine(Leaf, Leaf),
    /// A part of the other one is added.
    From(usize, Leaf),
    /// It goes a part of the way to the other one.
    Towards(usize, Leaf),
    /// It goes a part of the way to a number that stays.
    To(Leaf, Leaf),
    /// It becomes a mixture of itself and the other one.
    Mixed(Leaf, usize, Leaf),
    Minus(usize),
    Is(usize),
    Over(Leaf),
}

impl Step {
    fn of(random: &mut Random, states: usize) -> Step {
        let (a, b, other) = (Leaf::of(random), Leaf::of(random), random.below(states));
        match random.below(14) {
            0 | 1 => Step::Times(a),
            2 => Step::Plus(a),
            3 | 4 => Step::Affine(a, b),
            5 | 6 => Step::From(other, a),
            7 | 8 => Step::Towards(other, a),
            9 => Step::To(a, b),
            10 | 11 => Step::Mixed(a, other, b),
            12 => random.pick(&[Step::Minus(other), Step::Is(other)]),
            _ => {
                let input = random.below(INPUTS);
                Step::Over(random.pick(&[Leaf::Inverse(input), Leaf::Rest(input)]))
            }
        }
    }

    fn eval<T: Number>(self, own: T, states: &[T], (x, i): (&[T], usize)) -> T {
        match self {
            Step::Times(factor) => own * factor.eval(x, i),
            Step::Plus(added) => own + added.eval(x, i),
            Step::Affine(factor, added) => factor.eval(x, i) * own + added.eval(x, i),
            Step::From(other, part) => own + part.eval(x, i) * states[other],
            Step::Towards(other, part) => own - part.eval(x, i) * (own - states[other]),
            Step::To(goal, part) => own + part.eval(x, i) * (goal.eval(x, i) - own),
            Step::Mixed(a, other, b) => a.eval(x, i) * own + b.eval(x, i) * states[other],
            Step::Minus(other) => own - states[other],
            Step::Is(other) => states[other],
            Step::Over(divisor) => own / divisor.eval(x, i),
        }
    }
}

/// What is done in an iteration.
type Body = Vec<(usize, Step)>;

/// Where numbers overflow or underflow the tape is no measure.
const RANGE: core::ops::Range<f64> = 1e-250..1e150;

/// A loop, perhaps with one in it, before the rest of its iteration.
#[derive(Debug)]
struct Affine {
    firsts: Vec<Leaf>,
    inner: Option<(usize, Body)>,
    body: Body,
    steps: usize,
    /// Two numbers that are multiplied in the end, or one.
    outputs: (usize, Option<usize>),
}

impl Affine {
    fn of(random: &mut Random) -> Affine {
        let size = random.pick(&[1, 2, 2, 3, 3, 4]);
        let body = |random: &mut Random, most: usize| -> Body {
            let steps = 1 + random.below(most);
            (0..steps).map(|_| (random.below(size), Step::of(random, size))).collect()
        };
        let is_nest = random.chance(0.25);
        let inner = is_nest.then(|| (random.pick(&[8, 15, 40]), body(random, 3)));
        let steps = match is_nest {
            true => random.pick(&[10, 30, 60]),
            false => random.pick(&[64, 150, 333, 1000, 2000]),
        };
        let other = random.below(size);
        let outputs = (random.below(size), random.chance(0.2).then_some(other));
        let firsts = (0..size).map(|_| Leaf::of(random)).collect();
        Affine { firsts, inner, body: body(random, size + 2), steps, outputs }
    }
}

fn run<T: Number>(
    body: &Body,
    states: &mut [T],
    (x, i): (&[T], usize),
    look: &mut impl FnMut(usize, T),
) {
    for &(number, step) in body {
        states[number] = step.eval(states[number], states, (x, i));
        look(number, states[number]);
    }
}

impl Affine {
    /// Whether the tape and the reference tell at a point what comes out: all numbers are in
    /// range, in the last iteration none is far larger than what is left of it, and in no
    /// iteration one is so large that the reference, too, loses what was added to it.
    fn is_measured(&self, x: &[f64]) -> bool {
        let none = vec![(0.0f64, 0.0f64); self.firsts.len()];
        let (mut is_measured, mut iteration, mut seen) = (true, 0, none.clone());
        // Each number's last value in the iteration, and its largest.
        let are_left = |seen: &[(f64, f64)], least: f64| {
            seen.iter().all(|&(last, largest)| last >= 1e-12 * largest || largest < least)
        };
        self.states(x, |i, number, state: f64| {
            if i != iteration {
                is_measured &= are_left(&seen, 1e20);
                (iteration, seen) = (i, none.clone());
            }
            let state = state.abs();
            is_measured &= state == 0.0 || RANGE.contains(&state);
            seen[number] = (state, state.max(seen[number].1));
        });
        is_measured && are_left(&seen, f64::MIN_POSITIVE)
    }

    /// What the numbers come to; `look` sees each in each iteration.
    fn states<T: Number>(&self, x: &[T], mut look: impl FnMut(usize, usize, T)) -> Vec<T> {
        let mut states: Vec<T> = self.firsts.iter().map(|first| first.eval(x, 1)).collect();
        for i in 0..self.steps {
            let mut look = |number, state| look(i, number, state);
            if let Some((times, inner)) = &self.inner {
                for k in 0..*times {
                    run(inner, &mut states, (x, k), &mut look);
                }
            }
            run(&self.body, &mut states, (x, i), &mut look);
        }
        states
    }
}

impl Program for Affine {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let states = self.states(x, |_, _, _| ());
        let (output, factor) = self.outputs;
        // All inputs are there.
        let value = states[output] + T::from(0.0) * (x[0] + x[1] + x[2]);
        factor.map_or(value, |factor| value * states[factor])
    }
}

/// Gradient and value of a program, of a kernel that was made after a call at the first point.
fn served<P: Program + Send + Sync + 'static>(
    program: &Arc<P>,
    points: &[Vec<f64>],
) -> (Vec<Vec<f64>>, Report) {
    served_by(program, points, true)
}

/// The same, with closed forms or without.
fn served_by<P: Program + Send + Sync + 'static>(
    program: &Arc<P>,
    points: &[Vec<f64>],
    phi_calculus: bool,
) -> (Vec<Vec<f64>>, Report) {
    let traced = program.clone();
    let builder = Tape::builder().background(false).phi_calculus(phi_calculus);
    let f = builder.record(move |x: &[Var]| traced.eval(x));
    f.value_and_grad(&points[0]).unwrap();
    f.compile().unwrap();
    let values = points.iter().map(|x| {
        let (value, gradient) = f.value_and_grad(x).unwrap();
        [gradient, vec![value]].concat()
    });
    (values.collect(), f.report())
}

#[test]
fn what_inputs_were_computed_from_has_all_digits() {
    use {Leaf as L, Step as S};
    let plain = |body: Body| Affine {
        firsts: vec![L::Input(1)],
        inner: None,
        body,
        steps: 333,
        outputs: (0, None),
    };
    // By x and 1 - x: nothing, and a tenth.
    let (rest, own) = (S::Plus(L::Rest(2)), S::Plus(L::Input(2)));
    let nothing = plain(vec![(0, S::Times(L::Known(0.1))), (0, rest), (0, own)]);
    let tenth = plain(vec![(0, rest), (0, S::Affine(L::Known(0.9), L::Input(2)))]);
    // What a loop in the loop comes to is multiplied by x + (1 - x), and divided by 1 - x.
    let nest = |body: Body| Affine {
        firsts: vec![L::Known(-1.0), L::Multiple(-1.0, 0)],
        inner: Some((15, vec![(1, S::Mixed(L::Input(2), 0, L::Rest(2)))])),
        ..plain(body)
    };
    let mixed = nest(vec![(0, S::Mixed(L::Input(1), 0, L::Rest(1)))]);
    let over = nest(vec![(0, S::Mixed(L::Input(1), 1, L::Rest(1))), (0, S::Over(L::Rest(1)))]);
    let points = [[1.0, -0.4929217838708623, 0.6975688082356898], [0.3, 0.1, 0.9], [0.7, 0.2, 0.4]];
    let points = points.map(|point| point.to_vec());
    let mut compared = Compared::default();
    for program in [nothing, tenth, mixed, over].map(Arc::new) {
        let (values, report) = served(&program, &points);
        assert_eq!((report.kernel_calls, report.reserve_calls), (3, 0), "{report}");
        assert!(!report.closed.is_empty(), "{report}");
        for (got, x) in values.iter().zip(&points) {
            compared.compare_at(&format!("{program:?}"), got, &*program, x);
        }
    }
    assert_eq!(compared.components, 4 * 12);
    compared.assert_none();
}

#[test]
fn loops_that_stay_are_as_good_as_the_tape() {
    use {Leaf as L, Step as S};
    // The tape adds up 2 in each iteration before it multiplies by a third.
    let third = L::Multiple(1.0 / 3.0, 0);
    let multiples = Affine {
        firsts: vec![L::Known(0.0), L::Known(1.0), third],
        inner: None,
        body: vec![
            (1, S::Affine(L::Known(0.9), L::Product(0, 0))),
            (0, S::Towards(0, L::Rest(1))),
            (1, S::Affine(L::Product(2, 0), L::Input(0))),
            (0, S::From(2, L::Known(2.0))),
        ],
        steps: 333,
        outputs: (0, None),
    };
    // One number becomes the other by a difference, exactly; what is left of it grows.
    let differences = Affine {
        firsts: vec![L::Number(-1.0 / 3.0), L::Known(1.0 / 3.0)],
        inner: Some((
            40,
            vec![
                (1, S::Towards(0, L::Number(-1.0 / 3.0))),
                (0, S::To(L::Known(0.1), L::Number(0.125))),
                (0, S::Towards(1, L::Inverse(0))),
            ],
        )),
        body: vec![
            (1, S::Towards(0, L::Rest(0))),
            (1, S::Towards(1, L::Product(2, 2))),
            (0, S::To(L::Input(0), L::Multiple(0.1, 0))),
        ],
        steps: 30,
        outputs: (1, Some(0)),
    };
    let mut compared = Compared::default();
    let programs = [
        // With closed forms it is their sum.
        (multiples, [1.0, 0.8, 1e-9, 0.0], false),
        (differences, [0.0; 4], true),
    ];
    for (program, firsts, phi_calculus) in programs {
        let others = [[-0.3, 0.7], [0.0, 3.0], [-0.08, 0.25], [1.0, 0.0]];
        let points = firsts.iter().zip(others).map(|(&first, [x, y])| vec![first, x, y]);
        let (program, points): (_, Vec<_>) = (Arc::new(program), points.collect());
        let (values, report) = served_by(&program, &points, phi_calculus);
        assert_eq!((report.kernel_calls, report.reserve_calls), (4, 0), "{report}");
        assert!(report.closed.is_empty(), "{report}");
        assert_eq!(report.open.is_empty(), !phi_calculus, "{report}");
        if !phi_calculus {
            let (values, report) = served(&program, &points);
            assert!(!report.closed.is_empty() && report.open.is_empty(), "{report}");
            for (got, x) in values.iter().zip(&points) {
                compared.compare_at(&format!("{program:?}, closed"), got, &*program, x);
            }
        }
        for (got, x) in values.iter().zip(&points) {
            compared.compare_at(&format!("{program:?}"), got, &*program, x);
        }
    }
    assert_eq!(compared.components, 3 * 16);
    compared.assert_none();
}

/// (1 + x)/(1 + x), often: 1, of which nothing is left where it is multiplied out for a small
/// 1 + x.
struct Ratios {
    ratios: i32,
    /// What is multiplied, and added.
    size: f64,
    /// Whether what is added are constants.
    constants: bool,
}

impl Program for Ratios {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (size, x) = (T::from(self.size), x[0]);
        let mut w = T::from(1.5) * size;
        for _ in 0..250 {
            for number in 0..self.ratios {
                // No two steps are alike: they are no loop.
                w = match (self.constants, number % 4) {
                    (false, _) => w + x * w + size * x.power(number),
                    (_, 0) => w + x * w + size,
                    (_, 1) => x * w + w - size,
                    (_, 2) => w + (x * w + size * T::from(2.0)),
                    _ => x * w - size + w,
                } / (x + T::from(1.0));
            }
        }
        w
    }
}

#[test]
fn what_cancels_is_not_multiplied_out() {
    let mut compared = Compared::default();
    let powers = [1, 2, 3, 4, 6].map(|ratios| Ratios { ratios, size: 1.0, constants: false });
    let constants = [1.0, 1e-40, 1e-90].map(|size| Ratios { ratios: 4, size, constants: true });
    for program in powers.into_iter().chain(constants).map(Arc::new) {
        let points = [0.3, -0.9, -0.99, -0.999, -0.9999, -0.99999, -0.999998951, -1.0 + 1e-12];
        let points = points.map(|x| vec![x]);
        let (values, report) = served(&program, &points);
        let name = format!("{} ratios of {}", program.ratios, program.size);
        // Two steps are a loop in the loop, which is not worth a form.
        assert!(program.ratios == 2 || !report.closed.is_empty(), "{name}: {report}");
        for (got, x) in values.iter().zip(&points) {
            compared.compare_at(&name, got, &*program, x);
        }
    }
    assert_eq!(compared.components, 8 * 8 * 2);
    compared.assert_none();
}

/// Interest that is paid some times before something is added.
struct Interest {
    times: usize,
}

impl Program for Interest {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let mut balance = T::from(100.0);
        for _ in 0..300 {
            for _ in 0..self.times {
                balance = balance + balance * x[0];
            }
            balance = balance + x[1];
        }
        balance
    }
}

#[test]
fn powers_of_sums_have_closed_forms() {
    let mut compared = Compared::default();
    for times in [4, 7, 12, 20] {
        let program = Arc::new(Interest { times });
        let rates = [1e-3, 0.0, 1e-16, -1e-12, 1e-9, 1e-6, 0.01, -0.01, -0.5, -1.0, -2.0];
        let points = rates.map(|rate| vec![rate, 1.0]);
        let (values, report) = served(&program, &points);
        for (got, x) in values.iter().zip(&points) {
            compared.compare_at(&format!("{times} times"), got, &*program, x);
        }
        assert!(report.kernel_calls == 11 && report.reserve_calls == 0, "{report}");
        assert!(!report.closed.is_empty() && report.open.is_empty(), "{report}");
    }
    assert_eq!(compared.components, 4 * 11 * 3);
    compared.assert_none();
}

#[test]
fn random_affine_loops_are_as_good_as_the_tape() {
    let is_long = std::env::var_os("PHIGRAD_LONG_TESTS").is_some_and(|value| value == "1");
    let mut compared = Compared::default();
    let cases = if is_long { 3000 } else { 100 };
    let (mut open, mut by_forms, mut others) = (0, 0, 0);
    for case in 0..cases {
        let mut random = Random::new(case);
        let program = Affine::of(&mut random);
        let scale = random.pick(&[1.0, 1.0, 1.0, 3.0, 100.0]);
        let mut input = || number(&mut random) * random.pick(&[1.0, scale]);
        let points: Vec<Vec<f64>> =
            (0..4).map(|_| (0..INPUTS).map(|_| input()).collect()).collect();
        let program = Arc::new(program);
        let points: Vec<_> = points.into_iter().filter(|x| program.is_measured(x)).collect();
        if points.is_empty() {
            continue;
        }
        let (values, report) = served(&program, &points);
        for (got, x) in values.iter().zip(&points) {
            compared.compare_at(&format!("case {case}, {program:?}"), got, &*program, x);
        }
        // The first call is one of the tape.
        by_forms += report.kernel_calls - report.reserve_calls;
        others += report.reserve_calls + report.tape_calls - 1;
        open += u64::from(report.closed.is_empty());
    }
    assert!(compared.components as u64 > 5 * cases, "{}", compared.components);
    // Of some nothing is left to close.
    assert!(2 * open < cases, "{open} of {cases} have no closed form");
    assert!(20 * others < by_forms, "{by_forms} by kernels with forms, {others} otherwise");
    compared.assert_few();
}
