//! User-defined operations: functions of several numbers with derivatives by hand, which the tape,
//! the interpreter and kernels call.

use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A function of several numbers with derivatives by hand.
///
/// [`CustomOperation::new`] makes it callable with [`Var`](crate::Var)s, and asks once for the
/// numbers of inputs, outputs and saved values. The methods must depend on their arguments alone: a
/// kernel calls them again instead of the recorded function. They may run on any thread. All slices
/// for results are zero at first.
/// [`GradientCheck::operation`](crate::check::GradientCheck::operation) compares the derivatives
/// with differences.
///
/// # Examples
///
/// ```
/// use core::convert::Infallible;
///
/// use phigrad::{CustomOperation, Operation, Tape, Var};
///
/// /// The product of two complex numbers.
/// struct ComplexProduct;
///
/// impl Operation for ComplexProduct {
///     type Error = Infallible;
///
///     fn inputs(&self) -> usize {
///         4
///     }
///
///     fn outputs(&self) -> usize {
///         2
///     }
///
///     fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), Infallible> {
///         y[0] = x[0] * x[2] - x[1] * x[3];
///         y[1] = x[0] * x[3] + x[1] * x[2];
///         Ok(())
///     }
///
///     fn vjp(&self, x: &[f64], _: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
///         out[0] = w[0] * x[2] + w[1] * x[3];
///         out[1] = w[1] * x[2] - w[0] * x[3];
///         out[2] = w[0] * x[0] + w[1] * x[1];
///         out[3] = w[1] * x[0] - w[0] * x[1];
///     }
/// }
///
/// let product = CustomOperation::new(ComplexProduct);
/// let f = Tape::record(move |z: &[Var]| {
///     let Ok(square) = product.call(&[z[0], z[1], z[0], z[1]]);
///     square[0] + square[1]
/// });
/// // (a + bi)² = a² - b² + 2abi
/// assert_eq!(f.value_and_grad(&[3.0, 2.0])?, (17.0, vec![10.0, 2.0]));
/// # Ok::<(), phigrad::Error>(())
/// ```
pub trait Operation: Send + Sync + 'static {
    /// The reason why there are no outputs for some inputs;
    /// [`Infallible`](core::convert::Infallible) if there always are.
    type Error;

    /// The number of inputs.
    fn inputs(&self) -> usize;

    /// The number of outputs: at least one, and at most 2²⁰, or calls fail
    /// ([`Error::is_shape`](crate::Error::is_shape)).
    fn outputs(&self) -> usize;

    /// The number of further numbers that [`eval`](Operation::eval) stores for the derivatives, as
    /// the factors of a matrix.
    fn saved(&self) -> usize {
        0
    }

    /// Computes the outputs `y` at `x`, and the `saved` numbers.
    ///
    /// # Errors
    ///
    /// Where there are no outputs. A kernel leaves the call to the tape, on which
    /// [`CustomOperation::call`] returns the error; a run that goes on after it is not compiled.
    fn eval(&self, x: &[f64], y: &mut [f64], saved: &mut [f64]) -> Result<(), Self::Error>;

    /// Computes the vector-Jacobian product at `x`: the gradient of the sum of the outputs, each
    /// times its weight in `w`, into `out`, which is as long as `x`. `y` and `saved` are from
    /// [`eval`](Operation::eval) at `x`.
    fn vjp(&self, x: &[f64], y: &[f64], saved: &[f64], w: &[f64], out: &mut [f64]);

    /// Computes the Jacobian-vector product at `x`: the derivatives of the outputs along `v`, into
    /// `out`, which is as long as `y`.
    ///
    /// The default calls [`vjp`](Operation::vjp) once for each output: implement it for operations
    /// with many outputs whose derivatives along a direction, or Hessian products, are asked for.
    fn jvp(&self, x: &[f64], y: &[f64], saved: &[f64], v: &[f64], out: &mut [f64]) {
        let (mut w, mut row) = (vec![0.0; y.len()], vec![0.0; x.len()]);
        for (number, derivative) in out.iter_mut().enumerate() {
            w[number] = 1.0;
            row.fill(0.0);
            self.vjp(x, y, saved, &w, &mut row);
            w[number] = 0.0;
            *derivative = row.iter().zip(v).map(|(partial, v)| partial * v).sum();
        }
    }

    /// Tests whether [`vjp_tangent`](Operation::vjp_tangent) is implemented. Without it functions
    /// that call the operation have no second derivatives.
    fn is_twice_differentiable(&self) -> bool {
        false
    }

    /// Computes the derivative of [`vjp`](Operation::vjp) along `v` for fixed weights `w`: the
    /// Hessians of the outputs, each times its weight, times `v`. `out` is as long as `x`.
    fn vjp_tangent(
        &self,
        x: &[f64],
        y: &[f64],
        saved: &[f64],
        (w, v): (&[f64], &[f64]),
        out: &mut [f64],
    ) {
        let _ = (x, y, saved, w, v);
        out.fill(f64::NAN);
    }

    /// The name, for reports and errors.
    fn name(&self) -> &str {
        core::any::type_name::<Self>()
    }
}

