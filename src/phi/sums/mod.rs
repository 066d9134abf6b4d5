//! Sums out of loops: C7, and what Σ of polynomials comes to.
//!
//! An entry φ to which each iteration adds something that does not depend on it
//! is a sum when the loop is over. Where what is added is a polynomial in values
//! that are invariant in the loop, with coefficients that are data, the sum is a
//! polynomial too, of the sums of the coefficients: there is no loop any more.
//! `chain` finds the sums, `terms` what they add up, `moments` the coefficients
//! around a pivot, `condition` the pivot, and `form` makes nodes of it. `inverses` makes
//! products of quotients, and `products` are those of data with what is invariant (C8).

mod chain;
mod condition;
mod form;
mod frame;
mod hoist;
mod inverses;
mod moments;
mod polynomial;
mod products;
mod rows;
mod terms;

use chain::{Chain, chains};
use condition::{pivots, worst};
use frame::Frame;
use inverses::inverses;
use moments::{Evaluator, Moments};
use polynomial::Basis;
use terms::{Step, Terms, Variables, terms};

use super::close::CloseLimits;
use super::draft::Draft;
use super::rule::{Applied, Refused, Rule};
use crate::ssa::{Place, Region};

/// Coefficients beyond this might overflow, or lose digits, on the way.
const LARGE: f64 = 1e100;

/// A frame of at most this ratio needs no shear.
const GOOD: f64 = 0.4;

/// Replaces the sums of `region`, a loop, by closed forms where there are good ones.
pub(super) fn close_sums(
    draft: &mut Draft,
    region: Region,
    limits: &CloseLimits,
    applied: &mut Vec<Applied>,
    refused: &mut Vec<Refused>,
) {
    let at = place(draft, region);
    let found = match chains(draft, region) {
        Ok(found) => found,
        Err(why) => return refused.push(Refused { at, why }),
    };
    let products = products::close_products(draft, region);
    let rule = Rule::C8;
    applied.extend(products.into_iter().map(|form| Applied { rule, at: at.clone(), form }));
    for chain in found {
        match chain.and_then(|chain| close_sum(draft, region, &chain, limits)) {
            Ok((rule, form)) => applied.push(Applied { rule, at: at.clone(), form }),
            Err(why) => refused.push(Refused { at: at.clone(), why }),
        }
    }
}

fn place(draft: &Draft, region: Region) -> Option<Place> {
    let place = draft.graph.regions[region].place?;
    draft.graph.places.get(place).cloned()
}

/// Replaces one sum; returns the formula and the form, or why it has none.
fn close_sum(
    draft: &mut Draft,
    region: Region,
    chain: &Chain,
    limits: &CloseLimits,
) -> Result<(Rule, String), String> {
    let first = draft.graph.constant(chain.first);
    let mut why = None;
    let inverses = inverses(draft, region, chain);
    for variables in [Variables::Large, Variables::Small] {
        let sum = terms(draft, region, &chain.added, variables, &inverses)
            .and_then(|terms| fit(draft, &terms, chain.count, first.unwrap_or(0.0), limits));
        match sum {
            Ok(sum) => {
                let made = form::emit(draft, region, chain, &sum);
                inverses::require(draft, region, &inverses);
                draft.forget_use(chain.first);
                chain.phis.iter().for_each(|&phi| draft.replace(phi, made));
                // What is always the same is added by C6, with a = 1.
                let changes =
                    |step: &Step| matches!(step, Step::Element { .. } | Step::Iteration(_));
                let rule = if sum.terms.steps.iter().any(changes) { Rule::C7 } else { Rule::C6 };
                return Ok((rule, form::text(draft, chain, &sum)));
            }
            Err(this) => why = why.or(Some(this)),
        }
    }
    let hoisted = hoist::hoist(draft, region, chain);
    hoisted
        .map(|form| (Rule::C7, form))
        .map_err(|hoisting| format!("{}, and {hoisting}", why.unwrap_or_default()))
}

/// A sum in closed form.
struct Sum {
    terms: Terms,
    basis: Basis,
    /// For each combination of iterations of the loops around: the frame and the
    /// moments in it. The last loop's iterations are next to each other.
    parts: Vec<(Frame, Moments)>,
    /// The number of iterations of each loop around that matters.
    counts: Vec<u32>,
}

