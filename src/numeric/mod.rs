//! Routines, which graphs call: those that evaluate closed forms of loops, with the accuracy
//! contract, and custom operations.
//!
//! Arithmetic:
//!
//! - [`double_double`]: double-double numbers with a running error bound
//! - [`acceptance`]: the accuracy contract
//! - `linear`: small linear systems
//!
//! Coefficient programs:
//!
//! - [`program`]: straight-line programs from live-ins to the coefficients of affine maps
//! - `evaluate`: evaluation of programs, and their reverse sweep
//!
//! The routines of closed forms:
//!
//! - `affine_power`: affine recurrences of 1 to 6 states; `compute` evaluates them
//!   - `powering`: binary powering of an affine map, and its reverse sweep
//!   - `quotients`: scalar recurrences by quotients
//!   - `dependence`: structural zeros of powers
//! - `polynomial`: sums that are polynomials of live-ins
//! - `moments`: the coefficients of these polynomials from data in a call
//! - `text`: the text form
//!
//! Kernels and the interpreter call [`Routine::run`] with the live-ins of a loop, or the arguments
//! of a custom operation. Routines of closed forms do not allocate. `run_inlined` is for callers
//! that are compiled with hardware FMA; without, the results are the same, but `mul_add` is slow.

pub mod acceptance;
mod affine_power;
mod compute;
mod dependence;
pub mod double_double;
mod evaluate;
mod linear;
mod moments;
mod polynomial;
mod powering;
pub mod program;
mod quotients;
mod text;

use crate::custom::CustomRoutine;

pub use affine_power::AffinePower;
pub(crate) use linear::{is_positive_definite, solve};
pub use moments::Moments;
pub use polynomial::Polynomial;
pub use program::{
    AffineMap, Instruction, MAX_STATES, OPERATIONS, Power, Program, ProgramError, Slot, Trips,
};
pub use text::TextError;

/// A routine: it evaluates the closed form of a loop, with partial derivatives, or is a function of
/// a custom operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Routine {
    /// The state of an affine recurrence.
    AffinePower(AffinePower),
    /// A polynomial of live-ins.
    Polynomial(Polynomial),
    /// Moments of data.
    Moments(Moments),
    /// A function of a user-defined operation.
    Custom(CustomRoutine),
}

impl Routine {
    /// The name, the first word of the text form.
    pub fn name(&self) -> &'static str {
        match self {
            Routine::AffinePower(_) => "affine_power",
            Routine::Polynomial(_) => "polynomial",
            Routine::Moments(_) => "moments",
            Routine::Custom(_) => "custom",
        }
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        match self {
            Routine::AffinePower(power) => power.inputs(),
            Routine::Polynomial(polynomial) => polynomial.inputs(),
            Routine::Moments(moments) => moments.program().inputs() as usize,
            Routine::Custom(custom) => custom.inputs(),
        }
    }

    /// The number of outputs, each of which has a value and partial derivatives.
    pub fn outputs(&self) -> usize {
        match self {
            Routine::AffinePower(power) => power.outputs().len(),
            Routine::Polynomial(_) => 1,
            Routine::Moments(moments) => 3 * moments.values().len(),
            Routine::Custom(custom) => custom.outputs(),
        }
    }

    /// The inputs by which partial derivatives are computed.
    pub fn differentiated(&self) -> &[u32] {
        match self {
            Routine::AffinePower(power) => power.differentiated(),
            Routine::Polynomial(polynomial) => polynomial.differentiated(),
            Routine::Moments(_) | Routine::Custom(_) => &[],
        }
    }

    /// The number of results: 1 or 0 for acceptance, then for each output its value and its
    /// partial derivatives by the differentiated inputs.
    pub fn results(&self) -> usize {
        1 + self.outputs() * (1 + self.differentiated().len())
    }

    /// The index of an output's value in the results. Its partial derivatives follow it.
    pub fn value_index(&self, output: usize) -> usize {
        1 + output * (1 + self.differentiated().len())
    }

    /// True if this result is a partial derivative.
    pub fn is_partial(&self, result: usize) -> bool {
        result > 0 && !(result - 1).is_multiple_of(1 + self.differentiated().len())
    }

    /// Computes the results, see [`AffinePower::run`], [`Polynomial::run`] and [`Moments::run`].
    pub fn run(&self, inputs: &[f64], with_partials: bool, results: &mut [f64]) {
        match self {
            Routine::AffinePower(power) => power.run(inputs, with_partials, results),
            Routine::Polynomial(polynomial) => polynomial.run(inputs, with_partials, results),
            Routine::Moments(moments) => moments.run(inputs, results),
            Routine::Custom(custom) => custom.run(inputs, results),
        }
    }

    /// The function of a custom operation that it is.
    pub fn custom(&self) -> Option<&CustomRoutine> {
        match self {
            Routine::Custom(custom) => Some(custom),
            _ => None,
        }
    }

    /// [`run`](Self::run), inlined to be compiled for the target features of the caller. The code
    /// is large.
    #[inline(always)]
    pub(crate) fn run_inlined(&self, inputs: &[f64], with_partials: bool, results: &mut [f64]) {
        match self {
            Routine::AffinePower(power) => power.run_inlined(inputs, with_partials, results),
            Routine::Polynomial(polynomial) => {
                polynomial.run_inlined(inputs, with_partials, results);
            }
            Routine::Moments(moments) => moments.run_inlined(inputs, results),
            Routine::Custom(custom) => custom.run(inputs, results),
        }
    }
}

/// Kernels with routines are shared between threads.
const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Routine>();
};