/// An [`Operation`] that can be called with [`Var`](crate::Var)s.
///
/// Clones are the same operation. Make it once, outside of the recorded function: another one with
/// the same content is another operation, so a function that makes a new one in each call has no
/// kernel.
pub struct CustomOperation<T> {
    operation: Arc<T>,
    custom: Custom,
}

impl<T: Operation> CustomOperation<T> {
    /// The operation for calls with `Var`s.
    ///
    /// # Examples
    ///
    /// See [`Operation`].
    pub fn new(operation: T) -> Self {
        let operation = Arc::new(operation);
        let custom = Custom::new(Arc::clone(&operation) as Arc<dyn AnyOperation>);
        CustomOperation { operation, custom }
    }

    /// The operation itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::convert::Infallible;
    ///
    /// use phigrad::{CustomOperation, Operation};
    ///
    /// struct Scaled(f64);
    ///
    /// impl Operation for Scaled {
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
    ///         y[0] = self.0 * x[0];
    ///         Ok(())
    ///     }
    ///
    ///     fn vjp(&self, _: &[f64], _: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
    ///         out[0] = self.0 * w[0];
    ///     }
    /// }
    ///
    /// let scaled = CustomOperation::new(Scaled(3.0));
    /// assert_eq!(scaled.operation().0, 3.0);
    /// ```
    pub fn operation(&self) -> &T {
        &self.operation
    }

    /// The operation with another number.
    #[cfg(test)]
    pub(crate) fn with_id(mut self, id: u64) -> Self {
        self.custom.id = id;
        self
    }

    /// The operation as events and graphs name it.
    pub(crate) fn custom(&self) -> &Custom {
        &self.custom
    }
}

impl<T> Clone for CustomOperation<T> {
    fn clone(&self) -> Self {
        CustomOperation { operation: Arc::clone(&self.operation), custom: self.custom.clone() }
    }
}

impl<T> fmt::Debug for CustomOperation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomOperation").field(&self.custom).finish()
    }
}

/// An [`Operation`] with any error.
trait AnyOperation: Send + Sync {
    fn inputs(&self) -> usize;
    fn outputs(&self) -> usize;
    fn saved(&self) -> usize;
    fn eval(&self, x: &[f64], y: &mut [f64], saved: &mut [f64]) -> bool;
    fn vjp(&self, at: Evaluation<'_>, w: &[f64], out: &mut [f64]);
    fn jvp(&self, at: Evaluation<'_>, v: &[f64], out: &mut [f64]);
    fn is_twice_differentiable(&self) -> bool;
    fn vjp_tangent(&self, at: Evaluation<'_>, w: &[f64], v: &[f64], out: &mut [f64]);
    fn name(&self) -> &str;
}

impl<T: Operation> AnyOperation for T {
    fn inputs(&self) -> usize {
        Operation::inputs(self)
    }

    fn outputs(&self) -> usize {
        Operation::outputs(self)
    }

    fn saved(&self) -> usize {
        Operation::saved(self)
    }

    fn eval(&self, x: &[f64], y: &mut [f64], saved: &mut [f64]) -> bool {
        Operation::eval(self, x, y, saved).is_ok()
    }

    fn vjp(&self, Evaluation { x, y, saved }: Evaluation<'_>, w: &[f64], out: &mut [f64]) {
        Operation::vjp(self, x, y, saved, w, out);
    }

    fn jvp(&self, Evaluation { x, y, saved }: Evaluation<'_>, v: &[f64], out: &mut [f64]) {
        Operation::jvp(self, x, y, saved, v, out);
    }

    fn is_twice_differentiable(&self) -> bool {
        Operation::is_twice_differentiable(self)
    }

    fn vjp_tangent(
        &self,
        Evaluation { x, y, saved }: Evaluation<'_>,
        w: &[f64],
        v: &[f64],
        out: &mut [f64],
    ) {
        Operation::vjp_tangent(self, x, y, saved, (w, v), out);
    }

    fn name(&self) -> &str {
        Operation::name(self)
    }
}

/// An evaluation: its inputs, and what it has computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evaluation<'a> {
    pub(crate) x: &'a [f64],
    pub(crate) y: &'a [f64],
    pub(crate) saved: &'a [f64],
}

/// A custom operation, identified by its number.
///
/// The numbers of inputs, outputs and saved values are those at the beginning: kernels have buffers
/// for so many.
#[derive(Clone)]
pub struct Custom {
    id: u64,
    inputs: usize,
    outputs: usize,
    saved: usize,
    operation: Arc<dyn AnyOperation>,
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Custom) -> bool {
        self.id == other.id
    }
}

impl Custom {
    fn new(operation: Arc<dyn AnyOperation>) -> Custom {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let (inputs, outputs) = (operation.inputs(), operation.outputs());
        let (saved, id) = (operation.saved(), NEXT.fetch_add(1, Ordering::Relaxed));
        Custom { id, inputs, outputs, saved, operation }
    }

    /// The number of the operation in this process.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.operation.name()
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The number of values that derivatives need besides inputs and outputs.
    pub fn saved(&self) -> usize {
        self.saved
    }

