//! Rules for factors, powers, roots, signs, constants and differences.

use egg::Id;

use super::{Match, Rule, computed, exact, fact, real};
use crate::op::Op;

/// The rules.
pub(super) const RULES: &[Rule] = &[
    // Factors that cancel.
    fact("quotient-times-divisor", "(mul (div ?b ?a) ?a)", "?b", cancels).at_any_stage(),
    fact("product-over-factor", "(div (mul ?a ?b) ?a)", "?b", cancels).at_any_stage(),
    fact(
        "quotient-times-other-times-divisor",
        "(mul (mul (div ?b ?a) ?c) ?a)",
        "(mul ?b ?c)",
        cancels,
    )
    .at_any_stage(),
    fact(
        "product-over-factor-times-other",
        "(mul (div (mul ?a ?b) ?a) ?c)",
        "(mul ?b ?c)",
        cancels,
    )
    .at_any_stage(),
    fact(
        "reciprocal-times-multiple",
        "(mul (mul (recip ?a) (mul ?a ?b)) ?c)",
        "(mul ?c ?b)",
        cancels,
    )
    .at_any_stage(),
    fact("itself-over-itself-times-other", "(mul (div ?a ?a) ?c)", "?c", cancels).at_any_stage(),
    fact("reciprocal-times-itself", "(mul (mul (recip ?a) ?c) ?a)", "?c", cancels).at_any_stage(),
    fact("itself-over-itself-and-other", "(add (div ?a ?a) ?c)", "(add ?c 1)", cancels)
        .at_any_stage(),
    fact("itself-over-itself", "(div ?a ?a)", "1", cancels).at_any_stage(),
    fact("difference-of-equals", "(sub ?a ?a)", "0", |found| found.range('a').is_finite())
        .at_any_stage()
        .auxiliary(),
    real("quotient-by-reciprocal", "(div ?b (recip ?d))", "(mul ?d ?b)").at_any_stage(),
    // Powers.
    computed("power-over-base", "(div (powf ?y ?k) ?y)", power_over_base, &[Op::Powf])
        .at_any_stage(),
    computed("power-over-power", "(div (powf ?y ?k) (powf ?y ?m))", power_over_power, &[Op::Powf])
        .at_any_stage(),
    computed(
        "product-of-powers",
        "(mul (powf ?y ?k) (powf ?y ?m))",
        product_of_powers,
        &[Op::Powf],
    )
    .at_any_stage(),
    exact("power-0", "(powf ?y 0)", "1"),
    exact("power-1", "(powf ?y 1)", "?y"),
    real("power-2", "(powf ?y 2)", "(mul ?y ?y)").at_any_stage(),
    real("power-3", "(powf ?y 3)", "(powi ?y 3)").at_any_stage(),
    real("power-4", "(powf ?y 4)", "(powi ?y 4)").at_any_stage(),
    real("power-minus-1", "(powf ?y -1)", "(recip ?y)").at_any_stage(),
    fact("power-half", "(powf ?y 0.5)", "(sqrt ?y)", not_negative).at_any_stage(),
    fact("power-three-halves", "(powf ?y 1.5)", "(mul ?y (sqrt ?y))", not_negative),
    fact("power-minus-half", "(powf ?y -0.5)", "(recip (sqrt ?y))", positive),
    // Roots.
    fact("over-its-root", "(div ?y (sqrt ?y))", "(sqrt ?y)", positive).at_any_stage(),
    fact("root-times-root", "(mul (sqrt ?y) (sqrt ?y))", "?y", not_negative).at_any_stage(),
    real("root-of-square", "(sqrt (mul ?y ?y))", "(abs ?y)"),
    // Signs and order.
    fact("magnitude-of-positive", "(abs ?y)", "?y", not_negative).auxiliary(),
    exact("magnitude-of-difference", "(abs (sub ?a ?b))", "(abs (sub ?b ?a))").auxiliary(),
    exact("magnitude-of-negative", "(abs (neg ?x))", "(abs ?x)").auxiliary(),
    exact("negative-of-negative", "(neg (neg ?x))", "?x").auxiliary(),
    fact("certain-maximum", "(max ?a ?b)", "?a", |found| {
        !found.range('a').nan && found.range('a').lower > found.range('b').upper
    })
    .auxiliary(),
    fact("certain-minimum", "(min ?a ?b)", "?a", |found| {
        !found.range('a').nan && found.range('a').upper < found.range('b').lower
    })
    .auxiliary(),
    exact("same-on-both-arms", "(select ?c ?a ?a)", "?a"),
    // Constants.
    computed("factors", "(mul (mul ?x ?k) ?m)", product_of_constants, &[Op::Mul])
        .at_any_stage()
        .auxiliary(),
    computed("factor-over-divisor", "(div (mul ?x ?k) ?m)", quotient_of_constants, &[Op::Mul])
        .at_any_stage()
        .auxiliary(),
    computed("divisor-times-factor", "(mul (div ?x ?m) ?k)", quotient_of_constants, &[Op::Mul])
        .at_any_stage()
        .auxiliary(),
    computed("sum-of-multiples", "(add (mul ?x ?k) (mul ?x ?m))", sum_of_constants, &[Op::Mul])
        .auxiliary(),
    computed("multiple-and-itself", "(add (mul ?x ?k) ?x)", constant_and_one, &[Op::Mul])
        .auxiliary(),
    // Common factors.
    fact(
        "sum-of-products",
        "(add (mul ?a ?b) (mul ?a ?c))",
        "(mul ?a (add ?b ?c))",
        may_factor_out,
    )
    .auxiliary(),
    fact(
        "difference-of-products",
        "(sub (mul ?a ?b) (mul ?a ?c))",
        "(mul ?a (sub ?b ?c))",
        may_factor_out,
    )
    .auxiliary(),
    real("difference-of-squares", "(sub (mul ?x ?x) (mul ?y ?y))", "(mul (sub ?x ?y) (add ?x ?y))")
        .superseding(),
    // One division for several.
    fact("common-divisor", "(div ?a ?b)", "(mul ?a (recip ?b))", has_good_reciprocal).auxiliary(),
];

