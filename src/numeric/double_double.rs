//! Double-double numbers with a running error bound.
//!
//! A number is `hi + lo` with `|lo| <= u |hi|`, u = 2^-53; an operation rounds by a few u². The
//! bound is the running error bound of N. J. Higham, "Accuracy and Stability of Numerical
//! Algorithms", 3.3: the bounds of the operands, propagated to first order, plus the rounding error
//! of the operation. It is computed in working precision, to a relative 2^-50 for each operation.
//!
//! All functions are `#[inline(always)]`: products use `f64::mul_add`, which is fast only in a
//! caller that is compiled with hardware FMA.
//!
//! - Sums and products: M. Joldes, J.-M. Muller, V. Popescu, "Tight and rigorous error bounds for
//!   basic building blocks of double-word arithmetic", ACM TOMS 44, 2017.
//! - Sums of products: T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and dot product", SIAM J. Sci.
//!   Comput. 26, 2005.

use core::ops::{Add, Div, Mul, Neg, Sub};

/// 2 to the power of `exponent`, for exponents of normal numbers.
pub const fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// u², the square of the unit roundoff.
const UNIT_SQUARED: f64 = power_of_two(-106);
/// Relative error of a sum: at most 3 u² (Joldes et al., algorithm 6).
const SUM_ROUNDING: f64 = 4.0 * UNIT_SQUARED;
/// Relative error of a product. The cross terms round by u² and 2 u², their sum with the
/// residual of the product of the high-order words by 3 u², and `lo · lo`, u², is omitted.
const PRODUCT_ROUNDING: f64 = 8.0 * UNIT_SQUARED;
/// Relative error of a quotient. The residual rounds by 2 u² and 3 u², its quotient by 3 u²,
/// and another 3 u² is the divisor's low-order word, which that quotient omits.
const QUOTIENT_ROUNDING: f64 = 16.0 * UNIT_SQUARED;
/// Absolute error of an operation whose products underflow. A few times 2^-1075 for each of at most
/// 20 products would do; a larger bound has fewer subnormal products, which are slow on some
/// processors.
const UNDERFLOW: f64 = power_of_two(-1010);

/// Error of a sum of `terms` products relative to the sum of their magnitudes.
///
/// With N terms: 6 u² for the products, whose residuals and cross terms are added by two fused
/// operations, which round by 2 u² and 3 u². From the second term on, the error of a
/// partial sum (at most u) and the residual (at most 3 u of its product) are added, which
/// rounds by (N - 1 + 3) u² in all, and then added to the low-order sum, which is at most
/// (i + 2) u after i terms: another (N(N - 1)/2 + 3(N - 1)) u². One u² more is for the
/// rounding of the magnitudes.
const fn dot_rounding(terms: usize) -> f64 {
    ((terms * terms + 7 * terms) / 2 + 6) as f64 * UNIT_SQUARED
}

/// A double-double number `hi + lo` with an absolute error of at most `bound`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounded {
    /// The number in working precision.
    pub hi: f64,
    /// The low-order word.
    pub lo: f64,
    /// The error bound, to first order.
    pub bound: f64,
    /// `|hi| + bound`.
    pub size: f64,
}

/// `a + b` as its rounded value and its rounding error.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_rounded = sum - a;
    (sum, (a - (sum - b_rounded)) + (b - b_rounded))
}

/// [`two_sum`] for `|a| >= |b|`.
#[inline(always)]
fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// `a · b` as a rounded value and a low-order word, not normalised.
#[inline(always)]
fn two_product(a: Bounded, b: Bounded) -> (f64, f64) {
    let product = a.hi * b.hi;
    let residual = a.hi.mul_add(b.hi, -product);
    (product, a.hi.mul_add(b.lo, a.lo.mul_add(b.hi, residual)))
}

impl Bounded {
    /// The exact zero.
    pub const ZERO: Bounded = Bounded { hi: 0.0, lo: 0.0, bound: 0.0, size: 0.0 };
    /// The exact one.
    pub const ONE: Bounded = Bounded { hi: 1.0, lo: 0.0, bound: 0.0, size: 1.0 };

    /// An exact number.
    #[inline(always)]
    pub fn exact(value: f64) -> Bounded {
        Bounded::new((value, 0.0), 0.0)
    }

