//! Calls of custom operations.
//!
//! A call is recorded as an event for each argument and then one for each output, so that values
//! and adjoints of both are contiguous. The first operand of an argument is the number that is
//! passed; the second one links it to the argument before, and that of the first argument to
//! itself. The operands of an output are the last argument, and a word that tells the operation and
//! the number of the output.

use core::ops::Range;
use core::panic::Location;

use super::tangents::Dual;
use super::{Events, Site, TraceError, Var, recorder};
use crate::custom::{Custom, CustomOperation, Evaluation, Operation};
use crate::op::Op;

/// A call of a custom operation.
#[derive(Clone, Debug)]
pub struct CustomCall {
    pub(crate) custom: Custom,
    /// The event of the first output.
    pub(super) first_output: usize,
    /// The values that the operation has saved for its derivatives.
    pub(super) saved: Vec<f64>,
}

/// The operation and the number of an output, as one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutputWord {
    pub(crate) operation: u64,
    pub(crate) number: u32,
}

impl OutputWord {
    /// The bits of the number of the output; all of it has 53, so that it is exact.
    const NUMBER_BITS: u32 = 20;

    pub(crate) fn encode(self) -> f64 {
        (self.operation << Self::NUMBER_BITS | u64::from(self.number)) as f64
    }

    pub(crate) fn decode(word: f64) -> OutputWord {
        let word = word as u64;
        let number = word as u32 & ((1 << Self::NUMBER_BITS) - 1);
        OutputWord { operation: word >> Self::NUMBER_BITS, number }
    }
}

/// The largest number of outputs of an operation.
const MAX_OUTPUTS: usize = 1 << OutputWord::NUMBER_BITS;

/// The largest number that identifies an operation.
const MAX_OPERATION: u64 = (1 << (f64::MANTISSA_DIGITS - OutputWord::NUMBER_BITS)) - 1;

impl CustomCall {
    /// The contributions of the outputs, with these adjoints, to the adjoints of the arguments.
    pub(super) fn contributions(&self, events: &Events, weights: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; self.custom.inputs()];
        self.custom.vjp(self.evaluation(&events.values), weights, &mut product);
        product
    }

    /// The events of the arguments.
    pub(super) fn arguments(&self) -> Range<usize> {
        self.first_output - self.custom.inputs()..self.first_output
    }

    /// The events of the outputs.
    pub(super) fn outputs(&self) -> Range<usize> {
        self.first_output..self.first_output + self.custom.outputs()
    }

    fn evaluation<'a>(&'a self, values: &'a [f64]) -> Evaluation<'a> {
        Evaluation { x: &values[self.arguments()], y: &values[self.outputs()], saved: &self.saved }
    }

    /// Adds the contributions of the outputs to the adjoints of the arguments. The adjoints of the
    /// outputs become zero.
    #[cold]
    pub(super) fn sweep(&self, values: &[f64], adjoints: &mut [f64]) {
        self.sweep_at(self.evaluation(values), adjoints);
    }

    /// As [`CustomCall::sweep`], with the values of arguments and outputs, one after the other.
    pub(super) fn sweep_numbers(&self, numbers: &[f64], adjoints: &mut [f64]) {
        let (x, y) = numbers.split_at(self.custom.inputs());
        self.sweep_at(Evaluation { x, y, saved: &self.saved }, adjoints);
    }

    fn sweep_at(&self, at: Evaluation<'_>, adjoints: &mut [f64]) {
        let (before, outputs) = adjoints.split_at_mut(self.first_output);
        let weights = &mut outputs[..self.custom.outputs()];
        // An adjoint of zero is not propagated.
        if weights.iter().any(|&weight| weight != 0.0) {
            let mut product = vec![0.0; self.custom.inputs()];
            self.custom.vjp(at, weights, &mut product);
            let arguments = before[self.arguments()].iter_mut().zip(product);
            arguments.for_each(|(adjoint, contribution)| *adjoint += contribution);
            weights.fill(0.0);
        }
    }

    /// The derivatives of the outputs, appended to those of the events before.
    #[cold]
    pub(super) fn push_forward(&self, values: &[f64], tangents: &mut Vec<f64>) {
        let (arguments, outputs) = (self.arguments(), self.outputs());
        tangents.resize(outputs.end, 0.0);
        let (before, outputs) = tangents.split_at_mut(self.first_output);
        let direction = &before[arguments];
        if direction.iter().any(|&tangent| tangent != 0.0) {
            self.custom.jvp(self.evaluation(values), direction, outputs);
        }
    }

    /// As [`CustomCall::sweep`], with the derivatives along the direction of `tangents`.
    #[cold]
    pub(super) fn sweep_tangents(&self, values: &[f64], tangents: &[f64], adjoints: &mut [Dual]) {
        let (before, outputs) = adjoints.split_at_mut(self.first_output);
        let weights = &mut outputs[..self.custom.outputs()];
        let [values_of, tangents_of] = [|dual: &Dual| dual.value, |dual: &Dual| dual.tangent]
            .map(|part| weights.iter().map(part).collect::<Vec<f64>>());
        let at = self.evaluation(values);
        let mut product = vec![0.0; self.custom.inputs()];
        let arguments = &mut before[self.arguments()];
        if tangents_of.iter().any(|&weight| weight != 0.0) {
            self.custom.vjp(at, &tangents_of, &mut product);
            arguments.iter_mut().zip(&product).for_each(|(to, part)| to.tangent += part);
        }
        if values_of.iter().any(|&weight| weight != 0.0) {
            product.fill(0.0);
            self.custom.vjp(at, &values_of, &mut product);
            arguments.iter_mut().zip(&product).for_each(|(to, part)| to.value += part);
            let direction = &tangents[self.arguments()];
            // As a weight of zero, a tangent of zero is not propagated.
            if direction.iter().any(|&tangent| tangent != 0.0) {
                product.fill(0.0);
                self.custom.vjp_tangent(at, &values_of, direction, &mut product);
                arguments.iter_mut().zip(&product).for_each(|(to, part)| to.tangent += part);
            }
        }
    }
}

