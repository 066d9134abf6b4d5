//! Sums of powers times polynomials in the iteration number: they have closed forms, whose
//! values and derivatives are as good as those of the tape.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;
#[path = "support/recurrences.rs"]
mod support;

use bound::ulp;
use phigrad::check::Random;
use phigrad::phi::Rule;
use phigrad::phi::recurrence::solve_all;
use phigrad::ssa::{Outcome, interpret};
use phigrad::{Tape, Var, traced};
use precise::Number;
use support::{Program, Stepped, derived, precise, rolled, taped};

/// Σ i·p + start: ratio, first power, start.
struct Weighted;
impl Stepped for Weighted {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut sum, mut power) = (x[2], x[1]);
        for i in 0..steps {
            sum = sum + T::from(i as f64) * power;
            power = power * x[0];
        }
        sum
    }
}

/// Σ c·i·(i−1)·rⁱ, the power last.
struct Quadratic;
impl Stepped for Quadratic {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut sum, mut power) = (T::from(0.0), T::from(1.0));
        for i in 0..steps {
            let i = i as f64;
            sum = sum + x[1] * T::from(i) * T::from(i - 1.0) * power;
            power = x[0] * power;
        }
        sum
    }
}

/// Coupons that grow: discount, first one, growth.
struct Growing;
impl Stepped for Growing {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut sum, mut power) = (T::from(0.0), T::from(1.0));
        for i in 0..steps {
            power = power * x[0];
            sum = sum + (x[1] + x[2] * T::from(i as f64 + 1.0)) * power;
        }
        sum
    }
}

/// What is counted down.
struct Backwards;
impl Stepped for Backwards {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut sum, mut power) = (T::from(0.0), x[1]);
        for i in (0..steps).rev() {
            sum = sum + power * T::from(i as f64) * x[2];
            power = power * x[0];
        }
        sum
    }
}

/// What moves the price of a bond: yield, coupon, face, and weights of its price, duration
/// and convexity.
struct Bond;
impl Stepped for Bond {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let zero = T::from(0.0);
        let (mut price, mut duration, mut convexity) = (zero, zero, zero);
        let mut discount = T::from(1.0);
        for i in 0..steps {
            discount = discount / (T::from(1.0) + x[0]);
            let (value, t) = (x[1] * discount, i as f64 + 1.0);
            price = price + value;
            duration = duration + T::from(t) * value;
            convexity = convexity + T::from(t * (t + 1.0)) * value;
        }
        price = price + x[2] * discount;
        price * x[3] + duration * x[4] + convexity * x[5]
    }
}

/// The mean of a geometric distribution, as far as it is added up: probability.
struct Mean;
impl Stepped for Mean {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut mean, mut none) = (T::from(0.0), T::from(1.0));
        for i in 0..steps {
            mean = mean + T::from(i as f64 + 1.0) * none * x[0];
            none = none * (T::from(1.0) - x[0]);
        }
        mean
    }
}

/// Σ i·(i+1)·rⁱ as it is written.
#[derive(Clone, Copy)]
struct Written;
impl Stepped for Written {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut sum = x[1];
        for i in 0..steps {
            sum = sum + T::from((i * (i + 1)) as f64) * x[0].power(i as i32);
        }
        sum
    }
}

/// What payments, which grow, come to in the end.
#[derive(Clone, Copy)]
struct Saved;
impl Stepped for Saved {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut sum = T::from(0.0);
        for i in 0..steps {
            let payment = x[1] + x[2] * T::from(i as f64);
            sum = sum + payment * x[0].power((steps - 1 - i) as i32);
        }
        sum
    }
}

/// A bond as it is written: yield, coupon, face, and weights of price and duration.
#[derive(Clone, Copy)]
struct Discounted(bool);
impl Stepped for Discounted {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let (mut price, mut duration) = (T::from(0.0), T::from(0.0));
        let growth = |t: usize| (T::from(1.0) + x[0]).power(t as i32);
        for t in 1..=steps {
            let value = match self.0 {
                true => x[1] / growth(t),
                false => x[1] * (T::from(1.0) + x[0]).power(-(t as i32)),
            };
            price = price + value;
            duration = duration + T::from(t as f64) * value;
        }
        price = price + x[2] / growth(steps);
        price * x[3] + duration * x[4]
    }
}

/// The mean of a geometric distribution as it is written: probability.
#[derive(Clone, Copy)]
struct Expected;
impl Stepped for Expected {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut mean = T::from(0.0);
        for k in 1..=steps {
            let none = (T::from(1.0) - x[0]).power(k as i32 - 1);
            mean = mean + T::from(k as f64) * none * x[0];
        }
        mean
    }
}

