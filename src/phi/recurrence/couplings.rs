//! The range of the coefficients by which numbers of a system take part in each other.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashSet;

use super::emit::Emitter;
use super::form::{Base, Coefficient};
use super::power::{System, offset};
use super::products::Row;
use super::range::{LEAST_ONCE, Products, UNDERFLOWS, least_of};
use super::sizes::total_size;
use super::terms::Terms;
use crate::op::Op;
use crate::phi::pair::{How, Pair, Pairs};
use crate::ssa::Node;

/// Couplings that are constants from here on make nothing almost zero.
const LEAST_CONSTANT: f64 = 0.0625;

/// 2⁻⁹³⁶. A term is nothing next to 2⁶⁴ times as much as it would be with a power of 2⁻¹⁰⁰⁰.
const MOST_OF_TERM: f64 = f64::from_bits(0x0570_0000_0000_0000);

/// 2⁻⁸⁰⁸, that many times 2¹²⁸: by less the number itself vanishes in one step.
const LEAST_OWN: f64 = f64::from_bits(0x0D70_0000_0000_0000);

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
            Some((powers, number)) => {
                least /= number.high.abs().min(1.0);
                powers.to_vec()
            }
            None => vec![(pair.high, 1)],
        };
        let known = products.entry(powers).or_insert((None, least));
        known.1 = known.1.max(least);
    }
    Ok(())
}

/// Stops the graph where powers that inner loops came to, and that coefficients or summands of
/// `system` are made of, have vanished, but what they are multiplied by may be large, and so may what
/// an outer loop makes of that.
pub(super) fn require_powers(emitter: &mut Emitter<'_>, system: &System) {
    for (&state, row) in system.states.iter().zip(&system.rows) {
        for (&base, coefficient) in row {
            if let (&Base::State(from), &Coefficient::Fixed(pair)) = (&base, coefficient) {
                // The number itself vanishes with it.
                let nothing = (from == state).then_some(LEAST_OWN);
                require_powers_of(emitter, pair, nothing);
            }
        }
        let added = offset(emitter, row);
        added.into_iter().for_each(|added| require_powers_of(emitter, added, None));
    }
}

/// The same of `pair` alone; if it is no more than `nothing`, that is no matter.
fn require_powers_of(emitter: &mut Emitter<'_>, pair: Pair, nothing: Option<f64>) {
    let (mut seen, mut pending) = (HashSet::new(), vec![(pair, nothing)]);
    while let Some((sum, nothing)) = pending.pop() {
        if !seen.insert(sum) {
            continue;
        }
        let terms = summands(emitter, sum).into_iter().map(|term| (term, factors(emitter, term)));
        let terms: Vec<(Pair, Vec<Pair>)> = terms.collect();
        let powers = |emitter: &Emitter<'_>, factors: &[Pair]| -> Vec<Pair> {
            factors.iter().copied().filter(|&factor| is_power(emitter, factor)).collect()
        };
        // Next to the others of a sum a term may be nothing.
        let others = terms.iter().filter(|(_, factors)| powers(emitter, factors).is_empty());
        let others: Row = others.map(|&(term, _)| Some(term)).collect();
        for (term, factors) in &terms {
            for power in powers(emitter, factors) {
                let mut least = (!others.is_empty()).then(|| total_size(emitter, &others));
                if let Some(nothing) = nothing {
                    let nothing = emitter.constant(nothing);
                    let either = |least| emitter.apply(Op::Max, &[least, nothing]);
                    least = Some(least.map_or(nothing, either));
                }
                require_power(emitter, power, (*term, least));
            }
            let is_sum = |&&factor: &&Pair| matches!(emitter.made_of(factor), Some(How::Sum(..)));
            pending.extend(factors.iter().filter(is_sum).map(|&factor| (factor, None)));
        }
    }
}

/// Stops the graph where `power` has vanished, but `term`, which is a multiple of it, might be more
/// than nothing next to `least`.
fn require_power(emitter: &mut Emitter<'_>, power: Pair, (term, least): (Pair, Option<Node>)) {
    let Some(size) = emitter.scaled_size(&[(power.high, 1)], LEAST_ONCE) else { return };
    let one = emitter.constant(1.0);
    let mut is_known = emitter.apply(Op::Ge, &[size, one]);
    if let Some(least) = least {
        let (most, factor) = (emitter.constant(MOST_OF_TERM), cofactor(emitter, term, power));
        let most = emitter.apply(Op::Mul, &[factor, most]);
        let most = emitter.apply(Op::Abs, &[most]);
        let is_nothing = emitter.apply(Op::Le, &[most, least]);
        is_known = emitter.apply(Op::Max, &[is_known, is_nothing]);
    }
    emitter.require(is_known);
}

/// What `term` was multiplied of.
fn factors(emitter: &Emitter<'_>, term: Pair) -> Vec<Pair> {
    let (mut seen, mut pending, mut factors) = (HashSet::new(), vec![term], Vec::new());
    while let Some(pair) = pending.pop() {
        if !seen.insert(pair) {
            continue;
        }
        match emitter.made_of(pair) {
            Some(How::Product(a, b)) => pending.extend([a, b]),
            Some(How::Quotient(a, _)) => pending.push(a),
            _ => factors.push(pair),
        }
    }
    factors
}

/// What `power` is multiplied by in `term`.
fn cofactor(emitter: &mut Emitter<'_>, term: Pair, power: Pair) -> Node {
    let (mut product, mut pending) = (emitter.constant(1.0), vec![term]);
    while let Some(pair) = pending.pop() {
        match emitter.made_of(pair) {
            _ if pair == power => {}
            Some(How::Product(a, b)) => pending.extend([a, b]),
            Some(How::Quotient(a, b)) => {
                pending.push(a);
                product = emitter.apply(Op::Div, &[product, b]);
            }
            _ => product = emitter.apply(Op::Mul, &[product, pair.high]),
        }
    }
    product
}

/// The terms of the sum that `pair` is.
fn summands(emitter: &Emitter<'_>, pair: Pair) -> Vec<Pair> {
    let (mut seen, mut pending, mut terms) = (HashSet::new(), vec![pair], Vec::new());
    while let Some(pair) = pending.pop() {
        if !seen.insert(pair) {
            continue;
        }
        match emitter.made_of(pair) {
            Some(How::Sum(a, b)) => pending.extend([a, b]),
            _ => terms.push(pair),
        }
    }
    terms
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
