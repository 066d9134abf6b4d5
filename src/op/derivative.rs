//! The derivative rule of each primitive, written once over an [`Algebra`].
//!
//! The tape's reverse sweep runs the rules on numbers; `diff` runs the same
//! rules on graph nodes. So the two agree in formula and in rounding by
//! construction. Where a primitive is not differentiable the rule picks a
//! subgradient: 0 for `abs` at 0, the second operand for `min` and `max` at a
//! tie (so that the derivative of `x.max(0.0)` at 0 is 0).

use super::{Op, eval};

/// What a derivative rule needs from the values that it works on.
///
/// [`Numbers`] computes the derivative, [`ssa::Builder`](crate::ssa::Builder)
/// builds the graph that computes it.
///
/// # Examples
///
/// ```
/// use phigrad::internals::op::{Algebra, Op, contribution};
///
/// /// Writes formulas.
/// struct Formulas;
///
/// impl Algebra for Formulas {
///     type Value = &'static str;
///
///     fn constant(&mut self, value: f64) -> &'static str {
///         value.to_string().leak()
///     }
///
///     fn apply<const N: usize>(&mut self, op: Op, args: [&'static str; N]) -> &'static str {
///         format!("{op}({})", args.join(", ")).leak()
///     }
/// }
///
/// let rule = contribution(&mut Formulas, Op::Sin, 0, ["x", "", ""], "y", "g");
/// assert_eq!(rule, Some("mul(g, cos(x))"));
/// ```
pub trait Algebra {
    /// A number, or the node that computes it.
    type Value: Copy;

    /// The constant `value`.
    fn constant(&mut self, value: f64) -> Self::Value;

    /// The value of `op` at `args`, one for each operand of `op`.
    fn apply<const N: usize>(&mut self, op: Op, args: [Self::Value; N]) -> Self::Value;
}

/// The algebra of plain numbers. For an example see [`contribution`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers;

impl Algebra for Numbers {
    type Value = f64;

    #[inline(always)]
    fn constant(&mut self, value: f64) -> f64 {
        value
    }

    #[inline(always)]
    fn apply<const N: usize>(&mut self, op: Op, args: [f64; N]) -> f64 {
        let mut padded = [0.0; 3];
        padded[..N].copy_from_slice(&args);
        eval(op, padded)
    }
}

