//! Double-double numbers with derivatives, as a reference.
#![allow(clippy::suspicious_arithmetic_impl)] // Rules for products are sums.

use std::ops::{Add, Div, Mul, Neg, Sub};

use phigrad::Var;

/// The numbers that programs of the tests compute with.
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
        let mut left = exponent.unsigned_abs();
        while left > 0 {
            if left & 1 == 1 {
                product = product * square;
            }
            square = square * square;
            left >>= 1;
        }
        if exponent < 0 { Self::from(1.0) / product } else { product }
    }

    /// The exponential: its Taylor series at x/2ᵏ, then squared k times.
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

/// A sum of two numbers, the second at most half an ulp of the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wide(pub f64, pub f64);

fn normal(high: f64, low: f64) -> Wide {
    let sum = high + low;
    Wide(sum, low - (sum - high))
}

impl Add for Wide {
    type Output = Wide;

    fn add(self, other: Wide) -> Wide {
        let exact = |a: f64, b: f64| {
            let sum = a + b;
            let of_b = sum - a;
            (sum, (a - (sum - of_b)) + (b - of_b))
        };
        let ((high, lost), (low, lost_low)) = (exact(self.0, other.0), exact(self.1, other.1));
        let Wide(high, low) = normal(high, lost + low);
        normal(high, low + lost_low)
    }
}

impl Mul for Wide {
    type Output = Wide;

    fn mul(self, other: Wide) -> Wide {
        let high = self.0 * other.0;
        let lost = self.0.mul_add(other.0, -high);
        normal(high, lost + self.0.mul_add(other.1, self.1 * other.0))
    }
}

impl Neg for Wide {
    type Output = Wide;

    fn neg(self) -> Wide {
        Wide(-self.0, -self.1)
    }
}

impl Div for Wide {
    type Output = Wide;

    fn div(self, other: Wide) -> Wide {
        let first = Wide(self.0 / other.0, 0.0);
        let left = self + -(first * other);
        let second = Wide(left.0 / other.0, 0.0);
        let left = left + -(second * other);
        first + second + Wide(left.0 / other.0, 0.0)
    }
}

/// The largest number of inputs.
pub const INPUTS: usize = 8;

/// A value with its partial derivatives.
#[derive(Clone, Copy, Debug)]
pub struct Dual {
    value: Wide,
    slopes: [Wide; INPUTS],
}

impl Dual {
    /// The input of this number.
    pub fn input(x: f64, number: usize) -> Dual {
        let mut dual = Dual::from(x);
        dual.slopes[number] = Wide(1.0, 0.0);
        dual
    }

    pub fn value(self) -> f64 {
        self.value.0
    }

    /// Both words of the value.
    #[allow(dead_code)] // Programs without functions need no more than the operators.
    pub fn wide(self) -> Wide {
        self.value
    }

    /// Both words of the derivative with respect to an input.
    pub fn wide_slope(self, input: usize) -> Wide {
        self.slopes[input]
    }

    /// The chain rule for a function with this value and derivative.
    pub fn chain(self, value: Wide, slope: Wide) -> Dual {
        Dual { value, slopes: self.slopes.map(|inner| inner * slope) }
    }

    /// The derivative with respect to an input.
    pub fn slope(self, input: usize) -> f64 {
        self.slopes[input].0
    }
}

impl From<f64> for Dual {
    fn from(value: f64) -> Dual {
        Dual { value: Wide(value, 0.0), slopes: [Wide(0.0, 0.0); INPUTS] }
    }
}

impl Add for Dual {
    type Output = Dual;

    fn add(self, other: Dual) -> Dual {
        let slopes = core::array::from_fn(|i| self.slopes[i] + other.slopes[i]);
        Dual { value: self.value + other.value, slopes }
    }
}

impl Neg for Dual {
    type Output = Dual;

    fn neg(self) -> Dual {
        Dual { value: -self.value, slopes: self.slopes.map(|slope| -slope) }
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
        let product = |i: usize| self.slopes[i] * other.value + self.value * other.slopes[i];
        Dual { value: self.value * other.value, slopes: core::array::from_fn(product) }
    }
}

impl Div for Dual {
    type Output = Dual;

    fn div(self, other: Dual) -> Dual {
        let value = self.value / other.value;
        let slope = |i: usize| (self.slopes[i] + -(value * other.slopes[i])) / other.value;
        Dual { value, slopes: core::array::from_fn(slope) }
    }
}
