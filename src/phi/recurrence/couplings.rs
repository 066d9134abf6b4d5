//! The range of the coefficients by which numbers of a system take part in each other.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashSet;
use smallvec::{SmallVec, smallvec};

use super::emit::Emitter;
use super::form::{Base, Coefficient};
use super::power::{System, linear_part, offset};
use super::products::Row;
use super::range::{LEAST_ONCE, MOST_FACTORS, Products, UNDERFLOWS, least_of};
use super::sizes::total_size;
use super::terms::Terms;
use crate::op::Op;
use crate::phi::pair::{How, Pair, Pairs};
use crate::ssa::{MODERATE, Node};

/// Couplings that are constants from here on make nothing almost zero.
const LEAST_CONSTANT: f64 = 0.0625;

/// 2⁹⁰⁰. By less than so many times the others of a sum a power of 2⁻¹⁰⁰⁰ is multiplied to be
/// nothing next to them.
const MOST_OF_OTHERS: f64 = f64::from_bits(0x7830_0000_0000_0000);

/// 2²⁵⁶. By less a loop makes larger what is to be nothing.
const MOST_GROWTH: f64 = f64::from_bits(0x4FF0_0000_0000_0000);

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
        let mut least = least;
        let powers = match terms.single() {
            Some(([], number)) if number.high.abs() < least => return Err(UNDERFLOWS),
            Some(([], _)) => continue,
            Some((powers, number)) if terms.degree() <= MOST_FACTORS => {
                least /= number.high.abs().min(1.0);
                powers.to_vec()
            }
            _ => vec![(pair.high, 1)],
        };
        let known = products.entry(powers).or_insert((None, least));
        known.1 = known.1.max(least);
    }
    Ok(())
}

/// Stops the graph where powers that inner loops came to, and that coefficients or summands of
/// `system` are made of, have vanished, but what they are multiplied by may be large, and so may what
/// an outer loop of so many `steps` makes of that.
pub(super) fn require_powers(emitter: &mut Emitter<'_>, system: &System, steps: usize) {
    let mut coefficients = system.rows.iter().flat_map(|row| row.values());
    let is_told = |coefficient: &Coefficient| match *coefficient {
        Coefficient::Fixed(pair) => emitter.is_made_of_told(pair),
        _ => false,
    };
    if !coefficients.any(is_told) {
        return;
    }
    let most = most_beside(emitter, system, steps);
    for (&state, row) in system.states.iter().zip(&system.rows) {
        for (&base, coefficient) in row {
            if let (&Base::State(from), &Coefficient::Fixed(pair)) = (&base, coefficient) {
                // The number itself vanishes with it.
                require_powers_of(emitter, pair, most, from == state);
            }
        }
        let added = offset(emitter, row);
        added.into_iter().for_each(|added| require_powers_of(emitter, added, most, false));
    }
}

/// What a power that has vanished may be multiplied by, where something else is left, so that it is
/// nothing; less than zero, so that it never is, if so many `steps` may make much of it.
fn most_beside(emitter: &mut Emitter<'_>, system: &System, steps: usize) -> Node {
    let limit = emitter.constant(MOST_GROWTH.powf(1.0 / steps.max(1) as f64));
    let (moderate, less) = (emitter.constant(MODERATE), emitter.constant(-1.0));
    // Without a cycle numbers grow by their own coefficients alone.
    let is_cyclic = has_cycle(&couplings(emitter, system));
    let mut most = moderate;
    for (number, row) in system.rows.iter().enumerate() {
        let mut others = linear_part(system, row);
        let growing = match is_cyclic {
            true => core::mem::take(&mut others),
            false => vec![others[number].take()],
        };
        for (sizes, limit) in [(growing, limit), (others, moderate)] {
            let size = total_size(emitter, &sizes);
            let is_small = emitter.apply(Op::Le, &[size, limit]);
            most = emitter.apply(Op::Select, &[is_small, most, less]);
        }
    }
    most
}