    /// The number `hi + lo` with an error bound.
    #[inline(always)]
    pub fn new((hi, lo): (f64, f64), bound: f64) -> Bounded {
        Bounded { hi, lo, bound, size: hi.abs() + bound }
    }

    /// The rounded result `value` of an operation. The bound is an ulp, so that its amplification
    /// by powers is bounded as well. The errors of the operands, which the tape has too, are not
    /// included.
    #[inline(always)]
    pub fn rounded(value: f64) -> Bounded {
        Bounded::new((value, 0.0), power_of_two(-52).mul_add(value.abs(), UNDERFLOW))
    }

    /// True if the words are a double-double, and the bound is not negative.
    #[inline(always)]
    pub fn is_normalised(self) -> bool {
        self.bound >= 0.0 && self.lo.abs() <= 0.5 * f64::EPSILON * self.hi.abs()
    }

    /// True for an exact zero.
    #[inline(always)]
    pub fn is_zero(self) -> bool {
        self.size == 0.0
    }
}

impl Bounded {
    /// The square root: one Newton step from that of the high-order word. NaN if the number may be
    /// negative.
    #[inline(always)]
    pub fn sqrt(self) -> Bounded {
        let root = self.hi.sqrt();
        let residual = (-root).mul_add(root, self.hi) + self.lo;
        let (hi, lo) = fast_two_sum(root, residual / (2.0 * root));
        let smallest = (self.hi - self.bound).sqrt();
        let propagated = (self.bound + UNDERFLOW) / (root + smallest);
        Bounded::new((hi, lo), QUOTIENT_ROUNDING.mul_add(hi, propagated))
    }

    /// The exponential function, for arguments from -350 to 350; NaN for others.
    ///
    /// With k the nearest integer of x / ln 2 and r = x - k ln 2, e^(r / 256) - 1 is a Taylor sum
    /// whose terms from the fifth on are below 2^-45 of it, so that working precision is enough for
    /// them. p -> p² + 2p squares p + 1.
    #[inline(always)]
    pub fn exp(self) -> Bounded {
        /// ln 2 as a double-double.
        const LN_2: (f64, f64) = (core::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);
        const SQUARINGS: i32 = 8;
        let reciprocal = |number: f64| Bounded::ONE / Bounded::exact(number);
        let is_in_range = self.hi.abs() <= 350.0;
        if !is_in_range {
            return Bounded::new((f64::NAN, f64::NAN), f64::NAN);
        }
        let exponent = (self.hi * core::f64::consts::LOG2_E).round();
        let reduced = self - Bounded::exact(exponent) * Bounded::new(LN_2, UNIT_SQUARED);
        let x = reduced * Bounded::exact(power_of_two(-i64::from(SQUARINGS)));
        let tail = 1.0 / 120.0 + x.hi * (1.0 / 720.0 + x.hi * (1.0 / 5040.0 + x.hi / 40320.0));
        let tail = Bounded::new((tail, 0.0), power_of_two(-49) * tail);
        let series = reciprocal(6.0) + x * (reciprocal(24.0) + x * tail);
        let mut exp_minus_one = x + x * x * (Bounded::exact(0.5) + x * series);
        for _ in 0..SQUARINGS {
            exp_minus_one = exp_minus_one * exp_minus_one + (exp_minus_one + exp_minus_one);
        }
        (Bounded::ONE + exp_minus_one) * Bounded::exact(power_of_two(exponent as i64))
    }
}

/// Declares `memory` as zeroed numbers on the stack: the first of the arrays of these sizes that
/// holds `size` numbers. If none does, the calling function returns `Default::default()`.
macro_rules! on_stack {
    (let $memory:ident = $size:expr, of $($array:ident: $most:expr),+) => {
        $(let mut $array;)+
        let size = $size;
        let $memory: &mut [Bounded] = $(if size <= $most {
            $array = [Bounded::ZERO; $most];
            &mut $array
        } else)+ {
            return Default::default();
        };
    };
}
pub(super) use on_stack;

impl Neg for Bounded {
    type Output = Bounded;

    #[inline(always)]
    fn neg(self) -> Bounded {
        Bounded { hi: -self.hi, lo: -self.lo, ..self }
    }
}

impl Add for Bounded {
    type Output = Bounded;