/// The closed form of `terms`, which `count` iterations add to `first`.
fn fit(
    draft: &Draft,
    terms: &Terms,
    count: u32,
    first: f64,
    limits: &CloseLimits,
) -> Result<Sum, String> {
    let variables = terms.variables.len();
    if variables > limits.variables {
        return Err(format!("its terms have more than {} variables", limits.variables));
    }
    let basis = Basis::new(variables, terms.degree(), limits.monomials)
        .ok_or_else(|| format!("a form would have more than {} monomials", limits.monomials))?;
    // What the loop does for a sum, against what the form does.
    let is_shorter = u64::from(count) * terms.steps.len() as u64 > 3 * basis.len() as u64;
    if !is_shorter && !draft.all_forms {
        return Err("a form would be no shorter".to_owned());
    }
    let counts: Vec<u32> = terms.loops[1..]
        .iter()
        .map(|&outer| draft.graph.regions[outer].cycle.as_ref().map_or(1, |cycle| cycle.bound))
        .collect();
    let outer = counts.iter().try_fold(1u64, |all, &count| all.checked_mul(u64::from(count)));
    let each = basis.len() as u64 * (basis.len() + terms.steps.len()) as u64;
    let work = outer.and_then(|outer| outer.checked_mul(u64::from(count)));
    let work = work.and_then(|work| work.checked_mul(each));
    if work.is_none_or(|work| work > limits.work) {
        let limit = limits.work;
        return Err(format!("to fold its data would take too long, more than {limit} products"));
    }
    let mut evaluator = Evaluator::new(terms, &basis);
    let mut parts = Vec::new();
    let mut around = vec![0; counts.len()];
    loop {
        parts.push(part(&mut evaluator, &basis, variables, count, first, &around)?);
        let Some(next) = (0..counts.len()).rev().find(|&i| around[i] + 1 < counts[i]) else {
            break;
        };
        around[next] += 1;
        around[next + 1..].fill(0);
    }
    drop(evaluator);
    Ok(Sum { terms: terms.clone(), basis, parts, counts })
}

/// A good frame, with the moments in it.
fn part(
    evaluator: &mut Evaluator<'_>,
    basis: &Basis,
    variables: usize,
    count: u32,
    first: f64,
    around: &[u32],
) -> Result<(Frame, Moments), String> {
    let mut at = |frame: &Frame| evaluator.moments(first, frame, count, around);
    let zero = Frame::at(vec![0.0; variables]);
    let raw = at(&zero).ok_or("its data are not finite")?;
    let fits = |size: f64| size == 0.0 || (1.0 / LARGE..LARGE).contains(&size);
    if !raw.magnitudes.iter().copied().all(fits) {
        return Err("its data are too large or too small".to_owned());
    }
    if variables == 0 {
        return Ok((zero, raw));
    }
    let mut least = f64::INFINITY;
    let kinds = pivots(&raw, basis, variables).into_iter().enumerate();
    let found = kinds.filter_map(|(kind, pivot)| Some((Some(kind), pivot?)));
    let found = found.map(|(kind, pivot)| (kind, Frame::at(pivot)));
    for (kind, mut frame) in found.chain([(None, zero)]) {
        let Some(mut moments) = at(&frame) else { continue };
        // Once more from there, where nothing cancels.
        let step = kind.and_then(|kind| pivots(&moments, basis, variables)[kind].take());
        if let Some(step) = step {
            let next = frame.pivot.iter().zip(step).map(|(p, step)| p + step).collect();
            let next = Frame::at(next);
            if let Some(better) = at(&next) {
                (frame, moments) = (next, better);
            }
        }
        let sheared = frame.sheared(&moments, basis).filter(|sheared| *sheared != frame);
        let sheared = sheared.and_then(|sheared| Some((sheared.clone(), at(&sheared)?)));
        let mut best = None;
        for (frame, moments) in [Some((frame, moments)), sheared].into_iter().flatten() {
            let sizes = moments.magnitudes.iter().chain(&frame.pivot);
            if sizes.into_iter().any(|size| size.abs() > LARGE) {
                continue;
            }
            let ratio = worst(&moments, basis, &frame);
            if ratio < least {
                least = ratio;
                best = Some((frame, moments));
            }
            if ratio <= GOOD {
                break;
            }
        }
        if let Some(best) = best.filter(|_| least <= 1.0) {
            return Ok(best);
        }
    }
    Err(format!("its form would lose digits ({least:.1} times as large as what is good)"))
}
