//! Closed forms of systems of recurrences over a wide grid of eigenvalues and starts:
//! values and derivatives are as good as those of the tape, against a reference of twice
//! the precision.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;
#[path = "support/recurrences.rs"]
mod support;

use bound::ulp;
use phigrad::check::Random;
use phigrad::phi::{CloseLimits, close};
use phigrad::ssa::{Graph, Outcome, interpret, parse};
use precise::Number;
use support::{Program, Stepped, closed, derived, precise, rolled, taped};

/// Two numbers with four coefficients and two addends: the first one, or the second.
struct Two(usize);
impl Stepped for Two {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut z = [x[6], x[7]];
        for _ in 0..steps {
            z = [x[0] * z[0] + x[1] * z[1] + x[4], x[2] * z[0] + x[3] * z[1] + x[5]];
        }
        z[self.0]
    }
}

/// The same without addends.
struct Linear(usize);
impl Stepped for Linear {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut z = [x[4], x[5]];
        for _ in 0..steps {
            z = [x[0] * z[0] + x[1] * z[1], x[2] * z[0] + x[3] * z[1]];
        }
        z[self.0]
    }
}

/// Gradient descent with momentum: rate, momentum, curvature, target, start.
struct Momentum;
impl Stepped for Momentum {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut w, mut v) = (x[4], T::from(0.0));
        for _ in 0..steps {
            v = v * x[1] - x[0] * (x[2] * w - x[3]);
            w = w + v;
        }
        w
    }
}

/// A spring: stiffness, damping, step, start, speed.
struct Spring;
impl Stepped for Spring {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut p, mut v) = (x[3], x[4]);
        for _ in 0..steps {
            v = v - x[2] * (x[0] * p + x[1] * v);
            p = p + x[2] * v;
        }
        p
    }
}

/// A number from the two before it: two coefficients, two starts.
struct Filter;
impl Stepped for Filter {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut old, mut y) = (x[2], x[3]);
        for _ in 0..steps {
            (old, y) = (y, x[0] * y + x[1] * old);
        }
        y
    }
}

/// A number from the three before it: three coefficients, an addend, three starts.
struct LongFilter;
impl Stepped for LongFilter {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut y = [x[4], x[5], x[6]];
        for _ in 0..steps {
            y = [x[0] * y[0] + x[1] * y[1] + x[2] * y[2] + x[3], y[0], y[1]];
        }
        y[0]
    }
}

/// Place, speed and acceleration: step, drag, starts.
struct Motion;
impl Stepped for Motion {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut p, mut v, mut a) = (x[2], x[3], x[4]);
        for _ in 0..steps {
            p = p + x[0] * v;
            v = v + x[0] * a;
            a = a - x[1] * a;
        }
        p
    }
}

/// What was found to be worse than four times the tape's error, and four ulps.
#[derive(Default)]
struct Worse {
    components: usize,
    found: Vec<String>,
}

impl Worse {
    fn compare(&mut self, name: &str, program: &impl Stepped, steps: usize, points: &[Vec<f64>]) {
        let graph = closed(&rolled(&program.of(steps), &points[0]));
        self.compare_graph(name, &graph, program, steps, points, &[]);
    }

    /// The same for a graph with these inputs more.
    fn compare_graph(
        &mut self,
        name: &str,
        graph: &Graph,
        program: &impl Stepped,
        steps: usize,
        points: &[Vec<f64>],
        inactive: &[f64],
    ) {
        for point in points {
            let exact = precise(&program.of(steps), point);
            // Such powers are the tape's.
            if !exact.iter().all(|x| x.abs() < 1e150) {
                continue;
            }
            let got = match interpret(graph, &[point, inactive].concat()) {
                Outcome::Values(got) => got,
                other => panic!("{other:?} for {exact:?} of {name} at {point:?}"),
            };
            let tape = taped(&program.of(steps), point);
            let largest = exact.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
            // Nor the tape nor the reference is of use where numbers underflow.
            if largest < 1e-250 {
                continue;
            }
            for (index, ((got, tape), exact)) in got.iter().zip(&tape).zip(&exact).enumerate() {
                self.components += 1;
                let (error, of_tape) = ((got - exact).abs(), (tape - exact).abs());
                // The reference has no more digits.
                let allowed = 4.0 * of_tape + 4.0 * ulp(*exact) + 1e-29 * largest;
                if error.is_nan() || error > allowed {
                    self.found.push(format!(
                        "{name}, {steps} steps, {index} at {point:?}: {exact:e}, off by \
                         {error:e}, tape {of_tape:e}, largest {largest:e}"
                    ));
                }
            }
        }
    }