    #[inline(always)]
    fn add(self, other: Bounded) -> Bounded {
        let (high, high_error) = two_sum(self.hi, other.hi);
        let (low, low_error) = two_sum(self.lo, other.lo);
        let (high, low) = fast_two_sum(high, high_error + low);
        let sum = fast_two_sum(high, low + low_error);
        Bounded::new(sum, SUM_ROUNDING.mul_add(sum.0.abs(), self.bound + other.bound))
    }
}

impl Sub for Bounded {
    type Output = Bounded;

    #[inline(always)]
    fn sub(self, other: Bounded) -> Bounded {
        self + -other
    }
}

impl Mul for Bounded {
    type Output = Bounded;

    #[inline(always)]
    fn mul(self, other: Bounded) -> Bounded {
        let product = self.hi * other.hi;
        // Other than in `two_product`, to shorten the critical path.
        let residual = self.hi.mul_add(other.hi, -product);
        let low = residual + self.hi.mul_add(other.lo, self.lo * other.hi);
        let underflow = if self.is_zero() || other.is_zero() { 0.0 } else { UNDERFLOW };
        let rounding = PRODUCT_ROUNDING.mul_add(product.abs(), underflow);
        let propagated = self.size.mul_add(other.bound, self.bound * other.size);
        Bounded::new(fast_two_sum(product, low), propagated + rounding)
    }
}

impl Div for Bounded {
    type Output = Bounded;

    #[inline(always)]
    fn div(self, other: Bounded) -> Bounded {
        let quotient = self.hi / other.hi;
        let residual = (-quotient).mul_add(other.hi, self.hi);
        let residual = residual + (-quotient).mul_add(other.lo, self.lo);
        let (hi, lo) = fast_two_sum(quotient, residual / other.hi);
        // The bound is infinite or NaN if the divisor may be zero.
        let smallest = (other.hi.abs() - other.bound).max(0.0);
        let underflow = if self.is_zero() { 0.0 } else { UNDERFLOW + UNDERFLOW / smallest };
        let propagated = (self.bound + hi.abs() * other.bound) / smallest;
        Bounded::new((hi, lo), propagated + QUOTIENT_ROUNDING.mul_add(hi.abs(), underflow))
    }
}

/// A compensated sum of products (Dot2 of Ogita, Rump and Oishi).
#[derive(Clone, Copy, Debug)]
pub struct Dot {
    /// The sum in working precision.
    high: f64,
    /// The sum of all rounding errors and low-order words.
    low: f64,
    /// The sum of the propagated error bounds.
    bound: f64,
    /// The sum of the terms' magnitudes.
    magnitude: f64,
}

impl From<Bounded> for Dot {
    #[inline(always)]
    fn from(a: Bounded) -> Dot {
        Dot { high: a.hi, low: a.lo, bound: a.bound, magnitude: a.size }
    }
}

impl Dot {
    /// The sum with the first term `a · b`.
    #[inline(always)]
    pub fn product(a: Bounded, b: Bounded) -> Dot {
        let (high, low) = two_product(a, b);
        let bound = a.size.mul_add(b.bound, a.bound * b.size);
        Dot { high, low, bound, magnitude: a.size * b.size }
    }

    /// Adds the term `a · b`.
    #[inline(always)]
    pub fn plus_product(self, a: Bounded, b: Bounded) -> Dot {
        let (product, residual) = two_product(a, b);
        let (high, error) = two_sum(self.high, product);
        Dot {
            high,
            low: self.low + (error + residual),
            bound: a.size.mul_add(b.bound, a.bound.mul_add(b.size, self.bound)),
            magnitude: a.size.mul_add(b.size, self.magnitude),
        }
    }

    /// Adds the term `a`.
    #[inline(always)]
    pub fn plus(self, a: Bounded) -> Dot {
        let (high, error) = two_sum(self.high, a.hi);
        Dot {
            high,
            low: self.low + (error + a.lo),
            bound: self.bound + a.bound,
            magnitude: self.magnitude + a.size,
        }
    }

    /// The sum of at most `terms` terms; the number should be a compile-time constant.
    #[inline(always)]
    pub fn finish(self, terms: usize) -> Bounded {
        let rounding = dot_rounding(terms).mul_add(self.magnitude, UNDERFLOW);
        Bounded::new(two_sum(self.high, self.low), self.bound + rounding)
    }
}
