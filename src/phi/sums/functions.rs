//! Sums of logarithms of products, and products of exponentials: functions that turn one
//! into the other.
//!
//! Σ ln(u·cᵢ) is n·ln(u·g) + Σ ln(cᵢ/g), where g is the geometric mean of the data, so that
//! the second sum is next to nothing; and Π exp(tᵢ) is exp(Σ tᵢ). What such a function is
//! applied to has the digits of a pair: its error would be that of n terms at once.

use hashbrown::HashMap;

use super::chain::{Added, Chain};
use super::form::moved_out;
use super::inverses::is_invariant;
use super::moments::Evaluator;
use super::polynomial::Basis;
use super::precise::{Polynomial, cost};
use super::products::SIZES;
use super::steps::{Place, Steps};
use super::terms::{Variables, terms};
use super::{frame::Frame, precise_part, suspects};
use crate::op::Op;
use crate::phi::close::CloseLimits;
use crate::phi::double::Double;
use crate::phi::draft::Draft;
use crate::phi::notation::{Brief, number};
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Def, Node, Region};

/// So many factors of one iteration are looked at.
const FACTORS: usize = 64;

/// Factors, and divisors (`true`).
pub(super) type Factors = Vec<(bool, Node)>;

/// The factors in `region` of all of these, and their sign.
pub(super) fn taken_apart(draft: &Draft, region: Region, all: Factors) -> Option<(f64, Factors)> {
    let (mut found, mut pending, mut sign) = (Vec::new(), all, 1.0);
    while let Some((inverse, node)) = pending.pop() {
        let node = draft.resolve(node);
        let args: Vec<Node> = draft.args(node).collect();
        match (draft.graph.nodes[node].def, args.as_slice()) {
            (Def::Apply(Op::Mul, _), &[a, b]) if draft.is_inside(node, region) => {
                pending.extend([(inverse, a), (inverse, b)]);
            }
            (Def::Apply(Op::Div, _), &[a, b]) if draft.is_inside(node, region) => {
                pending.extend([(inverse, a), (!inverse, b)]);
            }
            (Def::Apply(Op::Neg, _), &[a]) if draft.is_inside(node, region) => {
                sign = -sign;
                pending.push((inverse, a));
            }
            _ => found.push((inverse, node)),
        }
        // One that occurs several times is looked at as often.
        if found.len() + pending.len() > FACTORS {
            return None;
        }
    }
    Some((sign, found))
}

/// What a node that is data comes to in each iteration.
pub(super) fn values(draft: &Draft, region: Region, node: Node, count: u32) -> Option<Vec<Double>> {
    let added = [Added::Term(1.0, node)];
    let terms = terms(draft, region, &added, Variables::Large, &HashMap::new()).ok()?;
    if terms.loops.len() != 1 || !terms.variables.is_empty() {
        return None;
    }
    let basis = Basis::new(0, 0, 1)?;
    let mut evaluator = Evaluator::new(&terms, &basis);
    Some(evaluator.values(&Frame::at(Vec::new()), count).collect())
}

/// Replaces a sum of logarithms of products of data with what is invariant in `region`, a
/// loop in no other; returns its form.
pub(super) fn close_logarithms(draft: &mut Draft, region: Region, chain: &Chain) -> Option<String> {
    let &[Added::Term(sign, term)] = chain.added.as_slice() else { return None };
    let (first, count) = (chain.first, chain.count);
    let Def::Apply(Op::Ln, [product, ..]) = draft.graph.nodes[draft.resolve(term)].def else {
        return None;
    };
    if draft.loop_around(region).is_some() {
        return None;
    }
    let (scale, all) = taken_apart(draft, region, vec![(false, product)])?;
    let (data, invariant): (Factors, Factors) =
        all.into_iter().partition(|&(_, node)| draft.folds(node));
    let is_invariant = |&(_, node): &(bool, Node)| is_invariant(draft, region, node);
    if data.is_empty() || invariant.is_empty() || !invariant.iter().all(is_invariant) {
        return None;
    }
    let mut each = vec![Double::from(scale); count as usize];
    for (inverse, node) in data {
        for (each, value) in each.iter_mut().zip(values(draft, region, node, count)?) {
            *each = if inverse { *each / value } else { *each * value };
        }
    }
    // With both signs it is never a number.
    let is_positive = each.first()?.high > 0.0;
    let fits = |x: &Double| x.high.abs() > 1e-100 && x.high.abs() < 1e100;
    if !each.iter().all(|x| fits(x) && (x.high > 0.0) == is_positive) {
        return None;
    }
    let logarithm = |x: Double| Double::from(x.high.ln()) + Double::from(x.low / x.high);
    let n = f64::from(count);
    let add = |sum: Double, x: Double| sum + x;
    let size = |x: &Double| if is_positive { *x } else { -*x };
    let mean = each.iter().map(|x| logarithm(size(x))).fold(Double::ZERO, add);
    let mean = (mean.rounded() / n).exp();
    let rest = each.iter().map(|x| logarithm(size(x) / mean.into())).fold(Double::ZERO, add);
    let signed = if is_positive { mean } else { -mean };
    let base = invariants(draft, region, invariant)?;
    // One with few digits may be one with all of them where data comes before it.
    draft.require_size(region, base, *SIZES.start(), *SIZES.end());
    let mut steps = Steps { draft, place: Place::Before(region) };
    let scale = steps.number(signed, 0.0);
    let scaled = steps.product(base.into(), scale);
    let (one, times) = (steps.constant(1.0), steps.constant(sign * n));
    let mut value = steps.apply(Op::Ln, &[scaled.high]);
    if let Some(low) = scaled.low {
        let part = steps.apply(Op::Div, &[low, scaled.high]);
        value = steps.apply(Op::Add, &[value, part]);
    }
    value = steps.apply(Op::Mul, &[times, value]);
    let rest = sign * rest.rounded();
    let added = steps.constant(rest);
    value = steps.apply(Op::Add, &[value, added]);
    let slope = steps.apply(Op::Div, &[times, base]);
    let mut slopes = vec![(base, slope)];
    if steps.value(first) != Some(0.0) {
        value = steps.apply(Op::Add, &[first, value]);
        slopes.push((first, one));
    }
    let form = steps.with_slopes(value, &slopes);
    draft.forget_use(first);
    chain.phis.iter().for_each(|&phi| draft.replace(phi, form));
    let brief = Brief::new(&draft.graph);
    let (base, first) = (brief.node(base), brief.node(first));
    Some(format!(
        "p + Σ_{{i<{count}}} g(i) = p + {}·ln({}·u) + {}, where g(i) is what is added, u = {base}, \
         p = {first}",
        number(sign * n),
        number(signed),
        number(rest),
    ))
}

