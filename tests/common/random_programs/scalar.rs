//! The number types that random programs run on.

use phigrad::Var;
use phigrad::flow::Carry;
use phigrad::internals::op::{MAX_ARITY, Op, eval};

/// A number that programs run on: `f64` or [`Var`].
pub trait Scalar: Copy + Carry {
    /// The constant `value`.
    fn constant(value: f64) -> Self;

    /// The number, read out as user code does.
    fn read(self) -> f64;

    /// Applies `op`; operands beyond the arity are ignored, and the exponent of `powi` is read
    /// out.
    fn apply(op: Op, args: [Self; MAX_ARITY]) -> Self;

    /// The outcome of a comparison in user code; false if `op` is no comparison.
    fn compare(op: Op, left: Self, right: Self) -> bool;
}

impl Scalar for f64 {
    fn constant(value: f64) -> f64 {
        value
    }

    fn read(self) -> f64 {
        self
    }

    fn apply(op: Op, args: [f64; MAX_ARITY]) -> f64 {
        eval(op, args)
    }

    fn compare(op: Op, left: f64, right: f64) -> bool {
        op.is_comparison() && eval(op, [left, right, 0.0]) != 0.0
    }
}

impl Scalar for Var {
    fn constant(value: f64) -> Var {
        Var::from(value)
    }

    fn read(self) -> f64 {
        self.value()
    }

    fn apply(op: Op, args: [Var; MAX_ARITY]) -> Var {
        Var::apply(op, args)
    }

    fn compare(op: Op, left: Var, right: Var) -> bool {
        match op {
            Op::Lt => left < right,
            Op::Le => left <= right,
            Op::Gt => left > right,
            Op::Ge => left >= right,
            Op::Eq => left == right,
            Op::Ne => left != right,
            Op::Same => Self::apply(op, [left, right, right]).value() != 0.0,
            _ => false,
        }
    }
}
