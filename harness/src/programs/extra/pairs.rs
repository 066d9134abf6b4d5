//! Pairs: the energy of points that repel each other, over all pairs, in a
//! harmonic trap; the inputs are their coordinates in the plane.

use super::super::data::{GOLDEN, SILVER, weyl};
use super::super::{Program, Scalar};
use super::Extra;

/// Keeps the energy of two points at the same place finite.
const SOFTENING: f64 = 0.01;
const STIFFNESS: f64 = 0.5;

/// That many points.
pub struct Pairs {
    points: usize,
}

impl Program for Pairs {
    const NAME: &'static str = "Pairs";
    type Config = usize;
    const CONFIGS: &'static [usize] = &[100, 1000];
    type Work = ();

    fn new(points: usize) -> Self {
        Pairs { points }
    }

    fn work(&self) {}

    fn objective<T: Scalar>(&self, x: &[T]) -> T {
        let mut energy = T::zero();
        for i in 0..self.points {
            let (xi, yi) = (x[2 * i], x[2 * i + 1]);
            energy = energy + (xi * xi + yi * yi) * STIFFNESS;
            for j in i + 1..self.points {
                let (dx, dy) = (xi - x[2 * j], yi - x[2 * j + 1]);
                energy = energy + (dx * dx + dy * dy + SOFTENING).sqrt().recip();
            }
        }
        energy
    }

    fn primal(&self, x: &[f64], _: &mut ()) -> f64 {
        let points = x.as_chunks::<2>().0;
        let mut energy = 0.0;
        for (i, [xi, yi]) in points.iter().enumerate() {
            energy += STIFFNESS * (xi * xi + yi * yi);
            for [xj, yj] in &points[i + 1..] {
                let (dx, dy) = (xi - xj, yi - yj);
                energy += 1.0 / (dx * dx + dy * dy + SOFTENING).sqrt();
            }
        }
        energy
    }

    fn hand_gradient(&self, x: &[f64], gradient: &mut [f64], _: &mut ()) {
        let points = x.as_chunks::<2>().0;
        let forces = gradient.as_chunks_mut::<2>().0;
        for (force, [xi, yi]) in forces.iter_mut().zip(points) {
            *force = [2.0 * STIFFNESS * xi, 2.0 * STIFFNESS * yi];
        }
        for (i, [xi, yi]) in points.iter().enumerate() {
            let (mut by_x, mut by_y) = (0.0, 0.0);
            for ([xj, yj], force) in points[i + 1..].iter().zip(&mut forces[i + 1..]) {
                let (dx, dy) = (xi - xj, yi - yj);
                let square = dx * dx + dy * dy + SOFTENING;
                let factor = 1.0 / (square * square.sqrt());
                by_x -= factor * dx;
                by_y -= factor * dy;
                force[0] += factor * dx;
                force[1] += factor * dy;
            }
            forces[i][0] += by_x;
            forces[i][1] += by_y;
        }
    }
}

impl Extra for Pairs {
    /// Spread over a square.
    fn point(&self) -> Vec<f64> {
        let side = (self.points as f64).sqrt();
        let coordinates = |i| [weyl(i, GOLDEN), weyl(i, SILVER)];
        (0..self.points).flat_map(coordinates).map(|u| side * (u - 0.5)).collect()
    }
}
