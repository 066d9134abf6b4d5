//! The range of the coefficients by which numbers of a system take part in each other.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashSet;

use super::emit::Emitter;
use super::form::{Base, Coefficient};
use super::power::System;
use super::range::{LEAST_ONCE, Products, UNDERFLOWS, least_of};
use super::terms::Terms;
use crate::op::Op;
use crate::phi::pair::{How, Pair, Pairs};

/// Couplings that are constants from here on make nothing almost zero.
const MODERATE: f64 = 0.0625;

/// A coefficient by which a number takes part in another one.
struct Coupling {
    to: usize,
    from: usize,
    pair: Pair,
    terms: Terms,
}

/// Collects what must not be almost zero of the couplings of `system`.
///
/// In powers of the map couplings that lead from one to the next are multiplied by each other
/// before they meet the powers of the numbers' own coefficients, which may be large: what has
/// lost digits by then is made large with them. A loop multiplies by both in turn.
///
/// # Errors
///
/// That one is known to be almost zero.
pub(super) fn collect_couplings(
    emitter: &mut Emitter<'_>,
    system: &System,
    products: &mut Products,
) -> Result<(), &'static str> {
    let couplings = couplings(emitter, system);
    couplings.iter().for_each(|coupling| require_powers_of(emitter, coupling.pair));
    let may_vanish = |coupling: &&Coupling| may_vanish(emitter, system, coupling);
    let small: Vec<&Coupling> = couplings.iter().filter(may_vanish).collect();
    if small.is_empty() {
        return Ok(());
    }
    // No way through the numbers enters or leaves one of them twice.
    let entered: BTreeSet<usize> = small.iter().map(|coupling| coupling.to).collect();
    let left: BTreeSet<usize> = small.iter().map(|coupling| coupling.from).collect();
    let most = entered.len().min(left.len()).min(system.states.len() - 1);
    // Of the derivative by a coefficient the ways to it and from it are two, which may be the same.
    let ways = if has_cycle(&couplings) { 2 } else { 1 };
    let least = match most * ways {
        1 => LEAST_ONCE,
        meeting => least_of(meeting as u64),
    };
    for Coupling { pair, terms, .. } in small {
        let powers = match terms.single() {
            Some(([], number)) if number.high.abs() < least => return Err(UNDERFLOWS),
            Some(([], _)) => continue,
            Some((powers, number)) if number.high.abs() == 1.0 => powers.to_vec(),
            _ => vec![(pair.high, 1)],
        };
        let known = products.entry(powers).or_insert((None, least));
        known.1 = known.1.max(least);
    }
    Ok(())
}

/// Stops the graph where powers that inner loops came to, and of which `pair` is a multiple, have
/// vanished: what else they are multiplied by may be large, and so may what an outer loop makes of
/// it. The same goes for all terms of a sum if each of them is such a multiple; where something else
/// is added, that is what is left.
pub(super) fn require_powers_of(emitter: &mut Emitter<'_>, pair: Pair) {
    for power in powers_of(emitter, pair) {
        let Some(size) = emitter.scaled_size(&[(power.high, 1)], LEAST_ONCE) else { continue };
        let one = emitter.constant(1.0);
        let condition = emitter.apply(Op::Ge, &[size, one]);
        emitter.require(condition);
    }
}

/// The powers that `pair` is a multiple of, or all terms of it.
fn powers_of(emitter: &Emitter<'_>, pair: Pair) -> Vec<Pair> {
    let (mut seen, mut pending, mut powers) = (HashSet::new(), vec![pair], Vec::new());
    while let Some(pair) = pending.pop() {
        if !seen.insert(pair) {
            continue;
        }
        if is_power(emitter, pair) {
            powers.push(pair);
        } else if let (None, Some((_, How::Sum(..)))) = (emitter.told(pair), emitter.origin(pair)) {
            let terms = summands(emitter, pair);
            if terms.iter().all(|&term| has_power(emitter, term)) {
                pending.extend(terms);
            }
        } else {
            pending.extend(factors(emitter, pair));
        }
    }
    powers
}

