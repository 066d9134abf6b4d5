//! The table of primitives: one row for each.
//!
//! A row begins with the documentation, the variant of [`Op`] and the name in the text form.
//! `meaning` is an expression over the operands `a`, `b` and `c`. `latency` is in tenths of a
//! nanosecond, measured on the x86-64 server of the benchmarks, calls with their overhead;
//! `throughput`, where it does not follow from the latency, is the time that the primitive takes
//! among independent others. `flags` are [`Flag`]s, and `lowering` is a [`Lowering`].
//!
//! The last lines are the operands: their [`Domain`], their [`Smoothness`], and the contribution
//! of the adjoint `g` of the value `y` to the adjoint of the operand. This is `none` where the
//! derivative is zero everywhere, otherwise a formula of primitives, operands, numbers and named
//! constants, `[LN_2]`; in it `rule(…)` calls a function of `derivative.rs` with the algebra `k`.
//! A formula is computed from left to right, by the tape's reverse sweep on numbers and by `diff`
//! on graph nodes, so the two agree in every bit. Where a primitive is not differentiable, the
//! formula picks a subgradient: 0 for `abs` at 0, the second operand for `min` and `max` at a
//! tie (so that the derivative of `x.max(0.0)` at 0 is 0).

use core::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10};

use super::derivative::{
    Algebra, by_erf, by_erfc, direction, over_square, power_by_base, power_by_exponent,
    with_sign_of,
};
use super::domain::{Domain, Smoothness};
use super::meaning::{powf, powi, select, truth};
use super::properties::{Feature, Flag, Lowering};
use super::special::{
    bessel_i, bessel_j, beta_density, beta_inc, erf_inv, erfc_inv, erfcx, gamma_density, gamma_p,
    gamma_q, ln_rising, polygamma,
};

