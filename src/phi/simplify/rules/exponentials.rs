//! Rules for exponentials and logarithms, and for functions that users write with them.

use super::Right::Pattern as To;
use super::Tag::{NeedsFact, Real};
use super::{Rule, may_be_small, rule};
use crate::op::Op;
use crate::phi::simplify::found::Found;

/// Whether `e` to the power of `x` may overflow.
fn may_overflow(found: &Found<'_>) -> bool {
    found.range('x').high > 700.0
}

/// Whether a difference from 1 may lose digits that the program does not make up for.
fn loses_digits(found: &Found<'_>) -> bool {
    may_be_small(found) && !found.is_compensated()
}

/// The same for a divisor.
fn divides_by_few_digits(found: &Found<'_>) -> bool {
    may_be_small(found) && !found.divides_by_compensated()
}

/// The rules.
pub(super) const RULES: &[Rule] = &[
    rule("logarithm-of-exponential", Real, "(ln (exp ?x))", To("?x"))
        .given(|found| !found.is_compensated())
        .anywhere(),
    rule("exponential-of-logarithm", NeedsFact, "(exp (ln ?x))", To("?x"))
        .given(|found| found.range('x').is_not_negative())
        .anywhere(),
    rule("logarithm-near-1", Real, "(ln (add ?x 1))", To("(ln_1p ?x)"))
        .given(|found| loses_digits(found) && !found.is_made_by('x', Op::Exp))
        .accurate(),
    rule("exponential-less-1", Real, "(sub (exp ?x) 1)", To("(exp_m1 ?x)"))
        .given(loses_digits)
        .accurate(),
    rule("exponential-and-minus-1", Real, "(add (exp ?x) -1)", To("(exp_m1 ?x)"))
        .given(loses_digits)
        .accurate(),
    rule("logarithm-left-of-1", Real, "(ln (sub 1 ?x))", To("(ln_1p (neg ?x))"))
        .given(|found| loses_digits(found) && !found.is_made_by('x', Op::Exp))
        .accurate(),
    rule("1-less-exponential", Real, "(sub 1 (exp ?x))", To("(neg (exp_m1 ?x))"))
        .given(loses_digits)
        .accurate(),
    // Divisors decide and keep their bits, but not what is divided by them.
    rule("over-exponential-less-1", Real, "(div ?g (sub (exp ?x) 1))", To("(div ?g (exp_m1 ?x))"))
        .given(divides_by_few_digits)
        .accurate(),
    rule(
        "over-1-less-exponential",
        Real,
        "(div ?g (sub 1 (exp ?x)))",
        To("(neg (div ?g (exp_m1 ?x)))"),
    )
    .given(divides_by_few_digits)
    .accurate(),
    rule(
        "reciprocal-of-exponential-less-1",
        Real,
        "(recip (sub (exp ?x) 1))",
        To("(recip (exp_m1 ?x))"),
    )
    .given(divides_by_few_digits)
    .accurate(),
    // Hyperbolic functions.
    rule("hyperbolic-sine", Real, "(sub (exp ?x) (exp (neg ?x)))", To("(mul (sinh ?x) 2)"))
        .given(may_be_small)
        .accurate(),
    rule(
        "hyperbolic-sine-by-reciprocal",
        Real,
        "(sub (exp ?x) (recip (exp ?x)))",
        To("(mul (sinh ?x) 2)"),
    )
    .given(may_be_small)
    .accurate(),
    rule(
        "hyperbolic-tangent",
        Real,
        "(div (sub (exp ?x) 1) (add (exp ?x) 1))",
        To("(tanh (mul ?x 0.5))"),
    )
    .accurate(),
    rule(
        "hyperbolic-tangent-negated",
        Real,
        "(div (sub 1 (exp ?x)) (add (exp ?x) 1))",
        To("(neg (tanh (mul ?x 0.5)))"),
    )
    .accurate(),
    rule(
        "1-less-twice-logistic",
        Real,
        "(sub 1 (div 2 (add (exp ?x) 1)))",
        To("(tanh (mul ?x 0.5))"),
    )
    .accurate(),
    rule(
        "twice-logistic-less-1",
        Real,
        "(sub (div 2 (add (exp ?x) 1)) 1)",
        To("(neg (tanh (mul ?x 0.5)))"),
    )
    .accurate(),
    rule(
        "twice-logistic-and-minus-1",
        Real,
        "(add (div 2 (add (exp ?x) 1)) -1)",
        To("(neg (tanh (mul ?x 0.5)))"),
    )
    .accurate(),
    rule(
        "hyperbolic-tangent-of-exponentials",
        Real,
        "(div (sub (exp ?x) (exp (neg ?x))) (add (exp ?x) (exp (neg ?x))))",
        To("(tanh ?x)"),
    )
    .accurate(),
    // The reciprocal decides where its logarithm is singular, so it is computed anyway; but
    // its derivative is infinite where it vanishes.
    rule("logarithm-of-reciprocal", Real, "(ln (recip ?x))", To("(neg (ln ?x))"))
        .given(|found| !found.is_compensated())
        .accurate()
        .anywhere(),
    // Also where 1 - p is computed, as in likelihoods: that has an accurate form, too.
    rule(
        "logarithm-of-reciprocal-of-1-and-exponential",
        Real,
        "(ln (recip (add (exp ?x) 1)))",
        To("(neg (ln_1p (exp ?x)))"),
    )
    .accurate()
    .anywhere(),
    rule(
        "logarithm-of-complement-of-logistic",
        Real,
        "(ln (sub 1 (recip (add (exp ?x) 1))))",
        To("(neg (ln_1p (exp (neg ?x))))"),
    )
    .accurate()
    .anywhere(),
    // 1 - 1/(1 + eˣ), which would lose digits in its derivative, too.
    rule(
        "complement-of-logistic",
        Real,
        "(sub 1 (recip (add (exp ?x) 1)))",
        To("(recip (add (exp (neg ?x)) 1))"),
    )
    .accurate()
    .anywhere(),
    rule(
        "softplus",
        Real,
        "(ln (add (exp ?x) 1))",
        To("(add (max ?x 0) (ln_1p (exp (neg (abs ?x)))))"),
    )
    .given(may_overflow)
    .stable(),
    rule(
        "softplus-by-ln_1p",
        Real,
        "(ln_1p (exp ?x))",
        To("(add (max ?x 0) (ln_1p (exp (neg (abs ?x)))))"),
    )
    .given(may_overflow)
    .stable(),
    // What 1 + t has lost is added again; so no digit is lost, by a function that takes
    // half the time, and the sum is often the divisor of the derivative.
    rule(
        "logarithm-of-1-and-power-at-most-1",
        NeedsFact,
        "(ln_1p (exp ?x))",
        To("(add (ln (add (exp ?x) 1)) (sub (exp ?x) (sub (add (exp ?x) 1) 1)))"),
    )
    .given(|found| found.range('x').high <= 0.0)
    .on_the_way(),
    rule(
        "logistic",
        Real,
        "(recip (add (exp ?x) 1))",
        To("(div (select (gt ?x 0) (exp (neg (abs ?x))) 1) (add (exp (neg (abs ?x))) 1))"),
    )
    .given(may_overflow)
    .stable()
    .on_the_way(),
    rule(
        "multiple-of-logistic",
        Real,
        "(div ?k (add (exp ?x) 1))",
        To("(mul ?k (div (select (gt ?x 0) (exp (neg (abs ?x))) 1) (add (exp (neg (abs ?x))) 1)))"),
    )
    .given(|found| may_overflow(found) && found.constant('k').is_none_or(|k| k.abs() <= 1e3))
    .stable()
    .on_the_way(),
    rule(
        "exponential-over-1-and-itself",
        Real,
        "(div (exp ?x) (add (exp ?x) 1))",
        To("(div (select (gt ?x 0) 1 (exp (neg (abs ?x)))) (add (exp (neg (abs ?x))) 1))"),
    )
    .given(may_overflow)
    .stable(),
    rule(
        "reciprocal-times-exponential",
        Real,
        "(mul (recip (add (exp ?x) 1)) (exp ?x))",
        To("(div (select (gt ?x 0) 1 (exp (neg (abs ?x)))) (add (exp (neg (abs ?x))) 1))"),
    )
    .given(may_overflow)
    .stable(),
    rule(
        "derivative-of-softplus",
        Real,
        "(mul (div ?g (add (exp ?x) 1)) (exp ?x))",
        To("(mul ?g (div (select (gt ?x 0) 1 (exp (neg (abs ?x)))) (add (exp (neg (abs ?x))) 1)))"),
    )
    .given(may_overflow)
    .stable(),
    rule(
        "derivative-of-quotient-by-1-and-exponential",
        Real,
        "(mul (mul (div ?g (add (exp ?x) 1)) ?y) (exp ?x))",
        To("(mul (mul ?g ?y) (div (select (gt ?x 0) 1 (exp (neg (abs ?x)))) \
             (add (exp (neg (abs ?x))) 1)))"),
    )
    .given(may_overflow)
    .stable(),
    rule(
        "derivative-of-logistic",
        Real,
        "(mul (mul (recip (add (exp ?x) 1)) (recip (add (exp ?x) 1))) (exp ?x))",
        To("(div (exp (neg (abs ?x))) \
             (mul (add (exp (neg (abs ?x))) 1) (add (exp (neg (abs ?x))) 1)))"),
    )
    .given(may_overflow)
    .stable(),
    rule(
        "scaled-derivative-of-logistic",
        Real,
        "(mul (mul (mul ?g (recip (add (exp ?x) 1))) (recip (add (exp ?x) 1))) (exp ?x))",
        To("(mul ?g (div (exp (neg (abs ?x))) \
             (mul (add (exp (neg (abs ?x))) 1) (add (exp (neg (abs ?x))) 1))))"),
    )
    .given(may_overflow)
    .stable(),
    rule(
        "logarithm-of-logistic",
        Real,
        "(ln (recip (add (exp ?x) 1)))",
        To("(neg (add (max ?x 0) (ln_1p (exp (neg (abs ?x))))))"),
    )
    .given(may_overflow)
    .stable(),
    rule(
        "derivative-of-logarithm-of-logistic",
        Real,
        "(mul (mul (recip (add (exp ?x) 1)) ?g) (exp ?x))",
        To("(mul (div (select (gt ?x 0) 1 (exp (neg (abs ?x)))) (add (exp (neg (abs ?x))) 1)) ?g)"),
    )
    .given(may_overflow)
    .stable(),
    rule(
        "logarithm-of-exponentials",
        Real,
        "(ln (add (exp ?a) (exp ?b)))",
        To("(add (max ?a ?b) (ln_1p (exp (neg (abs (sub ?a ?b))))))"),
    )
    .stable(),
    // Not the derivatives: the rounding of a - b would count as often as it is large. Sums of
    // more exponentials are scaled (`scale`).
];
