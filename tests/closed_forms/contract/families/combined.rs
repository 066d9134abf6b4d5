//! Loops after loops and in loops of other rates, sums of several kinds at once, four states.

use phigrad::internals::Random;

use super::super::number::Number;
use super::{Family, Reference, decade, table};

table![Bond, Mean, Epochs, Sequence, Nest, FourStates, Thirds];

/// The price, duration and convexity of a bond, weighted: yield, coupon and three weights.
struct Bond;

impl Family for Bond {
    fn name(&self) -> String {
        "bond".into()
    }

    fn inputs(&self) -> usize {
        5
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 120, 360]
    }

    /// The price, the duration, the convexity and the discount.
    fn start<T: Number>(&self, _: &[T]) -> Vec<T> {
        [0.0, 0.0, 0.0, 1.0].map(T::from).to_vec()
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], index: usize) -> Vec<T> {
        let time = index as f64 + 1.0;
        let discount = z[3] / (T::from(1.0) + x[0]);
        let value = x[1] * discount;
        let convexity = z[2] + T::from(time * (time + 1.0)) * value;
        vec![z[0] + value, z[1] + T::from(time) * value, convexity, discount]
    }

    fn output<T: Number>(&self, x: &[T], z: &[T]) -> T {
        z[0] * x[2] + z[1] * x[3] + z[2] * x[4]
    }

    /// Beside these, the discount times the index, and times index·(index - 1)/2.
    fn affine_start<T: Number>(&self, _: &[T]) -> Vec<T> {
        [0.0, 0.0, 0.0, 1.0, 0.0, 0.0].map(T::from).to_vec()
    }

    fn affine_step<T: Number>(&self, x: &[T], z: &[T]) -> Vec<T> {
        let growth = T::from(1.0) + x[0];
        let [discount, first, second] = [z[3], z[4] + z[3], z[5] + z[4]].map(|p| p / growth);
        // t·(t + 1) = 2·(t·(t - 1)/2 + t).
        let convexity = z[2] + x[1] * (T::from(2.0) * (second + first));
        vec![z[0] + x[1] * discount, z[1] + x[1] * first, convexity, discount, first, second]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let rates = [0.0, 1e-9, 1e-3, 0.01, 0.05, 0.3, -0.01, -1e-6];
        let rate = random.pick(&rates) * random.uniform(0.9, 1.0);
        let mut weight = || random.uniform(-1.0, 1.0);
        vec![rate, weight(), weight(), weight(), weight()]
    }
}

/// The mean of a geometric distribution, which is cut off.
struct Mean;

impl Family for Mean {
    fn name(&self) -> String {
        "mean of a geometric distribution".into()
    }

    fn inputs(&self) -> usize {
        1
    }

    fn start<T: Number>(&self, _: &[T]) -> Vec<T> {
        vec![T::from(0.0), T::from(1.0)]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], index: usize) -> Vec<T> {
        let one = T::from(1.0);
        vec![z[0] + T::from(index as f64 + 1.0) * z[1] * x[0], z[1] * (one - x[0])]
    }

    /// The last state is the index times the power.
    fn affine_start<T: Number>(&self, _: &[T]) -> Vec<T> {
        [0.0, 1.0, 0.0].map(T::from).to_vec()
    }

    fn affine_step<T: Number>(&self, x: &[T], z: &[T]) -> Vec<T> {
        let ratio = T::from(1.0) - x[0];
        vec![z[0] + (z[2] + z[1]) * x[0], z[1] * ratio, (z[2] + z[1]) * ratio]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let near = decade(random, -12.0, -1.0);
        vec![random.pick(&[near, 1.0 - near, 0.5 + near, near])]
    }
}

/// Epochs of twenty steps to a target, at a rate that each epoch multiplies.
struct Epochs;

impl Family for Epochs {
    fn name(&self) -> String {
        "epochs of falling rates".into()
    }

    fn inputs(&self) -> usize {
        4
    }

