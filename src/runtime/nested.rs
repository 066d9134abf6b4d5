//! Recorded functions inside others: a call with `Var`s is one node of the outer recording, a
//! custom operation whose values and derivatives are those of the inner function, by kernels or the
//! tape.

use core::marker::PhantomData;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;

use super::core::Results;
use super::error::Error;
use super::function::Request;
use super::outputs::{Output, OutputReader, OutputShape, Outputs};
use super::recorded::Recorded;
use super::vector::{CallResult, directional_requests, is_scalar, scale, weighted_request};
use crate::custom::{CustomOperation, Operation, is_called_by_kernel};
use crate::pipeline::Purpose;
use crate::trace::{Var, inlines_calls, note_failed_call, record_gradient};

/// The operations that stand for a recorded function in others. None is ever dropped: a new one for
/// the same key would be another operation, and a run that calls it another path.
#[derive(Default)]
pub(super) struct NestedOperations {
    known: Mutex<HashMap<NestedKey, CustomOperation<Nested>>>,
}

/// The number of inputs, and the shape of the outputs; the gradient has none.
type NestedKey = (usize, Option<OutputShape>);

impl NestedOperations {
    /// The operation for this number of inputs and shape of outputs; `make` makes its function.
    fn get(
        &self,
        key: NestedKey,
        make: impl FnOnce() -> Arc<dyn NestedFunction>,
    ) -> CustomOperation<Nested> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let inputs = key.0;
        let outputs = key.1.as_ref().map_or(inputs, |shape| shape.count);
        let operation = known
            .entry(key)
            .or_insert_with(|| CustomOperation::new(Nested { inputs, outputs, function: make() }));
        operation.clone()
    }
}

/// A recorded function, or its gradient, with a fixed number of inputs and outputs, as an
/// operation.
struct Nested {
    inputs: usize,
    outputs: usize,
    function: Arc<dyn NestedFunction>,
}

/// A recorded function, or its gradient. `None` stands for an error.
trait NestedFunction: Send + Sync {
    fn eval(&self, x: &[f64], y: &mut [f64]) -> Option<()>;
    fn vjp(&self, x: &[f64], w: &[f64], out: &mut [f64]) -> Option<()>;
    fn jvp(&self, x: &[f64], v: &[f64], out: &mut [f64]) -> Option<()>;
    fn vjp_tangent(&self, x: &[f64], w: &[f64], v: &[f64], out: &mut [f64]) -> Option<()>;
    fn is_twice_differentiable(&self) -> bool;
}

impl Operation for Nested {
    type Error = ();

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), ()> {
        self.function.eval(x, y).ok_or(())
    }

    fn vjp(&self, x: &[f64], _: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
        self.function.vjp(x, w, out).unwrap_or_else(|| out.fill(f64::NAN));
    }

    fn jvp(&self, x: &[f64], _: &[f64], _: &[f64], v: &[f64], out: &mut [f64]) {
        self.function.jvp(x, v, out).unwrap_or_else(|| out.fill(f64::NAN));
    }

    fn is_twice_differentiable(&self) -> bool {
        self.function.is_twice_differentiable()
    }

    fn vjp_tangent(
        &self,
        x: &[f64],
        _: &[f64],
        _: &[f64],
        (w, v): (&[f64], &[f64]),
        out: &mut [f64],
    ) {
        self.function.vjp_tangent(x, w, v, out).unwrap_or_else(|| out.fill(f64::NAN));
    }

    fn name(&self) -> &str {
        match self.function.is_twice_differentiable() {
            true => "recorded function",
            false => "gradient of a recorded function",
        }
    }
}

/// The outputs of a recorded function, if they have this shape.
struct OutputsOf<F, O> {
    f: Recorded<F>,
    shape: OutputShape,
    output: PhantomData<fn() -> O>,
}

/// The gradient of a recorded function of one output.
struct GradientOf<F, O> {
    f: Recorded<F>,
    output: PhantomData<fn() -> O>,
}

