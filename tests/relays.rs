//! Programs that compute 1 - x or 2·x in each step beside x: gradients of loops and of
//! straight code are as good as the tape's, though such a number is computed once there.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;
#[path = "support/recurrences.rs"]
mod support;

use bound::ulp;
use phigrad::check::Random;
use phigrad::ssa::{Graph, Outcome, interpret};
use precise::Number;
use support::{Program, derived, precise, rolled, straight, taped};

/// Probabilities of two states.
struct Two(usize);

impl Program for Two {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let one = T::from(1.0);
        let mut p = [one, T::from(0.0)];
        for _ in 0..self.0 {
            p = [p[0] * (one - x[0]) + p[1] * x[1], p[0] * x[0] + p[1] * (one - x[1])];
        }
        p[0]
    }
}

/// Probabilities of three states in a circle.
struct Three(usize);

impl Program for Three {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let one = T::from(1.0);
        let mut p = [one, T::from(0.0), T::from(0.0)];
        for _ in 0..self.0 {
            p = [
                p[0] * (one - x[0]) + p[2] * x[2],
                p[0] * x[0] + p[1] * (one - x[1]),
                p[1] * x[1] + p[2] * (one - x[2]),
            ];
        }
        p[1] + T::from(2.0) * p[2]
    }
}

/// A mean that forgets, of what is not linear.
struct Forgetting(usize);

impl Program for Forgetting {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut mean, one) = (T::from(0.3), T::from(1.0));
        for i in 0..self.0 {
            let scaled = x[1] * T::from(0.3 * i as f64);
            mean = mean * (one - x[0]) + x[0] * (scaled / (one + scaled * scaled));
        }
        mean
    }
}

/// Steps to and fro, of which those back are twice as long.
struct Steps(usize);

impl Program for Steps {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let mut w = x[1];
        for _ in 0..self.0 {
            w = w - x[0];
            w = w - x[0];
            w = w + T::from(2.0) * x[0];
        }
        w * w
    }
}

/// 1 - x and x in straight code, where what they come to cancels, and 1 - x in a loop.
struct Apart;

impl Program for Apart {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut w, one, ten) = (x[1], T::from(1.0), T::from(10.0));
        let mut random = Random::new(7);
        for _ in 0..25 {
            let part = T::from(random.uniform(0.5, 1.5));
            w = match random.below(3) {
                0 => ten * w + (one - x[0]) * part + x[0] * part,
                1 => (one - x[0]) * part + ten * w + x[0] * part,
                _ => w * ten + x[0] * part + part * (one - x[0]),
            };
        }
        (0..200).fold(w, |w, _| (w + (one - x[0])) / (one + w * w * T::from(1e-30)))
    }
}

/// 2·x and 1 - x in a loop, or 2·(1 - x) and x, of which one is computed before.
struct Siblings {
    is_chain: bool,
}

impl Program for Siblings {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (one, two) = (T::from(1.0), T::from(2.0));
        let mut random = Random::new(8);
        let mut s = two * x[0] * (one - x[0]);
        for _ in 0..200 {
            let (a, rest) = (T::from(random.uniform(1e3, 2e3)), one - x[0]);
            s = match self.is_chain {
                false => s + two * x[0] * a + rest * (two * a),
                true => s + two * rest * a + x[0] * (two * a),
            };
            s = (s - two * a) / (one + s * s * T::from(1e-9));
        }
        s * x[1]
    }
}

/// The variance of numbers that all have `x[0]` in them, and of which nothing is left of that, and
/// their mean, by Welford's recurrence.
struct Welford(usize);

impl Program for Welford {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let mut random = Random::new(9);
        let (mut count, mut mean, mut sum) = (0.0, T::from(0.0), T::from(0.0));
        for _ in 0..self.0 {
            count += 1.0;
            let number = x[0] * T::from(1e100) + T::from(random.uniform(-3.0, 3.0));
            let delta = number - mean;
            mean = mean + delta / T::from(count);
            sum = sum + delta * (number - mean);
        }
        sum / T::from(count) + mean * x[1]
    }
}

/// The variance of numbers that are computed twice, for their mean and for what they are apart from
/// it: what one sum of all takes from the other is little to begin with.
struct TwoPasses(usize);

impl Program for TwoPasses {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let number = |i: usize| x[0] + x[1] * T::from(1.3 * ((i * 7) % 5) as f64 - 2.0);
        let zero = T::from(0.0);
        let mean = (0..self.0).fold(zero, |sum, i| sum + number(i)) / T::from(self.0 as f64);
        (0..self.0).fold(zero, |sum, i| {
            let difference = number(i) - mean;
            sum + difference * difference
        })
    }
}

/// Over many points the errors of each component add up to no more than twice the tape's.
fn check(name: &str, program: &impl Program, inputs: usize) {
    let mut random = Random::new(81);
    let mut point = || (0..inputs).map(|_| random.uniform(0.0, 1.0)).collect();
    let points: Vec<Vec<f64>> = (0..40).map(|_| point()).collect();
    let graphs: [(&str, Graph); 2] = [
        ("loops", derived(&rolled(program, &points[0]))),
        ("straight", derived(&straight(program, &points[0]))),
    ];
    for (kind, graph) in &graphs {
        let mut errors = vec![[0.0; 3]; inputs + 1];
        for point in &points {
            let Outcome::Values(got) = interpret(graph, point) else { panic!("it stops") };
            let (tape, exact) = (taped(program, point), precise(program, point));
            for (error, ((got, tape), exact)) in
                errors.iter_mut().zip(got.iter().zip(tape).zip(exact))
            {
                let all = [(got - exact).abs(), (tape - exact).abs(), ulp(exact)];
                error.iter_mut().zip(all).for_each(|(sum, error)| *sum += error);
            }
        }
        for (index, [error, of_tape, ulps]) in errors.into_iter().enumerate() {
            println!("{name}, {kind}, {index}: {error:e}, tape {of_tape:e}, ulps {ulps:e}");
            assert!(error <= 2.0 * of_tape + ulps, "{name}, {kind}, {index}");
        }
    }
}

#[test]
fn sums_of_a_number_in_each_step() {
    check("Welford", &Welford(50), 2);
    check("two passes", &TwoPasses(20), 2);
}

#[test]
fn probabilities() {
    check("two states", &Two(40), 2);
    check("three states", &Three(40), 3);
    check("three states", &Three(300), 3);
}

#[test]
fn means_and_steps() {
    check("forgetting", &Forgetting(60), 2);
    check("steps", &Steps(50), 2);
}

#[test]
fn numbers_that_come_from_one() {
    check("in straight code and a loop", &Apart, 2);
    check("siblings", &Siblings { is_chain: false }, 2);
    check("a chain", &Siblings { is_chain: true }, 2);
}

#[test]
fn chains_of_multiples_grow_in_proportion() {
    /// Numbers that are multiples of the one before, each of them used twice.
    struct Chain(usize);

    impl Program for Chain {
        fn eval<T: Number>(&self, x: &[T]) -> T {
            let (mut v, mut sum, one) = (x[0], T::from(0.0), T::from(1.0));
            let mut random = Random::new(5);
            for _ in 0..self.0 {
                v = v * T::from(random.uniform(0.9, 1.1));
                sum = match random.below(3) {
                    0 => sum + v * v,
                    1 => sum + one / (one + v * v),
                    _ => sum - v / (v * v + one),
                };
            }
            sum
        }
    }
    let size = |length| derived(&straight(&Chain(length), &[0.3])).nodes.len();
    let (short, long) = (size(100), size(400));
    assert!(long <= 5 * short, "{short} {long}");
}