    fn trips(&self) -> &'static [usize] {
        &[35]
    }

    fn reference(&self) -> Reference {
        Reference::Steps
    }

    fn bits(&self) -> usize {
        400
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0], x[1]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let rate = z[1];
        let w = T::repeat(20, vec![z[0]], |w| vec![w[0] - rate * (w[0] - x[2])]);
        vec![w[0], rate * x[3]]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let (start, target) = (random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0));
        let rate = random.pick(&[0.5, 0.1, 1e-3, 1.0, 1.5]) * random.uniform(0.9, 1.0);
        vec![random.pick(&[start, target]), rate, target, random.pick(&[0.5, 0.9, 0.99, 1.0])]
    }
}

/// A descent after another one with another rate and target.
struct Sequence;

impl Family for Sequence {
    fn name(&self) -> String {
        "descent after a descent".into()
    }

    fn inputs(&self) -> usize {
        5
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 127]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        T::repeat(64, vec![x[0]], |w| vec![w[0] - x[1] * (w[0] - x[2])])
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        vec![z[0] - x[3] * (z[0] - x[4])]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let mut rate = || random.pick(&[0.9, 0.5, 0.1, 1e-3, 1e-6]) * random.uniform(0.5, 1.0);
        let (first, second) = (rate(), rate());
        let (start, target) = (random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0));
        // Far from the first target: the difference of both does not amplify rounding errors.
        let other = random.uniform(2.0, 3.0);
        vec![random.pick(&[start, target]), first, target, second, other]
    }
}

/// A loop in a loop in a loop.
struct Nest;

impl Family for Nest {
    fn name(&self) -> String {
        "nest of three loops".into()
    }

    fn inputs(&self) -> usize {
        4
    }

    fn trips(&self) -> &'static [usize] {
        &[35]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let outer = T::repeat(10, z.to_vec(), |z| {
            let inner = T::repeat(12, z.to_vec(), |z| vec![z[0] - x[1] * (z[0] - x[2])]);
            vec![inner[0] * T::from(0.9) + x[3]]
        });
        vec![outer[0] + x[2] * T::from(0.01)]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let rate = random.pick(&[0.5, 0.1, 1e-2, 1e-4, 1e-6, 1.5]) * random.uniform(0.9, 1.0);
        let mut number = || random.uniform(-1.0, 1.0);
        vec![number(), rate, number(), number()]
    }
}

/// A map of four states whose coefficients are made of three inputs.
struct FourStates;

impl Family for FourStates {
    fn name(&self) -> String {
        "dense 4x4".into()
    }

    fn inputs(&self) -> usize {
        7
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 200]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        x[3..7].to_vec()
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let coefficient = |i: usize, j: usize| {
            let scale = 0.25 * (1.0 + 0.3 * ((7 * i + 3 * j) as f64).sin());
            x[(i + j) % 3] * T::from(scale)
        };
        let term = |i: usize, j: usize| coefficient(i, j) * z[j];
        let row = |i: usize| term(i, 0) + term(i, 1) + term(i, 2) + term(i, 3) + x[(i + 1) % 3];
        (0..4).map(row).collect()
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let size = random.pick(&[1.0, 0.9, 0.5, 1.05]);
        let parameters = [0, 1, 2].map(|_| size * random.uniform(0.7, 1.0));
        let starts = [0, 1, 2, 3].map(|_| random.uniform(-1.0, 1.0));
        parameters.into_iter().chain(starts).collect()
    }
}

/// A state that starts at its fixed point, but for coefficients that are rounded.
struct Thirds;

impl Family for Thirds {
    fn name(&self) -> String {
        "fixed point of thirds".into()
    }

    fn inputs(&self) -> usize {
        2
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 100, 300]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let mean = (x[0] + x[0] + z[0]) / T::from(3.0);
        vec![z[0] - (z[0] - mean) * (x[1] * T::from(0.03))]
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        let state = random.pick(&[1.0, 0.3, -7.25]) * random.uniform(0.5, 1.0);
        let rates = [1.3, 40.0, 150.0, 300.0, 1000.0];
        let rates = if trips > 100 { &rates[..3] } else { &rates };
        vec![state, random.pick(rates) * random.uniform(0.9, 1.0)]
    }
}
