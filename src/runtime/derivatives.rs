//! Derivatives of functions of one output: gradients and Hessians.

use super::error::Error;
use super::function::Request;
use super::outputs::Output;
use super::recorded::{Recorded, RecordedWith};
use super::vector::CallResult;
use crate::pipeline::Purpose;
use crate::trace::Var;

macro_rules! derivatives {
    ($name:ident<F>, ($($args:ty),*), ($($data:ident: $type:ty)?)) => {
        /// Derivatives of functions of one output. They return the number itself, or the error that
        /// the function returned instead of it: see [`Output::Of`].
        impl<O: Output<Outputs = Var>, F: Fn($($args),*) -> O> $name<F> {
            /// The gradient at `x`, one number for each active input.
            ///
            /// # Errors
            ///
            /// As for `eval`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| x[0] * x[1]);
            /// assert_eq!(f.grad(&[2.0, 3.0])?, [3.0, 2.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * data[0]);
            /// assert_eq!(f.grad(&[2.0], &[3.0])?, [3.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn grad(&self, x: &[f64] $(, $data: $type)?) -> Result<O::Of<Vec<f64>>, Error> {
                let mut gradient = vec![0.0; x.len()];
                let result = self.call_one(x $(, $data)?, Purpose::Gradient, &mut gradient)?;
                Ok(O::answer(result.map(|_| gradient)))
            }

            /// The value and the gradient at `x`, for little more than the
            /// gradient alone.
            ///
            /// # Errors
            ///
            /// As for `eval`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| x[0] * x[1]);
            /// assert_eq!(f.value_and_grad(&[2.0, 3.0])?, (6.0, vec![3.0, 2.0]));
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * data[0]);
            /// assert_eq!(f.value_and_grad(&[2.0], &[3.0])?, (6.0, vec![3.0]));
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn value_and_grad(
                &self,
                x: &[f64] $(, $data: $type)?
            ) -> Result<O::Of<(f64, Vec<f64>)>, Error> {
                let mut gradient = vec![0.0; x.len()];
                let result = self.call_one(x $(, $data)?, Purpose::ValueAndGradient, &mut gradient)?;
                Ok(O::answer(result.map(|value| (value, gradient))))
            }

            /// The gradient at `x`, written into `gradient`, which is as long as
            /// `x`. Nothing is allocated once a kernel serves and the thread has
            /// called it before. On an error `gradient` is unchanged.
            ///
            /// # Errors
            ///
            /// As for `eval`, and when `gradient` and `x` differ in length
            /// ([`Error::is_shape`]).
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let mut gradient = [0.0; 2];
            /// let f = Tape::record(|x: &[Var]| x[0] * x[1]);
            /// f.grad_into(&[2.0, 3.0], &mut gradient)?;
            /// assert_eq!(gradient, [3.0, 2.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| data[0] * x[0] * x[1]);
            /// f.grad_into(&[2.0, 3.0], &[5.0], &mut gradient)?;
            /// assert_eq!(gradient, [15.0, 10.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn grad_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                gradient: &mut [f64],
            ) -> Result<O::Of<()>, Error> {
                let result = self.call_one(x $(, $data)?, Purpose::Gradient, gradient)?;
                Ok(O::answer(result.map(drop)))
            }

            /// The value at `x`, returned, and the gradient, written into
            /// `gradient` as `grad_into` does. On an error `gradient` is unchanged.
            ///
            /// # Errors
            ///
            /// As for `grad_into`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let mut gradient = [0.0];
            /// let f = Tape::record(|x: &[Var]| x[0] * x[0]);
            /// assert_eq!(f.value_and_grad_into(&[3.0], &mut gradient)?, 9.0);
            /// assert_eq!(gradient, [6.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * data[0]);
            /// assert_eq!(f.value_and_grad_into(&[3.0], &[5.0], &mut gradient)?, 15.0);
            /// assert_eq!(gradient, [5.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn value_and_grad_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                gradient: &mut [f64],
            ) -> Result<O::Of<f64>, Error> {
                self.call_one(x $(, $data)?, Purpose::ValueAndGradient, gradient).map(O::answer)
            }

            /// The Hessian at `x` times the vector `v`, for little more than twice the time of a
            /// gradient.
            ///
            /// # Errors
            ///
            /// As for `jvp`, and when the function calls an operation without second derivatives
            /// ([`Error::is_not_twice_differentiable`]).
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// // The Hessian of x²·y is (2y, 2x; 2x, 0).
            /// let f = Tape::record(|x: &[Var]| x[0] * x[0] * x[1]);
            /// assert_eq!(f.hvp(&[3.0, 5.0], &[1.0, 0.0])?, [10.0, 6.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * x[0] * data[0]);
            /// assert_eq!(f.hvp(&[3.0], &[5.0], &[1.0])?, [10.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn hvp(&self, x: &[f64] $(, $data: $type)?, v: &[f64]) -> Result<O::Of<Vec<f64>>, Error> {
                let mut product = vec![0.0; x.len()];
                let result = self.hessian_product(x $(, $data)?, v, &mut product)?;
                Ok(O::answer(result.map(|()| product)))
            }

            /// The Hessian at `x` times the vector `v`, written into `product`, which is as long
            /// as `x`. On an error `product` is unchanged.
            ///
            /// # Errors
            ///
            /// As for `hvp`, and when `product` and `x` differ in length ([`Error::is_shape`]).
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let mut product = [0.0; 2];
            /// let f = Tape::record(|x: &[Var]| x[0] * x[0] * x[1]);
            /// f.hvp_into(&[3.0, 5.0], &[0.0, 1.0], &mut product)?;
            /// assert_eq!(product, [6.0, 0.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * x[1] * data[0]);
            /// f.hvp_into(&[3.0, 5.0], &[2.0], &[0.0, 1.0], &mut product)?;
            /// assert_eq!(product, [2.0, 0.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn hvp_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                v: &[f64],
                product: &mut [f64],
            ) -> Result<O::Of<()>, Error> {
                self.hessian_product(x $(, $data)?, v, product).map(O::answer)
            }

            /// The Hessian at `x`, row by row.
            ///
            /// # Errors
            ///
            /// As for `hvp`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| x[0] * x[0] * x[1]);
            /// assert_eq!(f.hessian(&[3.0, 5.0])?, [10.0, 6.0, 6.0, 0.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * x[0] * data[0]);
            /// assert_eq!(f.hessian(&[3.0], &[5.0])?, [10.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn hessian(&self, x: &[f64] $(, $data: $type)?) -> Result<O::Of<Vec<f64>>, Error> {
                let mut hessian = vec![0.0; x.len() * x.len()];
                let result = self.hessian_to(x $(, $data)?, &mut hessian)?;
                Ok(O::answer(result.map(|()| hessian)))
            }

            /// The Hessian at `x`, written row by row into `hessian`, which has the square of the
            /// length of `x`. On an error `hessian` is unchanged.
            ///
            /// # Errors
            ///
            /// As for `hvp`, and when `hessian` has another length ([`Error::is_shape`]).
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let mut hessian = [0.0; 4];
            /// let f = Tape::record(|x: &[Var]| (x[0] * x[1]).exp());
            /// f.hessian_into(&[0.0, 0.0], &mut hessian)?;
            /// assert_eq!(hessian, [0.0, 1.0, 1.0, 0.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * x[1] * data[0]);
            /// f.hessian_into(&[1.0, 1.0], &[3.0], &mut hessian)?;
            /// assert_eq!(hessian, [0.0, 3.0, 3.0, 0.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn hessian_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                hessian: &mut [f64],
            ) -> Result<O::Of<()>, Error> {
                self.hessian_to(x $(, $data)?, hessian).map(O::answer)
            }

            /// The value at `x`, returned, with the gradient and the Hessian, written into
            /// `gradient` and `hessian`: all that a step of Newton's method needs.
            ///
            /// # Errors
            ///
            /// As for `grad_into` and `hessian_into`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let (mut gradient, mut hessian) = ([0.0], [0.0]);
            /// let f = Tape::record(|x: &[Var]| x[0].powi(3));
            /// assert_eq!(f.value_grad_hessian_into(&[2.0], &mut gradient, &mut hessian)?, 8.0);
            /// assert_eq!((gradient, hessian), ([12.0], [12.0]));
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn value_grad_hessian_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                gradient: &mut [f64],
                hessian: &mut [f64],
            ) -> Result<O::Of<f64>, Error> {
                // Before anything is written.
                Error::check_length("gradient", x.len(), gradient.len())?;
                match self.hessian_to(x $(, $data)?, hessian)? {
                    Ok(()) => self.value_and_grad_into(x $(, $data)?, gradient),
                    Err(error) => Ok(O::answer(Err(error))),
                }
            }

            pub(super) fn hessian_product(
                &self,
                x: &[f64] $(, $data: $type)?,
                v: &[f64],
                product: &mut [f64],
            ) -> CallResult<(), O> {
                let request = Request { direction: v, ..Purpose::HessianProduct.into() };
                Ok(self.call_one(x $(, $data)?, request, product)?.map(drop))
            }

            fn hessian_to(&self, x: &[f64] $(, $data: $type)?, hessian: &mut [f64]) -> CallResult<(), O> {
                Ok(self.call_one(x $(, $data)?, Purpose::Hessian, hessian)?.map(drop))
            }
        }
    };
}

derivatives!(Recorded<F>, (&[Var]), ());
derivatives!(RecordedWith<F>, (&[Var], &[Var]), (data: &[f64]));
