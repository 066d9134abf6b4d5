//! Where each primitive is defined, which tests draw operands from, and where
//! it is singular, which decides what may be rounded otherwise.

use super::Op;

/// A set of real numbers that an operand must lie in for the primitive to have
/// a finite real value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Every real number.
    Real,
    /// Every real number but 0.
    NonZero,
    /// Zero and above.
    NonNegative,
    /// Above zero.
    Positive,
    /// From -1 to 1, ends included.
    Unit,
    /// Between -1 and 1, ends not included.
    OpenUnit,
    /// Above -1.
    AboveMinusOne,
    /// 1 and above.
    AtLeastOne,
    /// Integers in the range of `i32`, constants only.
    Integer,
}

impl Domain {
    /// Whether the finite number `x` lies in the set.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::op::Domain;
    ///
    /// assert!(Domain::NonNegative.contains(0.0));
    /// assert!(!Domain::Positive.contains(0.0));
    /// ```
    pub fn contains(self, x: f64) -> bool {
        match self {
            Domain::Real => x.is_finite(),
            Domain::NonZero => x.is_finite() && x != 0.0,
            Domain::NonNegative => x.is_finite() && x >= 0.0,
            Domain::Positive => x.is_finite() && x > 0.0,
            Domain::Unit => x.abs() <= 1.0,
            Domain::OpenUnit => x.abs() < 1.0,
            Domain::AboveMinusOne => x.is_finite() && x > -1.0,
            Domain::AtLeastOne => x.is_finite() && x >= 1.0,
            Domain::Integer => {
                x.trunc() == x && x >= f64::from(i32::MIN) && x <= f64::from(i32::MAX)
            }
        }
    }

    /// A member of the set away from its edges, made from any finite `x`;
    /// members near `x` stay near it where the set allows.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::op::Domain;
    ///
    /// assert!(Domain::AtLeastOne.contains(Domain::AtLeastOne.member(-3.0)));
    /// ```
    pub fn member(self, x: f64) -> f64 {
        match self {
            Domain::Real => x,
            Domain::NonZero => x + 0.5f64.copysign(x),
            Domain::NonNegative | Domain::Positive => x.abs() + 0.25,
            Domain::Unit | Domain::OpenUnit => 0.9 * x.sin(),
            Domain::AboveMinusOne => x.abs() - 0.75,
            Domain::AtLeastOne => x.abs() + 1.25,
            Domain::Integer => (x.round() % 8.0).trunc(),
        }
    }
}

/// The domain of each operand of `op`; entries beyond the arity are
/// [`Domain::Real`].
///
/// `powf` is listed with a positive base: negative ones are defined for
/// integer exponents only.
///
/// # Examples
///
/// ```
/// use phigrad::internals::op::{Domain, Op, domain};
///
/// assert_eq!(domain(Op::Div), [Domain::Real, Domain::NonZero, Domain::Real]);
/// ```
pub fn domain(op: Op) -> [Domain; 3] {
    use Domain::Real;
    match op {
        Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::MulAdd | Op::Cbrt | Op::Hypot => [Real; 3],
        Op::Div | Op::Rem => [Real, Domain::NonZero, Real],
        Op::Recip => [Domain::NonZero, Real, Real],
        // Negative exponents exclude 0 as the base.
        Op::Powi => [Domain::NonZero, Domain::Integer, Real],
        Op::Powf => [Domain::Positive, Real, Real],
        Op::Sqrt => [Domain::NonNegative, Real, Real],
        Op::Exp | Op::ExpM1 | Op::Exp2 => [Real; 3],
        Op::Ln | Op::Log2 | Op::Log10 => [Domain::Positive, Real, Real],
        Op::Ln1p => [Domain::AboveMinusOne, Real, Real],
        Op::Sin | Op::Cos | Op::Tan | Op::Atan | Op::Atan2 => [Real; 3],
        Op::Asin | Op::Acos => [Domain::Unit, Real, Real],
        Op::Sinh | Op::Cosh | Op::Tanh | Op::Asinh => [Real; 3],
        Op::Acosh => [Domain::AtLeastOne, Real, Real],
        Op::Atanh => [Domain::OpenUnit, Real, Real],
        Op::Abs | Op::Signum | Op::CopySign | Op::Min | Op::Max => [Real; 3],
        Op::Floor | Op::Ceil | Op::Round | Op::Trunc | Op::Fract => [Real; 3],
        Op::Select | Op::Attach => [Real; 3],
        Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne | Op::Same => [Real; 3],
    }
}

/// Whether `op` is singular somewhere in operand number `operand`: it or its
/// derivative jumps there or grows beyond all bounds, so that the least change of
/// the operand may change everything.
///
/// # Examples
///
/// ```
/// use phigrad::internals::op::{Op, is_singular};
///
/// assert!(is_singular(Op::Abs, 0) && is_singular(Op::Sqrt, 0) && is_singular(Op::Div, 1));
/// assert!(!is_singular(Op::Exp, 0) && !is_singular(Op::Div, 0));
/// ```
pub fn is_singular(op: Op, operand: usize) -> bool {
    match op {
        Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne | Op::Same => true,
        Op::Floor | Op::Ceil | Op::Round | Op::Trunc | Op::Fract | Op::Rem => true,
        Op::Abs | Op::Signum | Op::CopySign | Op::Min | Op::Max => true,
        Op::Atan2 | Op::Powf | Op::Hypot => true,
        Op::Recip | Op::Sqrt | Op::Cbrt | Op::Ln | Op::Ln1p | Op::Log2 | Op::Log10 => true,
        Op::Asin | Op::Acos | Op::Acosh | Op::Atanh => true,
        Op::Select => operand == 0,
        Op::Div => operand == 1,
        // Of poles, `tan` has none that a rounded number meets; those of `powi`
        // depend on the exponent.
        Op::Tan | Op::Powi => false,
        Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::MulAdd | Op::Attach => false,
        Op::Exp | Op::ExpM1 | Op::Exp2 | Op::Sin | Op::Cos | Op::Atan => false,
        Op::Sinh | Op::Cosh | Op::Tanh | Op::Asinh => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::eval;

    #[test]
    fn members_are_members_and_give_finite_values() {
        for &op in Op::ALL {
            let domain = domain(op);
            for i in -40..40 {
                let x = f64::from(i) * 0.37;
                let args = [0, 1, 2].map(|k| domain[k].member(x + 0.1 * k as f64));
                for (k, &arg) in args.iter().enumerate().take(op.arity()) {
                    assert!(domain[k].contains(arg), "{op} {arg}");
                }
                assert!(eval(op, args).is_finite(), "{op} {args:?}");
            }
        }
    }
}
