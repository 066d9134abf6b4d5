//! Programs that stay where their loops would take all else far away: of closed forms nothing
//! is left there but rounding, so they are not used.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;
#[path = "support/recurrences.rs"]
mod support;

use bound::ulp;
use phigrad::ssa::{Outcome, interpret};
use phigrad::{Report, Tape, Var};
use precise::Number;
use support::{Stepped, closed, precise, rolled, taped};

const STEPS: usize = 2000;

/// A number that follows one that decays.
#[derive(Clone, Copy)]
struct Follower;
impl Stepped for Follower {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut s, mut t) = (T::from(1.0), T::from(1.0));
        for _ in 0..steps {
            s = s - x[0] * (s - t);
            t = t * x[1];
        }
        s
    }
}

/// Two numbers that go away from each other, and both of them in one direction.
#[derive(Clone, Copy)]
struct Saddle;
impl Stepped for Saddle {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut s, mut t) = (x[1], T::from(1.0));
        for _ in 0..steps {
            let way = x[0] * (s - t);
            s = s - way + T::from(0.5);
            t = t + way + T::from(0.5);
        }
        s
    }
}

/// A number that begins where it goes to, or leaves.
#[derive(Clone, Copy)]
struct Target;
impl Stepped for Target {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut s = x[1];
        for _ in 0..steps {
            s = s - x[0] * (s - T::from(1.0)) + x[0] * (x[1] - T::from(1.0));
        }
        s
    }
}

/// The numbers of the first with a rate that is known.
#[derive(Clone, Copy)]
struct Known;
impl Stepped for Known {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut s, mut t) = (x[1], T::from(1.0));
        for _ in 0..steps {
            let way = T::from(0.0625) * (s - t);
            s = s + way;
            t = t - way * T::from(0.5);
        }
        s + x[0]
    }
}

/// Two numbers that go away from each other unless they are the same, and a third that they
/// both follow and that follows them.
fn followed<T: Number>(x: &[T], steps: usize) -> [T; 3] {
    let (mut u, mut s, mut t) = (x[1], T::from(0.0), T::from(0.0));
    for _ in 0..steps {
        let (way, both) = (x[0] * (s - t), T::from(0.55) * u);
        u = T::from(0.7) * u + T::from(0.15) * (s + t);
        s = T::from(0.45) * s + way + both;
        t = T::from(0.45) * t - way + both;
    }
    [u, s, t]
}

/// What leaves them is not in the start: a large power of it is multiplied by zero.
#[derive(Clone, Copy)]
struct Together;
impl Stepped for Together {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        followed(x, steps)[1]
    }
}

/// It has no part in what is asked for, but in all that this is computed from.
#[derive(Clone, Copy)]
struct Apart;
impl Stepped for Apart {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        followed(x, steps)[0]
    }
}

/// A number that goes away from another one in an inner loop, and back to it in the outer one.
#[derive(Clone, Copy)]
struct Nest;
impl Stepped for Nest {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut s = x[1];
        for _ in 0..steps / 100 {
            for _ in 0..100 {
                s = s - x[0] * (s - x[1]);
            }
            s = s + (x[1] - s) * T::from(0.25);
        }
        s
    }
}

/// The same of two numbers.
#[derive(Clone, Copy)]
struct Saddles;
impl Stepped for Saddles {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut s, mut t) = (x[1], T::from(1.0));
        for _ in 0..steps / 100 {
            for _ in 0..100 {
                let way = x[0] * (s - t);
                s = s - way + T::from(0.5);
                t = t + way + T::from(0.5);
            }
            s = s - T::from(0.25);
            t = t - T::from(0.25);
        }
        s
    }
}

/// Two numbers that go away from each other in an inner loop unless they are the same, as they
/// are before it.
#[derive(Clone, Copy)]
struct Again;
impl Stepped for Again {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut s = x[1];
        for _ in 0..10 {
            let mut t = s;
            for _ in 0..steps / 10 {
                let way = x[0] * (s - t);
                s = s * T::from(0.99) - way;
                t = t * T::from(0.99) + way;
            }
            s = s + t;
        }
        s
    }
}

/// A number that stays where a rounded step and its inverse leave it.
#[derive(Clone, Copy)]
struct Cube;
impl Stepped for Cube {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut s = x[1];
        for _ in 0..steps {
            let cube = x[0] * x[0] * x[0];
            s = s * cube + (x[1] - cube * x[1]);
        }
        s
    }
}

