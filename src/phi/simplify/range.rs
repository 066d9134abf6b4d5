//! What is known of a computed number: bounds, and whether it may be NaN.
//!
//! Everything is about the numbers that the machine computes, so bounds hold
//! after rounding: rounding is monotone, so the rounded sum of two bounds is a
//! bound of rounded sums. Functions of the mathematical library are not exactly
//! monotone; of them only bounds are used that they keep.

use crate::op::{Op, eval};

/// What is known of a number. Unknown means no.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    /// It is not below this, unless it is NaN.
    pub(crate) low: f64,
    /// It is not above this, unless it is NaN.
    pub(crate) high: f64,
    /// Whether it may be NaN.
    pub(crate) nan: bool,
    /// Whether it is certainly not 0.
    pub(crate) nonzero: bool,
    /// Whether it is certainly an integer, an infinity or NaN.
    pub(crate) integer: bool,
}

impl Range {
    /// Nothing is known.
    pub(crate) const UNKNOWN: Range = Range {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
        nan: true,
        nonzero: false,
        integer: false,
    };

    /// Exactly this number.
    pub(crate) fn constant(x: f64) -> Range {
        let (low, high) = if x.is_nan() { (f64::INFINITY, f64::NEG_INFINITY) } else { (x, x) };
        let (nan, nonzero) = (x.is_nan(), x != 0.0);
        Range { low, high, nan, nonzero, integer: x.trunc() == x }
    }

    fn between(low: f64, high: f64) -> Range {
        Range { low, high, ..Range::UNKNOWN }
    }

    fn or_nan(self, nan: bool) -> Range {
        Range { nan, ..self }
    }

    pub(crate) fn is_nonzero(&self) -> bool {
        self.nonzero || self.low > 0.0 || self.high < 0.0
    }

    /// Above 0, or NaN.
    pub(crate) fn is_positive(&self) -> bool {
        self.low > 0.0 || (self.low >= 0.0 && self.nonzero)
    }

    /// Not below 0, or NaN.
    pub(crate) fn is_not_negative(&self) -> bool {
        self.low >= 0.0
    }

    pub(crate) fn is_finite(&self) -> bool {
        !self.nan && self.is_bounded(f64::MAX)
    }

    /// At most `bound` in magnitude, or NaN.
    pub(crate) fn is_bounded(&self, bound: f64) -> bool {
        self.low >= -bound && self.high <= bound
    }

    fn has_infinity(&self) -> bool {
        self.low == f64::NEG_INFINITY || self.high == f64::INFINITY
    }

    fn has_zero(&self) -> bool {
        !self.is_nonzero() && self.low <= 0.0 && self.high >= 0.0
    }

    /// What holds for both.
    pub(crate) fn either(self, other: Range) -> Range {
        Range {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            nan: self.nan || other.nan,
            nonzero: self.is_nonzero() && other.is_nonzero(),
            integer: self.integer && other.integer,
        }
    }

    /// What holds if both do.
    pub(crate) fn both(self, other: Range) -> Range {
        Range {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
            nan: self.nan && other.nan,
            nonzero: self.nonzero || other.nonzero,
            integer: self.integer || other.integer,
        }
    }
}

