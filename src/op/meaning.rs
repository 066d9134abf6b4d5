//! Functions that meanings in the table of primitives are made of: what the tape, the
//! interpreter and the kernels share bit for bit.

#[inline(always)]
pub(super) fn select(condition: bool, then: f64, otherwise: f64) -> f64 {
    if condition { then } else { otherwise }
}

#[inline(always)]
pub(super) fn truth(condition: bool) -> f64 {
    select(condition, 1.0, 0.0)
}

/// `a` to the power `b`.
///
/// Not inlined: a compiler that knows one of them replaces the call by another function, which
/// rounds differently, for instance 2 to the power `b` by `exp2`.
#[inline(never)]
pub(super) fn powf(a: f64, b: f64) -> f64 {
    a.powf(b)
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
    use crate::op::{Op, eval};

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
