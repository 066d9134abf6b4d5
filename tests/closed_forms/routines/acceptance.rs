//! Tests of the accuracy contract's predicate.

use super::Bounded;
use phigrad::internals::numeric::acceptance::{
    EFFECT_BOUND, MAX_MAGNITUDE, NEGLIGIBLE, RELATIVE_BOUND, Range, accepts, partial_scale,
    value_scale,
};

fn result(hi: f64, bound: f64) -> Bounded {
    Bounded::new((hi, 0.0), bound)
}

#[test]
fn each_clause_accepts_up_to_its_bound() {
    assert!(accepts(result(-3.0, 3.0 * RELATIVE_BOUND), 0.0));
    assert!(!accepts(result(-3.0, (3.0 * RELATIVE_BOUND).next_up()), 0.0));
    assert!(accepts(result(0.0, 5.0 * EFFECT_BOUND), 5.0));
    assert!(!accepts(result(0.0, (5.0 * EFFECT_BOUND).next_up()), 5.0));
    assert!(accepts(result(0.0, NEGLIGIBLE), 0.0));
    assert!(!accepts(result(0.0, 1.01 * NEGLIGIBLE), 0.0));
    assert!(!accepts(result(0.5 * NEGLIGIBLE, 0.6 * NEGLIGIBLE), 0.0));
    assert!(accepts(Bounded::ZERO, 0.0));
    assert!(
        accepts(result(MAX_MAGNITUDE, 0.0), 1.0)
            && !accepts(result(MAX_MAGNITUDE.next_up(), 0.0), 1.0)
    );
}

#[test]
fn numbers_that_are_not_finite_are_rejected() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for scale in [0.0, 1.0, bad] {
            assert!(!accepts(result(bad, 0.0), scale));
            assert!(!accepts(result(bad, bad.abs()), scale));
        }
        assert!(!accepts(result(1.0, bad.abs()), 1.0));
        assert!(!accepts(result(1.0, bad.abs()), bad.abs()));
        let mut range = Range::START;
        range.check(result(1.0, 0.0));
        assert!(range.holds());
        range.check(result(bad, 0.0));
        range.check(result(1.0, 0.0));
        assert!(!range.holds());
    }
    assert!(!accepts(result(0.0, 1e-30), f64::NAN));
    assert!(!accepts(result(0.0, 1e-30), partial_scale(1.0, f64::NAN)));
    assert!(!accepts(result(0.0, 1e-30), partial_scale(f64::NAN, 1.0)));
    assert!(value_scale(f64::NAN, 1.0).is_nan());
}

#[test]
fn the_scale_is_the_effect_of_a_relative_change() {
    assert_eq!((value_scale(-3.0, 2.0), value_scale(0.0, -5.0)), (3.0, 5.0));
    assert_eq!(partial_scale(6.0, -2.0), 3.0);
    let smallest = 2f64.powi(-40);
    assert_eq!(partial_scale(0.5, 0.0), 0.5 / smallest);
    assert_eq!(partial_scale(8.0, 0.0), 1.0 / smallest);
    assert_eq!(partial_scale(0.0, 0.0), 0.0);
}