/// Two numbers that go away from each other in the first half of all steps, and next to nothing
/// in the second one, by numbers that are known.
#[derive(Clone, Copy)]
struct Early;
impl Stepped for Early {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut s, mut t) = (x[1], T::from(1.0));
        for i in 0..steps {
            let rate = match i < steps / 2 {
                true => -0.06 - 0.001 * (i * 7919 % 13) as f64,
                false => 6.25e-8 * (i * 31 % 5) as f64,
            };
            let way = T::from(rate) * (s - t);
            s = s - way;
            t = t + way;
        }
        s * x[0]
    }
}

/// The same of one number, which then comes back.
#[derive(Clone, Copy)]
struct Back;
impl Stepped for Back {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut s = x[1];
        for i in 0..steps {
            let rate = if i < steps / 2 { -0.06 } else { 0.06 } - 0.001 * (i * 7919 % 13) as f64;
            s = s - T::from(rate) * (s - x[0]);
        }
        s
    }
}

/// Two numbers that go away from each other as far as there are steps, unless they are the same.
#[derive(Clone, Copy)]
struct Sheared;
impl Stepped for Sheared {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut s, mut t) = (x[1], T::from(1.0));
        for _ in 0..100 * steps {
            let way = x[0] * (s - t);
            s = s + way;
            t = t + way;
        }
        s
    }
}

/// A number that an inner loop takes away from another one, unless they are the same; after it
/// they are. With a rate that is known if there is one.
#[derive(Clone, Copy)]
struct Joined(Option<f64>);
impl Stepped for Joined {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut s, mut t) = (T::from(0.0), x[1]);
        let rate = self.0.map_or(x[0], T::from);
        for _ in 0..steps / 200 {
            for _ in 0..40 {
                s = s - rate * (s - t);
            }
            t = s;
        }
        s + x[0]
    }
}

/// What may be left of a zero where nothing is far away: of terms near one.
const NOTHING: f64 = 1e-30;

/// Whether `got` is as near to the truth as the promise says, with the tape's error at the
/// point itself: there it is right to the last digit.
fn assert_good(got: &[f64], program: &impl Stepped, x: &[f64], nothing: f64) {
    let program = program.of(STEPS);
    let (tape, exact) = (taped(&program, x), precise(&program, x));
    for ((got, tape), exact) in got.iter().zip(tape).zip(exact) {
        let limit = 4.0 * (tape - exact).abs() + 4.0 * ulp(exact) + nothing;
        assert!((got - exact).abs() <= limit, "{got:e} for {exact:e} at {x:?}, tape {tape:e}");
    }
}

/// Compares forms and kernels at points of rest, and forms at others, from which it goes away.
fn compare(
    program: impl Stepped + Copy + Send + Sync + 'static,
    rest: &[[f64; 2]],
    others: &[[f64; 2]],
) {
    let values = form(program, rest[0]);
    for got in rest.iter().filter_map(|point| Some((values(point)?, point))) {
        assert_good(&got.0, &program, got.1, NOTHING);
    }
    compare_forms(program, others, NOTHING);
    let report = compare_served(program, rest);
    let is_refused = rest.iter().any(|point| values(point).is_none());
    assert!(!report.closed.is_empty() && (!is_refused || report.reserve_calls > 0), "{report}");
}

/// What the form of a program comes to, which is found at a point, if that is finite.
fn form(program: impl Stepped, at: [f64; 2]) -> impl Fn(&[f64]) -> Option<Vec<f64>> {
    let graph = closed(&rolled(&program.of(STEPS), &at));
    move |x: &[f64]| match interpret(&graph, x) {
        Outcome::Values(values) => values.iter().all(|x| x.is_finite()).then_some(values),
        Outcome::Unseen(_) => None,
    }
}

/// Compares forms where they must serve.
fn compare_forms(program: impl Stepped + Copy, points: &[[f64; 2]], nothing: f64) {
    for point in points {
        let got = form(program, *point)(point).unwrap_or_else(|| panic!("no form at {point:?}"));
        assert_good(&got, &program, point, nothing);
    }
}

