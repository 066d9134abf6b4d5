//! Double-double numbers: sums of two floats, with twice the digits.
//!
//! Source: T. J. Dekker, "A floating-point technique for extending the available
//! precision", Numerische Mathematik 18, 1971. Products are split by fused
//! multiplication.

use core::ops::{Add, Div, Mul, Neg, Sub};

/// Products nearer to zero than this have lost digits.
const LEAST: f64 = 1e-270;

/// A number of about 106 binary digits; `low` is at most half an ulp of `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Double {
    pub(super) high: f64,
    pub(super) low: f64,
}

impl Double {
    pub(super) const ZERO: Double = Double { high: 0.0, low: 0.0 };

    /// The sum of two floats, exactly.
    fn sum(a: f64, b: f64) -> Double {
        let high = a + b;
        let from_b = high - a;
        Double { high, low: (a - (high - from_b)) + (b - from_b) }
    }

    /// The product of two floats, exactly but for underflow.
    fn product(a: f64, b: f64) -> Double {
        let high = a * b;
        Double { high, low: a.mul_add(b, -high) }
    }

    /// The sum where `a` is not the smaller one.
    fn normal(a: f64, b: f64) -> Double {
        let high = a + b;
        Double { high, low: b - (high - a) }
    }

    /// The nearest float.
    pub(super) fn rounded(self) -> f64 {
        self.high + self.low
    }

    /// The product, which is no number if it is so near to zero that digits are lost: what
    /// it is multiplied by in a kernel may be so large that they count.
    pub(super) fn times_in_range(self, other: Double) -> Double {
        let product = self * other;
        let is_lost = product.high.abs() < LEAST && self != Double::ZERO && other != Double::ZERO;
        if is_lost { f64::NAN.into() } else { product }
    }

    pub(super) fn is_finite(self) -> bool {
        self.high.is_finite() && self.low.is_finite()
    }
}

impl From<f64> for Double {
    fn from(high: f64) -> Double {
        Double { high, low: 0.0 }
    }
}

impl Add for Double {
    type Output = Double;
    fn add(self, other: Double) -> Double {
        let (high, low) = (Double::sum(self.high, other.high), Double::sum(self.low, other.low));
        let first = Double::normal(high.high, high.low + low.high);
        Double::normal(first.high, first.low + low.low)
    }
}

impl Neg for Double {
    type Output = Double;
    fn neg(self) -> Double {
        Double { high: -self.high, low: -self.low }
    }
}

impl Sub for Double {
    type Output = Double;
    fn sub(self, other: Double) -> Double {
        self + -other
    }
}

impl Mul for Double {
    type Output = Double;
    fn mul(self, other: Double) -> Double {
        let product = Double::product(self.high, other.high);
        Double::normal(product.high, product.low + (self.high * other.low + self.low * other.high))
    }
}

impl Div for Double {
    type Output = Double;
    fn div(self, other: Double) -> Double {
        let first = self.high / other.high;
        let rest = self - other * first.into();
        let second = rest.high / other.high;
        let rest = rest - other * second.into();
        Double::normal(first, second) + (rest.high / other.high).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_digits_are_kept() {
        let third = Double::from(1.0) / Double::from(3.0);
        let rest = third * Double::from(3.0) - Double::from(1.0);
        assert!(rest.high.abs() < 1e-31, "{rest:?}");
        let small = Double::from(1e20) + Double::from(1.0) - Double::from(1e20);
        assert_eq!(small.rounded(), 1.0);
    }

    #[test]
    fn what_is_not_finite_stays_so() {
        let infinite = Double::from(f64::INFINITY);
        assert!(!(infinite + Double::from(1.0)).is_finite());
        assert!(!(Double::from(1.0) / Double::ZERO).is_finite());
    }
}
