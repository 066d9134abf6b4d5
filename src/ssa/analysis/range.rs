//! Ranges of computed numbers: bounds, and whether a number may be NaN or zero.
//!
//! The bounds hold for rounded numbers: rounding is monotone, so the rounded sum of two bounds is a
//! bound of the rounded sums. Functions of the mathematical library are not exactly monotone, so
//! only bounds that they guarantee are used.

use crate::op::{Op, eval};

/// The range of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    /// The lower bound, unless the number is NaN.
    pub(crate) lower: f64,
    /// The upper bound, unless the number is NaN.
    pub(crate) upper: f64,
    /// True if the number may be NaN.
    pub(crate) nan: bool,
    /// True if the number is certainly not 0.
    pub(crate) nonzero: bool,
}

impl Range {
    /// The range of all numbers, and NaN.
    pub(crate) const UNKNOWN: Range =
        Range { lower: f64::NEG_INFINITY, upper: f64::INFINITY, nan: true, nonzero: false };

    /// The range of a single number.
    pub(crate) fn constant(x: f64) -> Range {
        let (lower, upper) = if x.is_nan() { (f64::INFINITY, f64::NEG_INFINITY) } else { (x, x) };
        Range { lower, upper, nan: x.is_nan(), nonzero: x != 0.0 }
    }

    pub(crate) fn between(lower: f64, upper: f64) -> Range {
        Range { lower, upper, ..Range::UNKNOWN }
    }

    pub(crate) fn with_nan(self, nan: bool) -> Range {
        Range { nan, ..self }
    }

    pub(crate) fn is_nonzero(&self) -> bool {
        self.nonzero || self.lower > 0.0 || self.upper < 0.0
    }

    /// True if the number is above 0, or NaN.
    pub(crate) fn is_positive(&self) -> bool {
        self.lower > 0.0 || (self.lower >= 0.0 && self.nonzero)
    }

    /// True if the number is not below 0, or NaN.
    pub(crate) fn is_not_negative(&self) -> bool {
        self.lower >= 0.0
    }

    pub(crate) fn is_finite(&self) -> bool {
        !self.nan && self.is_bounded(f64::MAX)
    }

    /// True if the magnitude is at most `bound`, or the number is NaN.
    pub(crate) fn is_bounded(&self, bound: f64) -> bool {
        self.lower >= -bound && self.upper <= bound
    }

    fn has_infinity(&self) -> bool {
        self.lower == f64::NEG_INFINITY || self.upper == f64::INFINITY
    }

    fn has_zero(&self) -> bool {
        !self.is_nonzero() && self.lower <= 0.0 && self.upper >= 0.0
    }

    /// The hull of both ranges.
    pub(crate) fn union(self, other: Range) -> Range {
        Range {
            lower: self.lower.min(other.lower),
            upper: self.upper.max(other.upper),
            nan: self.nan || other.nan,
            nonzero: self.is_nonzero() && other.is_nonzero(),
        }
    }

    /// The numbers in both ranges.
    pub(crate) fn intersection(self, other: Range) -> Range {
        Range {
            lower: self.lower.max(other.lower),
            upper: self.upper.min(other.upper),
            nan: self.nan && other.nan,
            nonzero: self.nonzero || other.nonzero,
        }
    }
}

