//! Sums out of loops: C7, and what Σ of polynomials comes to.
//!
//! An entry φ to which each iteration adds something that does not depend on it
//! is a sum when the loop is over. Where what is added is a polynomial in values
//! that are invariant in the loop, with coefficients that are data, the sum is a
//! polynomial too, of the sums of the coefficients: there is no loop any more.
//! `chain` finds the sums, `terms` what they add up, `moments` the coefficients around a
//! pivot, `condition`, `center`, `valleys` and `zeros` the pivot, and `form` makes nodes of
//! it, or `precise` where parts may cancel. `functions` and `exponentials` are for terms that
//! are no polynomials. `factors` are invariant, and taken out. `inverses` makes products of
//! quotients, and `products` are those of data with what is invariant (C8). `change` tells
//! what is the same in all iterations, and `choice` what a branch in a term chooses. Where
//! data are known only in a call, `hoist` finds the pivot then, in `rows` of loops made of
//! `steps`; `expand` adds up polynomials around it, and `guards` tells which data that is
//! good for.

mod center;
mod chain;
mod change;
mod choice;
mod condition;
mod expand;
mod exponentials;
mod factors;
mod form;
mod frame;
mod functions;
mod guards;
mod hoist;
mod inverses;
mod moments;
mod polynomial;
mod precise;
mod products;
mod rows;
mod steps;
mod terms;
mod valleys;
mod zeros;

use center::center;
use chain::{Chain, chains};
use condition::{Suspects, pivots, rough, worst};
use frame::Frame;
use inverses::inverses;
use moments::{Evaluator, Moments};
use polynomial::Basis;
use terms::{Step, Terms, Variables, terms};
use valleys::valleys;

use super::close::CloseLimits;
use super::draft::Draft;
use super::rule::{Applied, Refused, Rule};
use crate::ssa::{Node, Place, Region};

/// Coefficients beyond this might overflow, or lose digits, on the way.
const LARGE: f64 = 1e100;

/// A frame of at most this ratio needs no shear.
const GOOD: f64 = 0.4;

/// In pairs of numbers the magnitudes in a form may be so many times larger than what is
/// good in single ones. Pairs would bear more, but where more cancels nothing is left of what
/// it is compared with.
const PRECISE: f64 = 1e6;

/// With a frame of at most this ratio the form's error is hardly ever larger than the loop's,
/// wherever its parts cancel.
const CALM: f64 = 0.005;

/// For so many variables a frame without pairs of numbers is looked for first.
const FEW: usize = 3;

