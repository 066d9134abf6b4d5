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
//! - `text`: the text form of routines
//!
//! A routine is data: kernel and interpreter call [`Routine::run`] with the live-ins of a loop.
//! It allocates nothing, and all of it is inlined into the caller, which should be compiled with
//! hardware FMA; without, it computes the same numbers slowly.

pub mod acceptance;
mod affine_power;
mod compute;
mod dependence;
pub mod double_double;
mod evaluate;
mod powering;
pub mod program;
mod quotients;
mod text;

#[cfg(test)]
mod tests;

pub use affine_power::AffinePower;
pub use program::{AffineMap, Instruction, MAX_STATES, Power, Program, ProgramError, Slot, Trips};
pub use text::TextError;

/// A routine that computes what a loop does, with partial derivatives.
#[derive(Clone, Debug, PartialEq)]
pub enum Routine {
    /// The state of an affine recurrence.
    AffinePower(AffinePower),
}

impl Routine {
    /// The name, the first word of the text form.
    pub fn name(&self) -> &'static str {
        match self {
            Routine::AffinePower(_) => "affine_power",
        }
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        match self {
            Routine::AffinePower(power) => power.inputs(),
        }
    }

    /// The number of results; the first is 1 if the call is accepted and 0 if not.
    pub fn results(&self) -> usize {
        match self {
            Routine::AffinePower(power) => power.results(),
        }
    }

    /// Whether this result is a partial derivative.
    pub fn is_partial(&self, result: usize) -> bool {
        match self {
            Routine::AffinePower(power) => {
                result > 0 && (result - 1) % (1 + power.differentiated().len()) != 0
            }
        }
    }

    /// Computes the results, see [`AffinePower::run`].
    #[inline(always)]
    pub fn run(&self, inputs: &[f64], with_partials: bool, results: &mut [f64]) {
        match self {
            Routine::AffinePower(power) => power.run(inputs, with_partials, results),
        }
    }
}

/// Kernels that hold routines are called from many threads.
const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Routine>();
};
