//! What each primitive computes: the one meaning that the tape, the
//! interpreter and the kernels share bit for bit.

use super::Op;

/// The value of `op` at `args`; operands beyond the arity are ignored.
///
/// # Numerics
///
/// Transcendental functions are the platform's mathematical library, reached
/// through `std`. `min`, `max` and `powi` are defined here because `std` leaves
/// their zeros, ties and roundings open. NaN results carry no promise about
/// their sign and payload.
///
/// # Examples
///
/// ```
/// use phigrad::internals::op::{Op, eval};
///
/// assert_eq!(eval(Op::Mul, [2.0, 3.0, 0.0]), 6.0);
/// assert_eq!(eval(Op::Lt, [2.0, 3.0, 0.0]), 1.0);
/// assert_eq!(eval(Op::Max, [f64::NAN, 3.0, 0.0]), 3.0);
/// ```
#[inline(always)]
pub fn eval(op: Op, [a, b, c]: [f64; 3]) -> f64 {
    match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div => a / b,
        Op::Rem => a % b,
        Op::Neg => -a,
        Op::Recip => 1.0 / a,
        Op::MulAdd => a.mul_add(b, c),
        Op::Powi => powi(a, b as i32),
        Op::Powf => a.powf(b),
        Op::Sqrt => a.sqrt(),
        Op::Cbrt => a.cbrt(),
        Op::Hypot => a.hypot(b),
        Op::Exp => a.exp(),
        Op::ExpM1 => a.exp_m1(),
        Op::Exp2 => a.exp2(),
        Op::Ln => a.ln(),
        Op::Ln1p => a.ln_1p(),
        Op::Log2 => a.log2(),
        Op::Log10 => a.log10(),
        Op::Sin => a.sin(),
        Op::Cos => a.cos(),
        Op::Tan => a.tan(),
        Op::Asin => a.asin(),
        Op::Acos => a.acos(),
        Op::Atan => a.atan(),
        Op::Atan2 => a.atan2(b),
        Op::Sinh => a.sinh(),
        Op::Cosh => a.cosh(),
        Op::Tanh => a.tanh(),
        Op::Asinh => a.asinh(),
        Op::Acosh => a.acosh(),
        Op::Atanh => a.atanh(),
        Op::Abs => a.abs(),
        Op::Signum => a.signum(),
        Op::CopySign => a.copysign(b),
        // A comparison with NaN is false, so `b` is NaN in the second test only.
        Op::Min => select(a < b || b.is_nan(), a, b),
        Op::Max => select(a > b || b.is_nan(), a, b),
        Op::Floor => a.floor(),
        Op::Ceil => a.ceil(),
        Op::Round => a.round(),
        Op::Trunc => a.trunc(),
        Op::Fract => a - a.trunc(),
        Op::Select => select(a != 0.0, b, c),
        Op::Attach => a,
        Op::Lt => truth(a < b),
        Op::Le => truth(a <= b),
        Op::Gt => truth(a > b),
        Op::Ge => truth(a >= b),
        Op::Eq => truth(a == b),
        Op::Ne => truth(a != b),
        // What sign and payload a NaN has is not defined, so none is another.
        Op::Same => truth(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())),
    }
}

#[inline(always)]
fn select(condition: bool, then: f64, otherwise: f64) -> f64 {
    if condition { then } else { otherwise }
}

#[inline(always)]
fn truth(condition: bool) -> f64 {
    select(condition, 1.0, 0.0)
}

/// `x` to the integer power `n` by squaring, in a fixed order.
///
/// `f64::powi` may round differently from one call site to the next; kernels
/// that must agree with the tape need one order of multiplications.
///
/// # Examples
///
/// ```
/// assert_eq!(phigrad::internals::op::powi(2.0, -3), 0.125);
/// ```
#[inline]
pub fn powi(x: f64, n: i32) -> f64 {
    let (mut base, mut exponent, mut product) = (x, n.unsigned_abs(), 1.0);
    loop {
        if exponent & 1 == 1 {
            product *= base;
        }
        exponent >>= 1;
        if exponent == 0 {
            break;
        }
        base *= base;
    }
    if n < 0 { 1.0 / product } else { product }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn min_and_max_ignore_nan_and_give_ties_to_the_second() {
        for op in [Op::Min, Op::Max] {
            assert_eq!(eval(op, [f64::NAN, 1.0, 0.0]), 1.0);
            assert_eq!(eval(op, [1.0, f64::NAN, 0.0]), 1.0);
            assert!(eval(op, [f64::NAN, f64::NAN, 0.0]).is_nan());
            assert!(eval(op, [0.0, -0.0, 0.0]).is_sign_negative());
            assert!(eval(op, [-0.0, 0.0, 0.0]).is_sign_positive());
        }
        assert_eq!(eval(Op::Min, [1.0, 2.0, 0.0]), 1.0);
        assert_eq!(eval(Op::Max, [1.0, 2.0, 0.0]), 2.0);
    }

    #[test]
    fn powi_agrees_with_exact_powers() {
        for n in -20..20 {
            assert_eq!(powi(2.0, n), 2.0f64.powf(f64::from(n)));
        }
        assert_eq!(powi(f64::NAN, 0), 1.0);
        assert_eq!(powi(0.0, -1), f64::INFINITY);
        assert_eq!(powi(1.0, i32::MIN), 1.0);
    }

    #[test]
    fn a_nan_condition_selects_the_first_side_like_not_zero() {
        assert_eq!(eval(Op::Select, [f64::NAN, 1.0, 2.0]), 1.0);
        assert_eq!(eval(Op::Select, [-0.0, 1.0, 2.0]), 2.0);
    }

    #[test]
    fn same_tells_zeros_apart_and_knows_nan() {
        assert_eq!(eval(Op::Same, [0.0, -0.0, 0.0]), 0.0);
        assert_eq!(eval(Op::Same, [f64::NAN, -f64::NAN, 0.0]), 1.0);
    }
}
