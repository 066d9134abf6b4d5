//! The benchmark programs: what each one has to provide, and the list of them.
//!
//! A new program is one file (or folder) here, its `mod` line and its line in `PROGRAMS`.

mod bgd_hyper_opt;
mod brachistochrone;
pub mod cart_pole;
mod data;
pub mod extra;
pub mod hmc;
mod hookean_spring;
pub mod qwop;

use std::ops::{Add, Div, Mul, Sub};

use num_traits::Float;
use phigrad::Carry;

use crate::entry::Entry;

/// All programs, in the order of the tables.
pub static PROGRAMS: &[Entry] = &[
    Entry::of::<bgd_hyper_opt::BgdHyperOpt>(),
    Entry::of::<brachistochrone::Brachistochrone>(),
    Entry::of::<cart_pole::CartPole>(),
    Entry::of::<hmc::Hmc>(),
    Entry::of::<hookean_spring::HookeanSpring>(),
    Entry::of::<qwop::Qwop>(),
];

/// The number type of an objective: `f64` itself, or `phigrad::Var`.
pub trait Scalar:
    Float
    + From<f64>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
    + Div<f64, Output = Self>
    + PartialOrd<f64>
    + Carry
{
}

impl<T> Scalar for T where
    T: Float
        + From<f64>
        + Add<f64, Output = T>
        + Sub<f64, Output = T>
        + Mul<f64, Output = T>
        + Div<f64, Output = T>
        + PartialOrd<f64>
        + Carry
{
}

/// One program with its data: the objective as a user writes it, and the two
/// hand-written functions that everything else is compared with.
pub trait Program: Sized + Send + Sync + 'static {
    /// Name in tables, in the expected vectors and on the command line.
    const NAME: &'static str;
    /// The parameter of the configurations, usually a size.
    type Config: Copy + 'static;
    /// The configurations; users count them from 1.
    const CONFIGS: &'static [Self::Config];
    /// Buffers that the hand-written functions keep between calls, so that no
    /// timing includes an allocation that a careful author would avoid.
    type Work;

    /// The program with the data of one configuration.
    fn new(config: Self::Config) -> Self;

    /// Buffers for the hand-written functions.
    fn work(&self) -> Self::Work;

    /// The objective, written once for every kind of number.
    fn objective<T: Scalar>(&self, x: &[T]) -> T;

    /// The objective by hand, for `f64` alone: the bare primal.
    fn primal(&self, x: &[f64], work: &mut Self::Work) -> f64;

    /// The gradient by hand, without the value, in plain Rust.
    fn hand_gradient(&self, x: &[f64], gradient: &mut [f64], work: &mut Self::Work);
}

#[cfg(test)]
pub mod tests {
    use std::sync::Arc;

    use super::Program;
    use crate::accuracy::deviation;
    use crate::compiled::record;

    /// Compares the gradient by hand with that of the tape, also where the
    /// expected vectors do not lead; returns the buffers of the former.
    pub fn require_gradient_of_tape<P: Program>(config: P::Config, x: &[f64]) -> P::Work {
        let program = Arc::new(P::new(config));
        let mut work = program.work();
        let mut by_hand = vec![0.0; x.len()];
        program.hand_gradient(x, &mut by_hand, &mut work);
        let recorded = record(move |x| program.objective(x), phigrad::Numerics::Exact);
        let by_tape = recorded.grad(x).unwrap();
        let found = deviation(&by_hand, &by_tape);
        assert!(found < 1e-8, "{} is off by {found:e}", P::NAME);
        work
    }
}