/// Compares what is served at points of rest.
fn compare_served(
    program: impl Stepped + Copy + Send + Sync + 'static,
    rest: &[[f64; 2]],
) -> Report {
    let builder = Tape::builder().background(false).hot_threshold(1);
    let f = builder.record(move |x: &[Var]| program.eval(x, STEPS));
    let served = |x: &[f64]| {
        let (value, gradient) = f.value_and_grad(x).unwrap();
        [gradient, vec![value]].concat()
    };
    for _ in 0..4 {
        served(&[-0.06, 0.9]);
    }
    f.compile().unwrap();
    for point in rest {
        // The first calls are the tape's, those after them of a kernel in reserve.
        for _ in 0..8 {
            assert_good(&served(point), &program, point, NOTHING);
        }
    }
    f.report()
}

#[test]
fn what_rests_where_it_is_repelled_has_the_digits_of_the_loop() {
    let (near, far) = ([-0.06, 1.001], [2.25, 0.6]);
    let rest = [[-0.06, 1.0], [-0.125, 1.0], [2.25, 1.0], [0.5, 1.0], [0.0, 1.0]];
    compare(Follower, &rest, &[near, far, [0.5, 0.999]]);
    let rest = [[-0.06, 1.0], [-0.125, 1.0], [0.25, 1.0], [1.125, 1.0]];
    compare(Saddle, &rest, &[near, [1.125, 0.6], [0.25, 0.5]]);
    compare(Target, &[[-0.06, 1.0], [-0.125, 1.0], [2.25, 1.0], [0.5, 1.0]], &[[0.5, 0.7]]);
    // Where all starts at zero, so do the numbers stay; their derivatives do not.
    let rest = [[0.29, 1.0], [0.295, 0.0], [0.31, 1.0], [0.35, 0.0], [0.4, -2.0], [0.4, 0.0]];
    let low = [[0.2, 1.0], [0.1, -2.0]];
    compare(Together, &rest, &[]);
    compare(Apart, &rest, &[]);
    // What is zero there is a sum of more terms.
    compare_forms(Together, &low, 1e-28);
    compare_forms(Apart, &low, 1e-28);
    compare(Nest, &[[-0.06, 0.7], [-0.125, 0.3], [2.25, 1.0]], &[[0.5, 0.7]]);
    compare(Saddles, &[[-0.06, 1.0], [-0.125, 1.0], [0.5, 1.0]], &[[0.5, 0.7]]);
    compare_served(Again, &[[-0.29, 1.0], [-0.4, 0.0], [1.35, -2.0], [-0.1, 1.0]]);
    compare(Cube, &[[1.06, 0.7], [1.06, 1.0], [0.5, 0.7], [1.0, 3.0]], &[[0.5, 0.3]]);
    compare(Early, &[[1.0, 1.0], [0.5, 1.0]], &[[1.0, 0.7]]);
    compare(Back, &[[1.0, 1.0], [0.7, 0.7]], &[[0.7, 0.8]]);
    compare(Sheared, &[[1.1e5, 1.0], [100_000.1, 1.0]], &[[0.3, 1.1]]);
    compare(Joined(None), &[[-0.5, 1.0], [-1.5, 0.7], [2.75, 1.0]], &[[0.3, 1.0], [1.5, 0.7]]);
    compare_served(Joined(Some(-0.5)), &[[-0.5, 1.0], [0.3, 0.7]]);
    compare(Known, &[[0.3, 1.0], [-0.06, 1.0]], &[[0.3, 1.001], [0.3, -5.0]]);
}

#[test]
fn large_powers_of_what_is_not_there_do_no_harm() {
    #[phigrad::traced]
    fn counted(x: &[Var], data: &[Var]) -> Var {
        let (mut u, mut s, mut t, mut i) = (x[1], Var::from(0.0), Var::from(0.0), 0.0);
        while data[0] > i {
            let (way, both) = (x[0] * (s - t), 0.55 * u);
            u = 0.7 * u + 0.15 * (s + t);
            s = 0.45 * s + way + both;
            t = 0.45 * t - way + both;
            i += 1.0;
        }
        s + 2.0 * u
    }
    let make = || Tape::builder().background(false).hot_threshold(1).record_with(counted);
    let (f, tape) = (make(), Tape::builder().hot_threshold(u32::MAX).record_with(counted));
    for steps in [2000.0, 1500.0, 1800.0, 1900.0] {
        f.value_and_grad(&[0.2, 0.9], &[steps]).unwrap();
    }
    f.compile().unwrap();
    assert!(!f.report().closed.is_empty(), "{}", f.report());
    for rate in [0.2, 0.28, 0.285, 0.29, 0.292, 0.295, 0.31, 0.35, 0.4] {
        for _ in 0..8 {
            for start in [1.0, 0.0] {
                let point = [rate, start];
                let (value, gradient) = f.value_and_grad(&point, &[2000.0]).unwrap();
                // The fixed point, to which all comes, and so does the tape for low rates.
                let limit = 33.0 / 17.0;
                let (expected, derivatives) = tape.value_and_grad(&point, &[2000.0]).unwrap();
                let near = |got: f64, tape: f64, to: f64| {
                    (got - to).abs() <= 4.0 * (tape - to).abs() + 1e-13
                };
                let is_good = near(value, expected, start * limit)
                    && near(gradient[0], derivatives[0], 0.0)
                    && near(gradient[1], derivatives[1], limit);
                assert!(is_good, "{point:?}: {value:e} {gradient:?}\n{}", f.report());
            }
        }
    }
    let report = f.report();
    assert!(report.kernel_calls > 20 && report.reserve_calls > 20, "{report}");
}

