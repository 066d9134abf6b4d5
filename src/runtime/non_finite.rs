//! The origin of a NaN or an infinity in the results of a call.

use core::cell::{Cell, RefCell};
use core::fmt;

use super::core::Core;
use super::error::{Error, Kind};
use super::function::too_long;
use super::outputs::{Output, OutputWriter};
use super::recorded::{Recorded, RecordedWith, inputs};
use super::vector::with_failure;
use crate::ssa::Place;
use crate::trace::{
    Inputs, Origin, Role, Run, Trace, Var, number, operands, operation, origin_of_derivative,
    origin_of_value,
};

/// A result of a call that is not finite, and its origin. It is displayed as a sentence.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var};
///
/// let f = Tape::record(|x: &[Var]| (x[0] - x[1]).sqrt());
/// assert_eq!(f.find_non_finite(&[3.0, 2.0])?, None);
/// let found = f.find_non_finite(&[2.0, 2.0])?.unwrap();
/// let place = found.place().unwrap();
/// assert_eq!(found.to_string(), format!("sqrt of 0 at {place} has an infinite derivative"));
/// # Ok::<(), phigrad::Error>(())
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NonFinite {
    /// The result.
    pub result: NonFiniteResult,
    /// The first origin of it.
    pub origin: NonFiniteOrigin,
}

/// A result of a call that is not finite: the first one.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NonFiniteResult {
    /// The output with this number, from 0.
    Value {
        /// The number of the output.
        output: usize,
    },
    /// A derivative of an output; all outputs are finite.
    Derivative {
        /// The number of the output.
        output: usize,
        /// The number of the active input.
        input: usize,
    },
}

/// The origin of a NaN or an infinity: it was made there, of finite numbers.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NonFiniteOrigin {
    /// An active input.
    Input {
        /// The number of the input, from 0.
        input: usize,
        /// The number itself.
        value: f64,
    },
    /// An inactive input.
    Data {
        /// The number of the input, from 0.
        input: usize,
        /// The number itself.
        value: f64,
    },
    /// A constant: the output itself, or a number that is carried or passed to a custom operation.
    Constant,
    /// The value of an operation. Its operands are finite, but for constants.
    Operation {
        /// The name of the operation.
        operation: String,
        /// Its operands.
        operands: Vec<f64>,
        /// Its value.
        value: f64,
        /// The place in the source.
        place: Place,
    },
    /// The adjoint of the operation, which is finite, times its partial derivative by one of the
    /// operands.
    Derivative {
        /// The name of the operation.
        operation: String,
        /// Its operands.
        operands: Vec<f64>,
        /// The position of the operand, from 0.
        operand: usize,
        /// The partial derivative.
        partial: f64,
        /// The derivative of the output by the value of the operation.
        adjoint: f64,
        /// The place in the source.
        place: Place,
    },
    /// The sum of the finite derivatives along several paths from a number to the output: it
    /// overflows.
    Sum {
        /// The place in the source of the operation that computes the number; `None` if it is an
        /// input.
        place: Option<Place>,
    },
}

impl NonFinite {
    /// The place of the origin in the source, if it is an operation.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0].ln());
    /// let found = f.find_non_finite(&[-1.0])?.unwrap();
    /// assert_eq!(found.place().map(|place| place.line), Some(line!() - 2));
    /// let found = f.find_non_finite(&[f64::NAN])?.unwrap();
    /// assert_eq!(found.place(), None); // The input itself is NaN.
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    pub fn place(&self) -> Option<&Place> {
        match &self.origin {
            NonFiniteOrigin::Operation { place, .. }
            | NonFiniteOrigin::Derivative { place, .. } => Some(place),
            NonFiniteOrigin::Sum { place } => place.as_ref(),
            NonFiniteOrigin::Input { .. }
            | NonFiniteOrigin::Data { .. }
            | NonFiniteOrigin::Constant => None,
        }
    }
}

impl fmt::Display for NonFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            NonFiniteOrigin::Input { input, value } => {
                write!(f, "input {input} is {}", kind(*value))
            }
            NonFiniteOrigin::Data { input, value } => {
                write!(f, "inactive input {input} is {}", kind(*value))
            }
            NonFiniteOrigin::Constant => f.write_str("a constant is not finite"),
            NonFiniteOrigin::Operation { operation, operands, value, place } => {
                let operands = Operands(operands);
                write!(f, "{operation} of {operands} at {place} is {}", kind(*value))
            }
            NonFiniteOrigin::Derivative {
                operation,
                operands,
                operand,
                partial,
                adjoint,
                place,
            } => {
                let (numbers, by) = (Operands(operands), By(*operand, operands.len()));
                write!(f, "{operation} of {numbers} at {place} has ")?;
                match kind(*partial) {
                    "finite" => {
                        let [partial, adjoint] = [*partial, *adjoint].map(Number);
                        write!(f, "the derivative {partial}{by}, times {adjoint} it overflows")
                    }
                    "infinite" => write!(f, "an infinite derivative{by}"),
                    not_a_number => write!(f, "a derivative{by} that is {not_a_number}"),
                }
            }
            NonFiniteOrigin::Sum { place: Some(place) } => {
                write!(f, "the derivative by the number computed at {place} overflows as a sum")
            }
            NonFiniteOrigin::Sum { place: None } => {
                f.write_str("the derivative by an input overflows as a sum")
            }
        }
    }
}

fn kind(number: f64) -> &'static str {
    match number {
        _ if number.is_nan() => "NaN",
        _ if number.is_infinite() => "infinite",
        _ => "finite",
    }
}

/// A number with few digits where it is round.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        match size == 0.0 || !size.is_finite() || (1e-4..1e16).contains(&size) {
            true => write!(f, "{}", self.0),
            false => write!(f, "{:e}", self.0),
        }
    }
}

