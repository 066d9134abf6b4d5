//! The domains of primitives, from which tests draw operands, and their singularities, whose
//! operands keep their bits in kernels.

use super::{Op, smoothness};

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
    /// Between 0 and 1, ends not included.
    UnitInterval,
    /// Above -1.
    AboveMinusOne,
    /// 1 and above.
    AtLeastOne,
    /// Integers in the range of `i32`, constants only.
    Integer,
}

impl Domain {
    /// True if the finite number `x` lies in the set.
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
            Domain::UnitInterval => 0.0 < x && x < 1.0,
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
            Domain::UnitInterval => 0.5 + 0.45 * x.sin(),
            Domain::AboveMinusOne => x.abs() - 0.75,
            Domain::AtLeastOne => x.abs() + 1.25,
            Domain::Integer => (x.round() % 8.0).trunc(),
        }
    }
}

/// The smoothness of a primitive in an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Smoothness {
    /// It has a bounded derivative around each number of its domain.
    Smooth,
    /// Somewhere it or its derivative is discontinuous or unbounded.
    Singular,
}

/// True if `op` is singular somewhere in operand number `operand`: it or its
/// derivative is discontinuous or unbounded there, so that the least change of
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
    smoothness(op).get(operand) == Some(&Smoothness::Singular)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{domain, eval};

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
