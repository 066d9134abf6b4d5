//! Values and derivatives of functions of any number of outputs.

use core::cell::Cell;

use super::core::Results;
use super::error::Error;
use super::function::Request;
use super::outputs::{Output, OutputReader, OutputShape, Outputs};
use super::recorded::{Recorded, RecordedWith, inputs};
use crate::pipeline::Purpose;
use crate::trace::Var;

/// The result of a call of a function that returns `O`: a `T`, or the function's error.
pub(super) type CallResult<T, O> = Result<Result<T, <O as Output>::Error>, Error>;

/// The values of the outputs of a function that returns `O`.
type Values<O> = <<O as Output>::Outputs as Outputs>::Values;

/// True if a function that returns `O` has one output: it is recorded without weights.
pub(super) const fn is_scalar<O: Output>() -> bool {
    matches!(<O::Outputs as Outputs>::COUNT, Some(1))
}

/// The result of a call, with the error that the function itself has returned.
pub(super) fn with_failure<T, E>(
    result: Result<T, Error>,
    failure: Cell<Option<E>>,
) -> Result<Result<T, E>, Error> {
    match (result, failure.into_inner()) {
        (Err(error), Some(failure)) if error.is_failed() => Ok(Err(failure)),
        (result, _) => result.map(Ok),
    }
}

/// Multiplies `derivatives` by a weight; by zero they become zero, also infinite ones, as in a
/// sweep.
pub(super) fn scale(derivatives: &mut [f64], weight: f64) {
    let scaled = |x: f64| if weight == 0.0 { 0.0 } else { x * weight };
    derivatives.iter_mut().for_each(|x| *x = scaled(*x));
}