/// What is known of `op` applied to such numbers. `is_square` says that the first
/// two operands are the same number.
pub(crate) fn range_of(op: Op, [a, b, c]: [Range; 3], is_square: bool) -> Range {
    let nan = a.nan || (op.arity() > 1 && b.nan) || (op.arity() > 2 && c.nan);
    let integer = a.integer && b.integer;
    let monotone = |low: f64| Range::between(low, f64::INFINITY).or_nan(a.nan);
    match op {
        Op::Add => Range { integer, ..sum(a, b) },
        Op::Sub => Range { integer, ..sum(a, negated(b)) },
        Op::Mul => Range { integer, ..product(a, b, is_square) },
        Op::MulAdd => {
            // The product is not rounded; that of bounds is, so it may be off by one step.
            let wide = product(a, b, is_square);
            let low = if wide.low == 0.0 { 0.0 } else { wide.low.next_down() };
            let high = if wide.high == 0.0 { 0.0 } else { wide.high.next_up() };
            sum(Range { low, high, nonzero: false, ..wide }, c)
        }
        Op::Attach => a,
        Op::Neg => negated(a),
        Op::Recip => quotient(Range::constant(1.0), a),
        Op::Div => quotient(a, b),
        Op::Sqrt => {
            let range = Range::between(a.low.max(0.0).sqrt(), a.high.max(0.0).sqrt());
            // √-0 is -0, which is not below 0.
            Range { nonzero: a.is_nonzero(), ..range.or_nan(a.nan || a.low < 0.0) }
        }
        Op::Abs => {
            let low = if a.low > 0.0 { a.low } else { (-a.high).max(0.0) };
            let high = a.high.max(-a.low);
            Range { low, high, nonzero: a.is_nonzero(), ..a }
        }
        Op::Exp | Op::Exp2 => {
            // From 0 on it is not below 1, and up to 0 not above.
            let low = if a.low >= 0.0 { 1.0 } else { 0.0 };
            let most = if op == Op::Exp { 709.0 } else { 1023.0 };
            let high = match a.high {
                high if high <= 0.0 => 1.0,
                high if high <= most => f64::MAX,
                _ => f64::INFINITY,
            };
            let nonzero = a.low >= -most + 1.0;
            Range { nonzero, ..Range::between(low, high).or_nan(a.nan) }
        }
        Op::ExpM1 => monotone(if a.low >= 0.0 { 0.0 } else { -1.0 }),
        Op::Cosh => Range { nonzero: true, ..monotone(1.0) },
        Op::Sin | Op::Cos => Range::between(-1.0, 1.0).or_nan(a.nan || a.has_infinity()),
        Op::Tanh | Op::Signum => {
            let low = if a.low >= 0.0 && op == Op::Tanh { 0.0 } else { -1.0 };
            Range::between(low, 1.0).or_nan(a.nan)
        }
        Op::Atan | Op::Atan2 => Range::between(-4.0, 4.0).or_nan(nan),
        Op::Asin | Op::Acos => Range::between(-4.0, 4.0),
        Op::Hypot => Range::between(0.0, f64::INFINITY).or_nan(nan),
        Op::Ln1p | Op::Ln if a.low >= if op == Op::Ln { 1.0 } else { 0.0 } => {
            Range::between(0.0, f64::INFINITY).or_nan(a.nan)
        }
        // A power of -0 below 0 may be -∞.
        Op::Powf if a.is_positive() || (a.is_not_negative() && b.low >= 0.0) => {
            Range::between(0.0, f64::INFINITY).or_nan(nan)
        }
        Op::Powi if b.low == b.high && b.low % 2.0 == 0.0 => {
            Range::between(0.0, f64::INFINITY).or_nan(a.nan)
        }
        // A NaN operand is ignored.
        Op::Min => Range {
            nan: a.nan && b.nan,
            nonzero: a.is_nonzero() && b.is_nonzero(),
            integer,
            ..Range::between(a.low.min(b.low), if nan { f64::INFINITY } else { a.high.min(b.high) })
        },
        Op::Max => Range {
            nan: a.nan && b.nan,
            nonzero: a.is_nonzero() && b.is_nonzero(),
            integer,
            ..Range::between(
                if nan { f64::NEG_INFINITY } else { a.low.max(b.low) },
                a.high.max(b.high),
            )
        },
        Op::Select => b.either(c),
        Op::Floor | Op::Ceil | Op::Round | Op::Trunc => {
            let args = |x: f64| eval(op, [x, 0.0, 0.0]);
            let range = Range::between(args(a.low), args(a.high));
            Range { integer: true, ..range.or_nan(a.nan) }
        }
        Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne | Op::Same => {
            Range { low: 0.0, high: 1.0, nan: false, nonzero: false, integer: true }
        }
        Op::Rem | Op::Powi | Op::Powf | Op::Cbrt | Op::Ln | Op::Ln1p | Op::Log2 | Op::Log10 => {
            Range::UNKNOWN
        }
        Op::Tan | Op::Sinh | Op::Asinh | Op::Acosh | Op::Atanh => Range::UNKNOWN,
        Op::CopySign | Op::Fract => Range::UNKNOWN,
    }
}

fn negated(a: Range) -> Range {
    Range { low: -a.high, high: -a.low, ..a }
}

fn sum(a: Range, b: Range) -> Range {
    let opposite = (a.high == f64::INFINITY && b.low == f64::NEG_INFINITY)
        || (a.low == f64::NEG_INFINITY && b.high == f64::INFINITY);
    let nan = a.nan || b.nan || opposite;
    let (low, high) = (a.low + b.low, a.high + b.high);
    // Infinities of both signs have no sum, and leave no bound.
    let low = if low.is_nan() { f64::NEG_INFINITY } else { low };
    let high = if high.is_nan() { f64::INFINITY } else { high };
    Range { low, high, nan, nonzero: false, integer: false }
}

fn product(a: Range, b: Range, is_square: bool) -> Range {
    if is_square {
        let most = a.low.abs().max(a.high.abs());
        let least = if a.low > 0.0 { a.low } else { (-a.high).max(0.0) };
        return Range::between(least * least, most * most).or_nan(a.nan);
    }
    let nan = (a.has_infinity() && b.has_zero()) || (a.has_zero() && b.has_infinity());
    // Zero times infinity as a product of bounds is the limit, 0.
    let times = |x: f64, y: f64| if x == 0.0 || y == 0.0 { 0.0 } else { x * y };
    let corners =
        [times(a.low, b.low), times(a.low, b.high), times(a.high, b.low), times(a.high, b.high)];
    hull(corners).or_nan(a.nan || b.nan || nan)
}

fn quotient(a: Range, b: Range) -> Range {
    let nan =
        a.nan || b.nan || (a.has_infinity() && b.has_infinity()) || (a.has_zero() && b.has_zero());
    if b.low > 0.0 || b.high < 0.0 {
        let over = |x: f64, y: f64| if x.is_infinite() && y.is_infinite() { x } else { x / y };
        let corners =
            [over(a.low, b.low), over(a.low, b.high), over(a.high, b.low), over(a.high, b.high)];
        // Of infinities of both the quotient is anything from 0 on.
        let mut range = hull(corners);
        if a.has_infinity() && b.has_infinity() {
            range = Range::UNKNOWN;
        }
        return range.or_nan(nan);
    }
    Range::UNKNOWN.or_nan(nan)
}

fn hull(corners: [f64; 4]) -> Range {
    if corners.iter().any(|corner| corner.is_nan()) {
        return Range::UNKNOWN;
    }
    let low = corners.iter().copied().fold(f64::INFINITY, f64::min);
    let high = corners.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Range::between(low, high)
}
