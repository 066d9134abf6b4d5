//! Affine loops in affine loops: an inner loop's map is a coefficient of the outer one.

use phigrad::internals::Random;

use super::super::number::Number;
use super::{Family, is_tame, table};

table![Inner, Back, InnerConsensus];

/// 20 steps to c at a rate, then x ← q·x + b.
struct Inner;

impl Family for Inner {
    fn name(&self) -> String {
        "nested scalar".into()
    }

    fn inputs(&self) -> usize {
        5
    }

    fn trips(&self) -> &'static [usize] {
        &[35, 50, 100, 200]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let inner = T::repeat(20, z.to_vec(), |z| vec![z[0] + x[1] * (x[2] - z[0])]);
        vec![inner[0] * x[3] + x[4]]
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        loop {
            let rates = [0.5, 0.1, 1e-3, 1e-6, 1.0, 1.9, 2.05, -0.01, -0.1];
            let rate = random.pick(&rates) * random.uniform(0.99, 1.0);
            let a: f64 = (1.0 - rate).powi(20);
            let q = random.pick(&[1.0, 0.5, 0.999, 1.0 / a, 1.001, -1.0]);
            if is_tame(a * q, trips) && q.abs() < 1e6 {
                let c = random.uniform(-1.0, 1.0);
                let b = random.pick(&[0.0, 0.2, (1.0 - q) * c]);
                return vec![random.pick(&[c, 0.7]), rate, c, q, b];
            }
        }
    }
}

/// 40 steps away from c in the inner loop, and back in the outer one.
struct Back;

impl Family for Back {
    fn name(&self) -> String {
        "nested, there and back".into()
    }

    fn inputs(&self) -> usize {
        4
    }

    fn trips(&self) -> &'static [usize] {
        &[35, 60, 100]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let inner = T::repeat(40, z.to_vec(), |z| vec![z[0] + x[1] * (z[0] - x[2])]);
        vec![x[2] + x[3] * (inner[0] - x[2])]
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        loop {
            let rate = random.pick(&[0.1, 0.5, 1.0, 0.01, -0.1]) * random.uniform(0.99, 1.0);
            let a = (1.0 + rate).powi(40);
            let back = random.pick(&[1.0 / a, 0.5 / a, 1.0, 1e-3]);
            if is_tame(a * back, trips) {
                let c = random.uniform(-1.0, 1.0);
                return vec![random.pick(&[c, 0.7, c * (1.0 + 1e-12)]), rate, c, back];
            }
        }
    }
}

/// 30 steps of consensus, then both states are scaled and coupled.
struct InnerConsensus;

impl Family for InnerConsensus {
    fn name(&self) -> String {
        "nested consensus".into()
    }

    fn inputs(&self) -> usize {
        5
    }

    fn trips(&self) -> &'static [usize] {
        &[35, 50, 100]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[1], x[2]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let inner = T::repeat(30, z.to_vec(), |z| {
            let shift = x[0] * (z[1] - z[0]);
            vec![z[0] + shift, z[1] - shift]
        });
        vec![inner[0] * x[3], inner[1] + x[4] * inner[0]]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let rates = [0.5, 0.1, 1e-3, 0.9, 1.0, 1.05, -0.05, -1e-3];
        let (rate, a) = (random.pick(&rates), random.uniform(-1.0, 1.0));
        let scale = random.pick(&[1.0, 0.9, 0.999]);
        vec![rate, a, random.pick(&[a, 0.3]), scale, random.pick(&[0.0, 0.1, -0.01])]
    }
}