/// Whether an inner loop, which only multiplied, came to `pair`.
fn is_power(emitter: &Emitter<'_>, pair: Pair) -> bool {
    emitter.told(pair).is_some_and(|told| told.factors.is_some())
}

/// Whether `pair` is a multiple of a power.
fn has_power(emitter: &Emitter<'_>, pair: Pair) -> bool {
    let (mut seen, mut pending) = (HashSet::new(), vec![pair]);
    while let Some(pair) = pending.pop() {
        if is_power(emitter, pair) {
            return true;
        }
        if seen.insert(pair) {
            pending.extend(factors(emitter, pair));
        }
    }
    false
}

/// What `pair` was multiplied of, if it was.
fn factors(emitter: &Emitter<'_>, pair: Pair) -> Vec<Pair> {
    match (emitter.told(pair), emitter.origin(pair)) {
        (None, Some((_, How::Product(a, b)))) => vec![a, b],
        (None, Some((_, How::Quotient(a, _)))) => vec![a],
        _ => Vec::new(),
    }
}

/// The terms of the sum that `pair` is.
fn summands(emitter: &Emitter<'_>, pair: Pair) -> Vec<Pair> {
    let (mut seen, mut pending, mut terms) = (HashSet::new(), vec![pair], Vec::new());
    while let Some(pair) = pending.pop() {
        if !seen.insert(pair) {
            continue;
        }
        match (emitter.told(pair), emitter.origin(pair)) {
            (None, Some((_, How::Sum(a, b)))) => pending.extend([a, b]),
            _ => terms.push(pair),
        }
    }
    terms
}

/// The couplings of `system` that are not zero.
fn couplings(emitter: &Emitter<'_>, system: &System) -> Vec<Coupling> {
    let mut couplings = Vec::new();
    for (&to, row) in system.states.iter().zip(&system.rows) {
        for (base, coefficient) in row {
            if let (&Base::State(from), &Coefficient::Fixed(pair)) = (base, coefficient)
                && from != to
            {
                let terms = terms(emitter, pair);
                if !terms.is_zero() {
                    couplings.push(Coupling { to, from, pair, terms });
                }
            }
        }
    }
    couplings
}

fn terms(emitter: &Emitter<'_>, pair: Pair) -> Terms {
    Terms::of(emitter, pair).unwrap_or_else(|| Terms::node(pair.high))
}

/// Whether `coupling` may be almost zero where the numbers' own coefficients are not.
fn may_vanish(emitter: &Emitter<'_>, system: &System, coupling: &Coupling) -> bool {
    let is_moderate = |terms: &Terms| {
        let single = terms.single();
        single.is_some_and(|(powers, number)| powers.is_empty() && number.high.abs() >= MODERATE)
    };
    if is_moderate(&coupling.terms) {
        return false;
    }
    // A number that is added after it was multiplied: it has vanished itself by then.
    let mut rows = system.states.iter().zip(&system.rows);
    let own = rows.find(|&(&state, _)| state == coupling.from);
    match own.and_then(|(_, row)| row.get(&Base::State(coupling.from))) {
        Some(&Coefficient::Fixed(pair)) => {
            let quotient = coupling.terms.quotient(&terms(emitter, pair));
            !quotient.is_some_and(|quotient| is_moderate(&quotient))
        }
        _ => true,
    }
}

/// Whether couplings lead from a number back to it.
fn has_cycle(couplings: &[Coupling]) -> bool {
    let mut entered: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for coupling in couplings {
        entered.entry(coupling.to).or_default().insert(coupling.from);
    }
    // Numbers that nothing enters, or only what has been taken out, are taken out.
    loop {
        let before = entered.len();
        let kept: BTreeSet<usize> = entered.keys().copied().collect();
        entered.retain(|_, from| from.iter().any(|from| kept.contains(from)));
        if entered.len() == before {
            return before > 0;
        }
    }
}
