//! `Var`: the traced scalar, and its mathematical functions.

use core::marker::PhantomData;

use super::differential::Differential;
use crate::op::Op;

/// A number whose history is recorded.
///
/// Inside a function recorded by [`Tape::record`](crate::Tape::record) a `Var`
/// is an input or a value computed from inputs; a `Var` made by
/// `Var::from` is a constant. It is `Copy`, 24 bytes, and is used like an
/// `f64`: operators with `Var` and `f64` in every order, comparisons, and the
/// functions below, also through [`num_traits::Float`].
///
/// A comparison (`<`, `==`, `is_nan`, …) returns a plain `bool` and is recorded
/// as a guard: the compiled gradient repeats it and is used only where the outcome
/// is equal. Reading the number out ([`Var::value`], formatting,
/// `to_f64`) is recorded as a guard too: the compiled gradient is used only
/// where the number that was read is the same, bit for bit (of NaN, any NaN).
///
/// A `Var` is valid during the call that made it. Using it later, or in a
/// recording nested inside, is a typed error
/// ([`Error::is_foreign_var`](crate::Error::is_foreign_var)). It cannot be sent
/// to another thread, because that thread's operations would not be recorded.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var};
///
/// let f = Tape::record(|x: &[Var]| 2.0 * x[0].sin() + x[1] / 3.0);
/// assert_eq!(f.grad(&[0.0, 5.0])?, [2.0, 1.0 / 3.0]);
/// # Ok::<(), phigrad::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Var {
    pub(super) value: f64,
    pub(super) differential: Differential,
    not_send: PhantomData<*const ()>,
}