/// The request of an operation, with its caller.
fn of_caller(request: Request<'_>) -> Request<'_> {
    Request { is_by_kernel: is_called_by_kernel(), ..request }
}

/// The results of a call without an error.
fn without_error<T, E>(result: Result<Result<T, E>, Error>) -> Option<()> {
    result.ok()?.ok().map(drop)
}

impl<O: Output, F: Fn(&[Var]) -> O + Send + Sync> NestedFunction for OutputsOf<F, O> {
    fn eval(&self, x: &[f64], y: &mut [f64]) -> Option<()> {
        let (one, several) = (Purpose::Value.into(), Purpose::Outputs.into());
        let [one, several] = [one, several].map(of_caller);
        let to = Results::Into { slice: y, name: "slice of outputs" };
        let shape = self.f.results(x, one, several, to).ok()?.ok()?;
        (shape == self.shape).then_some(())
    }

    fn vjp(&self, x: &[f64], w: &[f64], out: &mut [f64]) -> Option<()> {
        let to = Results::Into { slice: out, name: "product" };
        without_error(self.f.product(x, of_caller(weighted_request(w)), to))
    }

    fn jvp(&self, x: &[f64], v: &[f64], out: &mut [f64]) -> Option<()> {
        let [one, several] = directional_requests(v).map(of_caller);
        let to = Results::Into { slice: out, name: "slice of derivatives" };
        without_error(self.f.results(x, one, several, to))
    }

    fn vjp_tangent(&self, x: &[f64], w: &[f64], v: &[f64], out: &mut [f64]) -> Option<()> {
        without_error(self.f.weighted_hessian_product(x, w, v, out))
    }

    fn is_twice_differentiable(&self) -> bool {
        true
    }
}

impl<O, F> NestedFunction for GradientOf<F, O>
where
    O: Output<Outputs = Var>,
    F: Fn(&[Var]) -> O + Send + Sync,
{
    fn eval(&self, x: &[f64], y: &mut [f64]) -> Option<()> {
        without_error(self.f.call_one(x, of_caller(Purpose::Gradient.into()), y))
    }

    fn vjp(&self, x: &[f64], w: &[f64], out: &mut [f64]) -> Option<()> {
        let request = Request { direction: w, ..Purpose::HessianProduct.into() };
        without_error(self.f.call_one(x, of_caller(request), out))
    }

    fn jvp(&self, x: &[f64], v: &[f64], out: &mut [f64]) -> Option<()> {
        // The Hessian is symmetric.
        self.vjp(x, v, out)
    }

    fn vjp_tangent(&self, _: &[f64], _: &[f64], _: &[f64], _: &mut [f64]) -> Option<()> {
        None
    }

    fn is_twice_differentiable(&self) -> bool {
        false
    }
}

/// Returns the result of a call with `x` inside another function. An error is noted, because no
/// guard checks what that function does after it.
fn note_failure<T, E>(
    result: Result<Result<T, E>, Error>,
    x: &[Var],
) -> Result<Result<T, E>, Error> {
    if !matches!(result, Ok(Ok(_))) && !x.iter().all(|x| x.is_constant()) {
        note_failed_call();
    }
    result
}

/// The values of `x`.
fn values(x: &[Var]) -> Vec<f64> {
    x.iter().map(|x| x.number()).collect()
}

impl<O: Output + 'static, F: Fn(&[Var]) -> O + Send + Sync + 'static> Recorded<F> {
    /// Calls the function inside another recorded function: one node of the outer recording.
    ///
    /// Its values and derivatives come from the kernels of this function, or from the tape, as in
    /// other calls; the comparisons inside are no guards of the outer function. So if the number of
    /// outputs depends on a branch in this function, no guard of the outer one tells its paths
    /// apart: the tape serves the outer function
    /// ([`MergeError::Divergent`](crate::report::MergeError::Divergent)).
    ///
    /// An error of this function in a derivative makes that NaN. The function keeps about 200 bytes
    /// for each number of inputs and shape of outputs of such calls. A
    /// [`RecordedWith`](crate::RecordedWith) cannot be called like this: record a function whose
    /// inputs are all active.
    ///
    /// # Errors
    ///
    /// As for [`Recorded::eval`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let polar = Tape::record(|p: &[Var]| [p[0] * p[1].cos(), p[0] * p[1].sin()]);
    /// let f = Tape::record(move |p: &[Var]| {
    ///     let [x, y] = polar.call(p).expect("two outputs of two inputs");
    ///     x * y
    /// });
    /// // r²·cos(φ)·sin(φ)
    /// assert_eq!(f.grad(&[2.0, 0.0])?, [0.0, 4.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[track_caller]
    pub fn call(&self, x: &[Var]) -> Result<O::Of<O::Outputs>, Error> {
        let at = Location::caller();
        if inlines_calls() && !x.iter().all(|x| x.is_constant()) {
            return Ok(O::answer(self.function()(x, &[]).into_outputs()));
        }
        let (one, several) = (Purpose::Value.into(), Purpose::Outputs.into());
        let mut y = Vec::new();
        let result = self.results(&values(x), one, several, Results::Allocated(&mut y));
        let result = note_failure(result, x)?;
        Ok(O::answer(result.map(|shape| {
            let operation = self.nested.get((x.len(), Some(shape.clone())), || {
                Arc::new(OutputsOf { f: self.handle(), shape: shape.clone(), output: PhantomData })
            });
            let outputs = operation.record(x, &y, Vec::new(), at);
            O::Outputs::read_vars(&mut OutputReader::new(&outputs, &shape))
        })))
    }
}

impl<O, F> Recorded<F>
where
    O: Output<Outputs = Var> + 'static,
    F: Fn(&[Var]) -> O + Send + Sync + 'static,
{
    /// The gradient inside another recorded function: one node of the outer recording, whose
    /// derivatives are Hessian products of this function.
    ///
    /// For second derivatives of the outer function the operations of the gradient are recorded in
    /// place of the node, so calls can be nested for derivatives of any order. Custom operations
    /// inside this function have no such derivatives
    /// ([`Error::is_not_twice_differentiable`]).
    ///
    /// # Errors
    ///
    /// As for [`Recorded::grad`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let cubic = Tape::record(|x: &[Var]| x[0].powi(3));
    /// // The square of the gradient, 9·x⁴.
    /// let f = Tape::record(move |x: &[Var]| {
    ///     let gradient = cubic.call_grad(x).expect("one input");
    ///     gradient[0] * gradient[0]
    /// });
    /// assert_eq!(f.value_and_grad(&[2.0])?, (144.0, vec![288.0]));
    /// assert_eq!(f.hvp(&[2.0], &[1.0])?, [432.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[track_caller]
    pub fn call_grad(&self, x: &[Var]) -> Result<O::Of<Vec<Var>>, Error> {
        let at = Location::caller();
        let f = |x: &[Var]| self.function()(x, &[]).into_outputs();
        if !x.iter().all(|x| x.is_constant())
            && let Some(gradient) = record_gradient(f, x, at)
        {
            return Ok(O::answer(gradient));
        }
        let mut gradient = vec![0.0; x.len()];
        let result = self.call_one(&values(x), Purpose::Gradient, &mut gradient);
        let result = note_failure(result, x)?;
        Ok(O::answer(result.map(|_| {
            let operation = self.nested.get((x.len(), None), || {
                Arc::new(GradientOf { f: self.handle(), output: PhantomData })
            });
            operation.record(x, &gradient, Vec::new(), at)
        })))
    }
}

impl<O: Output, F: Fn(&[Var]) -> O> Recorded<F> {
    /// The Hessian of the sum of the outputs, each times its weight in `w`, times `v`.
    fn weighted_hessian_product(
        &self,
        x: &[f64],
        w: &[f64],
        v: &[f64],
        out: &mut [f64],
    ) -> CallResult<(), O> {
        let request = of_caller(Request { direction: v, ..Purpose::HessianProduct.into() });
        if is_scalar::<O>() {
            return Ok(self.call_one(x, request, out)?.map(|_| scale(out, w[0])));
        }
        let to = Results::Into { slice: out, name: "product" };
        Ok(self.call_outputs(x, Request { weights: w, ..request }, to)?.map(drop))
    }
}
