//! Double-double arithmetic with a running error bound: a prototype of the evaluation of closed
//! forms, in which this suite plants bounds that are too small.
//!
//! The sums and products are those of Joldes, Muller and Popescu, "Tight and rigorous error bounds
//! for basic building blocks of double-word arithmetic", ACM TOMS 44, 2017.

use std::cell::RefCell;

use super::arithmetic::{Arithmetic, Multi};
use super::reverse::Tape;

/// The number `high + low` and a bound of its distance from the exact result.
#[derive(Clone, Copy, Debug)]
pub struct Bounded {
    pub high: f64,
    low: f64,
    pub bound: f64,
}

/// The relative errors of a sum, a product and a quotient.
const OF_SUM: f64 = 1.0 / (1u128 << 103) as f64;
const OF_PRODUCT: f64 = 1.0 / (1u128 << 102) as f64;
const OF_QUOTIENT: f64 = 1.0 / (1u128 << 100) as f64;

/// Products and quotients below this size may have underflown, with an error of `UNDERFLOW`.
const SMALL: f64 = 1e-280;
const UNDERFLOW: f64 = 2e-323;

thread_local! {
    static TAPE: RefCell<Tape<Bounded>> = const { RefCell::new(Tape::new()) };
}

/// The sum of two numbers and its rounding error.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

/// The same where `a` is the larger one.
fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

impl Bounded {
    /// The distance from `truth`; not a number where this is none.
    pub fn error(&self, truth: &Multi) -> f64 {
        match self.high.is_finite() && self.low.is_finite() {
            true => truth.sub(&Multi::of(self.high)).distance(self.low),
            false => f64::NAN,
        }
    }

    fn is_exactly_zero(&self) -> bool {
        self.high == 0.0 && self.bound == 0.0
    }
}

impl Arithmetic for Bounded {
    fn of(x: f64) -> Self {
        Bounded { high: x, low: 0.0, bound: 0.0 }
    }

    fn add(&self, other: &Self) -> Self {
        let (sum, error) = two_sum(self.high, other.high);
        let (low, low_error) = two_sum(self.low, other.low);
        let (sum, error) = fast_two_sum(sum, error + low);
        let (high, low) = fast_two_sum(sum, error + low_error);
        Bounded { high, low, bound: self.bound + other.bound + OF_SUM * high.abs() }
    }

    fn sub(&self, other: &Self) -> Self {
        self.add(&other.neg())
    }

    fn mul(&self, other: &Self) -> Self {
        let product = self.high * other.high;
        let error = self.high.mul_add(other.high, -product);
        let error = error + self.high.mul_add(other.low, self.low * other.high);
        let (high, low) = fast_two_sum(product, error);
        let inherited =
            self.high.abs() * other.bound + self.bound * (other.high.abs() + other.bound);
        let may_underflow =
            high.abs() < SMALL && !self.is_exactly_zero() && !other.is_exactly_zero();
        let underflow = if may_underflow { UNDERFLOW } else { 0.0 };
        Bounded { high, low, bound: inherited + OF_PRODUCT * high.abs() + underflow }
    }

    fn div(&self, other: &Self) -> Self {
        let exact = |x: &Bounded| Bounded { bound: 0.0, ..*x };
        let divisor = exact(other);
        let first = Bounded::of(self.high / other.high);
        let left = exact(self).sub(&divisor.mul(&first));
        let second = Bounded::of(left.high / other.high);
        let left = left.sub(&divisor.mul(&second));
        let third = Bounded::of(left.high / other.high);
        let quotient = first.add(&second).add(&third);
        let size = quotient.high.abs();
        let least = (other.high.abs() - other.bound).max(0.0);
        let underflow = if size < SMALL { UNDERFLOW } else { 0.0 };
        let bound = (self.bound + size * other.bound) / least + OF_QUOTIENT * size + underflow;
        Bounded { bound, ..quotient }
    }

    fn neg(&self) -> Self {
        Bounded { high: -self.high, low: -self.low, bound: self.bound }
    }

    fn exp(&self) -> Self {
        unreachable!("no affine program has exponentials")
    }

    fn ln(&self) -> Self {
        unreachable!("no affine program has logarithms")
    }

    fn is_zero(&self) -> bool {
        self.is_exactly_zero()
    }

    fn with_tape<R>(use_tape: impl FnOnce(&mut Tape<Self>) -> R) -> R {
        TAPE.with_borrow_mut(use_tape)
    }
}

#[test]
fn bounds_hold() {
    use super::arithmetic::set_precision;
    use phigrad::internals::Random;

    set_precision(400);
    let mut random = Random::new(3);
    for _ in 0..2000 {
        let (mut exact, mut bounded) = (Multi::of(1.0), Bounded::of(1.0));
        for _ in 0..30 {
            let x = random.uniform(-2.0, 2.0) * 10f64.powf(random.uniform(-9.0, 9.0));
            let (a, b) = (Multi::of(x), Bounded::of(x));
            (exact, bounded) = match random.below(4) {
                0 => (exact.add(&a), bounded.add(&b)),
                1 => (exact.sub(&a), bounded.sub(&b)),
                2 => (exact.mul(&a), bounded.mul(&b)),
                _ => (exact.div(&a), bounded.div(&b)),
            };
            let Bounded { high, low, bound } = bounded;
            let is_normal = low.abs() <= high.abs() * f64::EPSILON;
            assert!(bounded.error(&exact) <= bound && is_normal, "{bounded:?}");
        }
    }
}