/// The range of `op` applied to numbers in these ranges. With `is_square` the first two operands
/// are the same number.
pub(crate) fn range_of(op: Op, [a, b, c]: [Range; 3], is_square: bool) -> Range {
    let nan = a.nan || (op.arity() > 1 && b.nan) || (op.arity() > 2 && c.nan);
    let monotone = |lower: f64| Range::between(lower, f64::INFINITY).with_nan(a.nan);
    match op {
        Op::Add => sum(a, b),
        Op::Sub => sum(a, negated(b)),
        Op::Mul => product(a, b, is_square),
        Op::MulAdd => {
            // The product is exact, that of the bounds is rounded: widen it by an ulp.
            let wide = product(a, b, is_square);
            let lower = if wide.lower == 0.0 { 0.0 } else { wide.lower.next_down() };
            let upper = if wide.upper == 0.0 { 0.0 } else { wide.upper.next_up() };
            sum(Range { lower, upper, nonzero: false, ..wide }, c)
        }
        Op::Attach | Op::Detach => a,
        Op::Neg => negated(a),
        Op::Recip => quotient(Range::constant(1.0), a),
        Op::Div => quotient(a, b),
        Op::Sqrt => {
            let range = Range::between(a.lower.max(0.0).sqrt(), a.upper.max(0.0).sqrt());
            // √-0 is -0, which is not below 0.
            Range { nonzero: a.is_nonzero(), ..range.with_nan(a.nan || a.lower < 0.0) }
        }
        Op::Abs => {
            let lower = if a.lower > 0.0 { a.lower } else { (-a.upper).max(0.0) };
            let upper = a.upper.max(-a.lower);
            Range { lower, upper, nonzero: a.is_nonzero(), ..a }
        }
        Op::Exp | Op::Exp2 => {
            // At least 1 for arguments from 0 on, at most 1 up to 0.
            let lower = if a.lower >= 0.0 { 1.0 } else { 0.0 };
            let max_terms = if op == Op::Exp { 709.0 } else { 1023.0 };
            let upper = match a.upper {
                upper if upper <= 0.0 => 1.0,
                upper if upper <= max_terms => f64::MAX,
                _ => f64::INFINITY,
            };
            let nonzero = a.lower >= -max_terms + 1.0;
            Range { nonzero, ..Range::between(lower, upper).with_nan(a.nan) }
        }
        Op::ExpM1 => monotone(if a.lower >= 0.0 { 0.0 } else { -1.0 }),
        Op::Cosh => Range { nonzero: true, ..monotone(1.0) },
        Op::Sin | Op::Cos => Range::between(-1.0, 1.0).with_nan(a.nan || a.has_infinity()),
        Op::Tanh | Op::Signum => {
            let lower = if a.lower >= 0.0 && op == Op::Tanh { 0.0 } else { -1.0 };
            Range::between(lower, 1.0).with_nan(a.nan)
        }
        Op::Atan | Op::Atan2 => Range::between(-4.0, 4.0).with_nan(nan),
        Op::Asin | Op::Acos => Range::between(-4.0, 4.0),
        Op::Hypot => Range::between(0.0, f64::INFINITY).with_nan(nan),
        Op::Ln1p | Op::Ln if a.lower >= if op == Op::Ln { 1.0 } else { 0.0 } => {
            Range::between(0.0, f64::INFINITY).with_nan(a.nan)
        }
        // A negative power of -0 may be -∞.
        Op::Powf if a.is_positive() || (a.is_not_negative() && b.lower >= 0.0) => {
            Range::between(0.0, f64::INFINITY).with_nan(nan)
        }
        Op::Powi if b.lower == b.upper && b.lower % 2.0 == 0.0 => {
            Range::between(0.0, f64::INFINITY).with_nan(a.nan)
        }
        // A NaN operand is ignored.
        Op::Min => Range {
            nan: a.nan && b.nan,
            nonzero: a.is_nonzero() && b.is_nonzero(),
            ..Range::between(
                a.lower.min(b.lower),
                if nan { f64::INFINITY } else { a.upper.min(b.upper) },
            )
        },
        Op::Max => negated(range_of(Op::Min, [negated(a), negated(b), c], is_square)),
        Op::Select => b.union(c),
        Op::Floor | Op::Ceil | Op::Round | Op::Trunc => {
            let args = |x: f64| eval(op, [x, 0.0, 0.0]);
            Range::between(args(a.lower), args(a.upper)).with_nan(a.nan)
        }
        op if op.is_comparison() => Range::between(0.0, 1.0).with_nan(false),
        _ => Range::UNKNOWN,
    }
}

fn negated(a: Range) -> Range {
    Range { lower: -a.upper, upper: -a.lower, ..a }
}

fn sum(a: Range, b: Range) -> Range {
    let opposite = (a.upper == f64::INFINITY && b.lower == f64::NEG_INFINITY)
        || (a.lower == f64::NEG_INFINITY && b.upper == f64::INFINITY);
    let nan = a.nan || b.nan || opposite;
    let (lower, upper) = (a.lower + b.lower, a.upper + b.upper);
    // Infinities of both signs have no sum, and so no bound.
    let lower = if lower.is_nan() { f64::NEG_INFINITY } else { lower };
    let upper = if upper.is_nan() { f64::INFINITY } else { upper };
    Range { lower, upper, nan, nonzero: false }
}

fn product(a: Range, b: Range, is_square: bool) -> Range {
    if is_square {
        let max_terms = a.lower.abs().max(a.upper.abs());
        let least = if a.lower > 0.0 { a.lower } else { (-a.upper).max(0.0) };
        return Range::between(least * least, max_terms * max_terms).with_nan(a.nan);
    }
    let nan = (a.has_infinity() && b.has_zero()) || (a.has_zero() && b.has_infinity());
    // Zero times infinity as a product of bounds is the limit, 0.
    let times = |x: f64, y: f64| if x == 0.0 || y == 0.0 { 0.0 } else { x * y };
    let corners = [
        times(a.lower, b.lower),
        times(a.lower, b.upper),
        times(a.upper, b.lower),
        times(a.upper, b.upper),
    ];
    hull(corners).with_nan(a.nan || b.nan || nan)
}

fn quotient(a: Range, b: Range) -> Range {
    let nan =
        a.nan || b.nan || (a.has_infinity() && b.has_infinity()) || (a.has_zero() && b.has_zero());
    if b.lower > 0.0 || b.upper < 0.0 {
        let over = |x: f64, y: f64| if x.is_infinite() && y.is_infinite() { x } else { x / y };
        let corners = [
            over(a.lower, b.lower),
            over(a.lower, b.upper),
            over(a.upper, b.lower),
            over(a.upper, b.upper),
        ];
        // ∞/∞ bounds nothing.
        let mut range = hull(corners);
        if a.has_infinity() && b.has_infinity() {
            range = Range::UNKNOWN;
        }
        return range.with_nan(nan);
    }
    Range::UNKNOWN.with_nan(nan)
}

fn hull(corners: [f64; 4]) -> Range {
    if corners.iter().any(|corner| corner.is_nan()) {
        return Range::UNKNOWN;
    }
    let lower = corners.iter().copied().fold(f64::INFINITY, f64::min);
    let upper = corners.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Range::between(lower, upper)
}
