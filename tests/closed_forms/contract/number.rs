//! The numbers that programs compute with: variables of the tape, plain numbers, and the numbers of
//! the reference.

use std::ops::{Add, Div, Mul, Neg, Sub};

use phigrad::Var;

/// A number of a program.
pub trait Number:
    Copy
    + From<f64>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// eˣ.
    fn exponential(self) -> Self;

    /// The natural logarithm.
    fn logarithm(self) -> Self;

    /// The state after `count` steps: an inner loop of a program.
    fn repeat(count: usize, state: Vec<Self>, step: impl Fn(&[Self]) -> Vec<Self>) -> Vec<Self> {
        (0..count).fold(state, |state, _| step(&state))
    }

    fn square(self) -> Self {
        self * self
    }
}

impl Number for Var {
    fn exponential(self) -> Var {
        self.exp()
    }

    fn logarithm(self) -> Var {
        self.ln()
    }
}

impl Number for f64 {
    fn exponential(self) -> f64 {
        self.exp()
    }

    fn logarithm(self) -> f64 {
        self.ln()
    }
}
