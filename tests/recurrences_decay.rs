//! Numbers that decay next to others, which do not: closed forms of both keep all digits, as
//! the loop does.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;
#[path = "support/recurrences.rs"]
mod support;

use phigrad::ssa::{Outcome, interpret};
use phigrad::{Tape, Var};
use precise::Number;
use support::{Compared, Stepped, closed, precise, rolled, taped};

/// What decays goes over into what is supplied: rates of decay and use, supply.
struct Chain;
impl Stepped for Chain {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut s, mut t) = (T::from(1.0), T::from(0.0));
        for _ in 0..steps {
            t = t + s * x[0] - t * x[1] + x[2];
            s = s - s * x[0];
        }
        t / s
    }
}

/// The same with one more on the way.
struct Cascade;
impl Stepped for Cascade {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut a, mut b, mut c) = (T::from(100.0), T::from(0.0), T::from(1.0));
        for _ in 0..steps {
            let (absorbed, used) = (a * x[0], b * x[1]);
            a = a - absorbed;
            b = b + absorbed - used;
            c = c + used - c * x[2] + x[0];
        }
        a * b / c
    }
}

/// What decays is multiplied, and not what it goes over into.
struct Product;
impl Stepped for Product {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut s, mut t) = (T::from(1.0), T::from(1.0));
        for _ in 0..steps {
            s = s * x[0];
            t = s * x[1] + t * x[2] + T::from(1.0);
        }
        s * t
    }
}

/// What decays depends on what rests at first, and comes to almost nothing: where that rests, a rate,
/// supply.
struct Rested;
impl Stepped for Rested {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut place, mut speed) = (T::from(1.0), x[0]);
        for _ in 0..steps {
            let pull = (speed + place) * x[1] - x[2];
            place = place + speed * x[1];
            speed = speed - pull;
        }
        place
    }
}

/// What decays is added to a number that goes to another place, and is far less than that at last.
struct Beside;
impl Stepped for Beside {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut s, mut t) = (x[0], T::from(0.0));
        for _ in 0..steps {
            t = x[2] * t + T::from(1.0) + s;
            s = s * x[1];
        }
        t
    }
}

/// The same where a factor says how much is added.
struct Scaled;
impl Stepped for Scaled {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut s, mut t) = (T::from(1.0), T::from(1.0));
        for i in 0..steps {
            t = t + s * T::from(i as f64);
            t = x[1] * x[1] * t + (T::from(1.0) - x[1]);
            t = t + x[0] * s;
            s = s * x[1];
        }
        s + t * x[2]
    }
}

/// A number that little comes to from what is added to another one: how little last.
struct Driven;
impl Stepped for Driven {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut s, mut t) = (T::from(1.0), T::from(1.0));
        for _ in 0..steps {
            s = s * x[0] + T::from(1.0);
            t = x[2] * s - x[1] * t;
        }
        t
    }
}

/// A number that stays is added in each step: its fixed point is kept.
struct Kept;
impl Stepped for Kept {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut s, mut t) = (x[0], x[0]);
        for _ in 0..steps {
            t = t - x[1] * (t - s);
            s = s - x[2] * (s - x[0]);
        }
        t
    }
}

/// A number that decays next to one that something is added to, of which nothing comes to it:
/// that is known, or found in the call.
struct Idle {
    is_known: bool,
}
impl Stepped for Idle {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut s, mut t) = (T::from(1.0), T::from(1.0));
        let part = if self.is_known { T::from(0.0) } else { x[2] };
        for _ in 0..steps {
            s = s * x[0] + T::from(1.0);
            t = (t + s * part) * x[1];
        }
        t
    }
}

fn compare(
    compared: &mut Compared,
    (name, steps): (&str, [usize; 2]),
    program: &impl Stepped,
    points: &[[f64; 3]],
) {
    let points: Vec<Vec<f64>> = points.iter().map(|point| point.to_vec()).collect();
    for steps in steps {
        let program = program.of(steps);
        let graph = closed(&rolled(&program, &points[0]));
        compared.compare(&format!("{name}, {steps} steps"), &graph, &program, &points);
    }
}