    #[track_caller]
    fn assert_none(&self) {
        assert!(self.components > 0);
        let found = &self.found;
        let shown = found.iter().take(40).cloned().collect::<Vec<String>>().join("\n");
        assert!(found.is_empty(), "{} of {}: {shown}", found.len(), self.components);
    }
}

/// Pairs of eigenvalues as trace and determinant: separated, close, equal, complex,
/// negative, near one and beyond.
fn spectra(random: &mut Random) -> Vec<(f64, f64)> {
    let real = [
        (0.9, 0.5),
        (0.9, 0.9),
        (0.9, 0.900_001),
        (0.9, -0.9),
        (-0.7, -0.7),
        (0.99, 0.01),
        (1.0, 1.0),
        (1.0, 0.5),
        (1.0, -1.0),
        (1.0, 0.999_999),
        (1.001, 0.9),
        (1.001, 1.001),
        (0.5, 0.5),
        (0.5, 0.0),
        (0.0, 0.0),
        (-1.0, -1.0),
        (1.000_001, 0.999_999),
        (0.97, 0.3),
    ];
    let circle = [(1.0, 0.3), (1.0, 1e-6), (0.999, 0.01), (0.9, 2.0), (1.0005, 1.0), (0.5, 3.1)];
    let mut all: Vec<(f64, f64)> = real.iter().map(|(a, b)| (a + b, a * b)).collect();
    all.extend(circle.iter().map(|(r, angle): &(f64, f64)| (2.0 * r * angle.cos(), r * r)));
    for _ in 0..6 {
        let (a, b) = (random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0));
        all.extend([(a + b, a * b), (2.0 * a, a * a)]);
    }
    all
}

/// Matrices with these eigenvalues, full and triangular.
fn matrices(trace: f64, determinant: f64, random: &mut Random) -> Vec<[f64; 4]> {
    let mut all = vec![[trace, -determinant, 1.0, 0.0], [0.0, 1.0, -determinant, trace]];
    let first = random.uniform(0.1, 0.9);
    let (second, right) = (trace - first, random.uniform(0.5, 1.5));
    all.push([first, right, (first * second - determinant) / right, second]);
    let root = (trace * trace / 4.0 - determinant).max(0.0).sqrt();
    let (large, small) = (trace / 2.0 + root, trace / 2.0 - root);
    all.extend([[large, 0.0, right, small], [small, right, 0.0, large], [large, 0.0, 0.0, small]]);
    all
}

const STEPS: [usize; 3] = [400, 1000, 5000];

/// So many of the points are taken at `steps` steps, of those that do not take long.
fn every(steps: usize, least: usize) -> usize {
    least * if steps > 1000 { 8 } else { 1 }
}

#[test]
fn systems_of_two() {
    let (mut random, mut worse) = (Random::new(31), Worse::default());
    for steps in STEPS {
        let mut points = Vec::new();
        for (trace, determinant) in spectra(&mut random) {
            for matrix in matrices(trace, determinant, &mut random) {
                let start = [random.uniform(-1.0, 1.0), random.uniform(0.2, 2.0)];
                points.push([&matrix[..], &start].concat());
                points.push([&matrix[..], &[1.0, 0.0]].concat());
            }
        }
        points.sort_by_cached_key(|_| random.below(1 << 30));
        let every = every(steps, 1);
        let points: Vec<Vec<f64>> = points.into_iter().step_by(every).collect();
        worse.compare("first of two", &Linear(0), steps, &points);
        worse.compare("second of two", &Linear(1), steps, &points);
    }
    worse.assert_none();
}

#[test]
fn powers_that_end_in_the_middle_of_their_squares() {
    let mut worse = Worse::default();
    for steps in [383, 384, 511, 512, 767, 1000] {
        let mut points = Vec::new();
        for radius in [0.98, 0.9999, 1.0, 1.001, 1.02_f64] {
            // Powers grow like a number of steps as well; the square has almost no trace.
            let trace = core::f64::consts::SQRT_2 * radius;
            let defective = [radius, 1.0, 0.0, radius];
            let companion = [trace, -trace * trace / (2.0 + 1e-6), 1.0, 0.0];
            let oblique = [radius, -0.5 * radius, 2.0 * radius, -1e-9 * radius];
            for matrix in [defective, companion, oblique] {
                points.push([&matrix[..], &[0.7, -0.3]].concat());
                points.push([&matrix[..], &[0.0, 1.0]].concat());
            }
        }
        worse.compare("first of two", &Linear(0), steps, &points);
        worse.compare("second of two", &Linear(1), steps, &points);
    }
    worse.assert_none();
}

