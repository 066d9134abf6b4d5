//! Elementary functions of tape variables, floats and dual numbers in double-double.

use phigrad::Var;

use super::double_double::DoubleDouble;
use super::numbers::{Dual, Number};

/// The numbers of test programs with elementary functions.
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

const ONE: DoubleDouble = DoubleDouble(1.0, 0.0);

fn double_double(x: f64) -> DoubleDouble {
    DoubleDouble::from(x)
}

impl Real for Dual {
    fn exp(self) -> Dual {
        let power = self.value_words().exp();
        self.chain(power, power)
    }

    fn ln(self) -> Dual {
        self.chain(self.value_words().ln(), ONE / self.value_words())
    }

    fn ln_1p(self) -> Dual {
        self.chain(self.value_words().ln_1p(), ONE / (ONE + self.value_words()))
    }

    fn exp_m1(self) -> Dual {
        self.chain(self.value_words().exp_m1(), self.value_words().exp())
    }

    fn sqrt(self) -> Dual {
        let root = self.value_words().sqrt();
        self.chain(root, ONE / (root + root))
    }

    fn abs(self) -> Dual {
        if self.value() < 0.0 { -self } else { self }
    }

    fn sin(self) -> Dual {
        let (sine, cosine) = self.value_words().sin_cos();
        self.chain(sine, cosine)
    }

    fn cos(self) -> Dual {
        let (sine, cosine) = self.value_words().sin_cos();
        self.chain(cosine, -sine)
    }

    fn tanh(self) -> Dual {
        // (1 - e^(-2|x|))/(1 + e^(-2|x|)), with the derivative 4e^(-2|x|)/(1 + e^(-2|x|))².
        let size = if self.value() < 0.0 { -self.value_words() } else { self.value_words() };
        let power = (-(size + size)).exp();
        let below = ONE + power;
        let tanh = -(-(size + size)).exp_m1() / below;
        let partial = double_double(4.0) * power / (below * below);
        self.chain(if self.value() < 0.0 { -tanh } else { tanh }, partial)
    }

    fn powi(self, n: i32) -> Dual {
        let power = |n: u32| (0..n).fold(ONE, |all, _| all * self.value_words());
        let (value, lower) = (power(n.unsigned_abs()), power(n.unsigned_abs().saturating_sub(1)));
        if n >= 0 {
            self.chain(value, double_double(f64::from(n)) * lower)
        } else {
            self.chain(ONE / value, double_double(f64::from(n)) / (value * self.value_words()))
        }
    }

    fn powf(self, n: f64) -> Dual {
        let value = (self.value_words().ln() * double_double(n)).exp();
        self.chain(value, double_double(n) * value / self.value_words())
    }

    fn max(self, other: Dual) -> Dual {
        if self.value() > other.value() { self } else { other }
    }
}

#[test]
fn functions_agree_with_those_of_working_precision() {
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
    for (number, (in_double_double, in_double)) in cases.into_iter().enumerate() {
        for x in [1e-20, 0.001, 0.3, 0.7, 1.0, 1.4, 2.0, 9.0, 30.0, 300.0] {
            for x in [x, -x] {
                let (found, expected) = (in_double_double(Dual::input(x, 0)), in_double(x));
                let error = (found.value() - expected).abs();
                assert!(error <= 1e-15 * expected.abs(), "{number} {x}: {}", found.value());
            }
        }
    }
    // The low-order words are right: e^(ln x), sin² + cos² and √x² are exact to double-double.
    for x in [1e-200, 1e-9, 0.3, 1.0, 7.0, 1e5, 1e200] {
        let error = (Dual::from(x).ln().exp() - Dual::from(x)).value();
        assert!(error.abs() <= 1e-27 * x, "{error} {x}");
        let error = (Dual::from(x).sqrt().powi(2) - Dual::from(x)).value();
        assert!(error.abs() <= 1e-30 * x, "{error} {x}");
    }
    for x in [1e-9, 0.3, 1.0, 7.0] {
        let (sine, cosine) = (Dual::from(x).sin(), Dual::from(x).cos());
        let error = (sine * sine + cosine * cosine - Dual::from(1.0)).value();
        assert!(error.abs() <= 1e-30, "{error}");
        let error = (Dual::from(x).exp_m1().ln_1p() - Dual::from(x)).value();
        assert!(error.abs() <= 1e-29 * x, "{error} {x}");
    }
}
