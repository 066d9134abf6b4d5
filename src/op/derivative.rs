//! The [`Algebra`] that derivative rules are written over, and the rules that are too long for
//! the table of primitives.
//!
//! The tape's reverse sweep runs the rules on numbers; `diff` runs the same
//! rules on graph nodes. So the two agree in formula and in rounding by
//! construction.

use core::f64::consts::FRAC_2_SQRT_PI;

use super::{Op, eval};

/// The operations that a derivative rule needs on the values that it works on.
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

/// The algebra of plain numbers. For an example see [`contribution`](super::contribution).
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

/// To the base of a power `op`: `g · (exponent · base^(exponent - 1))`, and 0 where the exponent
/// is 0 although the power may then be infinite.
#[inline(always)]
pub(super) fn power_by_base<A: Algebra>(
    k: &mut A,
    op: Op,
    [base, exponent]: [A::Value; 2],
    g: A::Value,
) -> A::Value {
    // The exponent of `powi` is a constant integer, so its operations fold away.
    let one = k.constant(1.0);
    let less = k.apply(Op::Sub, [exponent, one]);
    let power = k.apply(op, [base, less]);
    let zero = k.constant(0.0);
    let product = k.apply(Op::Mul, [exponent, power]);
    let flat = k.apply(Op::Eq, [exponent, zero]);
    let partial = k.apply(Op::Select, [flat, zero, product]);
    k.apply(Op::Mul, [g, partial])
}

/// To the exponent of a power `y` of `base`: `g · y · ln(base)`.
#[inline(always)]
pub(super) fn power_by_exponent<A: Algebra>(
    k: &mut A,
    base: A::Value,
    y: A::Value,
    g: A::Value,
) -> A::Value {
    // 0 to a positive power does not change with the power, although
    // the logarithm of 0 is not finite.
    let (zero, one) = (k.constant(0.0), k.constant(1.0));
    let is_zero = k.apply(Op::Eq, [base, zero]);
    let base = k.apply(Op::Select, [is_zero, one, base]);
    let ln = k.apply(Op::Ln, [base]);
    let partial = k.apply(Op::Mul, [y, ln]);
    k.apply(Op::Mul, [g, partial])
}

/// To the leg `side` of the hypotenuse `y`: `g · side / y`.
#[inline(always)]
pub(super) fn direction<A: Algebra>(
    k: &mut A,
    side: A::Value,
    y: A::Value,
    g: A::Value,
) -> A::Value {
    // At the origin the subgradient 0 is taken, not 0/0.
    let zero = k.constant(0.0);
    let ratio = k.apply(Op::Div, [side, y]);
    let at_origin = k.apply(Op::Eq, [y, zero]);
    let partial = k.apply(Op::Select, [at_origin, zero, ratio]);
    k.apply(Op::Mul, [g, partial])
}

/// `number / (a² + b²)`
#[inline(always)]
pub(super) fn over_square<A: Algebra>(
    k: &mut A,
    number: A::Value,
    legs: [A::Value; 2],
) -> A::Value {
    // Divided twice by the radius, so that its square cannot overflow.
    let radius = k.apply(Op::Hypot, legs);
    let near = k.apply(Op::Div, [number, radius]);
    k.apply(Op::Div, [near, radius])
}

/// `g` times the sign of `a`, which is 0 at 0.
#[inline(always)]
pub(super) fn with_sign_of<A: Algebra>(k: &mut A, a: A::Value, g: A::Value) -> A::Value {
    // At zero a² is 0, whatever the adjoint, and for NaN it is NaN.
    let zero = k.constant(0.0);
    let (above, below) = (k.apply(Op::Gt, [a, zero]), k.apply(Op::Lt, [a, zero]));
    let (negated, neither) = (k.apply(Op::Neg, [g]), k.apply(Op::Mul, [a, a]));
    let not_above = k.apply(Op::Select, [below, negated, neither]);
    k.apply(Op::Select, [above, g, not_above])
}

/// The derivative of the inverse error function `y` of `a`.
#[inline(always)]
pub(super) fn by_erf<A: Algebra>(k: &mut A, a: A::Value, y: A::Value) -> A::Value {
    let is_negative = formula!(k; Lt(a, 0.0));
    let size = formula!(k; Select(is_negative, Neg(y), y));
    let tail = formula!(k; Sub(1.0, Select(is_negative, Neg(a), a)));
    by_tail(k, size, tail)
}

/// The negative derivative of the inverse complementary error function `y` of `a`.
#[inline(always)]
pub(super) fn by_erfc<A: Algebra>(k: &mut A, a: A::Value, y: A::Value) -> A::Value {
    let is_tail = formula!(k; Lt(a, 1.0));
    let size = formula!(k; Select(is_tail, y, Neg(y)));
    let tail = formula!(k; Select(is_tail, a, Sub(2.0, a)));
    by_tail(k, size, tail)
}

/// √π/2·exp(size²), where `tail` is erfc(size); the size is not negative.
///
/// The rounding error of the size is amplified in exp(size²), but not in the quotient of
/// exp(size²)·erfc(size) and `tail`. Both are selected by one condition in the callers, not by
/// absolute values, whose derivatives at 0 would be 0 where those of the sides cancel.
#[inline(always)]
fn by_tail<A: Algebra>(k: &mut A, size: A::Value, tail: A::Value) -> A::Value {
    let quotient = formula!(k; Div(Mul([1.0 / FRAC_2_SQRT_PI], Erfcx(size, 0.0)), tail));
    // At the end both are 0.
    formula!(k; Select(Eq(tail, 0.0), [f64::INFINITY], quotient))
}
