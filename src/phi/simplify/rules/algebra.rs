//! Rules for factors, powers, roots, signs, constants and differences.

use super::Right::{Made, Pattern as To};
use super::Tag::{Exact, NeedsFact, Real};
use super::{Rule, may_be_small, rule};
use crate::op::Op;
use crate::phi::simplify::found::{
    Found, lower_power, multiple_and_one, multiples, product_of_powers, quotient_of_powers,
    times_free_difference, times_free_sum, times_over, times_times,
};

/// The rules.
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
    rule("magnitude-of-negative", Exact, "(abs (neg ?x))", To("(abs ?x)")).anywhere().on_the_way(),
    rule("negative-of-negative", Exact, "(neg (neg ?x))", To("?x")).anywhere().on_the_way(),
    rule("certain-maximum", NeedsFact, "(max ?a ?b)", To("?a"))
        .given(|found| !found.range('a').nan && found.range('a').low > found.range('b').high)
        .on_the_way(),
    rule("certain-minimum", NeedsFact, "(min ?a ?b)", To("?a"))
        .given(|found| !found.range('a').nan && found.range('a').high < found.range('b').low)
        .on_the_way(),
    rule("same-on-both-sides", Exact, "(select ?c ?a ?a)", To("?a")).anywhere(),
    // Integers.
    rule("floor-of-integer", NeedsFact, "(floor ?x)", To("?x")).given(is_integer),
    rule("ceiling-of-integer", NeedsFact, "(ceil ?x)", To("?x")).given(is_integer),
    rule("rounded-integer", NeedsFact, "(round ?x)", To("?x")).given(is_integer),
    rule("truncated-integer", NeedsFact, "(trunc ?x)", To("?x")).given(is_integer),
    rule("fraction-of-integer", NeedsFact, "(fract ?x)", To("0"))
        .given(|found| is_integer(found) && found.range('x').is_finite()),
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
    // One factor computed before the loop; there a sum that overflows stops the graph.
    rule(
        "sum-of-products-in-loop",
        NeedsFact,
        "(add (mul ?a ?b) (mul ?a ?c))",
        Made(times_free_sum, &[Op::Mul, Op::Add]),
    )
    .given(has_free_factors)
    .freeing("bc"),
    rule(
        "difference-of-products-in-loop",
        NeedsFact,
        "(sub (mul ?a ?b) (mul ?a ?c))",
        Made(times_free_difference, &[Op::Mul, Op::Sub]),
    )
    .given(has_free_factors)
    .freeing("bc"),
    rule(
        "difference-of-squares",
        Real,
        "(sub (mul ?x ?x) (mul ?y ?y))",
        To("(mul (sub ?x ?y) (add ?x ?y))"),
    )
    .stable(),
    rule(
        "root-less-1",
        Real,
        "(sub (sqrt (add ?x 1)) 1)",
        To("(div ?x (add (sqrt (add ?x 1)) 1))"),
    )
    .given(may_be_small)
    .accurate(),
    rule(
        "root-and-minus-1",
        Real,
        "(add (sqrt (add ?x 1)) -1)",
        To("(div ?x (add (sqrt (add ?x 1)) 1))"),
    )
    .given(may_be_small)
    .accurate(),
    // 1 - cos x = 2·sin²(x/2)
    rule(
        "1-less-cosine",
        Real,
        "(sub 1 (cos ?x))",
        To("(mul (mul (sin (mul ?x 0.5)) (sin (mul ?x 0.5))) 2)"),
    )
    .given(may_be_small)
    .accurate(),
    // One division for several.
    rule("shared-divisor", NeedsFact, "(div ?a ?b)", To("(mul ?a (recip ?b))"))
        .given(has_good_reciprocal)
        .on_the_way(),
];

/// Not to be differentiated, since a condition may have told it of a number that changes.
fn is_integer(found: &Found<'_>) -> bool {
    found.range('x').integer
}

/// Whether `b + c` overflows only where `a·b + a·c` does, and its rounding error does not add
/// up.
fn factors_out(found: &Found<'_>) -> bool {
    !adds_up(found, &['b', 'c']) && is_in_range(found)
}

/// Whether what is computed of `others` has the same rounding error in all iterations of a
/// loop that carries `a`.
fn adds_up(found: &Found<'_>, others: &[char]) -> bool {
    found.is_carried('a') && others.iter().all(|&name| found.stays(name))
}

fn is_in_range(found: &Found<'_>) -> bool {
    let large = f64::MAX / 2.0;
    let a = found.range('a');
    let is_large = a.low >= 1.0 || a.high <= -1.0;
    is_large || (found.range('b').is_bounded(large) && found.range('c').is_bounded(large))
}

/// Whether `b` and `c` are the same in all iterations of the loop around, and `a` is not.
fn has_free_factors(found: &Found<'_>) -> bool {
    let are_free = found.is_free('b') && found.is_free('c') && !found.is_free('a');
    are_free && !found.is_carried('a') && !is_in_range(found)
}

/// Whether the reciprocal of `b` is neither infinite nor badly rounded.
fn has_good_reciprocal(found: &Found<'_>) -> bool {
    let b = found.range('b');
    let is_constant = found.constant('b').is_some() || found.constant('a').is_some();
    !is_constant && !adds_up(found, &['b']) && (b.low >= 1e-290 || b.high <= -1e-290)
}
