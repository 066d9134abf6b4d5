//! Programs that compute 1 - x or 2·x in each step beside x, and programs whose coefficients change
//! from step to step.

use phigrad::internals::Random;

use super::super::number::Number;
use super::{Family, Reference, decade, table};

table![TwoProbabilities, ThreeProbabilities, BothDirections, Forgetting, Welford, TwoPasses];

/// A number between 0 and 1, often near one of these.
fn probability(random: &mut Random) -> f64 {
    let near = decade(random, -12.0, -2.0);
    let usual = random.uniform(0.0, 1.0);
    random.pick(&[usual, usual, usual, near, 1.0 - near])
}

/// Probabilities of two states of a Markov chain.
struct TwoProbabilities;

impl Family for TwoProbabilities {
    fn name(&self) -> String {
        "Markov chain, 2 states".into()
    }

    fn inputs(&self) -> usize {
        2
    }

    fn start<T: Number>(&self, _: &[T]) -> Vec<T> {
        vec![T::from(1.0), T::from(0.0)]
    }

    fn step<T: Number>(&self, x: &[T], p: &[T], _: usize) -> Vec<T> {
        let one = T::from(1.0);
        vec![p[0] * (one - x[0]) + p[1] * x[1], p[0] * x[0] + p[1] * (one - x[1])]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        (0..2).map(|_| probability(random)).collect()
    }
}

/// Probabilities of three states in a circle.
struct ThreeProbabilities;

impl Family for ThreeProbabilities {
    fn name(&self) -> String {
        "Markov chain, 3 states".into()
    }

    fn inputs(&self) -> usize {
        3
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 300]
    }

    fn start<T: Number>(&self, _: &[T]) -> Vec<T> {
        [1.0, 0.0, 0.0].map(T::from).to_vec()
    }

    fn step<T: Number>(&self, x: &[T], p: &[T], _: usize) -> Vec<T> {
        let one = T::from(1.0);
        vec![
            p[0] * (one - x[0]) + p[2] * x[2],
            p[0] * x[0] + p[1] * (one - x[1]),
            p[1] * x[1] + p[2] * (one - x[2]),
        ]
    }

    fn output<T: Number>(&self, _: &[T], p: &[T]) -> T {
        p[1] + T::from(2.0) * p[2]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        (0..3).map(|_| probability(random)).collect()
    }
}

/// Steps in both directions, whose partials cancel.
struct BothDirections;

impl Family for BothDirections {
    fn name(&self) -> String {
        "steps that cancel".into()
    }

    fn inputs(&self) -> usize {
        2
    }

    fn trips(&self) -> &'static [usize] {
        &[50, 200]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[1]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let there = z[0] - x[0] - x[0];
        vec![there + T::from(2.0) * x[0]]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        vec![random.uniform(-1.0, 1.0) * decade(random, -9.0, 9.0), random.uniform(-1.0, 1.0)]
    }
}

/// An exponential average of a nonlinear function of its input.
struct Forgetting;

impl Family for Forgetting {
    fn name(&self) -> String {
        "EWMA of a nonlinear input".into()
    }

    fn inputs(&self) -> usize {
        2
    }

    fn trips(&self) -> &'static [usize] {
        &[60]
    }

    fn reference(&self) -> Reference {
        Reference::Steps
    }

    fn bits(&self) -> usize {
        320
    }

    fn start<T: Number>(&self, _: &[T]) -> Vec<T> {
        vec![T::from(0.3)]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], index: usize) -> Vec<T> {
        let one = T::from(1.0);
        let scaled = x[1] * T::from(0.3 * index as f64);
        vec![z[0] * (one - x[0]) + x[0] * (scaled / (one + scaled * scaled))]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        vec![probability(random), random.uniform(0.0, 1.0)]
    }
}

fn deviation(index: usize) -> f64 {
    1.3 * ((index * 7) % 5) as f64 - 2.0
}

/// A mean and a sum of squares by Welford's recurrence.
struct Welford;

impl Family for Welford {
    fn name(&self) -> String {
        "Welford".into()
    }

    fn inputs(&self) -> usize {
        2
    }

    fn trips(&self) -> &'static [usize] {
        &[50]
    }

    fn reference(&self) -> Reference {
        Reference::Steps
    }

    fn bits(&self) -> usize {
        320
    }

    fn start<T: Number>(&self, _: &[T]) -> Vec<T> {
        vec![T::from(0.0), T::from(0.0)]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], index: usize) -> Vec<T> {
        let number = x[0] + x[1] * T::from(deviation(index));
        let delta = number - z[0];
        let mean = z[0] + delta / T::from(index as f64 + 1.0);
        vec![mean, z[1] + delta * (number - mean)]
    }

    fn output<T: Number>(&self, x: &[T], z: &[T]) -> T {
        z[0] * x[1] + z[1]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        vec![random.uniform(-1.0, 1.0) * decade(random, -3.0, 3.0), random.uniform(0.1, 1.0)]
    }
}

/// The variance of numbers by two passes over them.
struct TwoPasses;

impl TwoPasses {
    fn number<T: Number>(x: &[T], index: usize) -> T {
        x[0] + x[1] * T::from(deviation(index))
    }
}

impl Family for TwoPasses {
    fn name(&self) -> String {
        "variance in two passes".into()
    }

    fn inputs(&self) -> usize {
        2
    }

    fn trips(&self) -> &'static [usize] {
        &[40]
    }

    fn reference(&self) -> Reference {
        Reference::Steps
    }

    fn bits(&self) -> usize {
        320
    }

    /// The sum of squares, and the mean.
    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        let sum = (0..40).fold(T::from(0.0), |sum, i| sum + Self::number(x, i));
        vec![T::from(0.0), sum / T::from(40.0)]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], index: usize) -> Vec<T> {
        vec![z[0] + (Self::number(x, index) - z[1]).square(), z[1]]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        vec![random.uniform(-1.0, 1.0) * decade(random, -3.0, 3.0), random.uniform(0.1, 1.0)]
    }
}