/// [`require_powers`] of `pair` alone, where powers may be multiplied by `most`. Next to the others
/// of a sum that are not small a term may be nothing; `is_own` says that the whole may be.
fn require_powers_of(emitter: &mut Emitter<'_>, pair: Pair, most: Node, is_own: bool) {
    // What sums are multiplied by outside of them, if that is known.
    let one = emitter.constant(1.0);
    let (mut seen, mut pending) = (HashSet::new(), vec![(pair, Some(one), is_own)]);
    while let Some((sum, outer, is_own)) = pending.pop() {
        if !seen.insert(sum) {
            continue;
        }
        let (mut others, mut powers) = (Row::new(), Vec::new());
        for term in summands(emitter, sum) {
            let before = powers.len();
            for factor in factors(emitter, term) {
                if is_power(emitter, factor) {
                    powers.push((term, factor));
                } else if matches!(emitter.made_of(factor), Some(How::Sum(..))) {
                    let own = outer.and_then(|outer| cofactor(emitter, term, factor, outer));
                    pending.push((factor, own, false));
                }
            }
            if powers.len() == before {
                others.push(Some(term));
            }
        }
        for (term, power) in powers {
            let whole = outer.and_then(|outer| cofactor(emitter, term, power, outer));
            let mut limits: Vec<(Node, Node)> =
                whole.map(|whole| (whole, most)).into_iter().collect();
            if !is_own {
                let size = total_size(emitter, &others);
                let scale = emitter.constant(MOST_OF_OTHERS);
                let of_others = emitter.apply(Op::Mul, &[size, scale]);
                let own = cofactor(emitter, term, power, one);
                limits.extend(own.map(|own| (own, of_others)));
            }
            // Alone it is all that there is.
            let is_beside = is_own || !others.is_empty();
            let limits = limits.as_slice();
            let limits = if is_beside && whole.is_some() { limits } else { &[] };
            require_power(emitter, power, limits);
        }
    }
}

/// Stops the graph where `power` has vanished, unless there are `limits`, and each first number is
/// within the second one.
fn require_power(emitter: &mut Emitter<'_>, power: Pair, limits: &[(Node, Node)]) {
    let Some(size) = emitter.scaled_size(&[(power.high, 1)], LEAST_ONCE) else { return };
    let one = emitter.constant(1.0);
    let is_nothing = limits.iter().fold(None, |all, &(factor, most)| {
        let factor = emitter.apply(Op::Abs, &[factor]);
        let is_within = emitter.apply(Op::Le, &[factor, most]);
        Some(all.map_or(is_within, |all| emitter.apply(Op::Min, &[all, is_within])))
    });
    let mut is_known = emitter.apply(Op::Ge, &[size, one]);
    if let Some(is_nothing) = is_nothing {
        is_known = emitter.apply(Op::Max, &[is_known, is_nothing]);
    }
    emitter.require(is_known);
}

/// What `term` was multiplied of.
fn factors(emitter: &Emitter<'_>, term: Pair) -> Vec<Pair> {
    parts(emitter, term, |how| match how {
        How::Product(a, b) => smallvec![a, b],
        How::Quotient(a, _) => smallvec![a],
        How::Sum(..) => smallvec![],
    })
}

/// What `part` is multiplied by in `term`, and that by `outer`; `None` if that are too many factors.
fn cofactor(emitter: &mut Emitter<'_>, term: Pair, part: Pair, outer: Node) -> Option<Node> {
    let (mut pending, mut all) = (vec![term], Vec::new());
    let mut is_found = false;
    while let Some(pair) = pending.pop() {
        if pair == part && !is_found {
            is_found = true;
            continue;
        }
        match emitter.made_of(pair) {
            Some(How::Product(a, b)) => pending.extend([a, b]),
            Some(How::Quotient(a, b)) => {
                pending.push(a);
                all.push((Op::Div, b));
            }
            _ => all.push((Op::Mul, pair.high)),
        }
        if all.len() + pending.len() > MOST_FACTORS as usize {
            return None;
        }
    }
    Some(all.into_iter().fold(outer, |product, (op, factor)| emitter.apply(op, &[product, factor])))
}

/// The terms of the sum that `pair` is.
fn summands(emitter: &Emitter<'_>, pair: Pair) -> Vec<Pair> {
    parts(emitter, pair, |how| match how {
        How::Sum(a, b) => smallvec![a, b],
        How::Product(..) | How::Quotient(..) => smallvec![],
    })
}

/// What `whole` was made of, each once; what `split` makes nothing of is a part.
fn parts(
    emitter: &Emitter<'_>,
    whole: Pair,
    split: impl Fn(How) -> SmallVec<[Pair; 2]>,
) -> Vec<Pair> {
    let (mut seen, mut pending, mut parts) = (HashSet::new(), vec![whole], Vec::new());
    while let Some(pair) = pending.pop() {
        if !seen.insert(pair) {
            continue;
        }
        let made_of = emitter.made_of(pair).map(&split).unwrap_or_default();
        match made_of.is_empty() {
            true => parts.push(pair),
            false => pending.extend(made_of),
        }
    }
    parts
}

/// Whether `pair` is what an inner loop multiplied by.
fn is_power(emitter: &Emitter<'_>, pair: Pair) -> bool {
    emitter.told(pair).is_some_and(|told| told.factors.is_some())
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
        single.is_some_and(|(powers, number)| {
            powers.is_empty() && number.high.abs() >= LEAST_CONSTANT
        })
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
