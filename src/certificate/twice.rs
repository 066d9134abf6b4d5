//! Numbers of twice the precision, in which what cancels in a closed form still cancels.
//!
//! Source: T. J. Dekker, "A floating-point technique for extending the available
//! precision", Numerische Mathematik 18, 1971. Products are split by fused multiplication.

/// The sum of two floats; `low` is at most half an ulp of `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Twice {
    pub(super) high: f64,
    pub(super) low: f64,
}

impl Twice {
    /// The sum of two floats, exactly.
    pub(super) fn sum(a: f64, b: f64) -> Twice {
        let high = a + b;
        let from_b = high - a;
        Twice { high, low: (a - (high - from_b)) + (b - from_b) }
    }

    pub(super) fn plus(self, other: Twice) -> Twice {
        let (high, low) = (Twice::sum(self.high, other.high), Twice::sum(self.low, other.low));
        let first = Twice::sum(high.high, high.low + low.high);
        Twice::sum(first.high, first.low + low.low)
    }

    pub(super) fn negated(self) -> Twice {
        Twice { high: -self.high, low: -self.low }
    }

    pub(super) fn minus(self, other: Twice) -> Twice {
        self.plus(other.negated())
    }

    pub(super) fn times(self, other: Twice) -> Twice {
        let high = self.high * other.high;
        let low = self.high.mul_add(other.high, -high);
        Twice::sum(high, low + (self.high * other.low + self.low * other.high))
    }

    pub(super) fn over(self, other: Twice) -> Twice {
        let first = Twice::from(self.high / other.high);
        let left = self.minus(first.times(other));
        let second = Twice::from(left.high / other.high);
        let left = left.minus(second.times(other));
        first.plus(second).plus(Twice::from(left.high / other.high))
    }
}

impl From<f64> for Twice {
    fn from(high: f64) -> Twice {
        Twice { high, low: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_below_those_of_a_float_are_kept() {
        let (one, small) = (Twice::from(1.0), Twice::from(1e-25));
        let sum = one.plus(small);
        assert_eq!((sum.high, sum.minus(one).high), (1.0, 1e-25));
        let third = one.over(Twice::from(3.0));
        assert!(third.times(Twice::from(3.0)).minus(one).high.abs() < 1e-31);
        // (1 + s)² = 1 + 2·s + s²
        let square = sum.times(sum).minus(one).minus(small).minus(small).high;
        assert!(square.abs() < 1e-30);
    }
}
