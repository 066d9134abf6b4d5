//! Recurrences of two and three coupled states: averages, decays, dense maps.

use phigrad::internals::Random;

use super::super::number::Number;
use super::{Family, decade, table};

table![Average, Pushed, Decay, DecayFirst, Chain, Dense, Shared];

/// An exponential average of a descent.
struct Average;

impl Family for Average {
    fn name(&self) -> String {
        "EWMA of a descent".into()
    }

    fn inputs(&self) -> usize {
        4
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[1], x[2]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let w = z[1] - x[0] * (z[1] - x[3]);
        vec![z[0] * T::from(0.9) + w * T::from(0.1), w]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let rate = random.pick(&[0.1, 0.45, 0.9, 0.999999, 1.0, 1.01, 1.3, 1.7, 1e-3]);
        let number = random.uniform(0.1, 1.0);
        let starts = [
            [0.9, 0.25, 0.9],
            [0.0, number, 0.0],
            [-3.0, 1e3 * number, -3.0],
            [number, number, number],
            [0.2, 0.3, number],
        ];
        let [average, w, target] = random.pick(&starts);
        vec![rate, average, w, target]
    }
}

/// A state forced by another one, which decays to a constant.
struct Pushed;

impl Family for Pushed {
    fn name(&self) -> String {
        "driven by a decay".into()
    }

    fn inputs(&self) -> usize {
        2
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[1] * T::from(2.0); 2]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let constant = T::from;
        vec![(z[0] + constant(2.1) * z[1]) * constant(0.9), z[1] - x[0] * (z[1] - constant(-0.7))]
    }

    fn output<T: Number>(&self, _: &[T], z: &[T]) -> T {
        z[0] * T::from(2.0) + z[1]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let rate = random.pick(&[0.1, 0.45, 0.9, 1.0, 1.3, 1.7, 1e-3, 0.2]);
        let other = random.uniform(-1.0, 1.0);
        vec![rate, random.pick(&[0.9, 0.0, -3.0, -0.35, other, other])]
    }
}

fn decayed<T: Number>(x: &[T], z: &[T]) -> Vec<T> {
    let decay = x[0] * z[0];
    vec![z[0] - decay, z[1] + decay - x[1] * z[1] + x[2]]
}

/// A decay chain with a supply: its second state.
struct Decay;

impl Family for Decay {
    fn name(&self) -> String {
        "decay chain".into()
    }

    fn inputs(&self) -> usize {
        3
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 127, 300, 2000, 20_000]
    }

    fn start<T: Number>(&self, _: &[T]) -> Vec<T> {
        vec![T::from(1.0), T::from(0.0)]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        decayed(x, z)
    }

    fn output<T: Number>(&self, _: &[T], z: &[T]) -> T {
        z[1]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let rate = random.pick(&[0.5, 0.1, 1e-3, 1e-6, 0.9]);
        let other = random.pick(&[0.5, 0.1, 1e-3, 1e-6, 0.0]) * random.uniform(0.9, 1.0);
        vec![rate, other, random.pick(&[0.0, 1.0, 1e-10, 0.3])]
    }
}

/// The same chain: its first state, which does not depend on the others.
struct DecayFirst;

impl Family for DecayFirst {
    fn name(&self) -> String {
        "decay chain, first".into()
    }

    fn inputs(&self) -> usize {
        3
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 300]
    }

    fn start<T: Number>(&self, _: &[T]) -> Vec<T> {
        vec![T::from(1.0), T::from(0.0)]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let next = decayed(x, z);
        vec![next[0] + x[2] * T::from(0.0), next[1]]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let rate = random.pick(&[0.5, 0.1, 1e-3, 1e-6, 0.9]) * random.uniform(0.9, 1.0);
        vec![rate, random.pick(&[0.5, 0.1, 1e-3]), random.pick(&[0.0, 1.0, 0.3])]
    }
}

/// Three exponential averages of one rate, each of the one before: a Jordan block.
struct Chain;

impl Family for Chain {
    fn name(&self) -> String {
        "chain of 3 EWMA".into()
    }

    fn inputs(&self) -> usize {
        5
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[1], x[2], x[3]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let a = z[2] + x[0] * (x[4] - z[2]);
        let b = z[1] + x[0] * (a - z[1]);
        vec![z[0] + x[0] * (b - z[0]), b, a]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let rate = random.pick(&[0.9, 0.5, 0.1, 1e-2, 1e-4, 1e-6]) * random.uniform(0.9, 1.0);
        let (s, other) = (random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0));
        vec![rate, s, random.pick(&[s, other]), s, random.pick(&[s, 0.5, -1.0])]
    }
}

/// A random affine map of three states, scaled to a known spectral radius.
struct Dense;

/// An estimate of the spectral radius of a 3x3 matrix.
fn spectral_radius(matrix: &[f64]) -> f64 {
    let (mut vector, mut radius) = ([1.0, 0.7, -0.3], 1.0);
    for round in 0..400 {
        let image: [f64; 3] = std::array::from_fn(|i| {
            matrix[3 * i..3 * i + 3].iter().zip(&vector).map(|(a, v)| a * v).sum()
        });
        let size = image.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
        if round >= 200 {
            radius *= size.powf(1.0 / 200.0);
        }
        vector = image.map(|x| x / size);
    }
    radius
}

impl Family for Dense {
    fn name(&self) -> String {
        "dense 3x3".into()
    }

    fn inputs(&self) -> usize {
        15
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        x[9..12].to_vec()
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let row =
            |i: usize| x[3 * i] * z[0] + x[3 * i + 1] * z[1] + x[3 * i + 2] * z[2] + x[12 + i];
        (0..3).map(row).collect()
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let mut x: Vec<f64> = (0..15).map(|_| random.uniform(-1.0, 1.0)).collect();
        let scale = random.pick(&[1.0, 0.9999, 0.99, 0.9, 0.5]) / spectral_radius(&x[..9]);
        x[..9].iter_mut().for_each(|entry| *entry *= scale);
        x
    }
}

/// Three states whose coefficients share two inputs.
struct Shared;

impl Family for Shared {
    fn name(&self) -> String {
        "shared coefficients 3x3".into()
    }

    fn inputs(&self) -> usize {
        4
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[2], x[2], x[3]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let q = T::from(1.0) - x[0];
        vec![
            q * z[0] + x[0] * z[1],
            q * z[1] + x[0] * (x[1] * z[2] + q * z[0]),
            q * z[2] + x[0] * x[1] - x[0] * z[0] * x[1],
        ]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let near = decade(random, -12.0, -2.0);
        let mut number = || match random.below(10) {
            0 => 0.0,
            1 => 1.0,
            2 => 1.0 - near,
            3 => near,
            4 => -0.5,
            5 => random.uniform(-1.0, 0.0),
            _ => random.uniform(0.0, 1.0),
        };
        (0..4).map(|_| number()).collect()
    }
}
