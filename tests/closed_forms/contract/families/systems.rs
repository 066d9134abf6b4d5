//! Recurrences of two states: sums of powers, momentum, springs, rotations, saddles.

use phigrad::internals::Random;

use super::super::number::Number;
use super::{Family, decade, is_tame, ratio, table};

table![Discount, Geometric, Momentum, Spring, SecondOrder, Rotation, Consensus, Saddle];

/// An annuity: s ← s + c·v, v ← v/(1 + r).
struct Discount;

impl Family for Discount {
    fn name(&self) -> String {
        "annuity s + c·v, v/(1 + r)".into()
    }

    fn inputs(&self) -> usize {
        2
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        let one = T::from(1.0);
        vec![T::from(0.0), one / (one + x[0])]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let one = T::from(1.0);
        vec![z[0] + x[1] * z[1], z[1] * (one / (one + x[0]))]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let rates = [0.0, 1e-12, 1e-6, 1e-3, 0.05, 0.5, -1e-6, -1e-4];
        let rate = random.pick(&rates) * random.uniform(0.9, 1.0);
        vec![rate, random.uniform(0.5, 2.0)]
    }
}

/// Σ rʲ as a loop of two states.
struct Geometric;

impl Family for Geometric {
    fn name(&self) -> String {
        "geometric sum".into()
    }

    fn inputs(&self) -> usize {
        1
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 127, 300, 1000, 20_000]
    }

    fn start<T: Number>(&self, _: &[T]) -> Vec<T> {
        vec![T::from(0.0), T::from(1.0)]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        vec![z[0] + z[1], z[1] * x[0]]
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        vec![ratio(random, trips)]
    }
}

/// Gradient descent with momentum.
struct Momentum;

impl Family for Momentum {
    fn name(&self) -> String {
        "momentum".into()
    }

    fn inputs(&self) -> usize {
        5
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 127, 300, 1000, 10_000]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[3], T::from(0.0)]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let velocity = z[1] * x[1] - x[0] * (x[2] * z[0] - x[4]);
        vec![z[0] + velocity, velocity]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let rate = random.pick(&[0.9, 0.1, 1e-3, 1e-6]) * random.uniform(0.5, 1.0);
        let (kept, c): (f64, f64) = (random.uniform(0.1, 1.0), random.uniform(0.1, 1.9));
        let t = random.pick(&[0.0, 0.7, -0.3]);
        match random.below(4) {
            0 => vec![rate, kept, c, random.uniform(-1.0, 1.0), t],
            // A double eigenvalue.
            1 => vec![(1.0 - kept.sqrt()).powi(2) / c, kept, c, 1.0, t],
            2 => vec![rate, 0.9, c, t / c, t],
            _ => vec![rate, 0.9, 1.0, t, t],
        }
    }
}

/// A damped spring, by semi-implicit steps.
struct Spring;

impl Family for Spring {
    fn name(&self) -> String {
        "spring".into()
    }

    fn inputs(&self) -> usize {
        5
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 127, 300, 2000, 20_000]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[3], x[4]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let velocity = z[1] - x[2] * (x[0] * z[0] + x[1] * z[1]);
        vec![z[0] + x[2] * velocity, velocity]
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        loop {
            let step = random.pick(&[0.5, 0.1, 1e-2, 1e-3, 1e-6]) * random.uniform(0.5, 1.0);
            let stiffness = random.uniform(0.5, 1.5) * random.pick(&[1.0, 1.0, 100.0, 1e-4]);
            if step * step * stiffness < 3.9 || trips < 200 {
                let damping = random.pick(&[0.0, 1e-3, 0.1, 0.9]);
                let (place, velocity) = (random.uniform(0.1, 1.0), random.uniform(-1.0, 1.0));
                return vec![stiffness, damping, step, place, velocity];
            }
        }
    }
}

/// y ← f₁·y + f₂·y₋₁ + c, with double and complex roots.
struct SecondOrder;

impl Family for SecondOrder {
    fn name(&self) -> String {
        "AR(2)".into()
    }

    fn inputs(&self) -> usize {
        5
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[2], x[3]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        vec![x[0] * z[0] + x[1] * z[1] + x[4], z[0]]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let c = random.pick(&[0.0, 0.3, -1.0]);
        let (first, second) = match random.below(3) {
            0 => {
                let size: f64 = random.pick(&[1.0, 0.9999, 0.99, 0.9]);
                let angle = decade(random, -4.0, 0.4);
                (2.0 * size * angle.cos(), -size * size)
            }
            _ => {
                let root = random.pick(&[1.0, 0.999999, 0.999, 0.9, 0.5, -0.9, -1.0, 1.0001]);
                let near = root * (1.0 - 1e-8);
                let other = random.pick(&[root, root, near, 0.3, -0.5, 0.999, 1.0]);
                (root + other, -root * other)
            }
        };
        match random.chance(0.4) {
            true => vec![first, second, 1.0, 1.0, c],
            false => {
                vec![first, second, random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0), c]
            }
        }
    }
}

/// A rotation by a matrix (c, -s; s, c).
struct Rotation;

impl Family for Rotation {
    fn name(&self) -> String {
        "rotation".into()
    }

    fn inputs(&self) -> usize {
        4
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 127, 300, 1000, 20_000]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[2], x[3]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        vec![x[0] * z[0] - x[1] * z[1], x[1] * z[0] + x[0] * z[1]]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let angle = decade(random, -6.0, 0.5);
        let size = random.pick(&[1.0, 1.0, 0.9999, 0.9, 1.001]);
        let start = [random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0)];
        vec![size * angle.cos(), size * angle.sin(), start[0], start[1]]
    }
}

/// Two numbers that approach each other, or move apart.
struct Consensus;

impl Family for Consensus {
    fn name(&self) -> String {
        "consensus".into()
    }

    fn inputs(&self) -> usize {
        3
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[1], x[2]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let shift = x[0] * (z[1] - z[0]);
        vec![z[0] + shift, z[1] - shift]
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        let rates = [0.5, 0.25, 0.1, 1e-3, 1e-6, 0.9, 1.0, 1.1, 1.5, -0.1, -0.3, -1e-3];
        loop {
            let rate = random.pick(&rates);
            if is_tame(1.0 - 2.0 * rate, trips) {
                let a = random.uniform(-2.0, 2.0);
                let other = random.uniform(-2.0, 2.0);
                return vec![rate, a, random.pick(&[a, other, a * (1.0 + 1e-12)])];
            }
        }
    }
}

/// A triangular map with one eigenvalue beyond one, begun on the direction of the other.
struct Saddle;

impl Family for Saddle {
    fn name(&self) -> String {
        "saddle".into()
    }

    fn inputs(&self) -> usize {
        5
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[3], x[4]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        vec![x[0] * z[0] + x[1] * z[1], x[2] * z[1]]
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        loop {
            let unstable = random.pick(&[1.5, 1.1, 1.01, 2.0, -1.5]);
            if is_tame(unstable, trips) {
                let known = random.pick(&[0.5, 0.9, 0.99, 0.25, 1.0]);
                let (stable, s) = (random.uniform(0.4, 1.0), random.uniform(-2.0, 2.0));
                return match random.below(3) {
                    0 => vec![unstable, known - unstable, known, s, s],
                    1 => vec![unstable, stable - unstable, stable, s, s],
                    _ => vec![unstable, random.uniform(-1.0, 1.0), stable, s, 1.0],
                };
            }
        }
    }
}
