//! The rewrite rules, as a table.
//!
//! Each rule says what it needs to be right. A rule that is real-only or needs
//! facts may round otherwise than what it replaces, but not worse; it makes no
//! infinity or NaN where there was a finite number. It may give a number where an
//! intermediate result overflowed; a NaN among the inputs is never forgotten.
//! Unknown means no.
//!
//! Rules that would cost accuracy in the derivative of what they make are for
//! graphs that are differentiated no more.

use egg::Id;

use super::found::{
    Found, log_sum_exp, lower_power, multiple_and_one, multiples, product_of_powers,
    quotient_of_powers, times_over, times_times,
};
use crate::op::Op;

/// On what numbers a rewrite rule holds.
///
/// # Examples
///
/// ```
/// use phigrad::phi::{Tag, rewrite_rules};
///
/// assert!(rewrite_rules().any(|rule| rule == ("power-half", Tag::NeedsFact)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// The same bits.
    Exact,
    /// The same real number; and no new infinities and NaN, whatever the operands.
    Real,
    /// The same where something is known of the operands.
    NeedsFact,
}

/// What takes the place of what was found.
#[derive(Clone, Copy)]
pub(super) enum Right {
    /// An instance of this pattern.
    Pattern(&'static str),
    /// What this makes, with these primitives.
    Made(fn(&mut Found<'_>) -> Option<Id>, &'static [Op]),
}

/// A rule.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) tag: Tag,
    pub(super) left: &'static str,
    pub(super) right: Right,
    pub(super) holds: fn(&Found<'_>) -> bool,
    /// Whether to replace at any cost, since the right side is finite or accurate
    /// where the left one is not.
    pub(super) is_stable: bool,
    /// Whether that is for its accuracy, so that it is taken also where what the left
    /// side is made of is computed anyway.
    pub(super) is_accurate: bool,
    /// Whether it is worth an e-graph of its own; if not, it is used where there is one.
    pub(super) is_worth_it: bool,
    /// Whether what it makes may be differentiated.
    pub(super) before_derivatives: bool,
}

fn always(_: &Found<'_>) -> bool {
    true
}

/// Whether `e` to the power of `x` may overflow.
fn may_overflow(found: &Found<'_>) -> bool {
    found.range('x').high > 700.0
}

/// Whether `x` may be so near to 0 that what is added to 1, or left of it, loses a digit.
fn may_be_small(found: &Found<'_>) -> bool {
    found.range('x').low < 0.7 && found.range('x').high > -0.7
}

/// The same, unless the program makes up for what is lost.
fn loses_digits(found: &Found<'_>) -> bool {
    may_be_small(found) && !found.is_compensated()
}

const fn rule(name: &'static str, tag: Tag, left: &'static str, right: Right) -> Rule {
    Rule {
        name,
        tag,
        left,
        right,
        holds: always,
        is_stable: false,
        is_accurate: false,
        is_worth_it: true,
        before_derivatives: false,
    }
}

impl Rule {
    const fn given(self, holds: fn(&Found<'_>) -> bool) -> Rule {
        Rule { holds, ..self }
    }

    const fn stable(self) -> Rule {
        Rule { is_stable: true, ..self }
    }

    const fn accurate(self) -> Rule {
        Rule { is_stable: true, is_accurate: true, ..self }
    }

    const fn on_the_way(self) -> Rule {
        Rule { is_worth_it: false, ..self }
    }

    const fn anywhere(self) -> Rule {
        Rule { before_derivatives: true, ..self }
    }
}

use Right::{Made, Pattern as To};
use Tag::{Exact, NeedsFact, Real};

/// All rules.
pub(super) const RULES: &[Rule] = &[
    // Factors that cancel.
    rule("quotient-times-divisor", NeedsFact, "(mul (div ?b ?a) ?a)", To("?b"))
        .given(|found| found.cancels('a', &['b']))
        .anywhere(),
    rule("product-over-factor", NeedsFact, "(div (mul ?a ?b) ?a)", To("?b"))
        .given(|found| found.cancels('a', &['b']))
        .anywhere(),
    rule(
        "quotient-times-other-times-divisor",
        NeedsFact,
        "(mul (mul (div ?b ?a) ?c) ?a)",
        To("(mul ?b ?c)"),
    )
    .given(|found| found.cancels('a', &['b', 'c']))
    .anywhere(),
    rule(
        "product-over-factor-times-other",
        NeedsFact,
        "(mul (div (mul ?a ?b) ?a) ?c)",
        To("(mul ?b ?c)"),
    )
    .given(|found| found.cancels('a', &['b', 'c']))
    .anywhere(),
    rule("quotient-by-reciprocal", Real, "(div ?b (recip ?d))", To("(mul ?d ?b)")).anywhere(),
    rule(
        "reciprocal-times-multiple-times-other",
        NeedsFact,
        "(mul (mul (recip ?a) (mul ?a ?b)) ?c)",
        To("(mul ?c ?b)"),
    )
    .given(|found| found.cancels('a', &['b', 'c']))
    .anywhere(),
    rule("itself-over-itself-times-other", NeedsFact, "(mul (div ?a ?a) ?c)", To("?c"))
        .given(|found| found.cancels('a', &['c']))
        .anywhere(),
    rule(
        "reciprocal-times-itself-times-other",
        NeedsFact,
        "(mul (mul (recip ?a) ?c) ?a)",
        To("?c"),
    )
    .given(|found| found.cancels('a', &['c']))
    .anywhere(),
    rule("itself-over-itself-and-other", NeedsFact, "(add (div ?a ?a) ?c)", To("(add ?c 1)"))
        .given(|found| found.cancels('a', &['c']))
        .anywhere(),
    rule("itself-over-itself", NeedsFact, "(div ?a ?a)", To("1"))
        .given(|found| found.range('a').is_nonzero() && found.range('a').is_finite())
        .anywhere(),
    rule("difference-of-equals", NeedsFact, "(sub ?a ?a)", To("0"))
        .given(|found| found.range('a').is_finite())
        .anywhere()
        .on_the_way(),
    // Powers.
    rule("power-over-base", NeedsFact, "(div (powf ?y ?k) ?y)", Made(lower_power, &[Op::Powf]))
        .given(|found| found.range('y').is_nonzero())
        .anywhere(),
    rule(
        "power-over-power",
        NeedsFact,
        "(div (powf ?y ?k) (powf ?y ?m))",
        Made(quotient_of_powers, &[Op::Powf]),
    )
    .given(|found| found.range('y').is_positive())
    .anywhere(),
    rule(
        "product-of-powers",
        NeedsFact,
        "(mul (powf ?y ?k) (powf ?y ?m))",
        Made(product_of_powers, &[Op::Powf]),
    )
    .given(|found| found.range('y').is_not_negative())
    .anywhere(),
    rule("power-0", Exact, "(powf ?y 0)", To("1")).anywhere(),
    rule("power-1", Exact, "(powf ?y 1)", To("?y")).anywhere(),
    rule("power-2", Real, "(powf ?y 2)", To("(mul ?y ?y)")).anywhere(),
    rule("power-3", Real, "(powf ?y 3)", To("(powi ?y 3)")).anywhere(),
    rule("power-4", Real, "(powf ?y 4)", To("(powi ?y 4)")).anywhere(),
    rule("power-minus-1", Real, "(powf ?y -1)", To("(recip ?y)")).anywhere(),
    rule("power-half", NeedsFact, "(powf ?y 0.5)", To("(sqrt ?y)"))
        .given(|found| found.range('y').is_not_negative())
        .anywhere(),
    rule("power-three-halves", NeedsFact, "(powf ?y 1.5)", To("(mul ?y (sqrt ?y))"))
        .given(|found| found.range('y').is_not_negative()),
    rule("power-minus-half", NeedsFact, "(powf ?y -0.5)", To("(recip (sqrt ?y))"))
        .given(|found| found.range('y').is_positive()),
    // Roots.
    rule("over-its-root", NeedsFact, "(div ?y (sqrt ?y))", To("(sqrt ?y)"))
        .given(|found| found.range('y').is_positive())
        .anywhere(),
    rule("root-times-root", NeedsFact, "(mul (sqrt ?y) (sqrt ?y))", To("?y"))
        .given(|found| found.range('y').is_not_negative())
        .anywhere(),
    rule("root-of-square", Real, "(sqrt (mul ?x ?x))", To("(abs ?x)")),
    // Signs and order.
    rule("magnitude-of-positive", NeedsFact, "(abs ?x)", To("?x"))
        .given(|found| found.range('x').is_not_negative())
        .on_the_way(),
    rule("magnitude-of-difference", Exact, "(abs (sub ?a ?b))", To("(abs (sub ?b ?a))"))
        .anywhere()
        .on_the_way(),
    rule("certain-maximum", NeedsFact, "(max ?a ?b)", To("?a"))
        .given(|found| !found.range('a').nan && found.range('a').low > found.range('b').high)
        .on_the_way(),
    rule("certain-minimum", NeedsFact, "(min ?a ?b)", To("?a"))
        .given(|found| !found.range('a').nan && found.range('a').high < found.range('b').low)
        .on_the_way(),
    rule("same-on-both-sides", Exact, "(select ?c ?a ?a)", To("?a")).anywhere(),
    // Constants.
    rule("factors", NeedsFact, "(mul (mul ?x ?k) ?m)", Made(times_times, &[Op::Mul]))
        .anywhere()
        .on_the_way(),
    rule("factor-over-divisor", NeedsFact, "(div (mul ?x ?k) ?m)", Made(times_over, &[Op::Mul]))
        .anywhere()
        .on_the_way(),
    rule("divisor-times-factor", NeedsFact, "(mul (div ?x ?m) ?k)", Made(times_over, &[Op::Mul]))
        .anywhere()
        .on_the_way(),
    rule("multiples", NeedsFact, "(add (mul ?x ?k) (mul ?x ?m))", Made(multiples, &[Op::Mul]))
        .on_the_way(),
    rule(
        "multiple-and-itself",
        NeedsFact,
        "(add (mul ?x ?k) ?x)",
        Made(multiple_and_one, &[Op::Mul]),
    )
    .on_the_way(),
    // Common factors.
    rule("sum-of-products", NeedsFact, "(add (mul ?a ?b) (mul ?a ?c))", To("(mul ?a (add ?b ?c))"))
        .given(factors_out)
        .on_the_way(),
    rule(
        "difference-of-products",
        NeedsFact,
        "(sub (mul ?a ?b) (mul ?a ?c))",
        To("(mul ?a (sub ?b ?c))"),
    )
    .given(factors_out)
    .on_the_way(),
    rule(
        "difference-of-squares",
        Real,
        "(sub (mul ?x ?x) (mul ?y ?y))",
        To("(mul (sub ?x ?y) (add ?x ?y))"),
    )
    .stable(),
    // One division for several.
    rule("shared-divisor", NeedsFact, "(div ?a ?b)", To("(mul ?a (recip ?b))"))
        .given(has_good_reciprocal)
        .on_the_way(),
    // Exponentials and logarithms.
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
    rule(
        "logarithm-of-several-exponentials",
        Real,
        "(ln (add (add ?s (exp ?b)) (exp ?c)))",
        Made(
            log_sum_exp,
            &[
                Op::Add,
                Op::Sub,
                Op::Mul,
                Op::Max,
                Op::Abs,
                Op::Neg,
                Op::Exp,
                Op::Ln1p,
                Op::Gt,
                Op::Select,
            ],
        ),
    )
    .stable(),
    // Not their derivatives: the rounding of a - b would count as often as it is large.
];

/// Whether `b + c` overflows only where `a·b + a·c` does.
fn factors_out(found: &Found<'_>) -> bool {
    let large = f64::MAX / 2.0;
    let a = found.range('a');
    let is_large = a.low >= 1.0 || a.high <= -1.0;
    is_large || (found.range('b').is_bounded(large) && found.range('c').is_bounded(large))
}

/// Whether the reciprocal of `b` is neither infinite nor badly rounded.
fn has_good_reciprocal(found: &Found<'_>) -> bool {
    let b = found.range('b');
    let is_constant = found.constant('b').is_some() || found.constant('a').is_some();
    !is_constant && (b.low >= 1e-290 || b.high <= -1e-290)
}
