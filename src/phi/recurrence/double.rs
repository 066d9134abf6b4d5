//! Numbers of twice the precision, for what is known before the program runs.
//!
//! Dekker, "A Floating-Point Technique for Extending the Available Precision"
//! (1971), with products by fused multiplication and addition.

/// The sum of two numbers, the second at most half an ulp of the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Double {
    pub(super) high: f64,
    pub(super) low: f64,
}

impl Double {
    pub(super) fn sum(self, other: Double) -> Double {
        let (high, lost) = exact_sum(self.high, other.high);
        normal(high, lost + (self.low + other.low))
    }

    pub(super) fn product(self, other: Double) -> Double {
        let high = self.high * other.high;
        let lost = self.high.mul_add(other.high, -high);
        normal(high, lost + self.high.mul_add(other.low, self.low * other.high))
    }

    pub(super) fn quotient(self, other: f64) -> Double {
        let high = self.high / other;
        let left = (-high).mul_add(other, self.high) + self.low;
        normal(high, left / other)
    }

    pub(super) fn negative(self) -> Double {
        Double { high: -self.high, low: -self.low }
    }
}

impl From<f64> for Double {
    fn from(high: f64) -> Self {
        Double { high, low: 0.0 }
    }
}

fn exact_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

fn normal(high: f64, low: f64) -> Double {
    let sum = high + low;
    Double { high: sum, low: low - (sum - high) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rounding_takes_is_kept() {
        let third = Double::from(1.0).quotient(3.0);
        let left = third.product(Double::from(3.0)).sum(Double::from(-1.0));
        assert!(left.high.abs() < 1e-31, "{left:?}");
        let tiny = Double::from(1e-20);
        let left = Double::from(1.0).sum(tiny).sum(Double::from(-1.0)).sum(Double::from(-1e-20));
        assert!(left.high.abs() < 1e-36, "{left:?}");
    }
}
