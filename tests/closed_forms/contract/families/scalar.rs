//! Recurrences of one state: affine maps near and far from their fixed points.

use phigrad::internals::Random;

use super::super::number::Number;
use super::{Family, any, decade, is_tame, ratio, sign, table};

table![Scalar, Descent, TwoRates, Doubling, Quotient, Loan, DataDescent];

/// y ← a·y + b.
struct Scalar;

impl Family for Scalar {
    fn name(&self) -> String {
        "scalar a·y + b".into()
    }

    fn inputs(&self) -> usize {
        3
    }

    fn trips(&self) -> &'static [usize] {
        &[33, 100, 500, 1000, 5000, 50_000]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[2]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        vec![z[0] * x[0] + x[1]]
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        let (a, b) = (ratio(random, trips), any(random));
        let start = match random.below(3) {
            0 if a != 1.0 => {
                b / (1.0 - a) * random.pick(&[1.0, 1.0, 1.0 + 1e-9, 1.0 - 1e-13, 1.0 + 1e-5])
            }
            _ => any(random),
        };
        vec![a, b, start]
    }
}

/// Gradient descent: w ← w - r·(c·w - t).
struct Descent;

impl Family for Descent {
    fn name(&self) -> String {
        "descent w - r(wc - t)".into()
    }

    fn inputs(&self) -> usize {
        4
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 127, 300, 1000, 2000, 20_000]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        vec![z[0] - x[1] * (z[0] * x[2] - x[3])]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        if random.chance(0.7) {
            let rate = random.pick(&[1.0, 0.3, 0.3, 0.1, 1e-2, 1e-4, 1e-6]);
            let rate = rate * random.uniform(0.5, 1.0);
            let (start, target) = (random.uniform(0.5, 2.0), random.uniform(-1.0, 1.0));
            return vec![start, rate, random.uniform(0.1, 1.9), target];
        }
        // At the minimum, and next to it.
        let rate = random.pick(&[1.7, 1.0, 0.3, 0.1, 1e-4, 1e-6]);
        match random.below(4) {
            0 => vec![1.0, rate, 1.0, 1.0],
            1 => vec![0.33, rate, 1.0, 0.33],
            2 => vec![0.3 / 0.77, rate * random.uniform(0.9, 1.0), 0.77, 0.3],
            _ => vec![0.3 / 0.77 * (1.0 + 1e-10), rate * random.uniform(0.9, 1.0), 0.77, 0.3],
        }
    }
}

/// y ← y - r·(f·(y - e)), also away from e.
struct TwoRates;

impl Family for TwoRates {
    fn name(&self) -> String {
        "two rates y - r·f·(y - e)".into()
    }

    fn inputs(&self) -> usize {
        4
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        vec![z[0] - x[1] * (x[2] * (z[0] - x[3]))]
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        loop {
            let rates = [1.7, 1.0, 0.5, 0.1, 1e-3, 1e-6, -0.1, -1e-3, -1.0, 2.5, 3.0];
            let (rate, f, e) =
                (random.pick(&rates), random.uniform(0.1, 1.1), random.uniform(-2.0, 2.0));
            if is_tame(1.0 - rate * f, trips) {
                let start = random.pick(&[e, 0.7, 0.0, e * (1.0 + 1e-11)]);
                return vec![start, rate, f, e];
            }
        }
    }
}

/// y ← 2·y + x₁·x₂, at its fixed point.
struct Doubling;

impl Family for Doubling {
    fn name(&self) -> String {
        "doubling 2y + x₁x₂".into()
    }

    fn inputs(&self) -> usize {
        3
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 100, 300, 500]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        vec![z[0] * T::from(2.0) + x[1] * x[2]]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let scale = random.uniform(0.5, 2.0);
        match random.below(5) {
            0 => vec![2.7 * scale, -2.7 * scale, 1.0],
            1 => vec![-0.5 * scale, 0.5, scale],
            2 => vec![-0.03 * scale, 0.1 * scale, 0.3],
            3 => vec![0.0, 0.0, scale],
            _ => vec![2.7 * scale, -2.7 * scale, 1.0 + 1e-9],
        }
    }
}

/// y ← (y + b) / r.
struct Quotient;

impl Family for Quotient {
    fn name(&self) -> String {
        "quotient (y + b)/r".into()
    }

    fn inputs(&self) -> usize {
        3
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        vec![(z[0] + x[2]) / x[1]]
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        loop {
            let divisor = match random.below(3) {
                0 => 1.0 + sign(random) * decade(random, -10.0, -1.0),
                1 => random.uniform(0.8, 2.0),
                _ => -1.0 + sign(random) * decade(random, -10.0, -2.0),
            };
            if is_tame(1.0 / divisor, trips) {
                let added = if random.chance(0.5) { 0.5 } else { random.uniform(-2.0, 2.0) };
                return vec![random.uniform(-2.0, 2.0), divisor, added];
            }
        }
    }
}

/// A loan: y ← y·(1 + r/12) - c; paid back, and at its fixed point.
struct Loan;

impl Family for Loan {
    fn name(&self) -> String {
        "loan y(1 + r/12) - c".into()
    }

    fn inputs(&self) -> usize {
        3
    }

    fn trips(&self) -> &'static [usize] {
        &[60, 120, 360, 1000]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        vec![z[0] + z[0] * (x[1] / T::from(12.0)) - x[2]]
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        let rate: f64 = random.pick(&[0.0, 1e-12, 1e-3, 0.01, 0.05, 0.2, -0.01]);
        let (debt, month) = (random.uniform(1e3, 1e6), rate / 12.0);
        let whole = match month {
            0.0 => debt / trips as f64,
            _ => debt * month / (1.0 - (1.0 + month).powi(-(trips as i32))),
        };
        let payment = match random.below(3) {
            0 => debt * month,
            _ => whole * random.pick(&[1.0, 1.0, 0.5, 2.0]),
        };
        vec![debt, rate, payment]
    }
}

/// Gradient descent on the squared residuals of thirty data, whose sums do not depend on it.
struct DataDescent;

impl Family for DataDescent {
    fn name(&self) -> String {
        "descent over data".into()
    }

    fn inputs(&self) -> usize {
        2
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 200]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let slope = (0..30).fold(T::from(0.0), |sum, i| {
            let datum = (0.7 * f64::from(i)).sin();
            let target = 0.7 * datum + 0.1 * (9.0 * datum).cos();
            sum + (z[0] * T::from(datum) - T::from(target)) * T::from(datum)
        });
        vec![z[0] - x[1] * (slope * T::from(2.0 / 30.0))]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let rate = random.pick(&[1.0, 0.5, 0.1, 1e-2, 1e-4]) * random.uniform(0.5, 1.0);
        vec![random.uniform(-2.0, 2.0), rate]
    }
}
