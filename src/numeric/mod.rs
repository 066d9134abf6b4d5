//! Numerical routines that stand for loops, and the contract of their accuracy.
//!
//! - [`double_double`]: numbers of twice the working precision that carry an error bound
//! - [`acceptance`]: which results are accurate enough to be returned
//! - [`program`]: straight-line programs from live-ins to coefficients
//! - `dependence`: which entries of a map's powers are zero
//! - `evaluate`: their values and their reverse sweep
//! - `powering`: binary powering of an affine map, and its reverse sweep
//! - `quotients`: a recurrence of one state, faster
//! - `affine_power`: the routine for affine recurrences of 1 to 6 states
//! - `compute`: how its results are computed
//! - `linear`: small linear systems
//! - `polynomial`: the routine for sums that are polynomials of live-ins
//! - `moments`: the routine that computes their coefficients from data in a call
//! - `text`: the text form of routines
//!
//! A routine is data: kernel and interpreter call [`Routine::run`] with the live-ins of a loop.
//! It allocates nothing, and `run_inlined` is for callers that are compiled with
//! hardware FMA; without, it computes the same numbers slowly.

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

pub use affine_power::AffinePower;
pub(crate) use linear::{is_positive_definite, solve};
pub use moments::Moments;
pub use polynomial::Polynomial;
pub use program::{
    AffineMap, Instruction, MAX_STATES, OPERATIONS, Power, Program, ProgramError, Slot, Trips,
};
pub use text::TextError;

/// A routine that computes what a loop does, with partial derivatives.
#[derive(Clone, Debug, PartialEq)]
pub enum Routine {
    /// The state of an affine recurrence.
    AffinePower(AffinePower),
    /// A polynomial of live-ins.
    Polynomial(Polynomial),
    /// Moments of data.
    Moments(Moments),
}

impl Routine {
    /// The name, the first word of the text form.
    pub fn name(&self) -> &'static str {
        match self {
            Routine::AffinePower(_) => "affine_power",
            Routine::Polynomial(_) => "polynomial",
            Routine::Moments(_) => "moments",
        }
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        match self {
            Routine::AffinePower(power) => power.inputs(),
            Routine::Polynomial(polynomial) => polynomial.inputs(),
            Routine::Moments(moments) => moments.program().inputs() as usize,
        }
    }

    /// The number of outputs, each of which has a value and partial derivatives.
    pub fn outputs(&self) -> usize {
        match self {
            Routine::AffinePower(power) => power.outputs().len(),
            Routine::Polynomial(_) => 1,
            Routine::Moments(moments) => 3 * moments.values().len(),
        }
    }

    /// The inputs by which there are partial derivatives.
    pub fn differentiated(&self) -> &[u32] {
        match self {
            Routine::AffinePower(power) => power.differentiated(),
            Routine::Polynomial(polynomial) => polynomial.differentiated(),
            Routine::Moments(_) => &[],
        }
    }

    /// The number of results: whether the call is accepted (1) or not (0), then for each output
    /// its value and its partial derivatives by the differentiated inputs.
    pub fn results(&self) -> usize {
        1 + self.outputs() * (1 + self.differentiated().len())
    }

    /// The place of an output's value in the results. Its partial derivatives come after it.
    pub fn value_index(&self, output: usize) -> usize {
        1 + output * (1 + self.differentiated().len())
    }

    /// Whether this result is a partial derivative.
    pub fn is_partial(&self, result: usize) -> bool {
        result > 0 && !(result - 1).is_multiple_of(1 + self.differentiated().len())
    }

    /// Computes the results, see [`AffinePower::run`], [`Polynomial::run`] and [`Moments::run`].
    pub fn run(&self, inputs: &[f64], with_partials: bool, results: &mut [f64]) {
        match self {
            Routine::AffinePower(power) => power.run(inputs, with_partials, results),
            Routine::Polynomial(polynomial) => polynomial.run(inputs, with_partials, results),
            Routine::Moments(moments) => moments.run(inputs, results),
        }
    }

    /// The same, compiled for the target features of the caller: its code is large.
    #[inline(always)]
    pub(crate) fn run_inlined(&self, inputs: &[f64], with_partials: bool, results: &mut [f64]) {
        match self {
            Routine::AffinePower(power) => power.run_inlined(inputs, with_partials, results),
            Routine::Polynomial(polynomial) => {
                polynomial.run_inlined(inputs, with_partials, results);
            }
            Routine::Moments(moments) => moments.run_inlined(inputs, results),
        }
    }
}

/// Kernels that hold routines are called from many threads.
const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Routine>();
};
