//! BGDHyperOpt: derivative of the error that batch gradient descent reaches
//! on y ~ w x with respect to its learning rate.

use super::data::{GOLDEN, SILVER, weyl};
use super::{Program, Scalar};

const MAX_ITERATIONS: usize = 100;
const TOLERANCE: f64 = 1e-4;

/// The points (x, y) to fit.
pub struct BgdHyperOpt {
    x: Vec<f64>,
    y: Vec<f64>,
}

/// Error of the fit after gradient descent with the learning rate `rate`.
fn fit_error<T: Scalar>(rate: T, x: &[f64], y: &[f64]) -> T {
    let n = x.len() as f64;
    let mut w = T::zero();
    let mut iteration = 0;
    while iteration < MAX_ITERATIONS {
        let mut slope = T::zero();
        for (&xi, &yi) in x.iter().zip(y) {
            slope = slope + (w * xi - yi) * xi;
        }
        slope = slope * (2.0 / n);
        if slope.abs() < TOLERANCE {
            break;
        } else {
            w = w - rate * slope;
        }
        iteration += 1;
    }
    let mut error = T::zero();
    for (&xi, &yi) in x.iter().zip(y) {
        let target: T = yi.into();
        let residual = target - w * xi;
        error = error + residual * residual;
    }
    error / n
}

impl Program for BgdHyperOpt {
    const NAME: &'static str = "BGDHyperOpt";
    type Config = usize;
    const CONFIGS: &'static [usize] = &[200, 1000, 2000];
    type Work = ();

    fn new(points: usize) -> Self {
        let x: Vec<f64> = (0..points).map(|i| 2.0 * weyl(i, GOLDEN) - 1.0).collect();
        let noise = (0..points).map(|i| 0.1 * (2.0 * weyl(i, SILVER) - 1.0));
        let y = x.iter().zip(noise).map(|(xi, noise)| 0.7 * xi + noise).collect();
        BgdHyperOpt { x, y }
    }

    fn work(&self) {}

    fn objective<T: Scalar>(&self, x: &[T]) -> T {
        fit_error(x[0], &self.x, &self.y)
    }

    fn primal(&self, x: &[f64], _: &mut ()) -> f64 {
        let (rate, n) = (x[0], self.x.len() as f64);
        let mut w = 0.0;
        for _ in 0..MAX_ITERATIONS {
            let mut slope = 0.0;
            for (x, y) in self.x.iter().zip(&self.y) {
                slope += (w * x - y) * x;
            }
            slope *= 2.0 / n;
            if slope.abs() < TOLERANCE {
                break;
            }
            w -= rate * slope;
        }
        let mut error = 0.0;
        for (x, y) in self.x.iter().zip(&self.y) {
            let residual = y - w * x;
            error += residual * residual;
        }
        error / n
    }

    /// Forward mode, the natural choice for a single input: the sum of the
    /// derivative (`_dot`) shares the loop of the primal's sum.
    fn hand_gradient(&self, x: &[f64], gradient: &mut [f64], _: &mut ()) {
        let (rate, n) = (x[0], self.x.len() as f64);
        let (mut w, mut w_dot) = (0.0, 0.0);
        for _ in 0..MAX_ITERATIONS {
            let (mut slope, mut slope_dot) = (0.0, 0.0);
            for (x, y) in self.x.iter().zip(&self.y) {
                slope += (w * x - y) * x;
                slope_dot += w_dot * x * x;
            }
            slope *= 2.0 / n;
            slope_dot *= 2.0 / n;
            if slope.abs() < TOLERANCE {
                break;
            }
            w_dot -= slope + rate * slope_dot;
            w -= rate * slope;
        }
        let mut error_dot = 0.0;
        for (x, y) in self.x.iter().zip(&self.y) {
            error_dot -= 2.0 * (y - w * x) * (w_dot * x);
        }
        gradient[0] = error_dot / n;
    }
}