/// The product of what is invariant in `region`, before it.
pub(super) fn invariants(
    draft: &mut Draft,
    region: Region,
    all: Vec<(bool, Node)>,
) -> Option<Node> {
    let one = draft.constant(1.0);
    let mut base: Option<Node> = None;
    // What divides comes last, so that it divides a product.
    let (divisors, factors): (Vec<_>, Vec<_>) = all.into_iter().partition(|&(d, _)| d);
    for (number, (divides, node)) in factors.into_iter().rev().chain(divisors).enumerate() {
        let node = moved_out(draft, region, node);
        if let Some(base) = base.filter(|_| number > 1) {
            draft.require_size(region, base, *SIZES.start(), *SIZES.end());
        }
        base = Some(match (base, divides) {
            (None, false) => node,
            (base, true) => draft.apply(region, Op::Div, &[base.unwrap_or(one), node]),
            (Some(base), false) => draft.apply(region, Op::Mul, &[base, node]),
        });
    }
    base
}

/// An entry φ whose next value is itself times something.
pub(super) struct Product {
    /// The φs that have it.
    pub(super) phis: Vec<Node>,
    /// What it begins with.
    pub(super) first: Node,
    /// What it is multiplied by, and what it is divided by (`true`).
    pub(super) factors: Vec<(bool, Node)>,
    pub(super) count: u32,
}

/// Replaces a product of exponentials in `region`, a loop in no other; returns its form.
pub(super) fn close_exponentials(
    draft: &mut Draft,
    region: Region,
    product: &Product,
    limits: &CloseLimits,
) -> Option<String> {
    if draft.loop_around(region).is_some() {
        return None;
    }
    let exponent = |(inverse, node): (bool, Node)| match draft.graph.nodes[node].def {
        Def::Apply(Op::Exp, [exponent, ..]) => {
            Some(Added::Term(if inverse { -1.0 } else { 1.0 }, draft.resolve(exponent)))
        }
        _ => None,
    };
    let (sign, all) = taken_apart(draft, region, product.factors.clone())?;
    if sign < 0.0 {
        return None;
    }
    let added: Option<Vec<Added>> = all.into_iter().map(exponent).collect();
    let (added, count) = (added?, product.count);
    let terms = [Variables::Large, Variables::Small].into_iter().find_map(|variables| {
        let terms = terms(draft, region, &added, variables, &HashMap::new()).ok()?;
        let fits = terms.loops.len() == 1 && !terms.variables.is_empty();
        (fits && terms.variables.len() <= limits.variables).then_some(terms)
    })?;
    let basis = Basis::covering(&terms, limits.monomials)?;
    let (size, variables) = (basis.len() as u64, terms.variables.len());
    let work = u64::from(count) * size * (size + terms.steps.len() as u64);
    if work > limits.work {
        return None;
    }
    let mut evaluator = Evaluator::new(&terms, &basis);
    let known = suspects(&terms, &mut evaluator, &basis, limits, (count, &[]));
    let (frame, moments) = precise_part(&mut evaluator, &basis, variables, (count, 0.0), &known)?;
    if cost(&moments, &basis) > 3 * u64::from(count) * (1 + terms.steps.len() as u64) {
        return None;
    }
    let mut steps = Steps { draft, place: Place::Before(region) };
    let polynomial = Polynomial::of(&mut steps, region, &terms, &basis, &frame, &moments);
    let exponent = steps.normal(polynomial.value?);
    let mut value = steps.apply(Op::Exp, &[exponent.high]);
    if let Some(low) = exponent.low {
        value = steps.apply(Op::MulAdd, &[value, low, value]);
    }
    // What the product begins with may have brought it through where this does not.
    if steps.value(product.first) != Some(1.0) {
        steps.draft.require_size(region, value, *SIZES.start(), *SIZES.end());
    }
    let mut slopes = Vec::new();
    for (variable, slope) in polynomial.slopes {
        let slope = product_of(&mut steps, value, slope);
        slopes.push((variable, slope));
    }
    let power = steps.with_slopes(value, &slopes);
    let form = match steps.value(product.first) {
        Some(1.0) => power,
        _ => steps.apply(Op::Mul, &[product.first, power]),
    };
    draft.forget_use(product.first);
    product.phis.iter().for_each(|&phi| draft.replace(phi, form));
    let first = Brief::new(&draft.graph).node(product.first);
    Some(format!(
        "p·Π_{{i<{count}}} exp(g(i)) = p·exp(Σ_{{i<{count}}} g(i)), a polynomial, where exp(g(i)) \
         is what is multiplied by, p = {first}"
    ))
}

fn product_of(steps: &mut Steps<'_>, value: Node, slope: Pair) -> Node {
    let slope = steps.rounded(slope);
    steps.apply(Op::Mul, &[value, slope])
}
