//! HMC: log posterior of a logistic regression, the potential of Hamiltonian
//! Monte Carlo; the inputs are the coefficients.

use super::data::{GOLDEN, SILVER, weyl};
use super::{Program, Scalar};

const PRIOR_VARIANCE: f64 = 1000.0;
/// Above this exponent log(1 + exp(m)) is m to the last bit.
pub const MAX_EXPONENT: f64 = 40.0;

/// Observations: `x` row by row, and the class 0 or 1 of each row.
pub struct Hmc {
    x: Vec<f64>,
    y: Vec<f64>,
    columns: usize,
}

/// Log posterior of the coefficients `beta`; `log_sum(m)` is log(1 + exp(m)).
pub fn log_posterior<T: Scalar>(beta: &[T], x: &[f64], y: &[f64], log_sum: impl Fn(T) -> T) -> T {
    let mut total = T::zero();
    for (row, &class) in x.chunks_exact(beta.len()).zip(y) {
        let mut t = T::zero();
        for (&xij, &b) in row.iter().zip(beta) {
            t = t + b * xij;
        }
        let m = -t;
        total = total + t * (class - 1.0) - log_sum(m);
    }
    let mut prior = T::zero();
    for &b in beta {
        prior = prior + b * b;
    }
    total - prior / (2.0 * PRIOR_VARIANCE)
}

impl Program for Hmc {
    const NAME: &'static str = "HMC";
    /// Rows and columns.
    type Config = (usize, usize);
    const CONFIGS: &'static [(usize, usize)] = &[(100, 1), (1000, 2), (800, 3)];
    type Work = ();

    fn new((rows, columns): (usize, usize)) -> Self {
        let x: Vec<f64> = (0..rows * columns).map(|k| 4.0 * weyl(k, GOLDEN) - 2.0).collect();
        let class = |(i, row): (usize, &[f64])| {
            let t: f64 = row.iter().enumerate().map(|(j, x)| (1.0 - 0.5 * j as f64) * x).sum();
            if weyl(i, SILVER) < 1.0 / (1.0 + (-t).exp()) { 1.0 } else { 0.0 }
        };
        let y = x.chunks_exact(columns).enumerate().map(class).collect();
        Hmc { x, y, columns }
    }

    fn work(&self) {}

    fn objective<T: Scalar>(&self, x: &[T]) -> T {
        let log_sum = |m: T| if m > MAX_EXPONENT { m } else { (m.exp() + 1.0).ln() };
        log_posterior(x, &self.x, &self.y, log_sum)
    }

    fn primal(&self, x: &[f64], _: &mut ()) -> f64 {
        match self.columns {
            1 => self.primal_of::<1>(x),
            2 => self.primal_of::<2>(x),
            _ => self.primal_of::<3>(x),
        }
    }

    fn hand_gradient(&self, x: &[f64], gradient: &mut [f64], _: &mut ()) {
        match self.columns {
            1 => self.gradient_of::<1>(x, gradient),
            2 => self.gradient_of::<2>(x, gradient),
            _ => self.gradient_of::<3>(x, gradient),
        }
    }
}

/// The hand-written functions know the number of columns at compile time, so
/// that the loops over a row are unrolled.
impl Hmc {
    fn rows<const COLUMNS: usize>(&self) -> impl Iterator<Item = (&[f64; COLUMNS], &f64)> {
        self.x.as_chunks().0.iter().zip(&self.y)
    }

    fn primal_of<const COLUMNS: usize>(&self, beta: &[f64]) -> f64 {
        let beta: [f64; COLUMNS] = std::array::from_fn(|j| beta[j]);
        let mut total = 0.0;
        for (row, class) in self.rows::<COLUMNS>() {
            let mut t = 0.0;
            for j in 0..COLUMNS {
                t += row[j] * beta[j];
            }
            let m = -t;
            let log_sum = if m > MAX_EXPONENT { m } else { (1.0 + m.exp()).ln() };
            total = total + t * (class - 1.0) - log_sum;
        }
        let prior: f64 = beta.iter().map(|b| b * b).sum();
        total - prior / (2.0 * PRIOR_VARIANCE)
    }

    /// One exponential and one division a row.
    fn gradient_of<const COLUMNS: usize>(&self, beta: &[f64], gradient: &mut [f64]) {
        let beta: [f64; COLUMNS] = std::array::from_fn(|j| beta[j]);
        let mut sums = [0.0; COLUMNS];
        for (row, class) in self.rows::<COLUMNS>() {
            let mut t = 0.0;
            for j in 0..COLUMNS {
                t += row[j] * beta[j];
            }
            let m = -t;
            let factor = if m > MAX_EXPONENT { *class } else { class - 1.0 / (1.0 + m.exp()) };
            for j in 0..COLUMNS {
                sums[j] += row[j] * factor;
            }
        }
        for j in 0..COLUMNS {
            gradient[j] = sums[j] - beta[j] / PRIOR_VARIANCE;
        }
    }
}