primitives! {
    operands a b c, value y, adjoint g, algebra k;

    /// `a + b`
    Add "add" {
        meaning: a + b;
        latency: 12; flags: Commutes; lowering: Instructions;
        a: Real, Smooth, g;
        b: Real, Smooth, g;
    }
    /// `a - b`
    Sub "sub" {
        meaning: a - b;
        latency: 12; lowering: Instructions;
        a: Real, Smooth, g;
        b: Real, Smooth, Neg(g);
    }
    /// `a · b`
    Mul "mul" {
        meaning: a * b;
        latency: 12; flags: Commutes; lowering: Instructions;
        a: Real, Smooth, Mul(g, b);
        b: Real, Smooth, Mul(g, a);
    }
    /// `a / b`
    Div "div" {
        meaning: a / b;
        latency: 36; throughput: 9; lowering: Instructions;
        a: Real, Smooth, Div(g, b);
        b: NonZero, Singular, Neg(Mul(Div(g, b), y));
    }
    /// The remainder of `a / b` with the sign of `a`, as Rust's `%`.
    Rem "rem" {
        meaning: a % b;
        latency: 145; lowering: Call;
        a: Real, Singular, g;
        // From the value, because `a / b` may round up to the next integer.
        b: NonZero, Singular, Neg(Mul(g, Round(Div(Sub(a, y), b))));
    }
    /// `-a`
    Neg "neg" {
        meaning: -a;
        latency: 4; lowering: Instructions;
        a: Real, Smooth, Neg(g);
    }
    /// `1 / a`
    Recip "recip" {
        meaning: 1.0 / a;
        latency: 36; throughput: 9; lowering: Instructions;
        a: NonZero, Singular, Neg(Mul(Mul(g, y), y));
    }
    /// `a · b + c`, rounded once.
    MulAdd "mul_add" {
        meaning: a.mul_add(b, c);
        latency: 12; flags: Commutes; lowering: InstructionsWith(Feature::Fma);
        a: Real, Smooth, Mul(g, b);
        b: Real, Smooth, Mul(g, a);
        c: Real, Smooth, g;
    }
    /// `a` to the integer power `b`; `b` is a constant in the range of `i32`.
    Powi "powi" {
        meaning: powi(a, b as i32);
        latency: 30; lowering: Instructions;
        // Negative exponents exclude 0 as the base. Whether there is a pole depends on the
        // exponent.
        a: NonZero, Smooth, rule(power_by_base(k, Op::Powi, [a, b], g));
        b: Integer, Smooth, none;
    }
    /// `a` to the power `b`.
    Powf "powf" {
        meaning: powf(a, b);
        latency: 245; lowering: Call;
        // Negative bases are defined for integer exponents only.
        a: Positive, Singular, rule(power_by_base(k, Op::Powf, [a, b], g));
        b: Real, Singular, rule(power_by_exponent(k, a, y, g));
    }
    /// Square root.
    Sqrt "sqrt" {
        meaning: a.sqrt();
        latency: 57; throughput: 12; lowering: Instructions;
        a: NonNegative, Singular, Div(Mul(0.5, g), y);
    }
    /// Cube root.
    Cbrt "cbrt" {
        meaning: a.cbrt();
        latency: 270; lowering: Call;
        a: Real, Singular, Div(g, Mul(3.0, Mul(y, y)));
    }
    /// `√(a² + b²)` without overflow of the squares.
    Hypot "hypot" {
        meaning: a.hypot(b);
        latency: 170; lowering: Call;
        a: Real, Singular, rule(direction(k, a, y, g));
        b: Real, Singular, rule(direction(k, b, y, g));
    }
    /// `eᵃ`
    Exp "exp" {
        meaning: a.exp();
        latency: 90; lowering: Call;
        a: Real, Smooth, Mul(g, y);
    }
    /// `eᵃ - 1`, accurate near 0.
    ExpM1 "exp_m1" {
        meaning: a.exp_m1();
        latency: 185; lowering: Call;
        // Not `y + 1`, which cancels where the exponential is small.
        a: Real, Smooth, Mul(g, Exp(a));
    }
    /// `2ᵃ`
    Exp2 "exp2" {
        meaning: a.exp2();
        latency: 90; lowering: Call;
        a: Real, Smooth, Mul(g, Mul(y, [LN_2]));
    }
    /// Natural logarithm.
    Ln "ln" {
        meaning: a.ln();
        latency: 120; lowering: Call;
        a: Positive, Singular, Div(g, a);
    }
    /// `ln(1 + a)`, accurate near 0.
    Ln1p "ln_1p" {
        meaning: a.ln_1p();
        latency: 215; lowering: Call;
        a: AboveMinusOne, Singular, Div(g, Add(1.0, a));
    }
    /// Logarithm to base 2.
    Log2 "log2" {
        meaning: a.log2();
        latency: 120; lowering: Call;
        a: Positive, Singular, Div(g, Mul(a, [LN_2]));
    }
    /// Logarithm to base 10.
    Log10 "log10" {
        meaning: a.log10();
        latency: 185; lowering: Call;
        a: Positive, Singular, Div(g, Mul(a, [LN_10]));
    }
    /// Sine of an angle in radians.
    Sin "sin" {
        meaning: a.sin();
        latency: 120; lowering: Call;
        a: Real, Smooth, Mul(g, Cos(a));
    }
    /// Cosine of an angle in radians.
    Cos "cos" {
        meaning: a.cos();
        latency: 120; lowering: Call;
        a: Real, Smooth, Neg(Mul(g, Sin(a)));
    }
    /// Tangent of an angle in radians.
    Tan "tan" {
        meaning: a.tan();
        latency: 170; lowering: Call;
        // No rounded number meets a pole.
        a: Real, Smooth, Mul(g, Add(1.0, Mul(y, y)));
    }
    /// Inverse sine, in radians.
    Asin "asin" {
        meaning: a.asin();
        latency: 145; lowering: Call;
        // `(1 - a)·(1 + a)` keeps its accuracy where `1 - a²` cancels.
        a: Unit, Singular, Div(g, Sqrt(Mul(Sub(1.0, a), Add(1.0, a))));
    }
    /// Inverse cosine, in radians.
    Acos "acos" {
        meaning: a.acos();
        latency: 145; lowering: Call;
        a: Unit, Singular, Neg(Div(g, Sqrt(Mul(Sub(1.0, a), Add(1.0, a)))));
    }
    /// Inverse tangent, in radians.
    Atan "atan" {
        meaning: a.atan();
        latency: 145; lowering: Call;
        a: Real, Smooth, Div(g, Add(1.0, Mul(a, a)));
    }
    /// The angle of the point (`b`, `a`), in radians.
    Atan2 "atan2" {
        meaning: a.atan2(b);
        latency: 215; lowering: Call;
        a: Real, Singular, Mul(g, rule(over_square(k, b, [a, b])));
        b: Real, Singular, Neg(Mul(g, rule(over_square(k, a, [a, b]))));
    }
    /// Hyperbolic sine.
    Sinh "sinh" {
        meaning: a.sinh();
        latency: 245; lowering: Call;
        a: Real, Smooth, Mul(g, Cosh(a));
    }
    /// Hyperbolic cosine.
    Cosh "cosh" {
        meaning: a.cosh();
        latency: 145; lowering: Call;
        a: Real, Smooth, Mul(g, Sinh(a));
    }
    /// Hyperbolic tangent.
    Tanh "tanh" {
        meaning: a.tanh();
        latency: 320; lowering: Call;
        a: Real, Smooth, Mul(g, Sub(1.0, Mul(y, y)));
    }
    /// Inverse hyperbolic sine.
    Asinh "asinh" {
        meaning: a.asinh();
        latency: 700; lowering: Call;
        a: Real, Smooth, Div(g, Hypot(a, 1.0));
    }
    /// Inverse hyperbolic cosine.
    Acosh "acosh" {
        meaning: a.acosh();
        latency: 215; lowering: Call;
        a: AtLeastOne, Singular, Div(g, Mul(Sqrt(Sub(a, 1.0)), Sqrt(Add(a, 1.0))));
    }
    /// Inverse hyperbolic tangent.
    Atanh "atanh" {
        meaning: a.atanh();
        latency: 270; lowering: Call;
        a: OpenUnit, Singular, Div(g, Mul(Sub(1.0, a), Add(1.0, a)));
    }
    /// Error function.
    Erf "erf" {
        meaning: libm::erf(a);
        latency: 305; lowering: Call;
        a: Real, Smooth, Mul(g, Mul([FRAC_2_SQRT_PI], Exp(Neg(Mul(a, a)))));
    }
    /// `1 - erf(a)`, accurate where that is small.
    Erfc "erfc" {
        meaning: libm::erfc(a);
        latency: 305; lowering: Call;
        a: Real, Smooth, Neg(Mul(g, Mul([FRAC_2_SQRT_PI], Exp(Neg(Mul(a, a))))));
    }
    /// `exp(a²)·erfc(a)`, integrated as often as `b` says: `exp(a²)` times the repeated integral
    /// of `erfc`, of the order that is nearest to `b`. NaN for orders below 0 and above 30.
    Erfcx "erfcx" {
        meaning: erfcx(a, b);
        latency: 500; lowering: Call;
        a: Real, Smooth, Mul(g, Mul(Mul([-2.0], Add(Round(b), 1.0)), Erfcx(a, Add(b, 1.0))));
        b: NonNegative, Singular, none;
    }
    /// Inverse error function.
    ErfInv "erf_inv" {
        meaning: erf_inv(a);
        latency: 1600; lowering: Call;
        a: OpenUnit, Singular, Mul(g, rule(by_erf(k, a, y)));
    }
    /// Inverse complementary error function.
    ErfcInv "erfc_inv" {
        meaning: erfc_inv(a);
        latency: 1600; lowering: Call;
        // It is defined up to 2.
        a: UnitInterval, Singular, Neg(Mul(g, rule(by_erfc(k, a, y))));
    }
    /// `ln|Γ(a)|`
    LnGamma "ln_gamma" {
        meaning: libm::lgamma(a);
        latency: 260; lowering: Call;
        a: Positive, Singular, Mul(g, Polygamma(a, 0.0));
    }
    /// The derivative of digamma at `a` of the order that is nearest to `b`: digamma for 0,
    /// trigamma for 1; NaN for orders below 0 and above 100.
    Polygamma "polygamma" {
        meaning: polygamma(a, b);
        latency: 390; lowering: Call;
        a: Positive, Singular, Mul(g, Polygamma(a, Add(b, 1.0)));
        b: NonNegative, Singular, none;
    }
    /// The derivative by `a`, of the order that is nearest to `c`, of `ln(Γ(a + b) / Γ(a))`, the
    /// logarithm of the rising factorial; NaN for orders below 0 and above 30.
    LnRising "ln_rising" {
        meaning: ln_rising(a, b, c);
        latency: 3300; lowering: Call;
        a: Positive, Singular, Mul(g, LnRising(a, b, Add(c, 1.0)));
        b: Positive, Singular, Mul(g, Polygamma(Add(a, b), c));
        c: NonNegative, Singular, none;
    }
    /// The lower regularised incomplete gamma function of `a` with the shape `b`, or its derivative
    /// by the shape of the order that is nearest to `c`; NaN for orders below 0 and above 30.
    GammaP "gamma_p" {
        meaning: gamma_p(b, a, c);
        latency: 4000; lowering: Call;
        a: Positive, Singular, Mul(g, GammaDensity(a, b, c));
        b: Positive, Singular, Mul(g, GammaP(a, b, Add(c, 1.0)));
        c: NonNegative, Singular, none;
    }
    /// The upper regularised incomplete gamma function of `a` with the shape `b`: 1 - `gamma_p`,
    /// accurate where that is small.
    GammaQ "gamma_q" {
        meaning: gamma_q(b, a);
        latency: 1500; lowering: Call;
        a: Positive, Singular, Neg(Mul(g, GammaDensity(a, b, 0.0)));
        b: Positive, Singular, Neg(Mul(g, GammaP(a, b, 1.0)));
    }
    /// The density of the gamma distribution at `a` with the shape `b`, or its derivative by the
    /// shape of the order that is nearest to `c`; NaN for orders below 0 and above 30.
    GammaDensity "gamma_density" {
        meaning: gamma_density(b, a, c);
        latency: 400; lowering: Call;
        // The derivative by `a` is a difference of densities.
        a: Positive, Singular,
            Mul(g, Sub(GammaDensity(a, Sub(b, 1.0), c), GammaDensity(a, b, c)));
        b: Positive, Singular, Mul(g, GammaDensity(a, b, Add(c, 1.0)));
        c: NonNegative, Singular, none;
    }
    /// The regularised incomplete beta function of `a` with the shapes `b` and `c`, which are
    /// constants: there is no derivative by them.
    BetaInc "beta_inc" {
        meaning: beta_inc(a, b, c);
        latency: 1200; lowering: Call;
        a: UnitInterval, Singular, Mul(g, BetaDensity(a, b, c));
        b: Positive, Singular, none;
        c: Positive, Singular, none;
    }
    /// The density of the beta distribution at `a` with the shapes `b` and `c`, which are
    /// constants: there is no derivative by them.
    BetaDensity "beta_density" {
        meaning: beta_density(a, b, c);
        latency: 300; lowering: Call;
        a: UnitInterval, Singular,
            Mul(g, Mul(y, Sub(Div(Sub(b, 1.0), a), Div(Sub(c, 1.0), Sub(1.0, a)))));
        b: Positive, Singular, none;
        c: Positive, Singular, none;
    }
    /// Bessel function of the first kind, of the order that is nearest to `b`; NaN for orders
    /// outside [-1000, 1000].
    BesselJ "bessel_j" {
        meaning: bessel_j(a, b);
        latency: 600; lowering: Call;
        a: Real, Smooth, Mul(g, Mul(0.5, Sub(BesselJ(a, Sub(b, 1.0)), BesselJ(a, Add(b, 1.0)))));
        b: NonNegative, Singular, none;
    }
    /// Modified Bessel function of the first kind, of the order that is nearest to `b`; NaN for
    /// orders outside [-1000, 1000].
    BesselI "bessel_i" {
        meaning: bessel_i(a, b);
        latency: 1000; lowering: Call;
        a: Real, Smooth, Mul(g, Mul(0.5, Add(BesselI(a, Sub(b, 1.0)), BesselI(a, Add(b, 1.0)))));
        b: NonNegative, Singular, none;
    }
    /// Absolute value; derivative 0 at 0.
    Abs "abs" {
        meaning: a.abs();
        latency: 4; lowering: Instructions;
        a: Real, Singular, rule(with_sign_of(k, a, g));
    }
    /// 1 with the sign of `a`, also for zeros; NaN for NaN.
    Signum "signum" {
        meaning: a.signum();
        latency: 10; lowering: Instructions;
        a: Real, Singular, none;
    }
    /// The magnitude of `a` with the sign of `b`.
    CopySign "copysign" {
        meaning: a.copysign(b);
        latency: 4; lowering: Instructions;
        a: Real, Singular, Mul(g, Mul(CopySign(1.0, a), CopySign(1.0, b)));
        b: Real, Singular, none;
    }
    /// The smaller operand; ties give `b`; a NaN operand is ignored.
    Min "min" {
        // A comparison with NaN is false, so `b` is NaN in the second test only.
        meaning: select(a < b || b.is_nan(), a, b);
        latency: 10; lowering: Instructions;
        a: Real, Singular, Select(Eq(y, b), 0.0, g);
        b: Real, Singular, Select(Eq(y, b), g, 0.0);
    }
    /// The larger operand; ties give `b`; a NaN operand is ignored.
    Max "max" {
        meaning: select(a > b || b.is_nan(), a, b);
        latency: 10; lowering: Instructions;
        a: Real, Singular, Select(Eq(y, b), 0.0, g);
        b: Real, Singular, Select(Eq(y, b), g, 0.0);
    }
    /// The largest integer not above `a`.
    Floor "floor" {
        meaning: a.floor();
        latency: 20; lowering: InstructionsWith(Feature::Rounding);
        a: Real, Singular, none;
    }
    /// The smallest integer not below `a`.
    Ceil "ceil" {
        meaning: a.ceil();
        latency: 20; lowering: InstructionsWith(Feature::Rounding);
        a: Real, Singular, none;
    }
    /// The nearest integer; halves go away from zero.
    Round "round" {
        meaning: a.round();
        latency: 20; lowering: Call;
        a: Real, Singular, none;
    }
    /// The integer part.
    Trunc "trunc" {
        meaning: a.trunc();
        latency: 20; lowering: InstructionsWith(Feature::Rounding);
        a: Real, Singular, none;
    }
    /// `a - trunc(a)`
    Fract "fract" {
        meaning: a - a.trunc();
        latency: 20; lowering: InstructionsWith(Feature::Rounding);
        a: Real, Singular, g;
    }
    /// `b` where `a` is not 0, otherwise `c`.
    Select "select" {
        meaning: select(a != 0.0, b, c);
        latency: 10; lowering: Instructions;
        a: Real, Singular, none;
        b: Real, Smooth, Select(a, g, 0.0);
        c: Real, Smooth, Select(a, 0.0, g);
    }
    /// `a`, with `c` as its partial derivative by `b`: a custom derivative. The sweep passes
    /// the adjoint on to `a`, `c` times the adjoint to `b`, and nothing to `c`.
    Attach "attach" {
        meaning: a;
        latency: 0; lowering: Instructions;
        a: Real, Smooth, g;
        b: Real, Smooth, Mul(g, c);
        c: Real, Smooth, none;
    }
    /// `a`, without its derivative.
    Detach "detach" {
        meaning: a;
        latency: 0; lowering: Instructions;
        a: Real, Smooth, none;
    }
    /// 1 where `a < b`.
    Lt "lt" {
        meaning: truth(a < b);
        latency: 8; flags: Comparison; lowering: Instructions;
        a: Real, Singular, none;
        b: Real, Singular, none;
    }
    /// 1 where `a <= b`.
    Le "le" {
        meaning: truth(a <= b);
        latency: 8; flags: Comparison; lowering: Instructions;
        a: Real, Singular, none;
        b: Real, Singular, none;
    }
    /// 1 where `a > b`.
    Gt "gt" {
        meaning: truth(a > b);
        latency: 8; flags: Comparison; lowering: Instructions;
        a: Real, Singular, none;
        b: Real, Singular, none;
    }
    /// 1 where `a >= b`.
    Ge "ge" {
        meaning: truth(a >= b);
        latency: 8; flags: Comparison; lowering: Instructions;
        a: Real, Singular, none;
        b: Real, Singular, none;
    }
    /// 1 where `a == b`.
    Eq "eq" {
        meaning: truth(a == b);
        latency: 8; flags: Comparison, Commutes; lowering: Instructions;
        a: Real, Singular, none;
        b: Real, Singular, none;
    }
    /// 1 where `a != b`.
    Ne "ne" {
        meaning: truth(a != b);
        latency: 8; flags: Comparison, Commutes; lowering: Instructions;
        a: Real, Singular, none;
        b: Real, Singular, none;
    }
    /// 1 where `a` and `b` have the same bits or are both NaN: the guard of an escaped value.
    Same "same" {
        // Sign and payload of a NaN are not specified, so all NaNs are equal here.
        meaning: truth(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()));
        latency: 8; flags: Comparison, Commutes; lowering: Instructions;
        a: Real, Singular, none;
        b: Real, Singular, none;
    }
}