/// What `op`, computed as `y` from the operands `x`, passes of its adjoint `g`
/// to its operand number `operand`; `None` when the derivative is zero
/// everywhere.
///
/// # Examples
///
/// ```
/// use phigrad::internals::op::{Numbers, Op, contribution};
///
/// // d(a·b)/da = b
/// let c = contribution(&mut Numbers, Op::Mul, 0, [2.0, 3.0, 0.0], 6.0, 1.0);
/// assert_eq!(c, Some(3.0));
/// ```
#[inline(always)]
pub fn contribution<A: Algebra>(
    alg: &mut A,
    op: Op,
    operand: usize,
    x: [A::Value; 3],
    y: A::Value,
    g: A::Value,
) -> Option<A::Value> {
    let [a, b, c] = x;
    let first = operand == 0;
    Some(match op {
        Op::Add => g,
        Op::Sub if first => g,
        Op::Sub => alg.apply(Op::Neg, [g]),
        Op::Mul => alg.apply(Op::Mul, [g, if first { b } else { a }]),
        Op::Div => {
            let quotient = alg.apply(Op::Div, [g, b]);
            if first { quotient } else { negated_product(alg, quotient, y) }
        }
        Op::Rem if first => g,
        Op::Rem => {
            // From the value, because `a / b` may round up to the next integer.
            let taken = alg.apply(Op::Sub, [a, y]);
            let quotient = alg.apply(Op::Div, [taken, b]);
            let whole = alg.apply(Op::Round, [quotient]);
            negated_product(alg, g, whole)
        }
        Op::Neg => alg.apply(Op::Neg, [g]),
        Op::Recip => {
            let gy = alg.apply(Op::Mul, [g, y]);
            negated_product(alg, gy, y)
        }
        Op::MulAdd => match operand {
            0 => alg.apply(Op::Mul, [g, b]),
            1 => alg.apply(Op::Mul, [g, a]),
            _ => g,
        },
        Op::Powi if first => {
            // The exponent is a constant integer, so its operations fold away.
            let one = alg.constant(1.0);
            let less = alg.apply(Op::Sub, [b, one]);
            let power = alg.apply(Op::Powi, [a, less]);
            scaled_unless_zero(alg, g, b, power)
        }
        Op::Powf if first => {
            let one = alg.constant(1.0);
            let less = alg.apply(Op::Sub, [b, one]);
            let power = alg.apply(Op::Powf, [a, less]);
            scaled_unless_zero(alg, g, b, power)
        }
        Op::Powf => {
            // 0 to a positive power does not change with the power, although
            // the logarithm of 0 is not finite.
            let (zero, one) = (alg.constant(0.0), alg.constant(1.0));
            let is_zero = alg.apply(Op::Eq, [a, zero]);
            let base = alg.apply(Op::Select, [is_zero, one, a]);
            let ln = alg.apply(Op::Ln, [base]);
            let partial = alg.apply(Op::Mul, [y, ln]);
            alg.apply(Op::Mul, [g, partial])
        }
        Op::Sqrt => {
            let half = alg.constant(0.5);
            let hg = alg.apply(Op::Mul, [half, g]);
            alg.apply(Op::Div, [hg, y])
        }
        Op::Cbrt => {
            let three = alg.constant(3.0);
            let y2 = alg.apply(Op::Mul, [y, y]);
            let slope = alg.apply(Op::Mul, [three, y2]);
            alg.apply(Op::Div, [g, slope])
        }
        Op::Hypot => {
            // At the origin the subgradient 0 is taken, not 0/0.
            let zero = alg.constant(0.0);
            let ratio = alg.apply(Op::Div, [if first { a } else { b }, y]);
            let at_origin = alg.apply(Op::Eq, [y, zero]);
            let partial = alg.apply(Op::Select, [at_origin, zero, ratio]);
            alg.apply(Op::Mul, [g, partial])
        }
        Op::Exp => alg.apply(Op::Mul, [g, y]),
        Op::ExpM1 => {
            // Not y + 1, which cancels where the exponential is small.
            let exp = alg.apply(Op::Exp, [a]);
            alg.apply(Op::Mul, [g, exp])
        }
        Op::Exp2 => {
            let ln_2 = alg.constant(core::f64::consts::LN_2);
            let partial = alg.apply(Op::Mul, [y, ln_2]);
            alg.apply(Op::Mul, [g, partial])
        }
        Op::Ln => alg.apply(Op::Div, [g, a]),
        Op::Ln1p => {
            let one = alg.constant(1.0);
            let shifted = alg.apply(Op::Add, [one, a]);
            alg.apply(Op::Div, [g, shifted])
        }
        Op::Log2 => over_scaled(alg, g, a, core::f64::consts::LN_2),
        Op::Log10 => over_scaled(alg, g, a, core::f64::consts::LN_10),
        Op::Sin => times(alg, g, Op::Cos, a),
        Op::Cos => {
            let sin = alg.apply(Op::Sin, [a]);
            negated_product(alg, g, sin)
        }
        Op::Tan => {
            let one = alg.constant(1.0);
            let y2 = alg.apply(Op::Mul, [y, y]);
            let slope = alg.apply(Op::Add, [one, y2]);
            alg.apply(Op::Mul, [g, slope])
        }
        Op::Asin => {
            let slope = root_of_one_minus_square(alg, a);
            alg.apply(Op::Div, [g, slope])
        }
        Op::Acos => {
            let slope = root_of_one_minus_square(alg, a);
            let quotient = alg.apply(Op::Div, [g, slope]);
            alg.apply(Op::Neg, [quotient])
        }
        Op::Atan => {
            let one = alg.constant(1.0);
            let a2 = alg.apply(Op::Mul, [a, a]);
            let slope = alg.apply(Op::Add, [one, a2]);
            alg.apply(Op::Div, [g, slope])
        }
        Op::Atan2 => {
            // Divided twice by the radius, so that its square cannot overflow.
            let radius = alg.apply(Op::Hypot, [a, b]);
            let near = alg.apply(Op::Div, [if first { b } else { a }, radius]);
            let partial = alg.apply(Op::Div, [near, radius]);
            if first { alg.apply(Op::Mul, [g, partial]) } else { negated_product(alg, g, partial) }
        }
        Op::Sinh => times(alg, g, Op::Cosh, a),
        Op::Cosh => times(alg, g, Op::Sinh, a),
        Op::Tanh => {
            let one = alg.constant(1.0);
            let y2 = alg.apply(Op::Mul, [y, y]);
            let slope = alg.apply(Op::Sub, [one, y2]);
            alg.apply(Op::Mul, [g, slope])
        }
        Op::Asinh => {
            let one = alg.constant(1.0);
            let slope = alg.apply(Op::Hypot, [a, one]);
            alg.apply(Op::Div, [g, slope])
        }
        Op::Acosh => {
            let one = alg.constant(1.0);
            let (below, above) = (alg.apply(Op::Sub, [a, one]), alg.apply(Op::Add, [a, one]));
            let (low, high) = (alg.apply(Op::Sqrt, [below]), alg.apply(Op::Sqrt, [above]));
            let slope = alg.apply(Op::Mul, [low, high]);
            alg.apply(Op::Div, [g, slope])
        }
        Op::Atanh => {
            let one = alg.constant(1.0);
            let (low, high) = (alg.apply(Op::Sub, [one, a]), alg.apply(Op::Add, [one, a]));
            let slope = alg.apply(Op::Mul, [low, high]);
            alg.apply(Op::Div, [g, slope])
        }
        Op::Abs => {
            // At zero a² is 0, whatever the adjoint, and for NaN it is NaN.
            let zero = alg.constant(0.0);
            let (above, below) = (alg.apply(Op::Gt, [a, zero]), alg.apply(Op::Lt, [a, zero]));
            let (negated, neither) = (alg.apply(Op::Neg, [g]), alg.apply(Op::Mul, [a, a]));
            let not_above = alg.apply(Op::Select, [below, negated, neither]);
            alg.apply(Op::Select, [above, g, not_above])
        }
        Op::CopySign if first => {
            let one = alg.constant(1.0);
            let (from, to) = (alg.apply(Op::CopySign, [one, a]), alg.apply(Op::CopySign, [one, b]));
            let flip = alg.apply(Op::Mul, [from, to]);
            alg.apply(Op::Mul, [g, flip])
        }
        Op::Min | Op::Max => {
            let zero = alg.constant(0.0);
            let took_second = alg.apply(Op::Eq, [y, b]);
            let sides = if first { [took_second, zero, g] } else { [took_second, g, zero] };
            alg.apply(Op::Select, sides)
        }
        Op::Fract => g,
        Op::Attach => match operand {
            0 => g,
            1 => alg.apply(Op::Mul, [g, c]),
            _ => return None,
        },
        Op::Select => {
            let zero = alg.constant(0.0);
            match operand {
                0 => return None,
                1 => alg.apply(Op::Select, [a, g, zero]),
                _ => alg.apply(Op::Select, [a, zero, g]),
            }
        }
        Op::Powi | Op::CopySign | Op::Signum => return None,
        Op::Floor | Op::Ceil | Op::Round | Op::Trunc => return None,
        Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne | Op::Same => return None,
    })
}

