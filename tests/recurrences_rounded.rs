//! Times and weights in even steps that are rounded, such as `i as f64 / 12.0`: sums with
//! powers have closed forms all the same, as good as the tape's, or are left to a loop.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;
#[path = "support/recurrences.rs"]
mod support;

use phigrad::check::Random;
use phigrad::phi::recurrence::solve_all;
use phigrad::{Tape, Var};
use precise::Number;
use support::{Compared, Stepped, derived, rolled};

/// The time of a step, as programs compute it.
type Time = fn(f64) -> f64;

const TIMES: [(&str, Time); 5] = [
    ("months", |i| i / 12.0),
    ("ends of months", |i| (i + 1.0) / 12.0),
    ("middles", |i| (i + 0.5) / 7.0),
    ("hundredths", |i| i * 0.01),
    ("steps", |i| i * 0.3),
];

/// Payments at these times: rate, first one, growth.
#[derive(Clone, Copy)]
struct Payments(Time);
impl Stepped for Payments {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut sum = T::from(0.0);
        for i in 0..steps {
            let t = T::from(self.0(i as f64));
            sum = sum + (x[1] + x[2] * t) * (-x[0] * t).exponential();
        }
        sum
    }
}

/// Powers with these weights: ratio, start.
#[derive(Clone, Copy)]
struct Weights(Time);
impl Stepped for Weights {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut sum, mut power) = (T::from(0.0), x[1]);
        for i in 0..steps {
            sum = sum + power * T::from(self.0(i as f64));
            power = power * x[0];
        }
        sum
    }
}

/// The same with weights that go down to those times.
#[derive(Clone, Copy)]
struct Down(Time);
impl Stepped for Down {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut sum = x[1];
        for i in (0..steps).rev() {
            sum = sum * x[0] + x[1] * T::from(self.0(i as f64));
        }
        sum
    }
}

fn compare(compared: &mut Compared, name: &str, program: &impl Stepped, points: &[Vec<f64>]) {
    for steps in [500, 1000] {
        let program = program.of(steps);
        let solved = solve_all(&rolled(&program, &points[0]));
        let left: Vec<&str> = solved.refused.iter().map(|this| this.why.as_str()).collect();
        assert!(solved.graph.regions.is_empty(), "{name}, {steps} steps: {left:?}");
        let name = format!("{name}, {steps} steps");
        compared.compare(&name, &derived(&solved.graph), &program, points);
    }
}

#[test]
fn payments() {
    let (mut random, mut compared) = (Random::new(91), Compared::default());
    let mut points = Vec::new();
    for rate in [1.0, 0.5, 0.0, 3.0, 0.05, 1e-3, 1e-6, 1e-12, -1e-9, -1e-4, -3e-3] {
        for rate in [rate, rate * random.uniform(0.9, 1.0)] {
            points.push(vec![rate, random.uniform(0.5, 2.0), random.uniform(0.0, 2.0)]);
            points.push(vec![rate, random.uniform(0.5, 2.0), -random.uniform(0.0, 2.0)]);
        }
    }
    for (name, time) in TIMES {
        compare(&mut compared, name, &Payments(time), &points);
    }
    assert!(compared.components > 1000, "{}", compared.components);
    compared.assert_none();
}

#[test]
fn weights() {
    let (mut random, mut compared) = (Random::new(92), Compared::default());
    let mut points = Vec::new();
    for ratio in [0.5, 1.0, 0.0, -1.0, -0.5, 0.99, -0.99, 1.01, -1.01, 1.0 - 1e-9, -1.0 + 1e-9] {
        for ratio in [ratio, ratio * random.uniform(0.999, 1.0)] {
            points.push(vec![ratio, random.uniform(-2.0, 2.0)]);
        }
    }
    for (name, time) in TIMES {
        compare(&mut compared, name, &Weights(time), &points);
        compare(&mut compared, &format!("{name} down"), &Down(time), &points);
    }
    assert!(compared.components > 1000, "{}", compared.components);
    compared.assert_none();
}

#[test]
fn where_errors_of_rounded_exponents_grow_the_loop_serves() {
    let run = |x: &[Var]| Payments(|i| i / 12.0).eval(x, 1000);
    let f = Tape::builder().hot_threshold(5).background(false).record(run);
    let tape = Tape::builder().hot_threshold(u32::MAX).record(run);
    // Decay, then so much growth that the last exponent is 200.
    for (rates, reserve) in [([0.05, 0.06, 0.02], false), ([-2.4, -2.3, -2.2], true)] {
        for i in 0..20 {
            f.grad(&[rates[0] + 1e-3 * f64::from(i), 1.0, 0.5]).unwrap();
        }
        let before = f.report();
        for rate in rates {
            let x = [rate, 1.0, 0.5];
            for (got, expected) in f.grad(&x).unwrap().iter().zip(tape.grad(&x).unwrap()) {
                assert!((got - expected).abs() <= 1e-13 * expected.abs(), "{got} {expected}");
            }
        }
        let report = f.report();
        assert_eq!(report.kernel_calls - before.kernel_calls, 3, "{report}");
        let in_reserve = if reserve { 3 } else { 0 };
        assert_eq!(report.reserve_calls - before.reserve_calls, in_reserve, "{report}");
    }
}