#[test]
fn what_decays_keeps_its_digits() {
    let mut compared = Compared::default();
    let rates = [0.5, 0.4, 0.3, 0.25, 0.1, 0.01, 0.9];
    let points: Vec<[f64; 3]> =
        rates.iter().flat_map(|&rate| [[rate, 0.1, 0.01], [rate, 0.05, 0.2]]).collect();
    compare(&mut compared, ("chain", [100, 240]), &Chain, &points);
    compare(&mut compared, ("cascade", [700, 2000]), &Cascade, &points);
    let points = [0.5, 0.3, 0.05, 0.01, 0.9, 0.999, -0.3].map(|rate| [rate, 1.0, 0.5]);
    compare(&mut compared, ("product", [100, 240]), &Product, &points);
    let points = [1e-5, 1e-12, 1e-20, 1e-40].map(|little| [0.99, 0.09, little]);
    compare(&mut compared, ("driven", [240, 1000]), &Driven, &points);
    let supplies = [1e-2, 1e-10, 1e-18, 1e-22, 1e-30, 1e-40];
    let points = supplies.map(|supply| [0.0, 0.43, supply]);
    compare(&mut compared, ("rested", [500, 1000]), &Rested, &points);
    let points = supplies.map(|supply| [1e-30, 0.3, supply]);
    compare(&mut compared, ("almost rested", [500, 1000]), &Rested, &points);
    let points = [2.0, 0.3, 1.5, 0.0].map(|rate| [1.0 / 3.0, rate, 0.1 + rate]);
    compare(&mut compared, ("kept", [100, 240]), &Kept, &points);
    assert!(compared.components > 200, "{}", compared.components);
    compared.assert_none();
}

/// Whether all derivatives are as good as those of the tape, however small they are next to the
/// value.
fn assert_exact(program: &impl Stepped, steps: usize, points: &[[f64; 3]]) {
    let program = program.of(steps);
    let graph = closed(&rolled(&program, &points[0]));
    for point in points {
        let Outcome::Values(got) = interpret(&graph, point) else { panic!("{point:?}") };
        let (tape, exact) = (taped(&program, point), precise(&program, point));
        for ((got, tape), exact) in got.iter().zip(&tape).zip(&exact) {
            let limit = 4.0 * (tape - exact).abs() + 1e-14 * exact.abs();
            assert!((got - exact).abs() <= limit, "{got:e} for {exact:e} at {point:?}");
        }
    }
}

#[test]
fn derivatives_by_what_decays_are_no_rounding_errors() {
    let points = [0.8, 0.82, 0.84, 0.85, 0.7, 0.6].map(|rate| [1.0, rate, 0.5]);
    assert_exact(&Beside, 150, &points);
    assert_exact(&Beside, 400, &points);
    let points = [0.7, 0.5, 0.7224435, 0.5621].map(|rate| [1.0, rate, 1.0]);
    assert_exact(&Scaled, 400, &points);
    assert_exact(&Scaled, 1000, &points);
    let points = [-0.1, 0.125, 0.25, -0.5].map(|rate| [0.5, rate, 0.0]);
    for is_known in [true, false] {
        assert_exact(&Idle { is_known }, 150, &points);
        assert_exact(&Idle { is_known }, 400, &points);
    }
}

#[test]
fn kernels_of_what_decays_are_as_good_as_the_tape() {
    /// With a number of steps that is known in the call.
    #[phigrad::traced]
    fn counted(x: &[Var], data: &[Var]) -> Var {
        let (mut s, mut t, mut i) = (Var::from(1.0), Var::from(0.0), 0.0);
        while data[0] > i {
            t = t + s * x[0] - t * x[1] + x[2];
            s -= s * x[0];
            i += 1.0;
        }
        s.ln() + t
    }
    let f = Tape::builder().hot_threshold(u32::MAX).record_with(counted);
    let tape = Tape::builder().hot_threshold(u32::MAX).record_with(counted);
    for steps in [3000.0, 2000.0, 4000.0] {
        f.grad(&[0.1, 0.1, 0.01], &[steps]).unwrap();
    }
    f.compile().unwrap();
    let before = f.report().kernel_calls;
    for rate in [0.15, 0.1, 0.05] {
        for steps in [3000.0, 2000.0] {
            let x = [rate, 0.1, 0.01];
            let expected = tape.grad(&x, &[steps]).unwrap();
            for (got, expected) in f.grad(&x, &[steps]).unwrap().iter().zip(expected) {
                assert!((got - expected).abs() <= 1e-12 * expected.abs(), "{got} {expected}");
            }
        }
    }
    assert_eq!(f.report().kernel_calls - before, 6, "{}", f.report());
    assert!(!f.report().closed.is_empty(), "{}", f.report());
}
