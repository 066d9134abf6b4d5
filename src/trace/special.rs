//! Special functions of `Var`, and the trait that gives them to plain numbers.

use num_traits::Float;

use super::Var;
use super::apply::Recording;
use crate::op::{Algebra, Numbers, Op, compositions};

/// Makes the methods of `Var`, and the trait with its implementations. A function is
/// `name(traced operands; constants)`, by a formula over an [`Algebra`].
macro_rules! special {
    (
        new { $(
            $(#[$meta:meta])*
            $name:ident($($other:ident),*; $($constant:ident: $type:ty),*);
        )* }
        primitives { $($known:ident($($operand:ident),*) $op:ident;)* }
    ) => {
        impl Var {
            $(
                $(#[$meta])*
                #[inline]
                #[track_caller]
                #[must_use]
                pub fn $name(self $(, $other: impl Into<Var>)* $(, $constant: $type)*) -> Var {
                    let k = &mut Recording::here();
                    compositions::$name(k, self $(, $other.into())* $(, $constant)*)
                }
            )*
        }

        /// Special functions, choices without a branch and [`Var::detach`], for generic code over
        /// [`Var`] and plain numbers.
        ///
        /// On `f64` each function has the bits that a recording has at the same operands. Code that
        /// uses no function of this trait needs [`num_traits::Float`] only, which is its
        /// supertrait.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Special, Tape};
        ///
        /// /// The loss of a logistic regression.
        /// fn loss<T: Special>(w: &[T]) -> T {
        ///     let score = w[0] + w[1] * w[0];
        ///     (-score).softplus()
        /// }
        ///
        /// let f = Tape::record(loss);
        /// assert_eq!(f.eval(&[0.5, -2.0])?, loss(&[0.5, -2.0]));
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        pub trait Special: Float {
            $(
                #[doc = concat!("See [`Var::", stringify!($name), "`].")]
                #[must_use]
                fn $name(self $(, $other: Self)* $(, $constant: $type)*) -> Self;
            )*
            $(
                #[doc = concat!("See [`Var::", stringify!($known), "`].")]
                #[must_use]
                fn $known(self $(, $operand: Self)*) -> Self;
            )*
        }

        impl Special for f64 {
            $(
                #[inline]
                fn $name(self $(, $other: Self)* $(, $constant: $type)*) -> f64 {
                    compositions::$name(&mut Numbers, self $(, $other)* $(, $constant)*)
                }
            )*
            $(
                #[inline]
                fn $known(self $(, $operand: Self)*) -> f64 {
                    Numbers.apply(Op::$op, [self $(, $operand)*])
                }
            )*
        }

        impl Special for Var {
            $(
                #[inline]
                #[track_caller]
                fn $name(self $(, $other: Self)* $(, $constant: $type)*) -> Var {
                    Var::$name(self $(, $other)* $(, $constant)*)
                }
            )*
            $(
                #[inline]
                #[track_caller]
                fn $known(self $(, $operand: Self)*) -> Var {
                    Var::$known(self $(, $operand)*)
                }
            )*
        }
    };
}

special! {
    new {
        /// The scaled complementary error function exp(x²)·erfc(x), which does not underflow as
        /// [`Var::erfc`]: for large x it is about 1/(x·√π). Infinite below -26.6.
        ///
        /// The value is within 4 ulp, and so are the first two derivatives, in which nothing
        /// cancels: they are repeated integrals of erfc (NIST Digital Library of Mathematical
        /// Functions, 7.18).
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// let f = Tape::record(|x: &[Var]| x[0].erfcx());
        /// let (value, gradient) = f.value_and_grad(&[1e8])?;
        /// assert!((value / 5.641895835477563e-9 - 1.0).abs() < 1e-15);
        /// assert!((gradient[0] / -5.641895835477562e-17 - 1.0).abs() < 1e-15);
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        erfcx(;);
        /// The polygamma function of this order, a derivative of ln Γ: digamma for order 0,
        /// trigamma for order 1. NaN for orders above 100 and at negative integers, which are
        /// poles.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// let digamma = Tape::record(|x: &[Var]| x[0].polygamma(0));
        /// let (value, gradient) = digamma.value_and_grad(&[1.0])?;
        /// assert!((value + 0.5772156649015329).abs() < 1e-15); // Euler's constant.
        /// assert!((gradient[0] - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-15);
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        polygamma(; order: u32);
        /// The first derivative of [`Var::ln_gamma`]: [`Var::polygamma`] of order 0.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::Var;
        ///
        /// assert!((Var::from(2.0).digamma().value() - 0.4227843350984671).abs() < 1e-15);
        /// ```
        digamma(;);
        /// The second derivative of [`Var::ln_gamma`]: [`Var::polygamma`] of order 1.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::Var;
        ///
        /// assert!((Var::from(2.0).trigamma().value() - 0.6449340668482264).abs() < 1e-15);
        /// ```
        trigamma(;);
        /// ln(Γ(x + n)/Γ(x)), for whole n the logarithm of the rising factorial
        /// x·(x + 1)…(x + n - 1). NaN unless x and x + n are positive.
        ///
        /// The difference of two [`Var::ln_gamma`] loses its digits where x is large; this function
        /// does not, nor do its derivatives, which have a relative error below 4e-15. That of the
        /// value is below 4e-15 of the largest of n, n·ln x and (x + n)·ln(1 + n/x), of which it is
        /// a sum. By Stirling's series (NIST Digital Library of Mathematical Functions, 5.11).
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// // The probability of no success in 5 trials, by a beta distribution of the chances.
        /// let log = |x: &[Var]| x[1].ln_rising(5.0) - (x[0] + x[1]).ln_rising(5.0);
        /// let f = Tape::record(log);
        /// assert!((f.eval(&[1e10, 1e10])? / -(32.0f64.ln()) - 1.0).abs() < 1e-9);
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        ln_rising(n;);
        /// ln B(x, y) = ln(Γ(x)·Γ(y)/Γ(x + y)), for positive x and y.
        ///
        /// Composed of [`Var::ln_gamma`] and [`Var::ln_rising`], so that large arguments do not
        /// cancel. The relative error of the gradient, and of the value where that is above 1, is
        /// below 1e-15·(2 + ln max(x, y)).
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// let f = Tape::record(|x: &[Var]| x[0].ln_beta(x[1]));
        /// // B(x, 1) = 1/x.
        /// let (value, gradient) = f.value_and_grad(&[1e10, 1.0])?;
        /// assert!((value + 1e10f64.ln()).abs() < 1e-14);
        /// assert!((gradient[0] / -1e-10 - 1.0).abs() < 1e-15);
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        ln_beta(y;);
        /// The lower regularised incomplete gamma function P(a, x) of x = `self` with this shape a:
        /// the distribution function of the gamma distribution, with derivatives by both. NaN
        /// unless a > 0 and x ≥ 0.
        ///
        /// Where P is above 1e-16, the relative error of the value and of both derivatives is below
        /// 1e-14 for shapes up to 1e6; it grows with -ln P, to 1e-13 at 1e-300. The same holds for
        /// the second derivatives, but around their roots. By series and continued fraction, and
        /// for large shapes and derivatives by them by quadrature, which takes 2 µs (NIST Digital
        /// Library of Mathematical Functions, 8).
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// let f = Tape::record(|x: &[Var]| x[0].gamma_p(x[1]));
        /// let (value, gradient) = f.value_and_grad(&[2.0, 1.0])?;
        /// assert!((value - (1.0 - (-2.0f64).exp())).abs() < 1e-15);
        /// assert!((gradient[0] - (-2.0f64).exp()).abs() < 1e-15);
        /// assert!((gradient[1] + 0.2208254262118595).abs() < 1e-15);
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        gamma_p(shape;);
        /// The regularised incomplete beta function Iₓ(a, b) of x = `self`: the distribution
        /// function of the beta distribution. NaN unless 0 ≤ x ≤ 1 and both shapes are positive and
        /// below 1e150.
        ///
        /// The shapes are plain numbers: derivatives by them are not available. The upper function
        /// 1 - Iₓ(a, b) is that of 1 - x with both shapes exchanged.
        ///
        /// The relative error of the value and of the derivative is below 1e-14 for shapes from 0.5
        /// to 1000 where Iₓ is above 1e-16; it grows with -ln Iₓ, to 1e-13 at 1e-300, and with the
        /// root of the shapes, to 1e-12 at 1e6. For smaller shapes the absolute error is below
        /// 1e-15. The second derivative is NaN at 0 and 1. By continued fraction and quadrature
        /// (NIST Digital Library of Mathematical Functions, 8.17).
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// let f = Tape::record(|x: &[Var]| x[0].beta_inc(2.0, 2.0));
        /// let (value, gradient) = f.value_and_grad(&[0.25])?;
        /// assert!((value - 0.15625).abs() < 1e-15); // 3x² - 2x³
        /// assert!((gradient[0] - 1.125).abs() < 1e-14);
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        beta_inc(; a: f64, b: f64);
        /// The distribution function Φ of the standard normal distribution, erfc(-x/√2)/2.
        ///
        /// The relative error of value and derivative is below 2e-16·(3 + x²): the rounding of x/√2
        /// is amplified in the lower tail. See [`Var::ln_normal_cdf`] for logarithms.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// let f = Tape::record(|x: &[Var]| x[0].normal_cdf());
        /// let (value, gradient) = f.value_and_grad(&[-8.0])?;
        /// assert!((value / 6.220960574271785e-16 - 1.0).abs() < 1e-14);
        /// assert!((gradient[0] / 5.052271083536892e-15 - 1.0).abs() < 1e-14);
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        normal_cdf(;);
        /// ln Φ, the logarithm of [`Var::normal_cdf`], which does not underflow: far below 0 it is
        /// about -x²/2 - ln(-x·√(2π)).
        ///
        /// Below 0 the relative error of value and derivative is below 4e-15; above 0 it is that of
        /// [`Var::normal_cdf`] at -x. Composed of [`Var::erfcx`] and [`Var::erfc`].
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// let f = Tape::record(|x: &[Var]| x[0].ln_normal_cdf());
        /// let (value, gradient) = f.value_and_grad(&[-1000.0])?;
        /// assert!((value / -500007.8266948122 - 1.0).abs() < 1e-15);
        /// assert!((gradient[0] / 1000.000999998 - 1.0).abs() < 1e-15);
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        ln_normal_cdf(;);
        /// The quantile Φ⁻¹ of the standard normal distribution at the probability `self`; -∞ for
        /// 0, ∞ for 1, NaN outside [0, 1].
        ///
        /// It is -√2·[`Var::erfc_inv`] of twice the probability. The value is within 4 ulp, the
        /// derivative within 8, down to the smallest numbers and up to 1.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// let f = Tape::record(|x: &[Var]| x[0].normal_quantile());
        /// let (value, gradient) = f.value_and_grad(&[0.975])?;
        /// assert!((value - 1.959963984540054).abs() < 1e-14);
        /// assert!((gradient[0] - 17.1100830803327).abs() < 1e-12);
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        normal_quantile(;);
        /// The Bessel function of the first kind Jₙ of this order n; NaN for n outside [-1000,
        /// 1000].
        ///
        /// The absolute error of value and derivative is below 1e-15; around its roots the relative
        /// error is larger. By `libm`; the derivative is (Jₙ₋₁ - Jₙ₊₁)/2.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// let f = Tape::record(|x: &[Var]| x[0].bessel_j(0));
        /// let (value, gradient) = f.value_and_grad(&[2.5])?;
        /// assert!((value + 0.048383776468198).abs() < 1e-15);
        /// assert!((gradient[0] + 0.4970941024642741).abs() < 1e-15);
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        bessel_j(; order: i32);
        /// The modified Bessel function of the first kind Iₙ of this order n; NaN for n outside
        /// [-1000, 1000].
        ///
        /// The relative error of value and derivative is below 3e-15 for orders up to 10, and for
        /// larger ones below |n|·3e-16. By power series and asymptotic series (NIST Digital Library of
        /// Mathematical Functions, 10.25 and 10.40); the derivative is (Iₙ₋₁ + Iₙ₊₁)/2.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// let f = Tape::record(|x: &[Var]| x[0].bessel_i(0).ln());
        /// let (value, gradient) = f.value_and_grad(&[2.5])?;
        /// assert!((value - 1.190838671196028).abs() < 1e-14);
        /// assert!((gradient[0] - 0.7649967475888099).abs() < 1e-14);
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        bessel_i(; order: i32);
        /// ln(1 + eˣ), without a guard and without overflow; the derivative is [`Var::sigmoid`].
        ///
        /// Value and derivative are within 4 ulp everywhere, and 0 only where they underflow.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// let f = Tape::record(|x: &[Var]| x[0].softplus());
        /// assert_eq!(f.value_and_grad(&[0.0])?, (2.0f64.ln(), vec![0.5]));
        /// assert_eq!(f.value_and_grad(&[1000.0])?, (1000.0, vec![1.0]));
        /// assert_eq!(f.eval(&[-40.0])?, (-40.0f64).exp());
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        softplus(;);
        /// The logistic function 1 / (1 + e⁻ˣ), without a guard and without overflow.
        ///
        /// Value and derivative are within 4 ulp everywhere, and 0 only where they underflow. The
        /// second derivative has an absolute error below 1e-16.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// let f = Tape::record(|x: &[Var]| x[0].sigmoid());
        /// assert_eq!(f.value_and_grad(&[0.0])?, (0.5, vec![0.25]));
        /// assert_eq!(f.value_and_grad(&[-745.0])?, (5e-324, vec![5e-324]));
        /// assert_eq!(f.value_and_grad(&[745.0])?, (1.0, vec![5e-324]));
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        sigmoid(;);
        /// ln(x / (1 - x)), the inverse of [`Var::sigmoid`]; -∞ for 0, ∞ for 1, NaN
        /// outside [0, 1].
        ///
        /// Value and derivative are within 5 ulp from 0 to 1, also around the root at 1/2.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// let f = Tape::record(|x: &[Var]| x[0].logit());
        /// assert_eq!(f.value_and_grad(&[0.5])?, (0.0, vec![4.0]));
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        logit(;);
        /// ln(eˣ + eʸ), without a guard and without overflow; that of two equal infinities is the
        /// infinity.
        ///
        /// The value is within 2 ulp of the larger operand, the derivatives within 4 ulp.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// let f = Tape::record(|x: &[Var]| x[0].log_add_exp(x[1]));
        /// assert_eq!(f.value_and_grad(&[1000.0, 1000.0])?, (1000.0 + 2.0f64.ln(), vec![0.5, 0.5]));
        /// assert_eq!(f.value_and_grad(&[f64::NEG_INFINITY, 2.0])?, (2.0, vec![0.0, 1.0]));
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        log_add_exp(y;);
        /// The remainder of `self / divisor` that is not negative, as [`f64::rem_euclid`], without
        /// a guard. By the divisor it falls by the whole quotient.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::{Tape, Var};
        ///
        /// let f = Tape::record(|x: &[Var]| x[0].rem_euclid(x[1]));
        /// assert_eq!(f.value_and_grad(&[-5.5, 2.0])?, (0.5, vec![1.0, 3.0]));
        /// # Ok::<(), phigrad::Error>(())
        /// ```
        rem_euclid(divisor;);
        /// The whole quotient that [`Var::rem_euclid`] is the remainder of, as [`f64::div_euclid`],
        /// without a guard. Derivative 0.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::Var;
        ///
        /// assert_eq!(Var::from(-5.5).div_euclid(2.0).value(), -3.0);
        /// ```
        div_euclid(divisor;);
    }
    primitives {
        erf() Erf;
        erfc() Erfc;
        erf_inv() ErfInv;
        erfc_inv() ErfcInv;
        ln_gamma() LnGamma;
        gamma_q(shape) GammaQ;
        less_than(other) Lt;
        at_most(other) Le;
        greater_than(other) Gt;
        at_least(other) Ge;
        equal_to(other) Eq;
        differs_from(other) Ne;
        select(then, otherwise) Select;
        detach() Detach;
    }
}
