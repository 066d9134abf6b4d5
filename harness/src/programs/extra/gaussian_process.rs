//! GaussianProcess: the log likelihood of a Gaussian process, with a Cholesky
//! factorisation in loops; the inputs are the logarithms of amplitude, length and
//! noise, the positions, and the observations.

use core::f64::consts::TAU;

use super::super::data::{GOLDEN, weyl};
use super::super::{Program, Scalar};
use super::Extra;

/// Amplitude, length and noise.
const PARAMETERS: usize = 3;

/// A process observed at that many positions.
pub struct GaussianProcess {
    points: usize,
}

/// Square matrices, row by row, and vectors.
pub struct Work {
    covariances: Vec<f64>,
    factor: Vec<f64>,
    inverse: Vec<f64>,
    solved: Vec<f64>,
}

/// The inputs by their meaning.
struct Inputs<'a, T> {
    amplitude: T,
    length: T,
    noise: T,
    positions: &'a [T],
    observations: &'a [T],
}

fn inputs<T: Scalar>(x: &[T], points: usize) -> Inputs<'_, T> {
    let (positions, observations) = x[PARAMETERS..].split_at(points);
    Inputs { amplitude: x[0].exp(), length: x[1].exp(), noise: x[2].exp(), positions, observations }
}

impl GaussianProcess {
    /// The factor of the covariance matrix, by rows, and the observations solved for
    /// it; returns the log likelihood.
    fn factorise(&self, x: &[f64], work: &mut Work) -> f64 {
        let n = self.points;
        let Inputs { amplitude, length, noise, positions, observations } = inputs(x, n);
        let Work { covariances, factor, solved, .. } = work;
        let mut total = -0.5 * n as f64 * TAU.ln();
        for i in 0..n {
            let (above, row) = factor.split_at_mut(i * n);
            for j in 0..=i {
                let scaled = (positions[i] - positions[j]) / length;
                let covariance = amplitude * (-0.5 * scaled * scaled).exp();
                covariances[i * n + j] = covariance;
                if j < i {
                    let other = &above[j * n..][..=j];
                    let product: f64 = row[..j].iter().zip(other).map(|(a, b)| a * b).sum();
                    row[j] = (covariance - product) / other[j];
                } else {
                    let product: f64 = row[..i].iter().map(|a| a * a).sum();
                    row[i] = (covariance + noise - product).sqrt();
                }
            }
            let known: f64 = row[..i].iter().zip(&*solved).map(|(a, b)| a * b).sum();
            solved[i] = (observations[i] - known) / row[i];
            total -= 0.5 * solved[i] * solved[i] + row[i].ln();
        }
        total
    }
}

impl Program for GaussianProcess {
    const NAME: &'static str = "GaussianProcess";
    type Config = usize;
    const CONFIGS: &'static [usize] = &[80];
    type Work = Work;

    fn new(points: usize) -> Self {
        GaussianProcess { points }
    }

    fn work(&self) -> Work {
        let square = vec![0.0; self.points * self.points];
        let solved = vec![0.0; self.points];
        Work { covariances: square.clone(), factor: square.clone(), inverse: square, solved }
    }

    fn objective<T: Scalar>(&self, x: &[T]) -> T {
        let n = self.points;
        let Inputs { amplitude, length, noise, positions, observations } = inputs(x, n);
        let mut factor = vec![T::zero(); n * n];
        let mut solved: Vec<T> = Vec::with_capacity(n);
        let mut total: T = (-0.5 * n as f64 * TAU.ln()).into();
        for i in 0..n {
            for j in 0..=i {
                let scaled = (positions[i] - positions[j]) / length;
                let mut sum = amplitude * (scaled * scaled * -0.5).exp();
                if i == j {
                    sum = sum + noise;
                }
                for k in 0..j {
                    sum = sum - factor[i * n + k] * factor[j * n + k];
                }
                factor[i * n + j] = if i == j { sum.sqrt() } else { sum / factor[j * n + j] };
            }
            let mut sum = observations[i];
            for k in 0..i {
                sum = sum - factor[i * n + k] * solved[k];
            }
            let solution = sum / factor[i * n + i];
            solved.push(solution);
            total = total - solution * solution * 0.5 - factor[i * n + i].ln();
        }
        total
    }

    fn primal(&self, x: &[f64], work: &mut Work) -> f64 {
        self.factorise(x, work)
    }

    /// By the inverse of the covariance matrix: half of β βᵀ - K⁻¹, where K β = y.
    fn hand_gradient(&self, x: &[f64], gradient: &mut [f64], work: &mut Work) {
        self.factorise(x, work);
        let n = self.points;
        let Inputs { length, noise, positions, .. } = inputs(x, n);
        let Work { covariances, factor, inverse, solved } = work;
        // The inverse of the factor, column by column as rows.
        for j in 0..n {
            let column = &mut inverse[j * n..][..n];
            column[j] = 1.0 / factor[j * n + j];
            for i in j + 1..n {
                let row = &factor[i * n..][..=i];
                let sum: f64 = row[j..i].iter().zip(&column[j..i]).map(|(a, b)| a * b).sum();
                column[i] = -sum / row[i];
            }
        }
        let column = |j: usize| &inverse[j * n + j..][..n - j];
        let beta =
            |i: usize| -> f64 { column(i).iter().zip(&solved[i..]).map(|(a, b)| a * b).sum() };
        let (parameters, others) = gradient.split_at_mut(PARAMETERS);
        let (by_position, by_observation) = others.split_at_mut(n);
        parameters.fill(0.0);
        by_position.fill(0.0);
        for (i, by_observation) in by_observation.iter_mut().enumerate() {
            *by_observation = -beta(i);
        }
        for i in 0..n {
            for j in 0..=i {
                let own = &column(j)[i - j..];
                let inverse: f64 = own.iter().zip(column(i)).map(|(a, b)| a * b).sum();
                let weight = 0.5 * (by_observation[i] * by_observation[j] - inverse);
                let part = weight * covariances[i * n + j];
                if i == j {
                    parameters[0] += part;
                    parameters[2] += weight * noise;
                } else {
                    // The matrix has each covariance twice.
                    let scaled = (positions[i] - positions[j]) / length;
                    parameters[0] += 2.0 * part;
                    parameters[1] += 2.0 * part * scaled * scaled;
                    by_position[i] -= 2.0 * part * scaled / length;
                    by_position[j] += 2.0 * part * scaled / length;
                }
            }
        }
    }
}

impl Extra for GaussianProcess {
    fn point(&self) -> Vec<f64> {
        let at = |i: usize| 10.0 * (i as f64 + 0.5 * weyl(i, GOLDEN)) / self.points as f64;
        let positions = (0..self.points).map(at);
        let observations = (0..self.points).map(|i| at(i).sin() + 0.2 * weyl(3 * i, GOLDEN));
        [0.1, -0.2, -2.0].into_iter().chain(positions).chain(observations).collect()
    }
}