macro_rules! any_outputs {
    ($name:ident<F>, ($($args:ty),*), ($($data:ident: $type:ty)?)) => {
        /// The outputs and their derivatives. All return the results themselves, or the error that
        /// the function returned instead of outputs: see [`Output::Of`].
        impl<O: Output, F: Fn($($args),*) -> O> $name<F> {
            /// The outputs at `x`, in the form in which the function returns them.
            ///
            /// # Errors
            ///
            /// When the function uses a foreign `Var`
            /// ([`Error::is_foreign_var`]), or more operations than the limits
            /// allow ([`Error::is_too_long`]); a gradient of very many operations also when the
            /// function cannot be repeated ([`Error::is_not_repeatable`]).
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| x[0].exp());
            /// assert_eq!(f.eval(&[0.0])?, 1.0);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * data[0]);
            /// assert_eq!(f.eval(&[2.0], &[3.0])?, 6.0);
            /// let f = Tape::record(|x: &[Var]| (x[0] * x[0], vec![x[0], x[1]]));
            /// assert_eq!(f.eval(&[2.0, 3.0])?, (4.0, vec![2.0, 3.0]));
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn eval(&self, x: &[f64] $(, $data: $type)?) -> Result<O::Of<Values<O>>, Error> {
                self.structured(x $(, $data)?, Purpose::Value.into(), Purpose::Outputs.into())
            }

            /// The outputs at `x`, written into `outputs` in order. On an error `outputs` is
            /// unchanged.
            ///
            /// # Errors
            ///
            /// As for `eval`, and when `outputs` has another length ([`Error::is_shape`]).
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let mut outputs = [0.0; 2];
            /// let f = Tape::record(|x: &[Var]| [x[0] * x[1], x[0] + x[1]]);
            /// f.eval_into(&[2.0, 3.0], &mut outputs)?;
            /// assert_eq!(outputs, [6.0, 5.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| [x[0], x[0] * data[0]]);
            /// f.eval_into(&[2.0], &[4.0], &mut outputs)?;
            /// assert_eq!(outputs, [2.0, 8.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn eval_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                outputs: &mut [f64],
            ) -> Result<O::Of<()>, Error> {
                let to = Results::Into { slice: outputs, name: "slice of outputs" };
                let (one, several) = (Purpose::Value.into(), Purpose::Outputs.into());
                Ok(O::answer(self.results(x $(, $data)?, one, several, to)?.map(drop)))
            }

            /// The derivatives of the outputs at `x` along the direction `v`, which has a number
            /// for each active input: the Jacobian times `v`, in the form of the outputs.
            ///
            /// # Errors
            ///
            /// As for `eval`, when `v` and `x` differ in length ([`Error::is_shape`]), and for a
            /// call longer than [`Limits::trace_events`](crate::Limits::trace_events)
            /// ([`Error::is_too_long`]).
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| x[0] * x[1]);
            /// assert_eq!(f.jvp(&[2.0, 3.0], &[1.0, 10.0])?, 23.0);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * data[0]);
            /// assert_eq!(f.jvp(&[2.0], &[3.0], &[10.0])?, 30.0);
            /// let f = Tape::record(|x: &[Var]| [x[0] * x[1], x[0]]);
            /// assert_eq!(f.jvp(&[2.0, 3.0], &[1.0, 10.0])?, [23.0, 1.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn jvp(
                &self,
                x: &[f64] $(, $data: $type)?,
                v: &[f64],
            ) -> Result<O::Of<Values<O>>, Error> {
                let [one, several] = directional_requests(v);
                self.structured(x $(, $data)?, one, several)
            }

            /// The derivatives of the outputs at `x` along the direction `v`, written into
            /// `derivatives` in order. On an error `derivatives` is unchanged.
            ///
            /// # Errors
            ///
            /// As for `jvp`, and when `derivatives` has another length ([`Error::is_shape`]).
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let mut derivatives = [0.0; 2];
            /// let f = Tape::record(|x: &[Var]| [x[0] * x[1], x[0]]);
            /// f.jvp_into(&[2.0, 3.0], &[1.0, 10.0], &mut derivatives)?;
            /// assert_eq!(derivatives, [23.0, 1.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| [x[0], x[0] * data[0]]);
            /// f.jvp_into(&[2.0], &[4.0], &[1.0], &mut derivatives)?;
            /// assert_eq!(derivatives, [1.0, 4.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn jvp_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                v: &[f64],
                derivatives: &mut [f64],
            ) -> Result<O::Of<()>, Error> {
                let [one, several] = directional_requests(v);
                let to = Results::Into { slice: derivatives, name: "slice of derivatives" };
                Ok(O::answer(self.results(x $(, $data)?, one, several, to)?.map(drop)))
            }

            /// The gradient at `x` of the sum of the outputs, each times its weight in `w`: `w`
            /// times the Jacobian.
            ///
            /// # Errors
            ///
            /// As for `eval`, and when `w` has another length than the outputs
            /// ([`Error::is_shape`]).
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| [x[0] * x[1], x[0]]);
            /// assert_eq!(f.vjp(&[2.0, 3.0], &[1.0, 10.0])?, [13.0, 2.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| [x[0], x[0] * data[0]]);
            /// assert_eq!(f.vjp(&[2.0], &[4.0], &[1.0, 10.0])?, [41.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn vjp(
                &self,
                x: &[f64] $(, $data: $type)?,
                w: &[f64],
            ) -> Result<O::Of<Vec<f64>>, Error> {
                let mut product = Vec::new();
                let result = self.product(x $(, $data)?, weighted_request(w), Results::Allocated(&mut product))?;
                Ok(O::answer(result.map(|()| product)))
            }

            /// The gradient at `x` of the sum of the outputs, each times its weight in `w`, written
            /// into `product`, which is as long as `x`. On an error `product` is unchanged.
            ///
            /// # Errors
            ///
            /// As for `vjp`, and when `product` and `x` differ in length.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let mut product = [0.0; 2];
            /// let f = Tape::record(|x: &[Var]| [x[0] * x[1], x[0]]);
            /// f.vjp_into(&[2.0, 3.0], &[1.0, 10.0], &mut product)?;
            /// assert_eq!(product, [13.0, 2.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| [x[0], x[1] * data[0]]);
            /// f.vjp_into(&[2.0, 3.0], &[4.0], &[1.0, 10.0], &mut product)?;
            /// assert_eq!(product, [1.0, 40.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn vjp_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                w: &[f64],
                product: &mut [f64],
            ) -> Result<O::Of<()>, Error> {
                let to = Results::Into { slice: product, name: "product" };
                self.product(x $(, $data)?, weighted_request(w), to).map(O::answer)
            }

            /// The Jacobian at `x`, row by row: the gradient of the first output, then that of the
            /// second.
            ///
            /// # Errors
            ///
            /// As for `jvp`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| [x[0] * x[1], x[0]]);
            /// assert_eq!(f.jacobian(&[2.0, 3.0])?, [3.0, 2.0, 1.0, 0.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| [x[0], x[0] * data[0]]);
            /// assert_eq!(f.jacobian(&[2.0], &[4.0])?, [1.0, 4.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn jacobian(&self, x: &[f64] $(, $data: $type)?) -> Result<O::Of<Vec<f64>>, Error> {
                let mut jacobian = Vec::new();
                let (one, several) = (Purpose::Gradient.into(), Purpose::Jacobian.into());
                let to = Results::Allocated(&mut jacobian);
                let result = self.results(x $(, $data)?, one, several, to)?;
                Ok(O::answer(result.map(|_| jacobian)))
            }

            /// The Jacobian at `x`, written into `jacobian` row by row, which has a number for each
            /// pair of an output and an active input. On an error `jacobian` is unchanged.
            ///
            /// # Errors
            ///
            /// As for `jvp`, and when `jacobian` has another length.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let mut jacobian = [0.0; 4];
            /// let f = Tape::record(|x: &[Var]| [x[0] * x[1], x[0]]);
            /// f.jacobian_into(&[2.0, 3.0], &mut jacobian)?;
            /// assert_eq!(jacobian, [3.0, 2.0, 1.0, 0.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| [x[0], x[1] * data[0]]);
            /// f.jacobian_into(&[2.0, 3.0], &[4.0], &mut jacobian)?;
            /// assert_eq!(jacobian, [1.0, 0.0, 0.0, 4.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn jacobian_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                jacobian: &mut [f64],
            ) -> Result<O::Of<()>, Error> {
                let (one, several) = (Purpose::Gradient.into(), Purpose::Jacobian.into());
                let to = Results::Into { slice: jacobian, name: "Jacobian" };
                Ok(O::answer(self.results(x $(, $data)?, one, several, to)?.map(drop)))
            }

            /// A call for a single number, for functions of one output.
            pub(super) fn call_one<'r>(
                &self,
                x: &[f64] $(, $data: $type)?,
                request: impl Into<Request<'r>>,
                gradient: &mut [f64],
            ) -> CallResult<f64, O> {
                let failure = Cell::new(None);
                let (f, inputs) = (self.only_output(&failure), inputs!(x $(, $data)?));
                let result = self.core().call(f, inputs, request.into(), gradient);
                with_failure(result, failure)
            }

            /// A call for the results of `several`, for functions of several outputs.
            pub(super) fn call_outputs(
                &self,
                x: &[f64] $(, $data: $type)?,
                request: Request<'_>,
                results: Results<'_>,
            ) -> CallResult<OutputShape, O> {
                let failure = Cell::new(None);
                let (f, inputs) = (self.writer(&failure), inputs!(x $(, $data)?));
                let of_type = OutputShape::of_type::<O::Outputs>();
                let result = self.core().call_outputs(f, of_type, inputs, request, results);
                with_failure(result, failure)
            }

            /// The results of `one` or `several`, depending on the number of outputs.
            pub(super) fn results(
                &self,
                x: &[f64] $(, $data: $type)?,
                one: Request<'_>,
                several: Request<'_>,
                mut results: Results<'_>,
            ) -> CallResult<OutputShape, O> {
                let shape = OutputShape::of_type::<O::Outputs>();
                match shape.filter(|_| is_scalar::<O>()) {
                    None => self.call_outputs(x $(, $data)?, several, results),
                    Some(shape) if one.purpose == Purpose::Gradient => {
                        let gradient = results.slice(x.len())?;
                        Ok(self.call_one(x $(, $data)?, one, gradient)?.map(|_| shape))
                    }
                    Some(shape) => {
                        let to = results.slice(1)?;
                        let result = self.call_one(x $(, $data)?, one, &mut [])?;
                        Ok(result.map(|value| {
                            to[0] = value;
                            shape
                        }))
                    }
                }
            }

            /// The results of `one` or `several` in the form of the outputs.
            fn structured(
                &self,
                x: &[f64] $(, $data: $type)?,
                one: Request<'_>,
                several: Request<'_>,
            ) -> Result<O::Of<Values<O>>, Error> {
                let (mut single, mut values) = ([0.0], Vec::new());
                let to = match is_scalar::<O>() {
                    true => Results::Into { slice: &mut single, name: "output" },
                    false => Results::Allocated(&mut values),
                };
                let result = self.results(x $(, $data)?, one, several, to)?;
                let numbers = if is_scalar::<O>() { &single[..] } else { &values };
                Ok(O::answer(result.map(|shape| {
                    O::Outputs::read(&mut OutputReader::new(numbers, &shape))
                })))
            }

            /// A vector-Jacobian product, with the weights of `request`.
            pub(super) fn product(
                &self,
                x: &[f64] $(, $data: $type)?,
                request: Request<'_>,
                results: Results<'_>,
            ) -> CallResult<(), O> {
                if !is_scalar::<O>() {
                    return Ok(self.call_outputs(x $(, $data)?, request, results)?.map(drop));
                }
                let w = request.weights;
                Error::check_length("slice of weights", 1, w.len())?;
                let mut results = results;
                let gradient = results.slice(x.len())?;
                let request = Request { purpose: Purpose::Gradient, weights: &[], ..request };
                Ok(self.call_one(x $(, $data)?, request, gradient)?.map(|_| {
                    scale(gradient, w[0]);
                }))
            }
        }
    };
}

/// The request for the weights `w` times the Jacobian.
pub(super) fn weighted_request(w: &[f64]) -> Request<'_> {
    Request { weights: w, ..Purpose::VectorJacobianProduct.into() }
}

/// The requests for derivatives along `v`, of one output and of several.
pub(super) fn directional_requests(v: &[f64]) -> [Request<'_>; 2] {
    [Purpose::DirectionalDerivative, Purpose::JacobianVectorProduct]
        .map(|purpose| Request { direction: v, ..purpose.into() })
}

any_outputs!(Recorded<F>, (&[Var]), ());
any_outputs!(RecordedWith<F>, (&[Var], &[Var]), (data: &[f64]));