#[test]
fn what_is_smooth_or_turns_is_served_by_its_form() {
    /// A number that goes on as it does, in `steps` small steps.
    fn smooth(x: &[Var], steps: usize) -> Var {
        let (mut u, mut v) = (x[0], x[1]);
        for _ in 0..steps {
            (u, v) = (2.0 * u - v + 1e-9, u);
        }
        u * u
    }
    /// Whole turns that grow a little.
    fn turned(x: &[Var], (steps, growth): (usize, f64)) -> Var {
        let (sin, cos) = core::f64::consts::TAU.mul_add(1.0 / 360.0, 0.0).sin_cos();
        let (mut u, mut v) = (x[0], x[1]);
        for _ in 0..steps {
            (u, v) = (growth * (cos * u - sin * v), growth * (sin * u + cos * v));
        }
        u + v * v
    }
    fn assert_served<F: Fn(&[Var]) -> Var + Send + Sync + Copy + 'static>(program: F) {
        let f = Tape::builder().background(false).record(program);
        let tape = Tape::builder().hot_threshold(u32::MAX).record(program);
        f.grad(&[1.0, 0.99999]).unwrap();
        f.compile().unwrap();
        for x in [[1.0, 0.99999], [1.0, 0.999999], [0.3, 0.5]] {
            let (got, expected) = (f.grad(&x).unwrap(), tape.grad(&x).unwrap());
            let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * b.abs();
            assert!(got.iter().zip(&expected).all(is_near), "{got:?} {expected:?}");
        }
        let report = f.report();
        assert!(report.kernel_calls == 3 && report.reserve_calls == 0, "{report}");
        assert!(!report.closed.is_empty(), "{report}");
    }
    assert_served(|x: &[Var]| smooth(x, 30_000));
    assert_served(|x: &[Var]| smooth(x, 300_000));
    assert_served(|x: &[Var]| turned(x, (90_000, 1.0)));
    assert_served(|x: &[Var]| turned(x, (3600, 1.001)));
}

#[test]
fn so_does_what_rests_for_a_number_of_steps_that_is_known_in_the_call() {
    #[phigrad::traced]
    fn counted(x: &[Var], data: &[Var]) -> Var {
        let (mut s, mut t, mut i) = (Var::from(1.0), Var::from(1.0), 0.0);
        while data[0] > i {
            s -= x[0] * (s - t);
            t *= x[1];
            i += 1.0;
        }
        s
    }
    let make = || Tape::builder().background(false).hot_threshold(1).record_with(counted);
    let (f, tape) = (make(), Tape::builder().hot_threshold(u32::MAX).record_with(counted));
    for steps in [2000.0, 1500.0, 1800.0, 1900.0] {
        f.value_and_grad(&[-0.06, 0.9], &[steps]).unwrap();
    }
    f.compile().unwrap();
    assert!(!f.report().closed.is_empty(), "{}", f.report());
    for (x, steps) in [([-0.06, 1.0], 2000.0), ([2.25, 1.0], 1000.0), ([-0.125, 1.0], 1700.0)] {
        for _ in 0..8 {
            let ((value, gradient), (expected, derivatives)) = (
                f.value_and_grad(&x, &[steps]).unwrap(),
                tape.value_and_grad(&x, &[steps]).unwrap(),
            );
            assert_eq!((value, gradient[0]), (expected, derivatives[0]), "{x:?}");
            let error = (gradient[1] - derivatives[1]).abs();
            assert!(error <= 1e-12 * derivatives[1].abs(), "{gradient:?} {derivatives:?}");
        }
    }
}
