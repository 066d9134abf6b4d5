//! What an affine recurrence comes to after a number of steps.

use std::collections::BTreeSet;

use super::binary;
use super::doubling::{derived_by, digits};
use super::emit::Emitter;
use super::folded::folded;
use super::form::{Affine, Base, CHANGES, Coefficient, Forms};
use super::single::changed;
use super::start::Start;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::Node;

/// A linear map of columns to rows; what is missing is zero by structure.
pub(super) type Matrix<T> = Vec<Vec<Option<T>>>;

/// Straight code of a closed form has no more steps: it takes time to compile, and room.
/// Beyond that a loop goes through the digits of the number of steps.
const STRAIGHT: usize = 1 << 17;
/// The body of that loop has no more steps.
const BODY: usize = 1 << 15;
const MADE: &str = "its coefficients are made of too many values";
pub(super) const COSTS: &str = "its closed form would cost more than the loop";
pub(super) const OVERFLOWS: &str = "the powers of its coefficients are not finite";

/// A system of recurrences: its next state as a function of its state.
pub(super) struct System {
    /// Its states, by their numbers among those of the loop.
    pub(super) states: Vec<usize>,
    pub(super) rows: Vec<Affine>,
    pub(super) firsts: Vec<Node>,
}

impl System {
    /// What a step makes of its only number, if it has one, and coefficients that do not change.
    pub(super) fn only_row(&self) -> Option<&Affine> {
        let [row] = &self.rows[..] else { return None };
        self.is_fixed().then_some(row)
    }

    /// Whether its coefficients are the same in all steps.
    pub(super) fn is_fixed(&self) -> bool {
        let mut coefficients = self.rows.iter().flat_map(|row| row.values());
        coefficients.all(|coefficient| matches!(coefficient, Coefficient::Fixed(_)))
    }
}

/// Which states are wanted, and what they may cost.
pub(super) struct Wanted<'a> {
    pub(super) states: &'a BTreeSet<usize>,
    /// About how many steps a closed form with derivatives of twice the precision may have: one that
    /// is known beforehand to have many more is not made.
    pub(super) most: usize,
}

impl Wanted<'_> {
    /// Whether so many binary digits of a number of steps of `system` may be not too much.
    pub(super) fn allows(&self, system: &System, digits: u32) -> bool {
        // What is zero in a matrix costs nothing.
        digits as usize * self.steps_of_digit(system) <= 4 * self.most
    }

    /// Whether so many digits are not too much for a loop that goes through them.
    fn allows_loop(&self, system: &System, digits: u32) -> bool {
        let steps = self.steps_of_digit(system);
        steps <= BODY && digits as usize * steps <= self.most
    }

    /// About how many steps a digit costs at most.
    fn steps_of_digit(&self, system: &System) -> usize {
        let is_wanted = |state: &&usize| self.states.contains(*state);
        let wanted = system.states.iter().filter(is_wanted).count();
        let mut bases = system.rows.iter().flat_map(|row| row.keys());
        let has_offset = bases.any(|base| matches!(base, Base::Node(_)));
        steps_of_digit(system.states.len(), wanted, has_offset)
    }
}

/// The states after `times` steps, at most those of the forms, one node for each. Of
/// those that are not `wanted` it may be any.
pub(super) fn advanced(
    forms: &mut Forms<'_, '_>,
    system: &System,
    times: usize,
    wanted: &Wanted<'_>,
) -> Result<Vec<Node>, &'static str> {
    if times == 0 {
        return Ok(system.firsts.clone());
    }
    let known = folded(forms, system, times, wanted)?;
    if known.is_none() {
        forms.require_range(system)?;
    }
    let nodes = match known {
        Some(nodes) => nodes,
        None if !system.is_fixed() => return Err(CHANGES),
        None => match changed(forms, system, times) {
            Some(nodes) => nodes?,
            None => derived(forms.emitter, system, times, wanted)?,
        },
    };
    // Powers may overflow where the loop does not, and what comes of that must decide
    // nothing: such calls are the tape's.
    nodes.iter().for_each(|&node| forms.emitter.require_finite(node));
    if forms.emitter.overflows { Err(OVERFLOWS) } else { Ok(nodes) }
}

/// The result of several numbers, with derivatives of twice the precision.
///
/// # Errors
///
/// Why not: mostly because it would cost too much.
fn derived(
    emitter: &mut Emitter<'_>,
    system: &System,
    times: usize,
    wanted: &Wanted<'_>,
) -> Result<Vec<Node>, &'static str> {
    let count = u32::try_from(times).map_err(|_| COSTS)?;
    if system.states.len() < 2 || !wanted.allows(system, times.ilog2()) {
        return Err(COSTS);
    }
    let before = emitter.items.len();
    let number = emitter.constant(times as f64);
    let start = Start::of(emitter, system, number, wanted.states).ok_or(MADE)?;
    let (begun, overflows) = (emitter.items.len(), emitter.overflows);
    let straight = binary::after(emitter, &start, times, wanted.most.min(STRAIGHT));
    let nodes = match straight {
        Some(ends) => {
            let mut nodes = system.firsts.clone();
            ends.into_iter().for_each(|(number, node)| nodes[number] = node);
            nodes
        }
        None => {
            emitter.forget(begun);
            emitter.overflows = overflows;
            if !wanted.allows_loop(system, digits(count)) {
                emitter.forget(before);
                return Err(COSTS);
            }
            derived_by(emitter, &start, &system.firsts, number, count)
        }
    };
    emitter.prune(before, &nodes);
    emitter.derived += emitter.items.len() - before;
    Ok(nodes)
}

/// The coefficients of states in `row`, of a system whose coefficients do not change.
pub(super) fn linear_part(system: &System, row: &Affine) -> Vec<Option<Pair>> {
    let pair = |&state: &usize| match row.get(&Base::State(state)) {
        Some(Coefficient::Fixed(pair)) => Some(*pair),
        _ => None,
    };
    system.states.iter().map(pair).collect()
}

/// The same of what is added.
pub(super) fn offset(emitter: &mut Emitter<'_>, row: &Affine) -> Option<Pair> {
    let mut sum = None;
    for (base, coefficient) in row {
        if let (Base::Node(node), Coefficient::Fixed(pair)) = (base, coefficient) {
            let product = emitter.product(*pair, (*node).into());
            sum = emitter.sum(sum, Some(product));
        }
    }
    sum
}

/// About how many steps one digit of a number of steps costs, for a system of `size`
/// numbers of which so many are wanted.
fn steps_of_digit(size: usize, wanted: usize, has_offset: bool) -> usize {
    /// A product of pairs that is added to others.
    const PRODUCT: usize = 14;
    let (square, cube) = (size * size, size * size * size);
    let added = if has_offset { square + wanted * 2 * square } else { 0 };
    // Every other digit is followed by a single step.
    let doubled = cube + wanted * 3 * cube / 2;
    let stepped = cube + wanted * (cube + square);
    PRODUCT * (doubled + added + (stepped + added) / 2)
}
