//! Elementary functions in double-double, with derivatives.

use phigrad::Var;

use super::numbers::{Dual, Number, Wide};

/// The numbers that programs of the tests compute with, with functions.
pub trait Real: Number {
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn ln_1p(self) -> Self;
    fn exp_m1(self) -> Self;
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tanh(self) -> Self;
    fn powi(self, n: i32) -> Self;
    fn powf(self, n: f64) -> Self;
    fn max(self, other: Self) -> Self;
}

macro_rules! same_functions {
    ($type:ty) => {
        impl Real for $type {
            fn exp(self) -> Self {
                self.exp()
            }
            fn ln(self) -> Self {
                self.ln()
            }
            fn ln_1p(self) -> Self {
                self.ln_1p()
            }
            fn exp_m1(self) -> Self {
                self.exp_m1()
            }
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            fn abs(self) -> Self {
                self.abs()
            }
            fn sin(self) -> Self {
                self.sin()
            }
            fn cos(self) -> Self {
                self.cos()
            }
            fn tanh(self) -> Self {
                self.tanh()
            }
            fn powi(self, n: i32) -> Self {
                self.powi(n)
            }
            fn powf(self, n: f64) -> Self {
                self.powf(n)
            }
            fn max(self, other: Self) -> Self {
                self.max(other)
            }
        }
    };
}

same_functions!(Var);
same_functions!(f64);

const ONE: Wide = Wide(1.0, 0.0);
const LN_2: Wide = Wide(core::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);
const QUARTER_TURN: Wide = Wide(core::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);

fn wide(x: f64) -> Wide {
    Wide(x, 0.0)
}

/// Multiplies by a power of two, which may be out of range itself.
fn scaled(x: Wide, power: i32) -> Wide {
    let half = power / 2;
    let factors = [half, power - half].map(|power| 2f64.powi(power));
    factors.iter().fold(x, |x, factor| Wide(x.0 * factor, x.1 * factor))
}

/// `eˣ - 1` for small `x`.
fn small_exp_m1(x: Wide) -> Wide {
    let rest = scaled(x, -9);
    let (mut sum, mut term) = (wide(0.0), ONE);
    for i in 1..14 {
        term = term * rest / wide(f64::from(i));
        sum = sum + term;
    }
    // (1 + s)² - 1 = 2s + s², without cancellation.
    (0..9).fold(sum, |sum, _| sum + sum + sum * sum)
}

impl Wide {
    fn exp(self) -> Wide {
        if self.0 > 710.0 || self.0.is_nan() {
            return wide(self.0.exp());
        }
        if self.0 < -800.0 {
            return wide(0.0);
        }
        let halvings = (self.0 / LN_2.0).round();
        let rest = self + -(LN_2 * wide(halvings));
        scaled(small_exp_m1(rest) + ONE, halvings as i32)
    }

    fn exp_m1(self) -> Wide {
        if self.0.abs() < 0.5 { small_exp_m1(self) } else { self.exp() + -ONE }
    }

    fn ln(self) -> Wide {
        if !(self.0 > 0.0 && self.0.is_finite()) {
            return wide(self.0.ln());
        }
        // Scaled to about 1, so that neither it nor its reciprocal underflows.
        let power = self.0.log2().round();
        let near_1 = scaled(self, -(power as i32));
        LN_2 * wide(power) + (near_1 + -ONE).near_ln_1p()
    }

    /// `ln(1 + x)` where 1 + x is about 1.
    fn near_ln_1p(self) -> Wide {
        let guess = wide(self.0.ln_1p());
        let step = |y: Wide| {
            let power = y.exp_m1();
            // Newton: y - (eʸ - 1 - x)/eʸ
            y + -((power + -self) / (power + ONE))
        };
        step(step(guess))
    }

    fn ln_1p(self) -> Wide {
        if self.0.abs() < 0.5 { self.near_ln_1p() } else { (ONE + self).ln() }
    }

    fn sqrt(self) -> Wide {
        if !(self.0 > 0.0 && self.0.is_finite()) {
            return wide(self.0.sqrt());
        }
        let power = (self.0.log2() / 2.0).round() as i32;
        let near_1 = scaled(self, -2 * power);
        let root = wide(near_1.0.sqrt());
        let root = root + (near_1 + -(root * root)) / (root + root);
        scaled(root, power)
    }

    /// Sine and cosine of a number that is not large.
    fn sin_cos(self) -> (Wide, Wide) {
        let turns = (self.0 / QUARTER_TURN.0).round();
        let rest = self + -(QUARTER_TURN * wide(turns));
        let (mut sine, mut cosine, mut term) = (wide(0.0), wide(0.0), ONE);
        for i in 0..30 {
            let signed = if i % 4 < 2 { term } else { -term };
            if i % 2 == 0 {
                cosine = cosine + signed;
            } else {
                sine = sine + signed;
            }
            term = term * rest / wide(f64::from(i + 1));
        }
        match (turns as i64).rem_euclid(4) {
            0 => (sine, cosine),
            1 => (cosine, -sine),
            2 => (-sine, -cosine),
            _ => (-cosine, sine),
        }
    }
}