/// `-(g · factor)`
#[inline(always)]
fn negated_product<A: Algebra>(alg: &mut A, g: A::Value, factor: A::Value) -> A::Value {
    let product = alg.apply(Op::Mul, [g, factor]);
    alg.apply(Op::Neg, [product])
}

/// `g · op(a)`
#[inline(always)]
fn times<A: Algebra>(alg: &mut A, g: A::Value, op: Op, a: A::Value) -> A::Value {
    let partial = alg.apply(op, [a]);
    alg.apply(Op::Mul, [g, partial])
}

/// `g / (a · scale)`
#[inline(always)]
fn over_scaled<A: Algebra>(alg: &mut A, g: A::Value, a: A::Value, scale: f64) -> A::Value {
    let scale = alg.constant(scale);
    let slope = alg.apply(Op::Mul, [a, scale]);
    alg.apply(Op::Div, [g, slope])
}

/// `g · (exponent · power)`, and 0 where the exponent is 0 although the power
/// may then be infinite.
#[inline(always)]
fn scaled_unless_zero<A: Algebra>(
    alg: &mut A,
    g: A::Value,
    exponent: A::Value,
    power: A::Value,
) -> A::Value {
    let zero = alg.constant(0.0);
    let slope = alg.apply(Op::Mul, [exponent, power]);
    let flat = alg.apply(Op::Eq, [exponent, zero]);
    let partial = alg.apply(Op::Select, [flat, zero, slope]);
    alg.apply(Op::Mul, [g, partial])
}

/// `√((1 - a) · (1 + a))`, which keeps its accuracy where 1 - a² cancels.
#[inline(always)]
fn root_of_one_minus_square<A: Algebra>(alg: &mut A, a: A::Value) -> A::Value {
    let one = alg.constant(1.0);
    let (low, high) = (alg.apply(Op::Sub, [one, a]), alg.apply(Op::Add, [one, a]));
    let product = alg.apply(Op::Mul, [low, high]);
    alg.apply(Op::Sqrt, [product])
}
