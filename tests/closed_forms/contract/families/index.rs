//! Recurrences with the number of the iteration: times polynomials of it, and sums of powers times
//! such polynomials. The reference carries the index, or the index times the power, as a state.

use phigrad::internals::Random;

use super::super::number::Number;
use super::{Family, ratio, table};

table![IndexLinear, IndexPower, IndexSquare, IndexSum];

fn number<T: Number>(index: usize) -> T {
    T::from(index as f64)
}

/// y ← y·r + i·c.
struct IndexLinear;

impl Family for IndexLinear {
    fn name(&self) -> String {
        "index y·r + i·c".into()
    }

    fn inputs(&self) -> usize {
        3
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], index: usize) -> Vec<T> {
        vec![z[0] * x[1] + number::<T>(index) * x[2]]
    }

    fn affine_start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0], T::from(0.0)]
    }

    fn affine_step<T: Number>(&self, x: &[T], z: &[T]) -> Vec<T> {
        vec![z[0] * x[1] + z[1] * x[2], z[1] + T::from(1.0)]
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        let start = random.pick(&[0.0, 1.0, -3.0]);
        vec![start, ratio(random, trips), random.pick(&[1.0, -0.3, 1e-5])]
    }
}

/// Σ i·rⁱ·c.
struct IndexPower;

impl Family for IndexPower {
    fn name(&self) -> String {
        "index Σ i·c·rⁱ".into()
    }

    fn inputs(&self) -> usize {
        2
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![T::from(0.0), x[1]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], index: usize) -> Vec<T> {
        vec![z[0] + number::<T>(index) * z[1], z[1] * x[0]]
    }

    fn affine_start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![T::from(0.0), x[1], T::from(0.0)]
    }

    fn affine_step<T: Number>(&self, x: &[T], z: &[T]) -> Vec<T> {
        vec![z[0] + z[2], z[1] * x[0], (z[2] + z[1]) * x[0]]
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        vec![ratio(random, trips), random.pick(&[1.0, -0.7])]
    }
}

/// Σ (i² - c·i)·rⁱ.
struct IndexSquare;

impl Family for IndexSquare {
    fn name(&self) -> String {
        "index Σ (i² - c·i)·rⁱ".into()
    }

    fn inputs(&self) -> usize {
        2
    }

    fn start<T: Number>(&self, _: &[T]) -> Vec<T> {
        vec![T::from(0.0), T::from(1.0)]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], index: usize) -> Vec<T> {
        let i = number::<T>(index);
        vec![z[0] + (i * i - x[1] * i) * z[1], z[1] * x[0]]
    }

    fn affine_start<T: Number>(&self, _: &[T]) -> Vec<T> {
        [0.0, 1.0, 0.0, 0.0].map(T::from).to_vec()
    }

    /// The states are the sum, p = rⁱ, i·p and i·(i-1)/2·p.
    fn affine_step<T: Number>(&self, x: &[T], z: &[T]) -> Vec<T> {
        vec![
            z[0] + T::from(2.0) * z[3] + z[2] - x[1] * z[2],
            z[1] * x[0],
            (z[2] + z[1]) * x[0],
            (z[3] + z[2]) * x[0],
        ]
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        vec![ratio(random, trips), random.pick(&[1.0, -0.7, 50.0])]
    }
}

/// Σ (a·i + b): a polynomial of the trip count.
struct IndexSum;

impl Family for IndexSum {
    fn name(&self) -> String {
        "index Σ (a·i + b)".into()
    }

    fn inputs(&self) -> usize {
        3
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[2]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], index: usize) -> Vec<T> {
        vec![z[0] + (x[0] * number::<T>(index) + x[1])]
    }

    fn affine_start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[2], T::from(0.0)]
    }

    fn affine_step<T: Number>(&self, x: &[T], z: &[T]) -> Vec<T> {
        vec![z[0] + x[0] * z[1] + x[1], z[1] + T::from(1.0)]
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        let (a, start) = (random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0));
        // The terms cancel for one of these.
        let cancelling = -a * (trips as f64 - 1.0) * 0.5;
        vec![a, random.pick(&[cancelling, 0.3, -7.7e4]), start]
    }
}
