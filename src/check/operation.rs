//! The check of the derivatives of an operation, against differences.

use super::gradient::{GradientCheck, GradientError};
use crate::custom::Operation;
use crate::random::Random;

impl GradientCheck {
    /// Checks the derivatives of `operation` at `x` against differences: `vjp` for random weights,
    /// `jvp` for each input, and `vjp_tangent` if there is one.
    ///
    /// # Errors
    ///
    /// See [`GradientError`]. Where the operation has no outputs, it is not smooth.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::convert::Infallible;
    ///
    /// use phigrad::Operation;
    /// use phigrad::check::{GradientCheck, GradientError};
    ///
    /// struct Square {
    ///     factor: f64,
    /// }
    ///
    /// impl Operation for Square {
    ///     type Error = Infallible;
    ///
    ///     fn inputs(&self) -> usize {
    ///         1
    ///     }
    ///
    ///     fn outputs(&self) -> usize {
    ///         1
    ///     }
    ///
    ///     fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), Infallible> {
    ///         y[0] = x[0] * x[0];
    ///         Ok(())
    ///     }
    ///
    ///     fn vjp(&self, x: &[f64], _: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
    ///         out[0] = w[0] * self.factor * x[0];
    ///     }
    /// }
    ///
    /// let check = GradientCheck::default();
    /// assert!(check.operation(&Square { factor: 2.0 }, &[3.0]).is_ok());
    /// let error = check.operation(&Square { factor: 1.0 }, &[3.0]).unwrap_err();
    /// assert!(matches!(error, GradientError::Mismatch { .. }));
    /// ```
    pub fn operation<T: Operation>(&self, operation: &T, x: &[f64]) -> Result<(), GradientError> {
        if x.len() != operation.inputs() {
            return Err(GradientError::Shape { expected: operation.inputs(), found: x.len() });
        }
        let mut random = Random::new(self.seed);
        let mut weights =
            |count: usize| -> Vec<f64> { (0..count).map(|_| random.uniform(0.5, 1.5)).collect() };
        let (w, u) = (weights(operation.outputs()), weights(x.len()));
        let sum =
            |x: &[f64]| Ok(Evaluation::of(operation, x).map_or(f64::NAN, |at| dot(&at.y, &w)));
        let Some(at) = Evaluation::of(operation, x) else {
            return self.gradient(sum, x, &vec![f64::NAN; x.len()]);
        };
        self.gradient(sum, x, &at.vjp(operation, x, &w))?;
        let mut direction = vec![0.0; x.len()];
        let by_inputs: Vec<f64> = (0..x.len())
            .map(|input| {
                let mut derivatives = vec![0.0; at.y.len()];
                direction[input] = 1.0;
                operation.jvp(x, &at.y, &at.saved, &direction, &mut derivatives);
                direction[input] = 0.0;
                dot(&derivatives, &w)
            })
            .collect();
        self.gradient(sum, x, &by_inputs)?;
        if operation.is_twice_differentiable() {
            // The Hessian of the sum is symmetric.
            let along = |x: &[f64]| {
                let at = Evaluation::of(operation, x);
                Ok(at.map_or(f64::NAN, |at| dot(&at.vjp(operation, x, &w), &u)))
            };
            let mut product = vec![0.0; x.len()];
            operation.vjp_tangent(x, &at.y, &at.saved, (&w, &u), &mut product);
            self.gradient(along, x, &product)?;
        }
        Ok(())
    }
}

/// The results of an operation at a point.
struct Evaluation {
    y: Vec<f64>,
    saved: Vec<f64>,
}

impl Evaluation {
    /// The evaluation at `x`; `None` if there are no outputs.
    fn of<T: Operation>(operation: &T, x: &[f64]) -> Option<Self> {
        let (mut y, mut saved) = (vec![0.0; operation.outputs()], vec![0.0; operation.saved()]);
        operation.eval(x, &mut y, &mut saved).ok()?;
        Some(Evaluation { y, saved })
    }

    fn vjp<T: Operation>(&self, operation: &T, x: &[f64], w: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; x.len()];
        operation.vjp(x, &self.y, &self.saved, w, &mut product);
        product
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
