//! Double-double numbers with elementary functions: the reference of the tests, independent of
//! `phigrad::internals::numeric`.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// The sum of a high-order and a low-order word, the second at most half an ulp of the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DoubleDouble(pub f64, pub f64);

impl From<f64> for DoubleDouble {
    fn from(x: f64) -> DoubleDouble {
        DoubleDouble(x, 0.0)
    }
}

/// `high + low` as its rounded value and the rounding error, for `|high| >= |low|`.
fn fast_two_sum(high: f64, low: f64) -> DoubleDouble {
    let sum = high + low;
    DoubleDouble(sum, low - (sum - high))
}

impl Add for DoubleDouble {
    type Output = DoubleDouble;

    fn add(self, other: DoubleDouble) -> DoubleDouble {
        let exact = |a: f64, b: f64| {
            let sum = a + b;
            let b_rounded = sum - a;
            (sum, (a - (sum - b_rounded)) + (b - b_rounded))
        };
        let ((high, error), (low, low_error)) = (exact(self.0, other.0), exact(self.1, other.1));
        let DoubleDouble(high, low) = fast_two_sum(high, error + low);
        fast_two_sum(high, low + low_error)
    }
}

impl Mul for DoubleDouble {
    type Output = DoubleDouble;

    fn mul(self, other: DoubleDouble) -> DoubleDouble {
        let high = self.0 * other.0;
        let error = self.0.mul_add(other.0, -high);
        fast_two_sum(high, error + self.0.mul_add(other.1, self.1 * other.0))
    }
}

impl Sub for DoubleDouble {
    type Output = DoubleDouble;

    fn sub(self, other: DoubleDouble) -> DoubleDouble {
        self + -other
    }
}

impl Neg for DoubleDouble {
    type Output = DoubleDouble;

    fn neg(self) -> DoubleDouble {
        DoubleDouble(-self.0, -self.1)
    }
}

impl Div for DoubleDouble {
    type Output = DoubleDouble;

    fn div(self, other: DoubleDouble) -> DoubleDouble {
        let first = DoubleDouble(self.0 / other.0, 0.0);
        let residual = self + -(first * other);
        let second = DoubleDouble(residual.0 / other.0, 0.0);
        let residual = residual + -(second * other);
        first + second + DoubleDouble(residual.0 / other.0, 0.0)
    }
}

const ONE: DoubleDouble = DoubleDouble(1.0, 0.0);
const LN_2: DoubleDouble = DoubleDouble(core::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);
const HALF_PI: DoubleDouble = DoubleDouble(core::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);

/// Multiplies by a power of two, which may be out of range.
fn scaled(x: DoubleDouble, power: i32) -> DoubleDouble {
    let half = power / 2;
    let factors = [half, power - half].map(|power| 2f64.powi(power));
    factors.iter().fold(x, |x, factor| DoubleDouble(x.0 * factor, x.1 * factor))
}

/// `eˣ - 1` for small `x`.
fn small_exp_m1(x: DoubleDouble) -> DoubleDouble {
    let rest = scaled(x, -9);
    let (mut sum, mut term) = (DoubleDouble::from(0.0), ONE);
    for i in 1..14 {
        term = term * rest / DoubleDouble::from(f64::from(i));
        sum = sum + term;
    }
    // (1 + s)² - 1 = 2s + s², without cancellation.
    (0..9).fold(sum, |sum, _| sum + sum + sum * sum)
}

impl DoubleDouble {
    pub fn exp(self) -> DoubleDouble {
        if self.0 > 710.0 || self.0.is_nan() {
            return DoubleDouble::from(self.0.exp());
        }
        if self.0 < -800.0 {
            return DoubleDouble::from(0.0);
        }
        let halvings = (self.0 / LN_2.0).round();
        let rest = self - LN_2 * DoubleDouble::from(halvings);
        scaled(small_exp_m1(rest) + ONE, halvings as i32)
    }

    pub fn exp_m1(self) -> DoubleDouble {
        if self.0.abs() < 0.5 { small_exp_m1(self) } else { self.exp() - ONE }
    }

    pub fn ln(self) -> DoubleDouble {
        if !(self.0 > 0.0 && self.0.is_finite()) {
            return DoubleDouble::from(self.0.ln());
        }
        // Scaled to about 1, so that neither it nor its reciprocal underflows.
        let power = self.0.log2().round();
        let near_1 = scaled(self, -(power as i32));
        LN_2 * DoubleDouble::from(power) + (near_1 - ONE).near_ln_1p()
    }

    /// `ln(1 + x)` where 1 + x is about 1.
    fn near_ln_1p(self) -> DoubleDouble {
        let guess = DoubleDouble::from(self.0.ln_1p());
        let step = |y: DoubleDouble| {
            let power = y.exp_m1();
            // Newton: y - (eʸ - 1 - x)/eʸ
            y - (power - self) / (power + ONE)
        };
        step(step(guess))
    }

    pub fn ln_1p(self) -> DoubleDouble {
        if self.0.abs() < 0.5 { self.near_ln_1p() } else { (ONE + self).ln() }
    }

    pub fn sqrt(self) -> DoubleDouble {
        if !(self.0 > 0.0 && self.0.is_finite()) {
            return DoubleDouble::from(self.0.sqrt());
        }
        let power = (self.0.log2() / 2.0).round() as i32;
        let near_1 = scaled(self, -2 * power);
        let root = DoubleDouble::from(near_1.0.sqrt());
        let root = root + (near_1 - root * root) / (root + root);
        scaled(root, power)
    }

    /// Sine and cosine of a number that is not large.
    pub fn sin_cos(self) -> (DoubleDouble, DoubleDouble) {
        let turns = (self.0 / HALF_PI.0).round();
        let rest = self - HALF_PI * DoubleDouble::from(turns);
        let (mut sine, mut cosine, mut term) =
            (DoubleDouble::from(0.0), DoubleDouble::from(0.0), ONE);
        for i in 0..30 {
            let signed = if i % 4 < 2 { term } else { -term };
            if i % 2 == 0 {
                cosine = cosine + signed;
            } else {
                sine = sine + signed;
            }
            term = term * rest / DoubleDouble::from(f64::from(i + 1));
        }
        match (turns as i64).rem_euclid(4) {
            0 => (sine, cosine),
            1 => (cosine, -sine),
            2 => (-sine, -cosine),
            _ => (-cosine, sine),
        }
    }
}