/// Operands in words: `1, 2 and 3`.
struct Operands<'a>(&'a [f64]);

impl fmt::Display for Operands<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, &operand) in self.0.iter().enumerate() {
            let separator = match position {
                0 => "",
                _ if position + 1 == self.0.len() => " and ",
                _ => ", ",
            };
            write!(f, "{separator}{}", Number(operand))?;
        }
        Ok(())
    }
}

/// The operand with this position among so many, if there are several.
struct By(usize, usize);

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let By(position, count) = *self;
        if count > 1 { write!(f, " by operand {}", position + 1) } else { Ok(()) }
    }
}

/// The public form of `origin`, one in `trace`.
fn origin(trace: &Trace<'_>, origin: Origin) -> NonFiniteOrigin {
    let place = |index: usize| {
        let site = trace.events.at(index).site();
        Place::new(site.file(), site.line(), site.column())
    };
    let operation = |index: usize| operation(trace, index).to_owned();
    let operands = |index: usize| -> Vec<f64> {
        operands(trace, index).into_iter().map(|operand| number(trace, operand)).collect()
    };
    match origin {
        Origin::Constant => NonFiniteOrigin::Constant,
        Origin::Value(index) => {
            let event = trace.events.at(index);
            let value = event.value();
            match event.role() {
                Role::ActiveInput => NonFiniteOrigin::Input { input: index, value },
                Role::InactiveInput => NonFiniteOrigin::Data { input: index - trace.active, value },
                Role::Phi | Role::Argument => NonFiniteOrigin::Constant,
                _ => NonFiniteOrigin::Operation {
                    operation: operation(index),
                    operands: operands(index),
                    value,
                    place: place(index),
                },
            }
        }
        Origin::Partial { event, operand, adjoint, partial } => NonFiniteOrigin::Derivative {
            operation: operation(event),
            operands: operands(event),
            operand,
            partial,
            adjoint,
            place: place(event),
        },
        Origin::Sum(index) => {
            let is_input = index < trace.active + trace.inactive;
            NonFiniteOrigin::Sum { place: (!is_input).then(|| place(index)) }
        }
    }
}

/// The first result of `trace` that is not finite, with its origin.
fn find(trace: &Trace<'_>, outputs: &[Var]) -> Option<NonFinite> {
    let outputs = || outputs.iter().map(|output| output.into_operand()).enumerate();
    let of_value = outputs().find_map(|(output, operand)| {
        let found = origin(trace, origin_of_value(trace, operand)?);
        Some(NonFinite { result: NonFiniteResult::Value { output }, origin: found })
    });
    of_value.or_else(|| {
        outputs().find_map(|(output, operand)| {
            let (found, input) = origin_of_derivative(trace, operand)?;
            let result = NonFiniteResult::Derivative { output, input };
            Some(NonFinite { result, origin: origin(trace, found) })
        })
    })
}

impl Core {
    /// Runs `f` on the tape, and finds the first result that is not finite. The run is not counted,
    /// and its path not merged.
    fn find_non_finite(
        &self,
        f: impl Fn(&[Var], &[Var], &mut OutputWriter) -> bool,
        inputs: Inputs<'_>,
    ) -> Result<Option<NonFinite>, Error> {
        let (outputs, is_failed) = (RefCell::new(OutputWriter::default()), Cell::new(false));
        let function = |active: &[Var], inactive: &[Var]| {
            let mut writer = OutputWriter::default();
            is_failed.set(!f(active, inactive, &mut writer));
            let last = writer.numbers.last().copied();
            outputs.replace(writer);
            last.unwrap_or(Var::from(0.0))
        };
        self.on_whole_tape(function, inputs, |run| match run {
            Run::Whole(_) if is_failed.get() => Err(Kind::Failed.into()),
            Run::Whole(trace) => Ok(find(trace, &outputs.borrow().numbers)),
            Run::Long(run) => Err(too_long(self.options().limits.trace_events, run)),
        })
    }
}

macro_rules! non_finite {
    ($name:ident<F>, ($($args:ty),*), ($($data:ident: $type:ty)?)) => {
        impl<O: Output, F: Fn($($args),*) -> O> $name<F> {
            /// The first result at `x` that is not finite, and the operation that made it so:
            /// outputs before derivatives. `None` if all outputs and their derivatives are finite.
            ///
            /// The function runs on the tape, once, and kernels, if there are any, do not matter.
            /// The run is not counted in the report. An infinity that no result depends on, as in
            /// `1.0 / x.exp()`, is not found.
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
            /// let f = Tape::record(|x: &[Var]| [x[0] * x[1], (x[0] + x[1]).ln()]);
            /// let found = f.find_non_finite(&[1.0, -3.0])?.unwrap();
            /// assert!(found.to_string().starts_with("ln of -2 at "));
            /// assert_eq!(found.place().unwrap().line, line!() - 3);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] / data[0]);
            /// let found = f.find_non_finite(&[1.0], &[0.0])?.unwrap();
            /// assert!(found.to_string().ends_with(" is infinite"), "{found}");
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn find_non_finite(
                &self,
                x: &[f64] $(, $data: $type)?
            ) -> Result<O::Of<Option<NonFinite>>, Error> {
                let failure = Cell::new(None);
                let (f, inputs) = (self.writer(&failure), inputs!(x $(, $data)?));
                let found = self.core().find_non_finite(f, inputs);
                with_failure(found, failure).map(O::answer)
            }
        }
    };
}

non_finite!(Recorded<F>, (&[Var]), ());
non_finite!(RecordedWith<F>, (&[Var], &[Var]), (data: &[f64]));