/// Below that no other pivot is looked for.
const EASY: f64 = 1e3;

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
    let products = products::close_products(draft, region, limits);
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
        let terms = terms(draft, region, &chain.added, variables, &inverses);
        let sum = terms.and_then(|terms| {
            let fit = |terms: &Terms, first| fit(draft, region, terms, chain.count, first, limits);
            let taken = factors::without_factors(&terms).filter(|_| first.unwrap_or(0.0) == 0.0);
            if let Some((left, factors)) = taken
                && let Ok(sum) = fit(&left, 0.0)
            {
                return Ok(Sum { factors, ..sum });
            }
            let terms = terms.begun(draft, chain.first, &inverses);
            fit(&terms, first.unwrap_or(0.0))
        });
        match sum {
            Ok(sum) => {
                let made = emit(draft, region, chain, &sum);
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
    let form = functions::close_logarithms(draft, region, chain);
    let form = form.or_else(|| exponentials::close_sum_of_exponentials(draft, region, chain));
    if let Some(form) = form {
        return Ok((Rule::C7, form));
    }
    let hoisted = hoist::hoist(draft, region, chain, &inverses, limits);
    hoisted.map(|form| (Rule::C7, form)).map_err(|hoisting| match why {
        Some(why) if why != hoisting => format!("{why}, and {hoisting}"),
        _ => hoisting,
    })
}

/// Inserts what `sum` is before `region`, the loop that it replaces.
fn emit(draft: &mut Draft, region: Region, chain: &Chain, sum: &Sum) -> Node {
    let emit = if sum.is_precise { precise::emit } else { form::emit };
    if sum.factors.is_empty() {
        return emit(draft, region, chain, sum);
    }
    let apart = Chain { first: draft.constant(0.0), ..chain.clone() };
    let made = emit(draft, region, &apart, sum);
    factors::multiplied(draft, region, chain, made, &sum.factors)
}

/// A sum in closed form.
struct Sum {
    terms: Terms,
    /// What the sum of the terms is multiplied by.
    factors: Vec<Node>,
    basis: Basis,
    /// For each combination of iterations of the loops around: the frame and the
    /// moments in it. The last loop's iterations are next to each other.
    parts: Vec<(Frame, Moments)>,
    /// The number of iterations of each loop around that matters.
    counts: Vec<u32>,
    /// Whether it is to be computed in pairs of numbers.
    is_precise: bool,
}

/// The closed form of `terms`, which `count` iterations add to `first`.
fn fit(
    draft: &Draft,
    region: Region,
    terms: &Terms,
    count: u32,
    first: f64,
    limits: &CloseLimits,
) -> Result<Sum, String> {
    let variables = terms.variables.len();
    if variables > limits.variables {
        return Err(format!("its terms have more than {} variables", limits.variables));
    }
    let basis = Basis::covering(terms, limits.monomials)
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
    let sum = |basis: Basis, parts, counts, is_precise| {
        let (terms, factors) = (terms.clone(), Vec::new());
        Ok(Sum { terms, factors, basis, parts, counts, is_precise })
    };
    // Tangents in loops would keep sums of what is computed there from being found.
    let precise = |evaluator: &mut Evaluator<'_>, suspects: &Suspects| {
        let is_outside = draft.loop_around(region).is_none();
        let part = is_outside
            .then(|| precise_part(evaluator, &basis, variables, (count, first), suspects));
        let part = part.flatten();
        // The loop takes three steps for one where its derivatives are computed as well.
        let work = 3 * u64::from(count) * terms.steps.len() as u64;
        // Terms of a few iterations always have a valley, and are to be compared, too.
        part.filter(|(_, moments)| draft.all_forms || precise::cost(moments, &basis) <= work)
    };
    // Where forms are only compared with their loops, in twice the precision, a few points
    // tell enough of a frame.
    let how_large: HowLarge = if draft.all_forms { rough } else { worst };
    // A form in several variables has directions in which its parts cancel.
    let is_curved = terms.degree() > 1;
    let known_at = |around: &[u32], evaluator: &mut Evaluator<'_>| {
        suspects(terms, evaluator, &basis, limits, (count, around))
    };
    let mut known = None;
    if variables > 1 && counts.is_empty() {
        let known = known.insert(known_at(&[], &mut evaluator));
        // To look for a good frame takes long in many variables.
        let plain = (variables <= FEW).then(|| {
            let around = (&[][..], &*known);
            part(&mut evaluator, &basis, variables, (count, first), around, how_large)
        });
        let plain = plain.and_then(Result::ok);
        let is_calm = plain.as_ref().is_some_and(|(ratio, _)| *ratio <= CALM)
            && !precise::has_logarithm(draft, &terms.variables);
        let precise = if is_calm { None } else { precise(&mut evaluator, known) };
        let is_precise = precise.is_some();
        if let Some(part) = precise.or(plain.map(|(_, part)| part)) {
            return sum(basis.clone(), vec![part], counts, is_precise);
        }
    }
    let mut parts = Vec::new();
    let mut around = vec![0; counts.len()];
    loop {
        let known = known.take().unwrap_or_else(|| known_at(&around, &mut evaluator));
        let here = (around.as_slice(), &known);
        match part(&mut evaluator, &basis, variables, (count, first), here, how_large) {
            Ok((_, part)) => parts.push(part),
            Err(why) if variables > 1 && is_curved => return Err(why),
            Err(why) => {
                let part = precise(&mut evaluator, &known).ok_or(why)?;
                return sum(basis.clone(), vec![part], counts, true);
            }
        }
        let Some(next) = (0..counts.len()).rev().find(|&i| around[i] + 1 < counts[i]) else {
            break;
        };
        around[next] += 1;
        around[next + 1..].fill(0);
    }
    sum(basis.clone(), parts, counts, false)
}

/// Where the parts of forms of `count` iterations of `terms` may cancel, in these of the loops
/// around.
fn suspects(
    terms: &Terms,
    evaluator: &mut Evaluator<'_>,
    basis: &Basis,
    limits: &CloseLimits,
    (count, around): (u32, &[u32]),
) -> Suspects {
    let valleys = valleys(evaluator, basis, terms.variables.len(), count, around);
    Suspects { center: center(terms, limits.monomials, count, around), valleys }
}