/// What decays in even steps, and is weighted: rate, start, weight.
#[derive(Clone, Copy)]
struct Decay(usize);
impl Stepped for Decay {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut sum = T::from(0.0);
        for i in self.0..self.0 + steps {
            let t = T::from(i as f64 * 0.25);
            sum = sum + (x[1] + x[2] * t) * (-x[0] * t).exponential();
        }
        sum
    }
}

/// The same around another time.
#[derive(Clone, Copy)]
struct Shifted;
impl Stepped for Shifted {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T {
        let mut sum = T::from(0.0);
        for i in 0..steps {
            let i = T::from(i as f64);
            sum = sum + i * (x[1] - x[0] * i).exponential();
        }
        sum
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
        let program = program.of(steps);
        let rolled = rolled(&program, &points[0]);
        let solved = solve_all(&rolled);
        if steps >= LONG {
            let left: Vec<&str> = solved.refused.iter().map(|this| this.why.as_str()).collect();
            assert!(solved.graph.regions.is_empty(), "{name}, {steps} steps: {left:?}");
        }
        // Where few steps are made the loop stays, and rounds as the tape does.
        if !solved.graph.regions.is_empty() {
            return;
        }
        let graph = derived(&solved.graph);
        for point in points {
            let exact = precise(&program, point);
            if !exact.iter().all(|x| x.abs() < 1e150) {
                continue;
            }
            let got = match interpret(&graph, point) {
                Outcome::Values(got) => got,
                other => panic!("{other:?} for {exact:?} of {name} at {point:?}"),
            };
            self.compare_point(&format!("{name}, {steps} steps"), &program, point, &got);
        }
    }

    /// The same for what the library makes of the program.
    fn compare_recorded(
        &mut self,
        name: &str,
        program: impl Stepped + Copy + Send + Sync + 'static,
        steps: usize,
        points: &[Vec<f64>],
    ) {
        let run = move |x: &[Var]| program.eval(x, steps);
        let f = Tape::builder().background(false).record(run);
        f.grad(&points[0]).unwrap();
        let explanation = f.explain().unwrap();
        let is_closed = explanation.rules().contains(&Rule::C6);
        // What stays as it is rounds as the tape does.
        if !is_closed && steps < LONG {
            return;
        }
        assert!(is_closed, "{name}: {explanation}");
        if steps >= LONG {
            let closed = &explanation.closed.text;
            assert!(!closed.contains("loop") && !closed.contains('Σ'), "{name}: {closed}");
        }
        f.compile().unwrap();
        let before = f.report().kernel_calls;
        for point in points {
            let (value, mut got) = f.value_and_grad(point).unwrap();
            got.push(value);
            self.compare_point(&format!("{name}, {steps} steps"), &program.of(steps), point, &got);
        }
        if steps >= LONG {
            assert_eq!(f.report().kernel_calls - before, points.len() as u64, "{name}");
        }
    }