#[test]
fn affine_systems_of_two() {
    let (mut random, mut worse) = (Random::new(32), Worse::default());
    for steps in STEPS {
        let mut points = Vec::new();
        for (trace, determinant) in spectra(&mut random) {
            for m in matrices(trace, determinant, &mut random) {
                let start = [random.uniform(-1.0, 1.0), random.uniform(0.2, 2.0)];
                points.push([&m[..], &[0.3, random.uniform(-1.0, 1.0)], &start].concat());
                points.push([&m[..], &[0.0, 0.0], &start].concat());
                points.push([&m[..], &[1.0, -0.5], &[0.0, 0.0]].concat());
                // At a fixed point, exactly or nearly.
                let added = [
                    (1.0 - m[0]) * start[0] - m[1] * start[1],
                    (1.0 - m[3]) * start[1] - m[2] * start[0],
                ];
                points.push([&m[..], &added, &start].concat());
            }
        }
        points.sort_by_cached_key(|_| random.below(1 << 30));
        let every = every(steps, 2);
        let points: Vec<Vec<f64>> = points.into_iter().step_by(every).collect();
        worse.compare("first of two, affine", &Two(0), steps, &points);
        worse.compare("second of two, affine", &Two(1), steps, &points);
    }
    worse.assert_none();
}

#[test]
fn momentum() {
    let (mut random, mut worse) = (Random::new(33), Worse::default());
    for steps in STEPS {
        let mut points = Vec::new();
        for size in [0.9, 0.1, 1e-3, 1e-6] {
            for _ in 0..4 {
                let rate = size * random.uniform(0.5, 1.0);
                let (kept, curvature) = (random.uniform(0.0, 1.0), random.uniform(0.1, 1.9));
                for target in [0.0, 1.0, random.uniform(-1.0, 1.0)] {
                    let end = target / curvature;
                    for start in [0.0, end, end * (1.0 + 1e-9), random.uniform(-1.0, 1.0)] {
                        points.push(vec![rate, kept, curvature, target, start]);
                        points.push(vec![rate, 0.0, curvature, target, start]);
                        let equal = (1.0 - kept.sqrt()).powi(2) / curvature;
                        points.push(vec![equal, kept, curvature, target, start]);
                    }
                }
            }
        }
        let every = every(steps, 1) + 1;
        let points: Vec<Vec<f64>> = points.into_iter().step_by(every).collect();
        worse.compare("momentum", &Momentum, steps, &points);
    }
    worse.assert_none();
}

/// A loop of momentum that is left after as many iterations as an inactive input says.
fn counted_momentum(bound: u32) -> Graph {
    let text = format!(
        "graph active 5 inactive 1\nv6 = const 0.0\nv7 = const {}.0\nv10 = iteration r0\nb0:\n  \
         v19 = region r0 b1 bound {bound} entries v8=v4 v9=v6\n  return v19\nb1:\n  \
         v11 = lt v10 v5\n  branch v11 b2 b3\nb2:\n  v12 = mul v2 v8\n  v13 = sub v12 v3\n  \
         v14 = mul v0 v13\n  v15 = mul v9 v1\n  v16 = sub v15 v14\n  v17 = add v8 v16\n  \
         v18 = lt v10 v7\n  return v18 v17 v16 v17\nb3:\n  return v6 v8 v9 v8\n",
        bound - 1
    );
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn numbers_of_steps_that_are_known_in_the_call() {
    let (mut random, mut worse) = (Random::new(36), Worse::default());
    let closed = close(&counted_momentum(4000), CloseLimits::default());
    assert_eq!(closed.searches, 1, "{:?}", closed.refused);
    let gradient = derived(&closed.graph);
    for steps in [0, 1, 2, 3, 17, 100, 1000, 3999] {
        let mut points = Vec::new();
        for size in [0.9, 1e-2, 1e-5] {
            let rate = size * random.uniform(0.5, 1.0);
            let (kept, curvature) = (random.uniform(0.0, 1.0), random.uniform(0.1, 1.9));
            for target in [0.0, random.uniform(-1.0, 1.0)] {
                for start in [target / curvature, random.uniform(-1.0, 1.0)] {
                    points.push(vec![rate, kept, curvature, target, start]);
                    let equal = (1.0 - kept.sqrt()).powi(2) / curvature;
                    points.push(vec![equal, kept, curvature, target, start]);
                }
            }
        }
        worse.compare_graph("counted", &gradient, &Momentum, steps, &points, &[steps as f64]);
    }
    worse.assert_none();
}

#[test]
fn springs_and_filters() {
    let (mut random, mut worse) = (Random::new(34), Worse::default());
    for steps in STEPS {
        let (mut springs, mut filters) = (Vec::new(), Vec::new());
        for step in [0.9, 0.1, 1e-3, 1e-6] {
            for damping in [0.0, 1e-3, 0.1, 0.9, 1.0] {
                let (stiffness, speed) = (random.uniform(0.5, 1.5), random.uniform(-1.0, 1.0));
                springs.push(vec![stiffness, damping, step, random.uniform(0.1, 1.0), speed]);
                springs.push(vec![stiffness, damping, step, 0.0, speed]);
                springs.push(vec![0.0, damping, step, 1.0, speed]);
                springs.push(vec![damping * damping / 4.0, damping, step, 1.0, speed]);
                springs.push(vec![stiffness, damping, step, 0.0, 0.0]);
            }
        }
        for (trace, determinant) in spectra(&mut random) {
            let mut starts = vec![[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]];
            starts.push([random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0)]);
            starts.push([1.0, trace / 2.0]);
            for start in starts {
                filters.push(vec![trace, -determinant, start[0], start[1]]);
            }
        }
        let every = every(steps, 1) + 1;
        let some = |points: Vec<Vec<f64>>| -> Vec<Vec<f64>> {
            points.into_iter().step_by(every).collect()
        };
        worse.compare("spring", &Spring, steps, &some(springs));
        worse.compare("filter", &Filter, steps, &some(filters));
    }
    worse.assert_none();
}

