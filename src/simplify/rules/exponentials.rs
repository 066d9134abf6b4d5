//! Rules for exponentials and logarithms, and for softplus and the logistic function.
//!
//! Accurate forms keep the digits that 1 + x loses for small x; stable forms do not overflow where
//! eˣ does. Both supersede the original. All stable forms use e^-|x|, so that a value and its
//! derivative share it.

use super::{Match, Rule, fact, real};
use crate::op::Op;

/// True if `e` to the power of `x` may overflow.
fn may_overflow(found: &Match<'_>) -> bool {
    found.range('x').upper > 700.0
}

/// True if a difference from 1 may lose digits, and the program does not compensate for them.
fn loses_digits(found: &Match<'_>) -> bool {
    found.may_be_small('x') && !found.is_compensated()
}

/// [`loses_digits`] for a logarithm of 1 ± x, which has a stable form if x is an exponential.
fn loses_digits_of_logarithm(found: &Match<'_>) -> bool {
    loses_digits(found) && !found.is_result_of('x', Op::Exp)
}

/// The rules.
pub(super) const RULES: &[Rule] = &[
    real("logarithm-of-exponential", "(ln (exp ?x))", "?x")
        .when(|found| !found.is_compensated())
        .at_any_stage(),
    fact("exponential-of-logarithm", "(exp (ln ?x))", "?x", |found| {
        found.range('x').is_not_negative()
    })
    .at_any_stage(),
    // Accurate forms.
    real("logarithm-near-1", "(ln (add ?x 1))", "(ln_1p ?x)")
        .when(loses_digits_of_logarithm)
        .superseding(),
    real("logarithm-below-1", "(ln (sub 1 ?x))", "(ln_1p (neg ?x))")
        .when(loses_digits_of_logarithm)
        .superseding(),
    real("exponential-less-1", "(sub (exp ?x) 1)", "(exp_m1 ?x)").when(loses_digits).superseding(),
    real("exponential-and-minus-1", "(add (exp ?x) -1)", "(exp_m1 ?x)")
        .when(loses_digits)
        .superseding(),
    real("1-less-exponential", "(sub 1 (exp ?x))", "(neg (exp_m1 ?x))")
        .when(loses_digits)
        .superseding(),
    // A reciprocal keeps its bits before a logarithm, which is singular at 0. But the derivative
    // of the logarithm is infinite where the reciprocal underflows.
    real("logarithm-of-reciprocal", "(ln (recip ?x))", "(neg (ln ?x))")
        .when(|found| !found.is_compensated())
        .superseding()
        .at_any_stage(),
    real("logarithm-of-logistic", "(ln (recip (add (exp ?x) 1)))", "(neg (ln_1p (exp ?x)))")
        .superseding()
        .at_any_stage(),
    real(
        "logarithm-of-complement-of-logistic",
        "(ln (sub 1 (recip (add (exp ?x) 1))))",
        "(neg (ln_1p (exp (neg ?x))))",
    )
    .superseding()
    .at_any_stage(),
    real(
        "complement-of-logistic",
        "(sub 1 (recip (add (exp ?x) 1)))",
        "(recip (add (exp (neg ?x)) 1))",
    )
    .superseding()
    .at_any_stage(),
    // Stable forms.
    real("softplus", "(ln (add (exp ?x) 1))", "(add (max ?x 0) (ln_1p (exp (neg (abs ?x)))))")
        .when(may_overflow)
        .superseding(),
    real("softplus-by-ln_1p", "(ln_1p (exp ?x))", "(add (max ?x 0) (ln_1p (exp (neg (abs ?x)))))")
        .when(may_overflow)
        .superseding(),
    // ln(1 + t) plus the rounding error of 1 + t is accurate, in half the time of `ln_1p`, and
    // 1 + t is often the divisor of the derivative.
    fact(
        "logarithm-of-1-and-power-at-most-1",
        "(ln_1p (exp ?x))",
        "(add (ln (add (exp ?x) 1)) (sub (exp ?x) (sub (add (exp ?x) 1) 1)))",
        |found| found.range('x').upper <= 0.0,
    )
    .auxiliary(),
    real(
        "logistic",
        "(recip (add (exp ?x) 1))",
        "(div (select (gt ?x 0) (exp (neg (abs ?x))) 1) (add (exp (neg (abs ?x))) 1))",
    )
    .when(may_overflow)
    .superseding()
    .auxiliary(),
    real(
        "multiple-of-logistic",
        "(div ?k (add (exp ?x) 1))",
        "(mul ?k (div (select (gt ?x 0) (exp (neg (abs ?x))) 1) (add (exp (neg (abs ?x))) 1)))",
    )
    .when(|found| may_overflow(found) && found.constant('k').is_none_or(|k| k.abs() <= 1e3))
    .superseding()
    .auxiliary(),
    real(
        "exponential-over-1-and-itself",
        "(div (exp ?x) (add (exp ?x) 1))",
        "(div (select (gt ?x 0) 1 (exp (neg (abs ?x)))) (add (exp (neg (abs ?x))) 1))",
    )
    .when(may_overflow)
    .superseding(),
    real(
        "reciprocal-times-exponential",
        "(mul (recip (add (exp ?x) 1)) (exp ?x))",
        "(div (select (gt ?x 0) 1 (exp (neg (abs ?x)))) (add (exp (neg (abs ?x))) 1))",
    )
    .when(may_overflow)
    .superseding(),
    real(
        "derivative-of-softplus",
        "(mul (div ?g (add (exp ?x) 1)) (exp ?x))",
        "(mul ?g (div (select (gt ?x 0) 1 (exp (neg (abs ?x)))) (add (exp (neg (abs ?x))) 1)))",
    )
    .when(may_overflow)
    .superseding(),
    real(
        "derivative-of-quotient-by-1-and-exponential",
        "(mul (mul (div ?g (add (exp ?x) 1)) ?y) (exp ?x))",
        "(mul (mul ?g ?y) (div (select (gt ?x 0) 1 (exp (neg (abs ?x)))) \
         (add (exp (neg (abs ?x))) 1)))",
    )
    .when(may_overflow)
    .superseding(),
    real(
        "derivative-of-logistic",
        "(mul (mul (recip (add (exp ?x) 1)) (recip (add (exp ?x) 1))) (exp ?x))",
        "(div (exp (neg (abs ?x))) \
         (mul (add (exp (neg (abs ?x))) 1) (add (exp (neg (abs ?x))) 1)))",
    )
    .when(may_overflow)
    .superseding(),
    real(
        "scaled-derivative-of-logistic",
        "(mul (mul (mul ?g (recip (add (exp ?x) 1))) (recip (add (exp ?x) 1))) (exp ?x))",
        "(mul ?g (div (exp (neg (abs ?x))) \
         (mul (add (exp (neg (abs ?x))) 1) (add (exp (neg (abs ?x))) 1))))",
    )
    .when(may_overflow)
    .superseding(),
    real(
        "derivative-of-logarithm-of-logistic",
        "(mul (mul (recip (add (exp ?x) 1)) ?g) (exp ?x))",
        "(mul (div (select (gt ?x 0) 1 (exp (neg (abs ?x)))) (add (exp (neg (abs ?x))) 1)) ?g)",
    )
    .when(may_overflow)
    .superseding(),
];
