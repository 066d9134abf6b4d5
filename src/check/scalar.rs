//! What a random program needs from the numbers that it runs on.

use crate::flow::Carry;
use crate::op::{MAX_ARITY, Op, eval};
use crate::trace::Var;

/// A number that programs can be run on: a plain one or a traced one.
///
/// # Examples
///
/// ```
/// use phigrad::check::Scalar;
/// use phigrad::op::Op;
///
/// fn hypotenuse<S: Scalar>(a: S, b: S) -> S {
///     S::apply(Op::Hypot, [a, b, b])
/// }
/// assert_eq!(hypotenuse(3.0, 4.0), 5.0);
/// let f = phigrad::Tape::record(|x| hypotenuse(x[0], Scalar::constant(4.0)));
/// assert_eq!(f.eval(&[3.0])?, 5.0);
/// # Ok::<(), phigrad::Error>(())
/// ```
pub trait Scalar: Copy + Carry {
    /// The constant `value`.
    fn constant(value: f64) -> Self;

    /// The number as user code reads it out.
    fn read(self) -> f64;

    /// The value of `op`; operands beyond the arity are ignored, and the
    /// exponent of `powi` is read out.
    fn apply(op: Op, args: [Self; MAX_ARITY]) -> Self;

    /// The outcome of a comparison as user code sees it; false when `op` is
    /// no comparison.
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

    fn apply(op: Op, [a, b, c]: [Var; MAX_ARITY]) -> Var {
        match op {
            Op::Add => a + b,
            Op::Sub => a - b,
            Op::Mul => a * b,
            Op::Div => a / b,
            Op::Rem => a % b,
            Op::Neg => -a,
            Op::Recip => a.recip(),
            Op::MulAdd => a.mul_add(b, c),
            Op::Powi => a.powi(b.value() as i32),
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
            // Its value; the tape has no custom derivatives yet.
            Op::Attach => a,
            Op::Abs => a.abs(),
            Op::Signum => a.signum(),
            Op::CopySign => a.copysign(b),
            Op::Min => a.min(b),
            Op::Max => a.max(b),
            Op::Floor => a.floor(),
            Op::Ceil => a.ceil(),
            Op::Round => a.round(),
            Op::Trunc => a.trunc(),
            Op::Fract => a.fract(),
            Op::Select => a.select(b, c),
            Op::Lt => a.less_than(b),
            Op::Le => a.at_most(b),
            Op::Gt => a.greater_than(b),
            Op::Ge => a.at_least(b),
            Op::Eq => a.equal_to(b),
            Op::Ne => a.differs_from(b),
            // User code can compare bits only by reading the numbers out.
            Op::Same => Var::from(eval(Op::Same, [a.value(), b.value(), 0.0])),
        }
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
