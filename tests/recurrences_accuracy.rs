//! Closed forms of recurrences against a reference of twice the precision: their
//! values and gradients are as good as those of the tape.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;
#[path = "support/recurrences.rs"]
mod support;

use phigrad::check::Random;
use phigrad::ssa::{Graph, parse};
use precise::{Dual, Number};
use support::{Program, Terms, closed, compare, compare_graph};

struct Geometric(usize);
impl Program for Geometric {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let mut y = x[1];
        for _ in 0..self.0 {
            y = y * x[0];
        }
        y
    }
}

/// Σ r^j
struct Sum(usize);
impl Program for Sum {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let mut y = x[1];
        for _ in 0..self.0 {
            y = y * x[0] + x[2];
        }
        y
    }
}

/// Gradient descent on a parabola.
struct Descent(usize);
impl Program for Descent {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let mut w = x[0];
        for _ in 0..self.0 {
            let slope = w * x[2] - x[3];
            w = w - x[1] * slope;
        }
        w
    }

    /// The rate does not move the end.
    fn reference(&self, x: &[Dual]) -> Dual {
        let (end, factor) = (x[3] / x[2], Dual::from(1.0) - x[1] * x[2]);
        let left = (0..self.0).fold((x[0] * x[2] - x[3]) / x[2], |left, _| left * factor);
        end + left
    }
}

/// Gradient descent with momentum: rate, momentum, curvature, start.
struct Momentum(usize);
impl Program for Momentum {
    fn least(&self) -> f64 {
        1e-30
    }

    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut w, mut v) = (x[3], T::from(0.0));
        for _ in 0..self.0 {
            v = v * x[1] - x[0] * (x[2] * w);
            w = w + v;
        }
        w
    }
}

/// A spring: stiffness, damping, step, start, speed.
struct Spring(usize);
impl Program for Spring {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut p, mut v) = (x[3], x[4]);
        for _ in 0..self.0 {
            v = v - x[2] * (x[0] * p + x[1] * v);
            p = p + x[2] * v;
        }
        p
    }
}

#[track_caller]
fn assert_good(name: &str, program: impl Program, points: &[Vec<f64>], terms: Terms) {
    let worse = compare(&program, points, terms);
    assert!(worse.components > 0);
    assert!(worse.found.is_empty(), "{name}: {}", worse.found.join("\n"));
}

const STEPS: [usize; 4] = [50, 100, 1000, 20_000];

/// Ratios from all over, with each other and some nearby.
fn ratios(random: &mut Random) -> Vec<f64> {
    let mut ratios = vec![0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 1e-300, -1e-9, 0.99, 0.9999, -0.999];
    for distance in [1e-15, 1e-12, 1e-9, 1e-6, 1e-4] {
        ratios.extend([1.0 - distance, 1.0 + distance, -1.0 + distance]);
    }
    let near: Vec<f64> = ratios.iter().map(|r| r * random.uniform(0.9999, 1.0)).collect();
    ratios.extend(near);
    ratios
}

/// Ratios of which powers are finite.
fn tame(ratio: f64, steps: usize) -> bool {
    (steps as f64) * ratio.abs().ln() < 600.0
}

#[test]
fn geometric_loops() {
    let mut random = Random::new(1);
    for steps in STEPS {
        let ratios = ratios(&mut random).into_iter().filter(|&r| tame(r, steps));
        let points: Vec<_> = ratios.map(|r| vec![r, random.uniform(0.5, 2.0)]).collect();
        assert_good("geometric", Geometric(steps), &points, |_, _| 0.0);
    }
}

#[test]
fn affine_loops() {
    let mut random = Random::new(2);
    for steps in STEPS {
        let mut points = Vec::new();
        for r in ratios(&mut random).into_iter().filter(|&r| tame(r, steps)) {
            points.push(vec![r, 0.0, 1.0]);
            points.push(vec![r, random.uniform(0.5, 2.0), random.uniform(0.0, 2.0)]);
            points.push(vec![r, random.uniform(0.5, 2.0), -random.uniform(0.0, 2.0)]);
        }
        assert_good("affine", Sum(steps), &points, |_, _| 0.0);
    }
}