#[test]
fn exponents_far_from_zero_stay_as_they_are() {
    // The errors of these times count as often as the rate is large.
    for time in [(|i| (i + 600.0) / 12.0) as Time, |i| (1000.0 - i) / 12.0] {
        let payments = Payments(time);
        let program = payments.of(1000);
        let solved = solve_all(&rolled(&program, &[0.5, 1.0, 0.5]));
        assert!(solved.applied.is_empty() && !solved.refused.is_empty());
    }
}

#[test]
fn rounded_times_are_shown_as_numbers() {
    let f = Tape::record(|x: &[Var]| Payments(|i| i / 8.0 * 0.1).eval(x, 1000));
    f.grad(&[0.1, 1.0, 0.5]).unwrap();
    let text = f.explain().unwrap().to_string();
    assert!(text.contains("e^(−0.0125·x₀·i)"), "{text}");
}

/// Rounded times as weights of numbers that turn round: ratio of the turn.
#[derive(Clone, Copy)]
struct Turning(Time);
impl Stepped for Turning {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut sum, mut u, mut v) = (T::from(0.0), x[0], x[1]);
        for i in 0..steps {
            sum = sum + u * T::from(self.0(i as f64));
            (u, v) = (-v, u - v * x[2]);
        }
        sum
    }
}

/// Payments that are damped from one step to the next: rate, damping.
#[derive(Clone, Copy)]
struct Damped(Time);
impl Stepped for Damped {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut sum = T::from(0.0);
        for i in 0..steps {
            sum = sum * x[1] + (-x[0] * T::from(self.0(i as f64))).exponential();
        }
        sum
    }
}

/// Exponents that are the difference of a rounded number and one that is none: both rates.
#[derive(Clone, Copy)]
struct Against(Time);
impl Stepped for Against {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut sum = T::from(0.0);
        for i in 0..steps {
            let exponent = x[1] * T::from(i as f64) - x[0] * T::from(self.0(i as f64));
            sum = sum + exponent.exponential();
        }
        sum
    }
}

fn assert_open(name: &str, program: &impl Stepped, x: &[f64]) {
    let solved = solve_all(&rolled(&program.of(1000), x));
    let whys: Vec<&str> = solved.refused.iter().map(|this| this.why.as_str()).collect();
    assert!(!solved.graph.regions.is_empty(), "{name}: {:?}", solved.applied);
    let why = "the rounding errors of its numbers in even steps may add up";
    assert!(whys.contains(&why), "{name}: {whys:?}");
}

#[test]
fn where_rounding_errors_may_add_up_the_loop_stays() {
    for (name, time) in TIMES {
        assert_open(name, &Turning(time), &[1.0, 0.0, 1.0]);
        assert_open(name, &Damped(time), &[8.0, 0.25]);
        assert_open(name, &Against(time), &[8.0, 8.0 / 12.0]);
    }
    // Numbers that are not rounded have no such errors.
    for (name, time) in [("quarters", (|i| i / 4.0) as Time), ("numbers", |i| i)] {
        for solved in [
            solve_all(&rolled(&Turning(time).of(1000), &[1.0, 0.0, 1.0])),
            solve_all(&rolled(&Damped(time).of(1000), &[8.0, 0.25])),
            solve_all(&rolled(&Against(time).of(1000), &[8.0, 8.0 / 12.0])),
        ] {
            assert!(solved.graph.regions.is_empty(), "{name}: {:?}", solved.refused);
        }
    }
}

#[test]
fn alternating_sums_of_rounded_numbers_are_as_good_as_the_tapes() {
    // Those of the last ones go one way for some hundred numbers, and then another way.
    let drifting: [(&str, Time); 2] = [
        ("nearly numbers", |i| i * (1.0 + 2058.0 * f64::EPSILON)),
        ("others", |i| i * (1.0 + 1543.0 * f64::EPSILON)),
    ];
    let (mut compared, mut open) = (Compared::default(), Vec::new());
    for (name, time) in TIMES.into_iter().chain(drifting) {
        for steps in [500, 1000, 3000, 10_000] {
            let (plain, damped) = (Weights(time), Down(time));
            let (plain, damped) = (plain.of(steps), damped.of(steps));
            let name = format!("{name}, {steps} steps");
            let solved = solve_all(&rolled(&plain, &[-1.0, 1.0]));
            if !solved.graph.regions.is_empty() {
                open.push(name);
                continue;
            }
            // Nothing but the sum itself is rounded by the tape.
            let points = [vec![-1.0, 1.0], vec![1.0, 1.0], vec![-1.0, 4.0], vec![-0.5, 2.0]];
            compared.compare(&name, &derived(&solved.graph), &plain, &points);
            let solved = solve_all(&rolled(&damped, &[-1.0, 1.0]));
            let points = [-0.9, -0.95, -0.99, 0.95].map(|ratio| vec![ratio, 1.0]);
            compared.compare(&format!("{name}, damped"), &derived(&solved.graph), &damped, &points);
        }
    }
    let stays = [
        "steps, 10000 steps",
        "nearly numbers, 3000 steps",
        "nearly numbers, 10000 steps",
        "others, 3000 steps",
        "others, 10000 steps",
    ];
    assert_eq!(open, stays);
    compared.assert_none();
}
