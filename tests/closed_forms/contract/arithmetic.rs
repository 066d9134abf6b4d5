//! Arithmetic of the reference: binary numbers of several hundred digits, by `dashu-float`.

use std::cell::{Cell, RefCell};

use dashu_float::FBig;
use dashu_float::round::mode::HalfEven;

use super::reverse::Tape;

/// Numbers that the reverse tape of this suite differentiates.
pub trait Arithmetic: Clone + 'static {
    fn of(x: f64) -> Self;
    fn add(&self, other: &Self) -> Self;
    fn sub(&self, other: &Self) -> Self;
    fn mul(&self, other: &Self) -> Self;
    fn div(&self, other: &Self) -> Self;
    fn neg(&self) -> Self;
    fn exp(&self) -> Self;
    fn ln(&self) -> Self;
    fn is_zero(&self) -> bool;

    /// The tape of this thread.
    fn with_tape<R>(use_tape: impl FnOnce(&mut Tape<Self>) -> R) -> R;
}

/// A binary number whose significand has as many bits as [`set_precision`] says. Its exponent has
/// no limit, so it neither overflows nor underflows.
#[derive(Clone, Debug)]
pub struct Multi(FBig<HalfEven, 2>);

thread_local! {
    static PRECISION: Cell<usize> = const { Cell::new(1024) };
    static TAPE: RefCell<Tape<Multi>> = const { RefCell::new(Tape::new()) };
    static LOGARITHM: RefCell<Option<(Multi, Multi)>> = const { RefCell::new(None) };
}

/// Sets the number of bits of what this thread computes from now on.
pub fn set_precision(bits: usize) {
    PRECISION.set(bits);
}

impl Multi {
    /// The nearest number of double precision; infinite beyond its range.
    pub fn rounded(&self) -> f64 {
        self.0.to_f64().value()
    }

    /// The distance of `x` from this number, infinite if `x` is not finite.
    pub fn distance(&self, x: f64) -> f64 {
        if x.is_finite() { self.sub(&Multi::of(x)).rounded().abs() } else { f64::INFINITY }
    }
}

impl Arithmetic for Multi {
    fn of(x: f64) -> Self {
        let exact = FBig::try_from(x).unwrap();
        Multi(exact.with_precision(PRECISION.get()).value())
    }

    fn add(&self, other: &Self) -> Self {
        Multi(&self.0 + &other.0)
    }

    fn sub(&self, other: &Self) -> Self {
        Multi(&self.0 - &other.0)
    }

    fn mul(&self, other: &Self) -> Self {
        Multi(&self.0 * &other.0)
    }

    fn div(&self, other: &Self) -> Self {
        Multi(&self.0 / &other.0)
    }

    fn neg(&self) -> Self {
        Multi(-self.0.clone())
    }

    fn exp(&self) -> Self {
        Multi(self.0.exp())
    }

    /// Logarithms take long, and sums often have the same one in each term: the last one is kept.
    fn ln(&self) -> Self {
        LOGARITHM.with_borrow_mut(|last| match last {
            Some((x, ln)) if x.0 == self.0 && x.0.precision() == self.0.precision() => ln.clone(),
            _ => last.insert((self.clone(), Multi(self.0.ln()))).1.clone(),
        })
    }

    fn is_zero(&self) -> bool {
        self.0.repr().significand().is_zero()
    }

    fn with_tape<R>(use_tape: impl FnOnce(&mut Tape<Self>) -> R) -> R {
        TAPE.with_borrow_mut(use_tape)
    }
}

#[test]
fn numbers_are_rounded_once() {
    set_precision(300);
    let third = Multi::of(1.0).div(&Multi::of(3.0));
    assert_eq!(third.rounded(), 1.0 / 3.0);
    let error = third.mul(&Multi::of(3.0)).distance(1.0);
    assert!(error < 2f64.powi(-298), "{error:e}");
    for tiny in [5e-324, 1.5e-310, f64::MIN_POSITIVE] {
        assert_eq!(Multi::of(tiny).rounded(), tiny);
        assert_eq!(Multi::of(tiny).mul(&Multi::of(0.25)).mul(&Multi::of(4.0)).rounded(), tiny);
    }
    assert_eq!(Multi::of(1e300).mul(&Multi::of(-1e300)).rounded(), f64::NEG_INFINITY);
    assert!(Multi::of(2.5).sub(&Multi::of(2.5)).is_zero() && Multi::of(-0.0).is_zero());
    let power = Multi::of(0.7).exp();
    assert_eq!(power.rounded(), 0.7f64.exp());
    assert!(power.ln().distance(0.7) < 2f64.powi(-290));
}