macro_rules! functions {
    ($($(#[$meta:meta])* $name:ident $op:ident;)*) => {
        impl Var {
            $(
                $(#[$meta])*
                #[inline]
                #[track_caller]
                #[must_use]
                pub fn $name(self) -> Var {
                    self.apply1(Op::$op)
                }
            )*
        }

        /// The functions of one number, and the primitives that they record.
        #[cfg(test)]
        const FUNCTIONS: &[(fn(Var) -> Var, Op)] = &[$((Var::$name, Op::$op)),*];
    };
}

functions! {
    /// `1 / self`
    recip Recip;
    /// Square root; the derivative at 0 is infinite, NaN below.
    sqrt Sqrt;
    /// Cube root, of negative numbers too; the derivative at 0 is infinite.
    cbrt Cbrt;
    /// `e` to the power `self`.
    exp Exp;
    /// `exp(self) - 1`, accurate near 0.
    exp_m1 ExpM1;
    /// 2 to the power `self`.
    exp2 Exp2;
    /// Natural logarithm. The derivative is `1 / self`, also below 0, where the
    /// value is NaN.
    ln Ln;
    /// `ln(1 + self)`, accurate near 0.
    ln_1p Ln1p;
    /// Logarithm to base 2.
    log2 Log2;
    /// Logarithm to base 10.
    log10 Log10;
    /// Sine of an angle in radians.
    sin Sin;
    /// Cosine of an angle in radians.
    cos Cos;
    /// Tangent of an angle in radians.
    tan Tan;
    /// Inverse sine, in radians.
    asin Asin;
    /// Inverse cosine, in radians.
    acos Acos;
    /// Inverse tangent, in radians.
    atan Atan;
    /// Hyperbolic sine.
    sinh Sinh;
    /// Hyperbolic cosine.
    cosh Cosh;
    /// Hyperbolic tangent.
    tanh Tanh;
    /// Inverse hyperbolic sine.
    asinh Asinh;
    /// Inverse hyperbolic cosine.
    acosh Acosh;
    /// Inverse hyperbolic tangent.
    atanh Atanh;
    /// Error function.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0].erf());
    /// assert_eq!(f.value_and_grad(&[0.0])?, (0.0, vec![std::f64::consts::FRAC_2_SQRT_PI]));
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    erf Erf;
    /// Complementary error function, `1 - self.erf()`, accurate where that is small.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// // The probability that a standard normal variable exceeds x.
    /// let exceeds = Tape::record(|x: &[Var]| 0.5 * (x[0] / 2.0f64.sqrt()).erfc());
    /// assert!((exceeds.eval(&[8.0])? / 6.220960574271785e-16 - 1.0).abs() < 1e-14);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    erfc Erfc;
    /// `ln|Γ(self)|`: the logarithm of the factorial of `self - 1`. The derivative is digamma,
    /// NaN at negative integers.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0].ln_gamma());
    /// let (value, gradient) = f.value_and_grad(&[5.0])?;
    /// assert!((value - 24.0f64.ln()).abs() < 1e-15);
    /// assert!((gradient[0] - 1.506117668431801).abs() < 1e-15);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    ln_gamma LnGamma;
    /// Inverse error function: the number whose [`Var::erf`] is `self`; ±∞ for ±1, NaN
    /// outside [-1, 1].
    ///
    /// The value is within 2 ulp, the derivative within 6, up to the ends. Solved by Halley's and
    /// Newton's methods.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0].erf_inv());
    /// let (value, gradient) = f.value_and_grad(&[0.5])?;
    /// assert!((value - 0.4769362762044699).abs() < 1e-15);
    /// assert!((gradient[0] - 1.1125848189719498).abs() < 1e-15);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    erf_inv ErfInv;
    /// Inverse complementary error function: the number whose [`Var::erfc`] is `self`; ∞ for 0, -∞
    /// for 2, NaN outside [0, 2].
    ///
    /// The value is within 2 ulp, the derivative within 6, down to the smallest numbers. Solved by
    /// Newton's method for the logarithms.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0].erfc_inv());
    /// assert!((f.eval(&[1e-300])? / 26.209469960516124 - 1.0).abs() < 1e-15);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    erfc_inv ErfcInv;
    /// The same number without its derivative: it counts as a constant that is computed anew in
    /// each call, where [`Var::value`] would be guarded.
    ///
    /// All derivatives of it are zero, those along directions and of the second order too.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// // Weights that follow the residuals and are not differentiated.
    /// let f = Tape::record(|x: &[Var]| {
    ///     let residual = x[0] - 3.0;
    ///     residual * residual / (1.0 + residual.abs()).detach()
    /// });
    /// assert_eq!(f.grad(&[4.0])?, [1.0]);
    /// f.compile()?;
    /// assert_eq!(f.value_and_grad(&[6.0])?, (2.25, vec![1.5])); // By the kernel.
    /// assert_eq!(f.hessian(&[6.0])?, [0.5]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    detach Detach;
    /// Absolute value, without a guard; the derivative at 0 is taken as 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0].abs());
    /// f.grad(&[2.0])?;
    /// f.compile()?;
    /// assert_eq!(f.grad(&[-2.0])?, [-1.0]); // By the kernel: it is one path.
    /// assert_eq!((f.report().paths, f.report().kernel_calls), (1, 1));
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    abs Abs;
    /// 1 with the sign of `self`, also for zeros; NaN for NaN. Derivative 0.
    signum Signum;
    /// The largest integer not above `self`. Derivative 0.
    floor Floor;
    /// The smallest integer not below `self`. Derivative 0.
    ceil Ceil;
    /// The nearest integer, halves away from zero. Derivative 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let distance = Tape::record(|x: &[Var]| (x[0] - x[0].round()).powi(2));
    /// assert_eq!(distance.value_and_grad(&[2.75])?, (0.0625, vec![-0.5]));
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    round Round;
    /// The integer part. Derivative 0.
    trunc Trunc;
    /// `self - self.trunc()`. Derivative 1.
    fract Fract;
}

macro_rules! functions_of_two {
    ($($(#[$meta:meta])* $name:ident $op:ident;)*) => {
        impl Var {
            $(
                $(#[$meta])*
                #[inline]
                #[track_caller]
                #[must_use]
                pub fn $name(self, other: impl Into<Var>) -> Var {
                    self.apply2(Op::$op, other.into())
                }
            )*
        }

        /// The functions of two numbers, and the primitives that they record.
        #[cfg(test)]
        const FUNCTIONS_OF_TWO: &[(fn(Var, Var) -> Var, Op)] = &[$((Var::$name, Op::$op)),*];
    };
}

functions_of_two! {
    /// `self` to the power `other`; NaN for a negative number to a power that is
    /// no integer. With a constant integer use [`Var::powi`], which is exact for
    /// negative numbers and much faster.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0].powf(x[1]));
    /// assert_eq!(f.grad(&[2.0, 3.0])?, [12.0, 8.0 * 2.0f64.ln()]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    powf Powf;
    /// `√(self² + other²)` without intermediate overflow; subgradient 0 at the origin.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let length = Tape::record(|x: &[Var]| x[0].hypot(x[1]));
    /// assert_eq!(length.grad(&[3.0, 4.0])?, [0.6, 0.8]);
    /// assert_eq!(length.grad(&[0.0, 0.0])?, [0.0, 0.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    hypot Hypot;
    /// The angle, in radians from -π to π, of the point with ordinate `self` and
    /// abscissa `other`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let angle = Tape::record(|p: &[Var]| p[1].atan2(p[0]));
    /// assert_eq!(angle.grad(&[2.0, 0.0])?, [0.0, 0.5]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    atan2 Atan2;
    /// The magnitude of `self` with the sign of `other`.
    copysign CopySign;
    /// The upper regularised incomplete gamma function Q(a, x) = 1 - P(a, x) of x = `self`, with
    /// `other` as the shape a, accurate where that is small. For domain and accuracy see
    /// [`Var::gamma_p`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// // The probability that a χ² variable with 3 degrees of freedom exceeds x.
    /// let exceeds = Tape::record(|x: &[Var]| (x[0] / 2.0).gamma_q(1.5));
    /// assert!((exceeds.eval(&[100.0])? / 1.554159431389605e-21 - 1.0).abs() < 1e-14);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    gamma_q GammaQ;
    /// The smaller of the two, without a guard. A tie gives `other` and its
    /// derivative; a NaN operand is ignored.
    min Min;
    /// The larger of the two, without a guard. A tie gives `other` and its
    /// derivative, so that `x.max(0.0)` has derivative 0 at 0; a NaN operand is
    /// ignored.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let relu = Tape::record(|x: &[Var]| x[0].max(0.0));
    /// assert_eq!(relu.grad(&[2.0])?, [1.0]);
    /// assert_eq!(relu.grad(&[0.0])?, [0.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    max Max;
    /// 1 where `self < other`, otherwise 0, without a guard: a condition for
    /// [`Var::select`]. Derivative 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// // Counts without a path for each outcome.
    /// let f = Tape::record(|x: &[Var]| x.iter().map(|x| x.less_than(0.5)).sum::<Var>());
    /// assert_eq!(f.eval(&[0.1, 0.9, 0.2])?, 2.0);
    /// assert_eq!(f.eval(&[0.6, 0.9, 0.2])?, 1.0);
    /// assert_eq!(f.report().paths, 1);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    less_than Lt;
    /// 1 where `self <= other`, otherwise 0, without a guard. Derivative 0.
    at_most Le;
    /// 1 where `self > other`, otherwise 0, without a guard. Derivative 0.
    greater_than Gt;
    /// 1 where `self >= other`, otherwise 0, without a guard. Derivative 0.
    at_least Ge;
    /// 1 where `self == other`, otherwise 0, without a guard. Derivative 0.
    equal_to Eq;
    /// 1 where `self != other`, otherwise 0, without a guard. Derivative 0.
    differs_from Ne;
}

impl Var {
    #[inline(always)]
    pub(super) const fn new(value: f64, differential: Differential) -> Var {
        Var { value, differential, not_send: PhantomData }
    }

    /// The number of an event or variable.
    #[inline]
    pub(super) const fn traced(value: f64, tag: u64) -> Var {
        Var::new(value, Differential::of_variable(tag))
    }

    #[inline]
    pub(super) const fn constant(value: f64) -> Var {
        Var::new(value, Differential::CONSTANT)
    }

    #[inline]
    pub(crate) const fn is_constant(self) -> bool {
        self.differential.is_constant()
    }

    /// The tag of its variable.
    #[inline]
    pub(super) const fn tag(self) -> u64 {
        self.differential.tag
    }

    /// The number itself.
    ///
    /// Operations on it are not recorded, so reading it is a guard: the compiled gradient is used
    /// only where the number is the same, bit for bit (of NaN, any NaN). For a constant there is
    /// nothing to guard.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// // The table is read at an index that depends on the input.
    /// let table = [1.0, 10.0, 100.0];
    /// let f = Tape::record(move |x: &[Var]| x[0] * table[x[0].floor().value() as usize]);
    /// assert_eq!(f.grad(&[0.5])?, [1.0]);
    /// assert_eq!(f.grad(&[2.5])?, [100.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn value(self) -> f64 {
        if !self.is_constant() {
            // One NaN is as good as another.
            let seen = if self.value.is_nan() { f64::NAN } else { self.value };
            self.compare(Op::Same, Var::constant(seen));
        }
        self.value
    }

    /// `self` to the integer power `n`, by squaring in a fixed order.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0].powi(3));
    /// assert_eq!(f.grad(&[-2.0])?, [12.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    #[must_use]
    pub fn powi(self, n: i32) -> Var {
        if n == i32::MIN {
            // The derivative needs the exponent below as well.
            return self.powi(n + 1) / self;
        }
        self.apply2_with(Op::Powi, f64::from(n))
    }

    /// `self · a + b`, rounded once: one instruction where the host has it,
    /// otherwise slower than the product and the sum.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0].mul_add(x[1], 1.0));
    /// assert_eq!(f.value_and_grad(&[2.0, 3.0])?, (7.0, vec![3.0, 2.0]));
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    #[must_use]
    pub fn mul_add(self, a: impl Into<Var>, b: impl Into<Var>) -> Var {
        self.apply3(Op::MulAdd, a.into(), b.into())
    }

    /// `then` where `self` is not 0, otherwise `otherwise`: a choice between
    /// two computed values without a guard. The value that is not selected gets no
    /// gradient.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let leaky = Tape::record(|x: &[Var]| x[0].less_than(0.0).select(0.1 * x[0], x[0]));
    /// assert_eq!(leaky.grad(&[-3.0])?, [0.1]);
    /// assert_eq!(leaky.grad(&[3.0])?, [1.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    #[must_use]
    pub fn select(self, then: impl Into<Var>, otherwise: impl Into<Var>) -> Var {
        self.apply3(Op::Select, then.into(), otherwise.into())
    }

    /// `self` kept within `low` and `high`, without a guard; a bound that is
    /// reached exactly leaves the derivative at 1. NaN stays NaN. When `low`
    /// is above `high` the result is `high`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0].clamp(-1.0, 1.0));
    /// assert_eq!(f.value_and_grad(&[3.0])?, (1.0, vec![0.0]));
    /// assert_eq!(f.value_and_grad(&[1.0])?, (1.0, vec![1.0]));
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    #[must_use]
    pub fn clamp(self, low: impl Into<Var>, high: impl Into<Var>) -> Var {
        let (low, high) = (low.into(), high.into());
        let raised = self.less_than(low).select(low, self);
        raised.greater_than(high).select(high, raised)
    }

    /// Sine and cosine of an angle in radians.
    #[inline]
    #[track_caller]
    #[must_use]
    pub fn sin_cos(self) -> (Var, Var) {
        (self.sin(), self.cos())
    }

    /// Logarithm to the given base, which may be traced too.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0].log(2.0));
    /// assert_eq!(f.grad(&[1.0])?, [1.0 / 2.0f64.ln()]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    #[must_use]
    pub fn log(self, base: impl Into<Var>) -> Var {
        self.ln() / base.into().ln()
    }

    /// Radians to degrees.
    #[inline]
    #[track_caller]
    #[must_use]
    pub fn to_degrees(self) -> Var {
        self * (180.0 / core::f64::consts::PI)
    }

    /// Degrees to radians.
    #[inline]
    #[track_caller]
    #[must_use]
    pub fn to_radians(self) -> Var {
        self * (core::f64::consts::PI / 180.0)
    }
}

impl Default for Var {
    /// The constant 0.
    fn default() -> Self {
        Var::constant(0.0)
    }
}

macro_rules! from_number {
    ($($number:ty),*) => {
        $(
            impl From<$number> for Var {
                /// The constant of this value.
                #[inline]
                fn from(value: $number) -> Var {
                    Var::constant(f64::from(value))
                }
            }
        )*
    };
}

from_number!(f64, f32, i8, i16, i32, u8, u16, u32);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::eval;

    #[test]
    fn a_var_is_three_words() {
        assert_eq!(size_of::<Var>(), 24);
    }

    #[test]
    fn a_method_or_an_operator_records_each_primitive() {
        const OTHERS: [Op; 17] = [
            Op::Add,
            Op::Sub,
            Op::Mul,
            Op::Div,
            Op::Rem,
            Op::Neg,
            Op::MulAdd,
            Op::Powi,
            Op::Erfcx,
            Op::LnRising,
            Op::Polygamma,
            Op::GammaP,
            Op::BetaInc,
            Op::BesselJ,
            Op::BesselI,
            Op::Select,
            Op::Same,
        ];
        let (one, two) = (FUNCTIONS.iter().map(|f| f.1), FUNCTIONS_OF_TWO.iter().map(|f| f.1));
        let recorded: Vec<Op> = OTHERS.into_iter().chain(one).chain(two).collect();
        for op in Op::ALL {
            // `with_derivative` attaches partials, and densities are partial derivatives.
            let is_recorded = !matches!(op, Op::Attach | Op::GammaDensity | Op::BetaDensity);
            assert!(!is_recorded || recorded.contains(op), "no method records {op}");
        }
    }

    #[test]
    fn each_function_has_the_value_of_its_primitive() {
        let (a, b) = (0.375, 0.75);
        for (function, op) in FUNCTIONS {
            let (found, expected) = (function(Var::from(a)).value(), eval(*op, [a, 0.0, 0.0]));
            assert!(found.to_bits() == expected.to_bits() || expected.is_nan(), "{op}");
        }
        for (function, op) in FUNCTIONS_OF_TWO {
            let found = function(Var::from(a), Var::from(b)).value();
            assert_eq!(found.to_bits(), eval(*op, [a, b, 0.0]).to_bits(), "{op}");
        }
    }
}