/// True if `a` may be cancelled: it is not 0, and if it is NaN, so is one of the other variables,
/// which remain. Without other variables it must be finite.
fn cancels(found: &Match<'_>) -> bool {
    let Some(a) = found.facts('a') else { return false };
    let others = found.substitution.iter().filter(|(name, _)| *name != 'a');
    let nan_if = others.clone().fold(0, |all, &(_, id)| all | found.terms[id].data.nan_if);
    let may_be_infinite = others.count() == 0 && !a.range.is_finite();
    a.range.is_nonzero() && !may_be_infinite && a.nan_only_if.is_some_and(|all| all & !nan_if == 0)
}

fn positive(found: &Match<'_>) -> bool {
    found.range('y').is_positive()
}

fn not_negative(found: &Match<'_>) -> bool {
    found.range('y').is_not_negative()
}

/// True if `b + c` overflows only where `a·b + a·c` does, and its rounding error does not
/// accumulate.
fn may_factor_out(found: &Match<'_>) -> bool {
    let [a, b, c] = ['a', 'b', 'c'].map(|name| found.range(name));
    let is_large = a.lower >= 1.0 || a.upper <= -1.0;
    let are_bounded = [b, c].iter().all(|range| range.is_bounded(f64::MAX / 2.0));
    (is_large || are_bounded) && !found.accumulates(&['b', 'c'])
}

/// True if the reciprocal of `b` is neither infinite nor subnormal, and its rounding error does not
/// accumulate.
fn has_good_reciprocal(found: &Match<'_>) -> bool {
    let b = found.range('b');
    let is_constant = found.constant('b').is_some() || found.constant('a').is_some();
    !is_constant && !found.accumulates(&['b']) && (b.lower >= 1e-290 || b.upper <= -1e-290)
}

/// `a + b`, if that is exact.
fn exact_sum(a: f64, b: f64) -> Option<f64> {
    let sum = a + b;
    let is_exact = sum.is_finite() && sum - a == b && sum - b == a;
    is_exact.then_some(sum)
}

/// `y` to the power `exponent`.
fn power(found: &mut Match<'_>, exponent: f64) -> Option<Id> {
    let base = found.id('y')?;
    if exponent == 1.0 {
        return Some(base);
    }
    let exponent = found.number(exponent);
    Some(found.apply(Op::Powf, &[base, exponent]))
}

/// For infinite `y` the quotient is NaN, so the power must be infinite or NaN.
fn power_over_base(found: &mut Match<'_>) -> Option<Id> {
    let k = found.constant('k')?;
    let exponent = exact_sum(k, -1.0)?;
    let increases = k > 1.0 || found.range('y').is_finite();
    (increases && found.range('y').is_nonzero()).then(|| power(found, exponent)).flatten()
}

fn power_over_power(found: &mut Match<'_>) -> Option<Id> {
    let exponent = exact_sum(found.constant('k')?, -found.constant('m')?)?;
    let increases = exponent > 0.0 || found.range('y').is_finite();
    (increases && exponent != 0.0 && positive(found)).then(|| power(found, exponent)).flatten()
}

/// Both exponents must be positive, so that the powers of zero and infinity are zero and infinity.
fn product_of_powers(found: &mut Match<'_>) -> Option<Id> {
    let (k, m) = (found.constant('k')?, found.constant('m')?);
    let exponent = exact_sum(k, m)?;
    (k > 0.0 && m > 0.0 && not_negative(found)).then(|| power(found, exponent)).flatten()
}

/// `x` times `factor`, if `factor` is a normal number, and exact if `x` is carried.
fn multiple(found: &mut Match<'_>, factor: f64, is_exact: bool) -> Option<Id> {
    let x = found.id('x')?;
    if !factor.is_normal() || !is_exact && found.is_carried('x') {
        return None;
    }
    let factor = found.number(factor);
    Some(found.apply(Op::Mul, &[x, factor]))
}

fn product_of_constants(found: &mut Match<'_>) -> Option<Id> {
    let (k, m) = (found.constant('k')?, found.constant('m')?);
    let factor = k * m;
    multiple(found, factor, k.mul_add(m, -factor) == 0.0)
}

fn quotient_of_constants(found: &mut Match<'_>) -> Option<Id> {
    let (k, m) = (found.constant('k')?, found.constant('m')?);
    let factor = k / m;
    multiple(found, factor, factor.mul_add(m, -k) == 0.0)
}

fn sum_of_constants(found: &mut Match<'_>) -> Option<Id> {
    let (k, m) = (found.constant('k')?, found.constant('m')?);
    multiple(found, k + m, exact_sum(k, m).is_some())
}

fn constant_and_one(found: &mut Match<'_>) -> Option<Id> {
    let k = found.constant('k')?;
    multiple(found, k + 1.0, exact_sum(k, 1.0).is_some())
}
