//! Double-double numbers with a running error bound as an arithmetic of this suite, which plants
//! bounds that are too small.

use std::cell::RefCell;

use phigrad::internals::numeric::double_double::Bounded;

use super::arithmetic::{Arithmetic, Multi};
use super::reverse::Tape;

thread_local! {
    static TAPE: RefCell<Tape<Bounded>> = const { RefCell::new(Tape::new()) };
}

/// The distance of `found` from `truth`; NaN if `found` is not finite.
pub fn error(found: Bounded, truth: &Multi) -> f64 {
    match found.hi.is_finite() && found.lo.is_finite() {
        true => truth.sub(&Multi::of(found.hi)).distance(found.lo),
        false => f64::NAN,
    }
}

impl Arithmetic for Bounded {
    fn of(x: f64) -> Self {
        Bounded::exact(x)
    }

    fn add(&self, other: &Self) -> Self {
        *self + *other
    }

    fn sub(&self, other: &Self) -> Self {
        *self - *other
    }

    fn mul(&self, other: &Self) -> Self {
        *self * *other
    }

    fn div(&self, other: &Self) -> Self {
        *self / *other
    }

    fn neg(&self) -> Self {
        -*self
    }

    fn exp(&self) -> Self {
        unreachable!("no affine program has exponentials")
    }

    fn ln(&self) -> Self {
        unreachable!("no affine program has logarithms")
    }

    fn is_zero(&self) -> bool {
        Bounded::is_zero(*self)
    }

    fn with_tape<R>(use_tape: impl FnOnce(&mut Tape<Self>) -> R) -> R {
        TAPE.with_borrow_mut(use_tape)
    }
}

#[test]
fn bounds_of_arithmetic_operations_hold() {
    use super::arithmetic::set_precision;
    use phigrad::internals::Random;

    set_precision(400);
    let mut random = Random::new(3);
    for _ in 0..2000 {
        let (mut exact, mut bounded) = (Multi::of(1.0), Bounded::exact(1.0));
        for _ in 0..30 {
            let x = random.uniform(-2.0, 2.0) * 10f64.powf(random.uniform(-9.0, 9.0));
            let (a, b) = (Multi::of(x), Bounded::exact(x));
            (exact, bounded) = match random.below(4) {
                0 => (exact.add(&a), bounded + b),
                1 => (exact.sub(&a), bounded - b),
                2 => (exact.mul(&a), bounded * b),
                _ => (exact.div(&a), bounded / b),
            };
            let holds = error(bounded, &exact) <= bounded.bound * (1.0 + 2f64.powi(-20));
            assert!(holds && bounded.is_normalised(), "{bounded:?}");
        }
    }
}