    fn compare_point(&mut self, name: &str, program: &impl Program, point: &[f64], got: &[f64]) {
        let (exact, tape) = (precise(program, point), taped(program, point));
        let largest = exact.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
        for (index, ((got, tape), exact)) in got.iter().zip(&tape).zip(&exact).enumerate() {
            // Nor the tape nor the reference is of use where numbers underflow.
            if exact.abs() < 1e-250 && tape.abs() < 1e-250 && got.abs() < 1e-250 {
                continue;
            }
            self.components += 1;
            let (error, of_tape) = ((got - exact).abs(), (tape - exact).abs());
            // The reference has no more digits.
            let allowed = 4.0 * of_tape + 4.0 * ulp(*exact) + 1e-29 * largest;
            if error.is_nan() || error > allowed {
                self.found.push(format!(
                    "{name}, {index} at {point:?}: {exact:e}, off by {error:e}, tape {of_tape:e}"
                ));
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

/// From so many steps no loop is left.
const LONG: usize = 1000;

const STEPS: [usize; 8] = [1, 2, 3, 17, 100, 1000, 20_000, 1_000_000];

fn ratios(random: &mut Random, steps: usize) -> Vec<f64> {
    let mut ratios = vec![0.5, 1.0, 0.0, -1.0, -0.5, 2.0, 1e-300, -1e-9, 0.99, 0.9999, -0.999];
    for distance in [1e-15, 1e-12, 1e-9, 1e-6, 1e-4] {
        ratios.extend([1.0 - distance, 1.0 + distance, -1.0 + distance, -1.0 - distance]);
    }
    let near: Vec<f64> = ratios.iter().map(|r| r * random.uniform(0.9999, 1.0)).collect();
    ratios.extend(near);
    ratios.retain(|r: &f64| (steps as f64) * r.abs().ln() < 300.0);
    if steps > 1000 {
        ratios.truncate(if steps > 100_000 { 16 } else { 40 });
    }
    ratios
}

#[test]
fn powers_times_the_iteration_number() {
    let (mut random, mut worse) = (Random::new(71), Worse::default());
    for steps in STEPS {
        let mut points = Vec::new();
        for r in ratios(&mut random, steps) {
            let sign = if random.below(2) == 0 { 1.0 } else { -1.0 };
            points.push(vec![r, random.uniform(0.5, 2.0), sign * random.uniform(0.0, 2.0)]);
        }
        worse.compare("weighted", &Weighted, steps, &points);
        worse.compare("quadratic", &Quadratic, steps, &points);
        worse.compare("growing", &Growing, steps, &points);
        worse.compare("backwards", &Backwards, steps, &points);
    }
    worse.assert_none();
}

#[test]
fn bonds() {
    let (mut random, mut worse) = (Random::new(72), Worse::default());
    for steps in STEPS {
        let mut points = Vec::new();
        for rate in [0.0, 1e-9, 1e-4, 0.002, 0.05, 0.5, -1e-9, -1e-5] {
            let mut point = vec![rate, random.uniform(0.01, 2.0), random.uniform(1.0, 100.0)];
            point.extend([random.uniform(0.1, 1.0), random.uniform(0.1, 1.0)]);
            point.push(random.uniform(0.1, 1.0));
            points.push(point);
        }
        worse.compare("bond", &Bond, steps, &points);
        let points: Vec<Vec<f64>> =
            [0.5, 1e-9, 1e-3, 0.1, 0.999, 1.0, 0.0].into_iter().map(|p| vec![p]).collect();
        worse.compare("mean", &Mean, steps, &points);
    }
    worse.assert_none();
}

#[test]
fn powers_as_they_are_written() {
    let (mut random, mut worse) = (Random::new(73), Worse::default());
    for steps in [1, 2, 3, 17, 100, 1000, 20_000] {
        let mut points = Vec::new();
        for r in ratios(&mut random, steps) {
            points.push(vec![r, random.uniform(0.5, 2.0), random.uniform(0.0, 2.0)]);
        }
        worse.compare_recorded("written", Written, steps, &points);
        worse.compare_recorded("saved", Saved, steps, &points);
        let mut points = Vec::new();
        // Where powers overflow calls are the tape's.
        let largest = if steps > 10_000 { 0.03 } else { 0.05 };
        for rate in [largest, 0.0, 1e-9, 1e-4, 0.002, -1e-9, -1e-5] {
            let mut point = vec![rate, random.uniform(0.01, 2.0), random.uniform(1.0, 100.0)];
            point.extend([random.uniform(0.1, 1.0), random.uniform(0.1, 1.0)]);
            points.push(point);
        }
        worse.compare_recorded("divided", Discounted(true), steps, &points);
        worse.compare_recorded("discounted", Discounted(false), steps, &points);
        let points: Vec<Vec<f64>> =
            [0.5, 1e-9, 1e-3, 0.1, 0.999, 1.0, 0.0].into_iter().map(|p| vec![p]).collect();
        worse.compare_recorded("expected", Expected, steps, &points);
    }
    worse.assert_none();
}

#[test]
fn exponentials_of_the_iteration_number() {
    let (mut random, mut worse) = (Random::new(74), Worse::default());
    for steps in [17, 100, 1000, 20_000] {
        let mut points = Vec::new();
        for rate in [0.01, 0.0, 1.0, 30.0, 1e-3, 1e-6, 1e-9, -1e-9, -1e-4, -1e-2, 1e-300] {
            // The series of the reference are for no more.
            if (-100.0..40_000.0).contains(&(steps as f64 * rate)) {
                let rate = rate * random.uniform(0.9, 1.0);
                points.push(vec![rate, random.uniform(0.5, 2.0), random.uniform(0.0, 2.0)]);
                points.push(vec![rate, -random.uniform(0.5, 2.0), -random.uniform(0.0, 2.0)]);
            }
        }
        worse.compare_recorded("decay", Decay(0), steps, &points);
        worse.compare_recorded("later decay", Decay(1), steps, &points);
        worse.compare_recorded("latest decay", Decay(7), steps, &points);
        let points: Vec<Vec<f64>> = points.iter().map(|point| point[..2].to_vec()).collect();
        worse.compare_recorded("shifted", Shifted, steps, &points);
    }
    worse.assert_none();
}

/// What is said of `f`, with its loops.
fn told(f: impl Fn(&[Var]) -> Var + Send + Sync + 'static) -> String {
    let f = Tape::builder().background(false).record(f);
    f.grad(&[0.99, 0.5]).unwrap();
    f.explain().unwrap().to_string()
}

#[test]
fn other_sums_of_powers_stay_loops() {
    let changes = "its coefficients depend on inputs and change";
    let own = |x: &[Var]| (0..2000).fold(x[1], |p, i| p * x[0] * (i as f64 * 0.001 + 1.0));
    assert!(told(own).contains(changes), "{}", told(own));
    // Weights that are no polynomial.
    let weighted = |x: &[Var]| {
        let (mut sum, mut power) = (x[1], Var::from(1.0));
        for i in 0..2000 {
            sum += power * f64::from(i).sin();
            power *= x[0];
        }
        sum
    };
    assert!(told(weighted).contains(changes), "{}", told(weighted));
    let fifth = |x: &[Var]| {
        let (mut sum, mut power) = (x[1], Var::from(1.0));
        for i in 0..2000 {
            sum += power * f64::from(i).powi(5);
            power *= x[0];
        }
        sum
    };
    assert!(told(fifth).contains(changes), "{}", told(fifth));
    let halves = |x: &[Var]| (0..2000).map(|i| x[0].powf(f64::from(i) * 0.5)).sum::<Var>();
    assert!(told(halves).contains("no affine function"), "{}", told(halves));
    // Powers that go down where the sum is no sum alone.
    let filtered =
        |x: &[Var]| (0..2000).fold(x[1], |s, i| s * 0.5 + x[0].powf(1999.0 - f64::from(i)));
    assert!(told(filtered).contains("its powers go down"), "{}", told(filtered));
    // Integer powers of which some have no closed form are no loop.
    let data = |x: &[Var]| (0..200).map(|i| x[0].powi(i) * f64::from(i).sin()).sum::<Var>();
    assert!(!told(data).contains("loop 2"), "{}", told(data));
}

#[test]
fn the_numbers_that_are_added_to_the_state_are_named() {
    let carried = |x: &[Var]| {
        let (mut sum, mut power) = (Var::from(0.0), x[1]);
        for i in 0..1000 {
            sum += power * f64::from(i);
            power *= x[0];
        }
        sum
    };
    let text = "A^1000·p, 3 numbers: d₁, d₂, i·d₁, where p = (x₁, 0, 0), \
                A = (x₀, 0, 0; 0, 1, 1; x₀, 0, x₀)";
    assert!(told(carried).contains(text), "{}", told(carried));
    let written = |x: &[Var]| (0..1000).map(|i| x[0].powi(i) * f64::from(i * i)).sum::<Var>();
    let text = "4 numbers: d₁, i·x₀^i, C(i, 2)·x₀^i, x₀^i";
    assert!(told(written).contains(text), "{}", told(written));
    let decay = |x: &[Var]| (0..1000).map(|i| (x[0] * -f64::from(i)).exp()).sum::<Var>();
    assert!(told(decay).contains("e^(−x₀·i)"), "{}", told(decay));
}

#[test]
fn sums_of_powers_until_they_are_small() {
    #[traced]
    fn mean(ratio: Var, first: Var) -> Var {
        let (mut sum, mut power, mut i) = (Var::from(0.0), first, 0.0);
        while power > 1e-6 {
            sum += power * i;
            power *= ratio;
            i += 1.0;
        }
        sum
    }
    let f = Tape::builder().background(false).record(|x: &[Var]| mean(x[0], x[1]));
    let points: Vec<[f64; 2]> = (0..10).map(|k| [0.9995 - 1e-4 * f64::from(k), 0.5]).collect();
    let taped: Vec<_> = points.iter().map(|x| f.value_and_grad(x).unwrap()).collect();
    f.compile().unwrap();
    let before = f.report().kernel_calls;
    for (x, (value, gradient)) in points.iter().zip(taped) {
        let (found, slopes) = f.value_and_grad(x).unwrap();
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs();
        assert!(close(found, value), "{found} {value}");
        assert!(slopes.iter().zip(&gradient).all(|(&a, &b)| close(a, b)), "{slopes:?}");
    }
    assert_eq!(f.report().kernel_calls - before, 10);
    let explanation = f.explain().unwrap().to_string();
    assert!(explanation.contains("A^k·p, 3 numbers: d₁, d₂, i·d₁"), "{explanation}");
}
