//! The check of a gradient along random directions, against differences.

use super::tolerance::{Tolerance, close};
use crate::random::Random;
use crate::runtime::{Error, Recorded};
use crate::trace::Var;

/// A check of gradients: along random directions of length 1, the gradient's
/// component must agree with a central difference of the values.
///
/// The difference is extrapolated from halved steps (Richardson), which also
/// gives an error estimate. If the function jumps or bends near the point, the
/// check returns [`GradientError::Rough`].
///
/// # Examples
///
/// ```
/// use phigrad::Tape;
/// use phigrad::check::{GradientCheck, GradientError};
///
/// let f = Tape::record(|x| (x[0] * x[1]).sin() / x[1]);
/// let check = GradientCheck::default();
/// check.recorded(&f, &[0.3, 2.0])?;
///
/// // The same with a planted error.
/// let mut wrong = f.grad(&[0.3, 2.0])?;
/// wrong[1] += 1e-4;
/// let error = check.gradient(|x| f.eval(x), &[0.3, 2.0], &wrong).unwrap_err();
/// assert!(matches!(error, GradientError::Mismatch { .. }));
///
/// let mut thorough = GradientCheck::default();
/// thorough.directions = 32;
/// thorough.recorded(&f, &[0.3, 2.0])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GradientCheck {
    /// The number of directions.
    pub directions: usize,
    /// The seed of the directions.
    pub seed: u64,
    /// The first step; a hundredth of the length scale on which the function changes
    /// is good.
    pub step: f64,
    /// The largest difference between component and estimate.
    pub tolerance: Tolerance,
}

impl Default for GradientCheck {
    fn default() -> Self {
        let tolerance = Tolerance::new(1e-7, 1e-9);
        GradientCheck { directions: 4, seed: 0, step: 1e-2, tolerance }
    }
}

/// The reason why a gradient was not confirmed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GradientError {
    /// The gradient is wrong.
    #[error(
        "along {direction:?} the values change at a rate of {expected:?}, \
         the gradient says {found:?}"
    )]
    Mismatch {
        /// The direction, of length 1.
        direction: Vec<f64>,
        /// The rate of change of the values.
        expected: f64,
        /// The component of the gradient.
        found: f64,
    },
    /// The values jump, bend or are not finite near the point, so there is no estimate.
    #[error("along {direction:?} the values are not smooth; their rate is {rate:?} ± {spread:?}")]
    Rough {
        /// The direction, of length 1.
        direction: Vec<f64>,
        /// The best estimate of the rate of change.
        rate: f64,
        /// The distance between estimates.
        spread: f64,
    },
    /// The gradient has another length than the point.
    #[error("the gradient has length {found}, the point has length {expected}")]
    Shape {
        /// The length of the point.
        expected: usize,
        /// The length of the gradient.
        found: usize,
    },
    /// The function failed.
    #[error(transparent)]
    Call(#[from] Error),
}

/// The number of times that the step is halved.
const HALVINGS: usize = 6;

impl GradientCheck {
    /// Checks the gradient of a recorded function at `x`, from tape or kernel.
    ///
    /// # Errors
    ///
    /// See [`GradientError`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::Tape;
    /// use phigrad::check::{GradientCheck, GradientError};
    ///
    /// let f = Tape::record(|x| x[0].abs());
    /// assert!(GradientCheck::default().recorded(&f, &[1.0]).is_ok());
    /// let error = GradientCheck::default().recorded(&f, &[0.0]).unwrap_err();
    /// assert!(matches!(error, GradientError::Rough { .. }));
    /// ```
    pub fn recorded<F>(&self, f: &Recorded<F>, x: &[f64]) -> Result<(), GradientError>
    where
        F: Fn(&[Var]) -> Var,
    {
        self.gradient(|x| f.eval(x), x, &f.grad(x)?)
    }

    /// Checks that `gradient` is the gradient of `value` at `x`.
    ///
    /// # Errors
    ///
    /// See [`GradientError`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::check::GradientCheck;
    ///
    /// let square = |x: &[f64]| Ok(x[0] * x[0]);
    /// assert!(GradientCheck::default().gradient(square, &[3.0], &[6.0]).is_ok());
    /// assert!(GradientCheck::default().gradient(square, &[3.0], &[-6.0]).is_err());
    /// ```
    pub fn gradient(
        &self,
        mut value: impl FnMut(&[f64]) -> Result<f64, Error>,
        x: &[f64],
        gradient: &[f64],
    ) -> Result<(), GradientError> {
        if gradient.len() != x.len() {
            return Err(GradientError::Shape { expected: x.len(), found: gradient.len() });
        }
        let mut random = Random::new(self.seed);
        for _ in 0..self.directions {
            let direction = direction(&mut random, x.len());
            let found = direction.iter().zip(gradient).map(|(d, g)| d * g).sum();
            let along = |t: f64| {
                let moved: Vec<f64> = x.iter().zip(&direction).map(|(x, d)| x + t * d).collect();
                value(&moved)
            };
            let Derivative { rate, spread, bend } = derivative(along, self.step)?;
            let Tolerance { relative, absolute } = self.tolerance;
            // NaN compares false, so it is rough.
            let smooth = spread.max(bend) <= absolute + relative * rate.abs();
            if !smooth {
                return Err(GradientError::Rough { direction, rate, spread });
            }
            if !close(rate, found, self.tolerance) {
                return Err(GradientError::Mismatch { direction, expected: rate, found });
            }
        }
        Ok(())
    }
}

