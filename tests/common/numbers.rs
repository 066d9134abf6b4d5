//! Dual numbers in double-double with the partials by all inputs, as a reference.
#![allow(clippy::suspicious_arithmetic_impl)] // Rules for products are sums.

use std::ops::{Add, Div, Mul, Neg, Sub};

use phigrad::Var;

use super::double_double::DoubleDouble;

/// The numbers of test programs: tape variables, floats and dual numbers.
pub trait Number:
    Copy
    + From<f64>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// An integer power.
    fn power(self, exponent: i32) -> Self {
        let (mut product, mut square) = (Self::from(1.0), self);
        let mut rest = exponent.unsigned_abs();
        while rest > 0 {
            if rest & 1 == 1 {
                product = product * square;
            }
            square = square * square;
            rest >>= 1;
        }
        if exponent < 0 { Self::from(1.0) / product } else { product }
    }

    /// The exponential: the Taylor series of a scaled argument, then squarings.
    fn exponential(self) -> Self {
        let small = self * Self::from(0.5f64.powi(12));
        let (mut sum, mut term) = (Self::from(1.0), Self::from(1.0));
        for k in 1..20 {
            term = term * small / Self::from(f64::from(k));
            sum = sum + term;
        }
        (0..12).fold(sum, |power, _| power * power)
    }
}

impl Number for Var {
    fn power(self, exponent: i32) -> Self {
        self.powi(exponent)
    }

    fn exponential(self) -> Self {
        self.exp()
    }
}
impl Number for f64 {}
impl Number for Dual {}

/// The largest number of inputs.
pub const INPUTS: usize = 8;

/// A number with its partials.
#[derive(Clone, Copy, Debug)]
pub struct Dual {
    value: DoubleDouble,
    partials: [DoubleDouble; INPUTS],
}

impl Dual {
    /// Input `number` with the value `x`.
    pub fn input(x: f64, number: usize) -> Dual {
        let mut dual = Dual::from(x);
        dual.partials[number] = DoubleDouble(1.0, 0.0);
        dual
    }

    /// The value in working precision.
    pub fn value(self) -> f64 {
        self.value.0
    }

    /// The value in double-double.
    pub fn value_words(self) -> DoubleDouble {
        self.value
    }

    /// The partial by an input in double-double.
    pub fn partial_words(self, input: usize) -> DoubleDouble {
        self.partials[input]
    }

    /// The chain rule: a function of this number with this value and derivative.
    pub fn chain(self, value: DoubleDouble, derivative: DoubleDouble) -> Dual {
        Dual { value, partials: self.partials.map(|inner| inner * derivative) }
    }

    /// The partial by an input.
    pub fn partial(self, input: usize) -> f64 {
        self.partials[input].0
    }
}

impl From<f64> for Dual {
    fn from(value: f64) -> Dual {
        Dual { value: DoubleDouble(value, 0.0), partials: [DoubleDouble(0.0, 0.0); INPUTS] }
    }
}

impl Add for Dual {
    type Output = Dual;

    fn add(self, other: Dual) -> Dual {
        let partials = core::array::from_fn(|i| self.partials[i] + other.partials[i]);
        Dual { value: self.value + other.value, partials }
    }
}

impl Neg for Dual {
    type Output = Dual;

    fn neg(self) -> Dual {
        Dual { value: -self.value, partials: self.partials.map(|partial| -partial) }
    }
}

impl Sub for Dual {
    type Output = Dual;

    fn sub(self, other: Dual) -> Dual {
        self + -other
    }
}

impl Mul for Dual {
    type Output = Dual;

    fn mul(self, other: Dual) -> Dual {
        let product = |i: usize| self.partials[i] * other.value + self.value * other.partials[i];
        Dual { value: self.value * other.value, partials: core::array::from_fn(product) }
    }
}

impl Div for Dual {
    type Output = Dual;

    fn div(self, other: Dual) -> Dual {
        let value = self.value / other.value;
        let partial = |i: usize| (self.partials[i] + -(value * other.partials[i])) / other.value;
        Dual { value, partials: core::array::from_fn(partial) }
    }
}