#[test]
fn gradient_descent_far_from_its_end_and_near() {
    let mut random = Random::new(3);
    for steps in STEPS {
        let mut points = Vec::new();
        for rate in [1.0, 0.3, 1e-2, 1e-4, 1e-6] {
            for _ in 0..6 {
                let (start, curvature) = (random.uniform(0.5, 2.0), random.uniform(0.1, 1.9));
                let rate = rate * random.uniform(0.5, 1.0);
                points.push(vec![start, rate, curvature, random.uniform(-1.0, 1.0)]);
            }
        }
        // At its end, exactly and nearly, where the derivative by the rate vanishes.
        for rate in [1.7, 0.3, 1e-4, 1e-6] {
            points.push(vec![1.0, rate, 1.0, 1.0]);
            points.push(vec![0.33, rate, 1.0, 0.33]);
            points.push(vec![0.3 / 0.77, rate, 0.77, 0.3]);
        }
        assert_good("descent", Descent(steps), &points, |_, _| 0.0);
    }
}

/// The graph of a loop of so many steps: `body` computes `v8` from the entry φ `v5`,
/// of inputs of the numbers 0 to 3, the first of which is the start.
fn looped(steps: usize, body: &str) -> Graph {
    let last = steps - 1;
    let text = format!(
        "graph active 4 inactive 0\nv4 = const {last}.0\nv6 = iteration r0\nb0:\n  \
         v10 = region r0 b1 bound {steps} entries v5=v0\n  return v10\nb1:\n{body}  \
         v9 = lt v6 v4\n  return v9 v8 v8\n"
    );
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Start, factor, addend, and an input of no effect.
struct Everywhere(usize);
impl Program for Everywhere {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let mut y = x[0];
        for _ in 0..self.0 {
            y = y * x[1] + x[2];
        }
        y
    }
}

/// Start, divisor, addend, and an input of no effect.
struct Quotient(usize);
impl Program for Quotient {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        (0..self.0).fold(x[0], |y, _| (y + x[2]) / x[1])
    }
}

/// Two factors that do not move the end: start, rate, factor, end.
struct TwoRates(usize);
impl Program for TwoRates {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        (0..self.0).fold(x[0], |y, _| y - x[1] * (x[2] * (y - x[3])))
    }

    fn reference(&self, x: &[Dual]) -> Dual {
        let factor = Dual::from(1.0) - x[1] * x[2];
        x[3] + (0..self.0).fold(x[0] - x[3], |left, _| left * factor)
    }
}

#[test]
fn factors_that_do_not_move_the_end() {
    let mut random = Random::new(5);
    for steps in [50, 100, 1000] {
        let mut points = Vec::new();
        for rate in [1.7, 1.0, 0.5, 0.1, 1e-3, 1e-6] {
            let (factor, end) = (random.uniform(0.1, 1.1), random.uniform(-2.0, 2.0));
            points.extend([end, 0.7, 0.0].map(|start| vec![start, rate, factor, end]));
        }
        assert_good("two rates", TwoRates(steps), &points, |_, _| 0.0);
    }
}

/// A factor that is known, and large powers.
struct Doubling(usize);
impl Program for Doubling {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        (0..self.0).fold(x[0], |y, _| y * T::from(2.0) + x[1] * x[2])
    }
}

#[test]
fn fixed_points_that_nothing_returns_to() {
    for steps in [40, 100, 900] {
        let fixed = [[2.7, -2.7, 1.0], [-0.3, 0.1, 3.0], [0.3, 1.0, -0.3], [0.0, 0.0, 1.0]];
        let near = [[2.7, -2.7, 1.0 + 1e-9], [1.0, 0.5, 0.25], [-1.0, 1e-9, 1.0]];
        let points: Vec<Vec<f64>> =
            [&fixed[..], &near].concat().iter().map(|p| p.to_vec()).collect();
        assert_good("doubling", Doubling(steps), &points, |_, _| 0.0);
    }
}

/// Points with these ratios, of all sizes, at fixed points and near them.
fn everywhere(ratios: &[f64], steps: usize) -> Vec<Vec<f64>> {
    let mut points = Vec::new();
    for &r in ratios.iter().filter(|&&r| tame(r, steps)) {
        for start in [0.0, 1.0, 1.7e-5, -3.3e4] {
            points.extend([0.0, 1.0, -0.77, 1e-6, -2.2e3].map(|b| vec![start, r, b, 0.0]));
        }
        for b in [1.0, 0.3, -2.7].into_iter().filter(|_| r != 1.0) {
            let fixed = b / (1.0 - r);
            points.extend([1.0, 1.0 + 1e-9].map(|near| vec![fixed * near, r, b, 0.0]));
        }
    }
    points
}