impl<T: Operation> CustomOperation<T> {
    /// Calls the operation: one node for the tape and for kernels, with as many inputs and outputs
    /// as it has.
    ///
    /// A call with another number of arguments fails the recording
    /// ([`Error::is_shape`](crate::Error::is_shape)); its outputs are NaN.
    ///
    /// # Errors
    ///
    /// That of [`Operation::eval`].
    ///
    /// # Examples
    ///
    /// See [`Operation`].
    #[track_caller]
    pub fn call(&self, x: &[Var]) -> Result<Vec<Var>, T::Error> {
        let (custom, at) = (self.custom(), Location::caller());
        let (mut y, mut saved) = (vec![0.0; custom.outputs()], vec![0.0; custom.saved()]);
        if x.len() == custom.inputs() {
            let values: Vec<f64> = x.iter().map(|x| x.value).collect();
            let result = self.operation().eval(&values, &mut y, &mut saved);
            if result.is_err() && !x.iter().all(|x| x.is_constant()) {
                recorder::note_failed_call();
            }
            result?;
        }
        Ok(self.record(x, &y, saved, at))
    }

    /// Records a call at `at` that has computed `y` and the values `saved`. Returns the outputs.
    pub(crate) fn record(&self, x: &[Var], y: &[f64], saved: Vec<f64>, at: Site) -> Vec<Var> {
        let custom = self.custom();
        let (found, expected) = (x.len(), custom.inputs());
        let error = if found != expected {
            Some(TraceError::Arguments { found, expected, at })
        } else if y.len() > MAX_OUTPUTS {
            Some(TraceError::TooManyOutputs { found: y.len(), limit: MAX_OUTPUTS, at })
        } else if custom.id() > MAX_OPERATION {
            Some(TraceError::TooManyOperations { limit: MAX_OPERATION, at })
        } else {
            None
        };
        if let Some(error) = error {
            recorder::fail(error);
            return vec![Var::constant(f64::NAN); y.len()];
        }
        if y.is_empty() {
            return Vec::new();
        }
        let tag = match x.iter().all(|x| x.is_constant()) {
            true => None,
            false => Some(recorder::record_call(custom, (x, y), saved, at)),
        };
        let var = |(&value, number)| match tag {
            Some(tag) => Var::traced(value, recorder::later(tag, number)),
            None => Var::constant(value),
        };
        y.iter().zip(0..).map(var).collect()
    }
}

impl Var {
    /// `value`, with `partial` as its derivative by this number: the derivatives that `value` has
    /// of its own do not count. Second derivatives are the
    /// derivatives of `partial`.
    ///
    /// For several inputs and outputs see [`Operation`](crate::Operation).
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// // A rounded number that passes its adjoint on as if it were not rounded.
    /// let f = Tape::record(|x: &[Var]| {
    ///     let rounded = x[0].with_derivative(x[0].round(), 1.0);
    ///     rounded * rounded
    /// });
    /// assert_eq!(f.value_and_grad(&[2.25])?, (4.0, vec![4.0]));
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn with_derivative(self, value: impl Into<Var>, partial: impl Into<Var>) -> Var {
        value.into().detach().apply3(Op::Attach, self, partial.into())
    }
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;

    use super::super::{Inputs, Tracer};
    use super::*;

    struct Copy;

    impl Operation for Copy {
        type Error = Infallible;

        fn inputs(&self) -> usize {
            1
        }

        fn outputs(&self) -> usize {
            1
        }

        fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), Infallible> {
            y[0] = x[0];
            Ok(())
        }

        fn vjp(&self, _: &[f64], _: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
            out[0] = w[0];
        }
    }

    #[test]
    fn an_operation_whose_number_takes_too_many_bits_is_not_called() {
        let inputs = Inputs { active: &[1.0], inactive: &[] };
        let at = Location::caller();
        for (id, is_called) in [(MAX_OPERATION, true), (MAX_OPERATION + 1, false)] {
            let operation = CustomOperation::new(Copy).with_id(id);
            let mut tracer = Tracer::default();
            let run = |x: &[Var], _: &[Var]| match operation.call(x) {
                Ok(y) => y[0],
                Err(never) => match never {},
            };
            match tracer.run(run, inputs, 10, at) {
                Ok(trace) => assert!(is_called && trace.calls[0].custom.id() == id),
                Err(error) => {
                    let is_expected = matches!(error, TraceError::TooManyOperations { .. });
                    assert!(is_expected && !is_called, "{error}");
                }
            }
        }
    }

    #[test]
    fn words_keep_operation_and_number() {
        for (operation, number) in [(1, 0), (MAX_OPERATION, (1 << 20) - 1), (1 << 32, 3)] {
            let word = OutputWord { operation, number };
            assert_eq!(OutputWord::decode(word.encode()), word);
        }
    }
}