#[test]
fn systems_of_three() {
    let (mut random, mut worse) = (Random::new(35), Worse::default());
    for steps in [1000, 3000] {
        let (mut filters, mut motions) = (Vec::new(), Vec::new());
        for (trace, determinant) in spectra(&mut random) {
            for third in [0.0, 0.9, 1.0, -0.8, trace / 2.0] {
                let coefficients =
                    [trace + third, -(determinant + trace * third), determinant * third];
                let added = [0.0, 0.5, random.uniform(-1.0, 1.0)];
                let start = [random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0), 0.7];
                for added in added {
                    filters.push([&coefficients[..], &[added], &start].concat());
                    filters.push([&coefficients[..], &[added], &[1.0, 0.0, 0.0]].concat());
                }
            }
        }
        for step in [1.0, 0.1, 1e-3] {
            for drag in [0.0, 1e-6, 1e-3, 0.5, 1.0, 1.5, 2.0] {
                motions.push(vec![step, drag, 0.3, 1.0, -0.7]);
                motions.push(vec![step, drag, 0.0, 0.0, 1.0]);
                motions.push(vec![step, drag, 1.0, 0.0, 0.0]);
            }
        }
        let filters: Vec<Vec<f64>> = filters.into_iter().step_by(every(steps, 5) + 1).collect();
        worse.compare("long filter", &LongFilter, steps, &filters);
        worse.compare("motion", &Motion, steps, &motions);
    }
    worse.assert_none();
}

/// Two numbers that begin equal, and so vanish by the smaller one of two eigenvalues.
struct Equal;

impl Program for Equal {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut a, mut b) = (x[0], x[0]);
        for _ in 0..200 {
            (a, b) = (a * x[1] + b * x[2], b * x[1] + a * x[2]);
        }
        a - b * T::from(0.25)
    }
}

#[test]
fn numbers_that_begin_equal_vanish_as_they_do() {
    let graph = rolled(&Equal, &[1.0, 0.5, 0.25]);
    let solved = phigrad::phi::recurrence::solve_all(&graph);
    assert!(solved.graph.regions.is_empty(), "{:?}", solved.refused);
    for (x, is_served) in [
        ([1.0, 0.5, 0.25], true),
        ([1.0, 0.94, -0.06], true),
        ([1.0, 0.82, -0.08], false),
        ([1.0, 0.5, -0.45], false),
        ([1.0, 0.5, -0.4], false),
    ] {
        let found = match interpret(&solved.graph, &x) {
            Outcome::Values(values) => values.first().copied(),
            _ => None,
        };
        let exact = 0.75 * (x[1] + x[2]).powi(200);
        let is_right = found
            .is_none_or(|found| found.is_nan() || (found - exact).abs() <= 2e-14 * exact.abs());
        assert!(is_right, "{found:?} for {exact} at {x:?}");
        assert_eq!(found.is_some_and(f64::is_finite), is_served, "{found:?} for {exact} at {x:?}");
    }
}