/// A random direction of length 1; empty for no inputs.
fn direction(random: &mut Random, count: usize) -> Vec<f64> {
    let mut direction: Vec<f64> = (0..count).map(|_| random.uniform(-1.0, 1.0)).collect();
    let length = direction.iter().fold(0.0f64, |length, d| length.hypot(*d));
    direction.iter_mut().for_each(|d| *d /= length);
    direction
}

/// An estimate of a directional derivative.
#[derive(Clone, Copy, Debug)]
struct Derivative {
    rate: f64,
    /// The distance between estimates of the rate.
    spread: f64,
    /// Half of the jump of the rate at the point itself, if there is one.
    bend: f64,
}

/// The derivative of `f` at 0.
///
/// Central differences with halved steps, extrapolated by Neville's scheme
/// (C. J. F. Ridders, "Accurate computation of F'(x) and F'(x)F''(x)", 1982).
/// Of all entries of the table the one closest to its two neighbours is taken.
fn derivative(
    mut f: impl FnMut(f64) -> Result<f64, Error>,
    step: f64,
) -> Result<Derivative, Error> {
    let mut step = step;
    let middle = f(0.0)?;
    let mut above: Vec<f64> = Vec::new();
    let mut best = Derivative { rate: f64::NAN, spread: f64::INFINITY, bend: 0.0 };
    let mut largest = 0.0f64;
    for _ in 0..=HALVINGS {
        let (after, before) = (f(step)?, f(-step)?);
        let mut row = vec![(after - before) / (2.0 * step)];
        let mut power = 1.0;
        for (column, &coarse) in above.iter().enumerate() {
            power *= 4.0;
            let fine = row[column];
            let entry = fine + (fine - coarse) / (power - 1.0);
            let spread = (entry - fine).abs().max((entry - coarse).abs());
            if spread <= best.spread {
                best = Derivative { rate: entry, spread, ..best };
            }
            row.push(entry);
        }
        // Symmetric differences do not depend on the value at the point itself. The second
        // difference does; for smooth functions it decreases with the step.
        let bend = ((after - middle) + (before - middle)).abs() / (2.0 * step);
        let rounding = 4.0 * f64::EPSILON * middle.abs() / step;
        largest = largest.max(bend);
        best.bend = if bend > 0.1 * largest + rounding { bend } else { 0.0 };
        above = row;
        step *= 0.5;
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_of_smooth_functions_are_accurate() {
        let derivative = derivative(|t| Ok((3.0 + t).exp()), 1e-2).unwrap();
        assert!(close(derivative.rate, 3.0f64.exp(), Tolerance::new(1e-11, 0.0)), "{derivative:?}");
        assert!(derivative.spread < 1e-9 && derivative.bend == 0.0, "{derivative:?}");
    }

    #[test]
    fn planted_errors_of_either_sign_are_found() {
        let value = |x: &[f64]| Ok(x[0].sin() * x[1]);
        let (x, right) = ([0.4, -1.5], [-1.5 * 0.4f64.cos(), 0.4f64.sin()]);
        let check = GradientCheck::default();
        check.gradient(value, &x, &right).unwrap();
        for error in [1e-6, -1e-6, 1.0, -1.0, f64::NAN, f64::INFINITY] {
            for i in 0..2 {
                let mut wrong = right;
                wrong[i] += error;
                let found = check.gradient(value, &x, &wrong);
                assert!(matches!(found, Err(GradientError::Mismatch { .. })), "{i} {error}");
            }
        }
    }

    #[test]
    fn jumps_and_bends_are_reported_as_rough() {
        let check = GradientCheck::default();
        let single = |x: f64| if x == 0.0 { 1.0 } else { x };
        let found = |f: fn(f64) -> f64, x| check.gradient(|x| Ok(f(x[0])), &[x], &[f64::NAN]);
        for f in [f64::floor, f64::abs, f64::ln, f64::sqrt, single] {
            assert!(matches!(found(f, 0.0), Err(GradientError::Rough { .. })));
        }
        for f in [f64::floor, f64::abs, f64::ln, f64::sqrt] {
            assert!(matches!(found(f, 1e-5), Err(GradientError::Rough { .. })));
        }
        // No step ends at the exceptional point.
        assert!(matches!(found(single, 1e-5), Err(GradientError::Mismatch { .. })));
    }

    #[test]
    fn a_gradient_of_another_length_is_a_typed_error() {
        let found = GradientCheck::default().gradient(|_| Ok(0.0), &[1.0], &[]);
        assert!(matches!(found, Err(GradientError::Shape { expected: 1, found: 0 })));
    }
}