    /// Tests whether there are second derivatives.
    pub fn is_twice_differentiable(&self) -> bool {
        self.operation.is_twice_differentiable()
    }

    /// The vector-Jacobian product.
    pub(crate) fn vjp(&self, at: Evaluation<'_>, w: &[f64], out: &mut [f64]) {
        with_caller(false, || self.operation.vjp(at, w, out));
    }

    /// The Jacobian-vector product.
    pub(crate) fn jvp(&self, at: Evaluation<'_>, v: &[f64], out: &mut [f64]) {
        with_caller(false, || self.operation.jvp(at, v, out));
    }

    /// The derivative of the vector-Jacobian product along `v`.
    pub(crate) fn vjp_tangent(&self, at: Evaluation<'_>, w: &[f64], v: &[f64], out: &mut [f64]) {
        with_caller(false, || self.operation.vjp_tangent(at, w, v, out));
    }
}

thread_local! {
    static IS_CALLED_BY_KERNEL: Cell<bool> = const { Cell::new(false) };
}

/// Tests whether the operation that is running has been called by a kernel.
pub(crate) fn is_called_by_kernel() -> bool {
    IS_CALLED_BY_KERNEL.get()
}

/// Calls `run`, a function of an operation, for a kernel or for the tape.
fn with_caller<T>(is_kernel: bool, run: impl FnOnce() -> T) -> T {
    let before = IS_CALLED_BY_KERNEL.replace(is_kernel);
    let result = run();
    IS_CALLED_BY_KERNEL.set(before);
    result
}

/// A function that belongs to a custom operation, as graphs call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomFunction {
    /// From the inputs to the outputs and the saved values.
    Eval,
    /// From the evaluation and the weights to the vector-Jacobian product.
    Vjp,
    /// From the evaluation and the direction to the Jacobian-vector product.
    Jvp,
    /// From the evaluation, the weights and the direction to the derivative of the
    /// vector-Jacobian product.
    VjpTangent,
}

/// A function of a custom operation, which graphs call as a routine. An evaluation is inputs,
/// outputs and saved values, in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomRoutine {
    /// The operation.
    pub custom: Custom,
    /// The function.
    pub function: CustomFunction,
}

impl CustomRoutine {
    fn evaluation(&self) -> usize {
        self.custom.inputs() + self.custom.outputs() + self.custom.saved()
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        let (inputs, outputs) = (self.custom.inputs(), self.custom.outputs());
        match self.function {
            CustomFunction::Eval => inputs,
            CustomFunction::Vjp => self.evaluation() + outputs,
            CustomFunction::Jvp => self.evaluation() + inputs,
            CustomFunction::VjpTangent => self.evaluation() + outputs + inputs,
        }
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        match self.function {
            CustomFunction::Eval => self.custom.outputs() + self.custom.saved(),
            CustomFunction::Vjp | CustomFunction::VjpTangent => self.custom.inputs(),
            CustomFunction::Jvp => self.custom.outputs(),
        }
    }

    /// Computes the outputs into `results`, after a first number that is 1 if there are any and
    /// otherwise 0. A panic of the operation counts as no outputs: the tape then repeats it.
    pub(crate) fn run(&self, inputs: &[f64], results: &mut [f64]) {
        let Some((accepted, outputs)) = results.split_first_mut() else { return };
        let run = AssertUnwindSafe(|| self.run_or_panic(inputs, outputs));
        let has_outputs = with_caller(true, || catch_unwind(run).unwrap_or(false));
        *accepted = if has_outputs { 1.0 } else { 0.0 };
    }

    fn run_or_panic(&self, inputs: &[f64], outputs: &mut [f64]) -> bool {
        let custom = &self.custom;
        let operation = &*custom.operation;
        outputs.fill(0.0);
        let (x, rest) = inputs.split_at(custom.inputs);
        let evaluation = || {
            let (y, rest) = rest.split_at(custom.outputs);
            let (saved, others) = rest.split_at(custom.saved);
            (Evaluation { x, y, saved }, others)
        };
        match self.function {
            CustomFunction::Eval => {
                let (y, saved) = outputs.split_at_mut(custom.outputs);
                return operation.eval(x, y, saved);
            }
            CustomFunction::Vjp => {
                let (at, w) = evaluation();
                operation.vjp(at, w, outputs);
            }
            CustomFunction::Jvp => {
                let (at, v) = evaluation();
                operation.jvp(at, v, outputs);
            }
            CustomFunction::VjpTangent => {
                let (at, others) = evaluation();
                let (w, v) = others.split_at(custom.outputs);
                operation.vjp_tangent(at, w, v, outputs);
            }
        }
        true
    }
}

impl fmt::Display for CustomRoutine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = match self.function {
            CustomFunction::Eval => "eval",
            CustomFunction::Vjp => "vjp",
            CustomFunction::Jvp => "jvp",
            CustomFunction::VjpTangent => "vjp_tangent",
        };
        write!(f, "custom {function} of {}", self.custom.name())
    }
}