#[test]
fn affine_loops_of_all_sizes_and_at_fixed_points() {
    let mut ratios = vec![0.0, 1e-300, -1e-300, 1e-8, -1e-8, 0.5, -0.5, 0.9, -0.9, 0.999, -0.999];
    ratios.extend([1.0 - 1e-5, 1.0 - 1e-9, 1.0, 1.0 + 1e-9, 1.0001, 1.01, 2.0, 0.9312345]);
    ratios.extend([-1.0 + 1e-5, -1.0 + 1e-9, -1.0, -1.0 - 1e-9, -1.0001, -0.9312345]);
    ratios.extend([
        3.0,
        -2.5,
        1e4,
        1.0 + 1e-3,
        1.0 - 1e-3,
        1.0 - 9e-4,
        0.97,
        1.0 - 1e-15,
        1.0 + 1e-14,
    ]);
    let some = [0.5, 0.9, -0.999_99, 1.0 - 1e-6, 1.0 - 1e-9, 1.0, 1.0 + 1e-9, -1.0];
    let (mut components, mut found) = (0, Vec::new());
    for steps in [33, 40, 64, 127, 1000, 20_000, 1_000_000] {
        let (ratios, every) = match steps {
            1_000_000 => (&some[..], 29),
            20_000 => (&ratios[..], 29),
            1000 => (&ratios[..], 3),
            _ => (&ratios[..], 1),
        };
        let points: Vec<Vec<f64>> = everywhere(ratios, steps).into_iter().step_by(every).collect();
        let rolled = looped(steps, "  v7 = mul v5 v1\n  v8 = add v7 v2\n");
        let worse = compare_graph(&closed(&rolled), &Everywhere(steps), &points, |_, _| 0.0);
        components += worse.components;
        found.extend(worse.found);
    }
    assert!(found.is_empty(), "{} of {components}: {}", found.len(), found.join("\n"));
    let points = everywhere(&[-0.999_973, -0.999_999, 0.9, 1.0], 1000);
    let inverse = |mut x: Vec<f64>| {
        x[1] = 1.0 / x[1];
        x
    };
    let points: Vec<Vec<f64>> = points.into_iter().map(inverse).collect();
    let rolled = looped(1000, "  v7 = add v5 v2\n  v8 = div v7 v1\n");
    let worse = compare_graph(&closed(&rolled), &Quotient(1000), &points, |_, _| 0.0);
    let found = worse.found;
    assert!(found.is_empty(), "{} of {}: {}", found.len(), worse.components, found.join("\n"));
}

#[test]
fn momentum_and_springs() {
    let mut random = Random::new(4);
    let (mut components, mut found) = (0, Vec::new());
    for steps in [300, 1000, 4000] {
        let (mut momentum, mut springs) = (Vec::new(), Vec::new());
        for size in [0.9, 0.1, 1e-3, 1e-6] {
            for _ in 0..6 {
                let rate = size * random.uniform(0.5, 1.0);
                let (kept, curvature) = (random.uniform(0.1, 1.0), random.uniform(0.1, 1.9));
                momentum.push(vec![rate, kept, curvature, random.uniform(-1.0, 1.0)]);
                // Two eigenvalues that are one.
                momentum.push(vec![(1.0 - kept.sqrt()).powi(2) / curvature, kept, curvature, 1.0]);
                let (stiffness, speed) = (random.uniform(0.5, 1.5), random.uniform(-1.0, 1.0));
                for damping in [0.0, 1e-3, 0.1, 0.9] {
                    springs.push(vec![
                        stiffness,
                        damping,
                        rate * 0.5,
                        random.uniform(0.1, 1.0),
                        speed,
                    ]);
                }
            }
        }
        for worse in [
            compare(&Momentum(steps), &momentum, |_, _| 0.0),
            compare(&Spring(steps), &springs, |_, _| 0.0),
        ] {
            components += worse.components;
            found.extend(worse.found);
        }
    }
    assert!(components > 0);
    assert!(found.is_empty(), "{} of {components}: {}", found.len(), found.join("\n"));
}

#[test]
fn inverses_in_coefficients() {
    /// What is multiplied by inverses, which are rounded alike in each step.
    struct Inverses(usize);
    impl Program for Inverses {
        fn eval<T: Number>(&self, x: &[T]) -> T {
            let one = T::from(1.0);
            let mut s = one + x[1];
            for _ in 0..self.0 {
                s = s * (one / (one + x[1]));
                s = s * x[0] + s * (x[1] * (one / x[0]));
            }
            s
        }
    }
    let mut random = Random::new(27);
    let mut point = || vec![random.uniform(0.5, 1.5), random.uniform(0.2, 0.7)];
    let points: Vec<Vec<f64>> = (0..60).map(|_| point()).collect();
    for steps in [100, 400] {
        let worse = compare(&Inverses(steps), &points, |_, _| 0.0);
        assert!(worse.found.is_empty(), "{:?}", worse.found);
    }
}
