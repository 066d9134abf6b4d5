//! The structure of the first and second derivatives of primitives, read off the derivative rules.

use super::{Algebra, MAX_ARITY, Numbers, Op, contribution};

/// The bit of the value among those of the operands.
const VALUE: u8 = 1 << MAX_ARITY;

/// The structure of the derivatives of a primitive: what may be other than zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Structure {
    /// A bit for each operand with a partial derivative.
    pub(crate) differentiable: u8,
    /// For each operand a bit for each one with which it has a second partial derivative.
    pub(crate) interacting: [u8; MAX_ARITY],
}

impl Structure {
    /// The structure of `op`.
    pub(crate) fn of(op: Op) -> Structure {
        let differentiable = differentiable(op);
        let operands = core::array::from_fn(|operand| 1 << operand);
        let mut interacting = [0; MAX_ARITY];
        for (operand, partners) in interacting.iter_mut().enumerate().take(op.arity()) {
            let rule = contribution(&mut Dependences, op, operand, operands, VALUE, 0);
            let dependences = rule.unwrap_or(0);
            let through_value = if dependences & VALUE != 0 { differentiable } else { 0 };
            *partners = (dependences | through_value) & !VALUE;
        }
        // Second derivatives are symmetric, also where a rule leaves one of them out.
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            let both = interacting[a] >> b & 1 | interacting[b] >> a & 1;
            interacting[a] |= both << b;
            interacting[b] |= both << a;
        }
        Structure { differentiable, interacting }
    }
}

/// A bit for each operand of `op` with a partial derivative.
fn differentiable(op: Op) -> u8 {
    let has_partial = |operand: &usize| {
        contribution(&mut Numbers, op, *operand, [1.0; MAX_ARITY], 1.0, 1.0).is_some()
    };
    (0..op.arity()).filter(has_partial).map(|operand| 1 << operand).sum()
}

/// The algebra of dependences: for each value the operands, and the result, whose change changes
/// it.
struct Dependences;

impl Algebra for Dependences {
    type Value = u8;

    fn constant(&mut self, _: f64) -> u8 {
        0
    }

    fn apply<const N: usize>(&mut self, op: Op, args: [u8; N]) -> u8 {
        let differentiable = differentiable(op);
        let of_operand = |(operand, &arg): (usize, &u8)| {
            if differentiable >> operand & 1 != 0 { arg } else { 0 }
        };
        args.iter().enumerate().map(of_operand).fold(0, |all, one| all | one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interactions_follow_from_the_rules() {
        let of = |op| Structure::of(op).interacting;
        for linear in [Op::Add, Op::Sub, Op::Neg, Op::Min, Op::Max, Op::Select, Op::Fract, Op::Rem]
        {
            assert_eq!(of(linear), [0; 3], "{linear}");
        }
        assert_eq!(of(Op::Mul), [0b10, 0b01, 0]);
        assert_eq!(of(Op::MulAdd), [0b10, 0b01, 0]);
        assert_eq!(of(Op::Div), [0b10, 0b11, 0]);
        assert_eq!(of(Op::Attach), [0, 0b100, 0b010]);
        for unary in [Op::Sin, Op::Exp, Op::Recip, Op::Sqrt, Op::Erf] {
            assert_eq!(of(unary), [1, 0, 0], "{unary}");
        }
        // The exponent is a constant, which depends on no input.
        assert_eq!(of(Op::Powi), [0b11, 0b01, 0]);
        for both in [Op::Powf, Op::Hypot, Op::Atan2] {
            assert_eq!(of(both), [0b11, 0b11, 0], "{both}");
        }
        assert_eq!(Structure::of(Op::Floor), Structure::default());
        assert_eq!(Structure::of(Op::Select).differentiable, 0b110);
    }
}