impl Real for Dual {
    fn exp(self) -> Dual {
        let power = self.wide().exp();
        self.chain(power, power)
    }

    fn ln(self) -> Dual {
        self.chain(self.wide().ln(), ONE / self.wide())
    }

    fn ln_1p(self) -> Dual {
        self.chain(self.wide().ln_1p(), ONE / (ONE + self.wide()))
    }

    fn exp_m1(self) -> Dual {
        self.chain(self.wide().exp_m1(), self.wide().exp())
    }

    fn sqrt(self) -> Dual {
        let root = self.wide().sqrt();
        self.chain(root, ONE / (root + root))
    }

    fn abs(self) -> Dual {
        if self.value() < 0.0 { -self } else { self }
    }

    fn sin(self) -> Dual {
        let (sine, cosine) = self.wide().sin_cos();
        self.chain(sine, cosine)
    }

    fn cos(self) -> Dual {
        let (sine, cosine) = self.wide().sin_cos();
        self.chain(cosine, -sine)
    }

    fn tanh(self) -> Dual {
        // (1 - e^(-2|x|))/(1 + e^(-2|x|)), with the derivative 4e^(-2|x|)/(1 + e^(-2|x|))².
        let size = if self.value() < 0.0 { -self.wide() } else { self.wide() };
        let power = (-(size + size)).exp();
        let below = ONE + power;
        let tanh = -(-(size + size)).exp_m1() / below;
        let slope = wide(4.0) * power / (below * below);
        self.chain(if self.value() < 0.0 { -tanh } else { tanh }, slope)
    }

    fn powi(self, n: i32) -> Dual {
        let power = |n: u32| (0..n).fold(ONE, |all, _| all * self.wide());
        let (value, lower) = (power(n.unsigned_abs()), power(n.unsigned_abs().saturating_sub(1)));
        if n >= 0 {
            self.chain(value, wide(f64::from(n)) * lower)
        } else {
            self.chain(ONE / value, wide(f64::from(n)) / (value * self.wide()))
        }
    }

    fn powf(self, n: f64) -> Dual {
        let value = (self.wide().ln() * wide(n)).exp();
        self.chain(value, wide(n) * value / self.wide())
    }

    fn max(self, other: Dual) -> Dual {
        if self.value() > other.value() { self } else { other }
    }
}

#[test]
fn functions_agree_with_those_of_f64() {
    type Case = (fn(Dual) -> Dual, fn(f64) -> f64);
    let cases: [Case; 9] = [
        (|x| x.exp(), f64::exp),
        (|x| x.abs().ln(), |x| x.abs().ln()),
        (|x| x.abs().ln_1p(), |x| x.abs().ln_1p()),
        (|x| x.exp_m1(), f64::exp_m1),
        (|x| x.abs().sqrt(), |x| x.abs().sqrt()),
        (|x| x.sin(), f64::sin),
        (|x| x.cos(), f64::cos),
        (|x| x.tanh(), f64::tanh),
        (|x| x.powi(-3), |x| 1.0 / (x * x * x)),
    ];
    for (number, (precise, single)) in cases.into_iter().enumerate() {
        for x in [1e-20, 0.001, 0.3, 0.7, 1.0, 1.4, 2.0, 9.0, 30.0, 300.0] {
            for x in [x, -x] {
                let (found, expected) = (precise(Dual::input(x, 0)), single(x));
                let error = (found.value() - expected).abs();
                assert!(error <= 1e-15 * expected.abs(), "{number} {x}: {}", found.value());
            }
        }
    }
    // The low-order words are correct: e^(ln x), sin² + cos² and √x² round-trip.
    for x in [1e-200, 1e-9, 0.3, 1.0, 7.0, 1e5, 1e200] {
        let back = (Dual::from(x).ln().exp() - Dual::from(x)).value();
        assert!(back.abs() <= 1e-27 * x, "{back} {x}");
        let back = (Dual::from(x).sqrt().powi(2) - Dual::from(x)).value();
        assert!(back.abs() <= 1e-30 * x, "{back} {x}");
    }
    for x in [1e-9, 0.3, 1.0, 7.0] {
        let (sine, cosine) = (Dual::from(x).sin(), Dual::from(x).cos());
        let left = (sine * sine + cosine * cosine - Dual::from(1.0)).value();
        assert!(left.abs() <= 1e-30, "{left}");
        let left = (Dual::from(x).exp_m1().ln_1p() - Dual::from(x)).value();
        assert!(left.abs() <= 1e-29 * x, "{left} {x}");
    }
}