/// A frame that is good for a form in pairs of numbers, with the moments
/// in it.
fn precise_part(
    evaluator: &mut Evaluator<'_>,
    basis: &Basis,
    variables: usize,
    (count, first): (u32, f64),
    suspects: &Suspects,
) -> Option<(Frame, Moments)> {
    // Far along a valley squares of what cancels have digits left in pairs, but no higher powers.
    let is_square = basis.monomials.iter().all(|monomial| monomial.iter().sum::<u32>() <= 2);
    if suspects.valleys.is_flat && !is_square {
        return None;
    }
    let suspects = &Suspects { center: suspects.center.clone(), ..Suspects::default() };
    let mut at = |frame: Frame| {
        let moments = evaluator.moments(first, &frame, count, &[])?;
        let mut sizes = moments.magnitudes.iter().chain(&frame.pivot);
        let fits = |size: &f64| *size == 0.0 || (1.0 / LARGE..LARGE).contains(&size.abs());
        sizes.all(fits).then_some((frame, moments))
    };
    let zero = at(Frame::at(vec![0.0; variables]))?;
    let vertex = condition::vertex(&zero.1, basis, variables);
    let others = pivots(&zero.1, basis, variables).into_iter().flatten();
    let mut best: Option<(f64, (Frame, Moments))> = None;
    let mut consider =
        |part: (Frame, Moments), at: &mut dyn FnMut(Frame) -> Option<(Frame, Moments)>| {
            let mut moments = |frame: &Frame| Some(at(frame.clone())?.1);
            if zeros::are_lost(basis, &part.0, &part.1, &mut moments) {
                return false;
            }
            let ratio = rough(&part.1, basis, &part.0, suspects);
            if best.as_ref().is_none_or(|(least, _)| ratio < *least) {
                best = Some((ratio, part));
            }
            ratio <= EASY
        };
    let mut is_good = |part: (Frame, Moments), at: &mut dyn FnMut(Frame) -> Option<_>| {
        let sheared = part.0.sheared(&part.1, basis);
        consider(part, at) || sheared.and_then(&mut *at).is_some_and(|part| consider(part, at))
    };
    let center = suspects.center.clone().and_then(|center| at(Frame::at(center)));
    let found = center.is_some_and(|part| is_good(part, &mut at))
        || vertex.into_iter().chain(others).any(|pivot| {
            let Some(part) = at(Frame::at(pivot)) else { return false };
            // Once more from there, where less cancels.
            let step = condition::vertex(&part.1, basis, variables);
            let next = step.map(|step| part.0.pivot.iter().zip(step).map(|(p, s)| p + s).collect());
            let part = next.and_then(|next| at(Frame::at(next))).unwrap_or(part);
            is_good(part, &mut at)
        });
    if !found {
        consider(zero, &mut at);
    }
    best.filter(|&(ratio, _)| ratio <= PRECISE).map(|(_, part)| part)
}

/// How large what a form adds up in a frame is, relative to what is good.
type HowLarge = fn(&Moments, &Basis, &Frame, &Suspects) -> f64;

/// A good frame, with the moments in it, and how large what is added up in it is, relative to
/// what is good.
fn part(
    evaluator: &mut Evaluator<'_>,
    basis: &Basis,
    variables: usize,
    (count, first): (u32, f64),
    (around, suspects): (&[u32], &Suspects),
    how_large: HowLarge,
) -> Result<(f64, (Frame, Moments)), String> {
    let mut at = |frame: &Frame| evaluator.moments(first, frame, count, around);
    let zero = Frame::at(vec![0.0; variables]);
    let raw = at(&zero).ok_or("its data are not finite, or their products are too small")?;
    let fits = |size: f64| size == 0.0 || (1.0 / LARGE..LARGE).contains(&size);
    if !raw.magnitudes.iter().copied().all(fits) {
        return Err("its data are too large or too small".to_owned());
    }
    if variables == 0 {
        return Ok((0.0, (zero, raw)));
    }
    if suspects.valleys.is_flat {
        return Err(
            "its form would lose digits where no term changes with its variables".to_owned()
        );
    }
    let mut least = f64::INFINITY;
    let kinds = pivots(&raw, basis, variables).into_iter().enumerate();
    let found = kinds.filter_map(|(kind, pivot)| Some((Some(kind), pivot?)));
    let found = found.map(|(kind, pivot)| (kind, Frame::at(pivot)));
    let center_frame = suspects.center.clone().map(|center| (None, Frame::at(center)));
    for (kind, mut frame) in found.chain(center_frame).chain([(None, zero)]) {
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
            if zeros::are_lost(basis, &frame, &moments, &mut at) {
                continue;
            }
            let ratio = how_large(&moments, basis, &frame, suspects);
            if ratio < least {
                least = ratio;
                best = Some((frame, moments));
            }
            if ratio <= GOOD {
                break;
            }
        }
        if let Some(best) = best.filter(|_| least <= 1.0) {
            return Ok((least, best));
        }
    }
    if least.is_infinite() {
        return Err(zeros::LOST.to_owned());
    }
    Err(format!("its form would lose digits ({least:.1} times as large as what is good)"))
}
