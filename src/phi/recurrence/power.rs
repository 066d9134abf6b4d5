//! What an affine recurrence comes to after a number of steps.

use std::collections::BTreeSet;

use super::binary;
use super::doubling::{derived_by, digits};
use super::doubt::{Doubt, checked};
use super::emit::Emitter;
use super::form::{Affine, Base, CHANGES, Coefficient, Forms};
use super::jet::{Start, steps_of_digit};
use super::products::{Row, size_of};
use super::single::changed;
use crate::op::Op;
use crate::phi::double::Double;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::Node;

/// A linear map of columns to rows; what is missing is zero by structure.
pub(super) type Matrix<T> = Vec<Vec<Option<T>>>;

/// Constants nearer to zero than this may have lost digits to underflow.
const LEAST: f64 = 1e-270;

/// Powers larger than this are not multiplied by the start of a single number: at a
/// fixed point all digits of the product would cancel.
const CANCELING: f64 = 1e6;

/// So many products are computed at most where coefficients change: some tenths
/// of a second.
const MOST_PRODUCTS: usize = 1 << 24;

/// Straight code of a closed form has no more steps: it takes time to compile, and room.
/// Beyond that a loop goes through the digits of the number of steps.
const STRAIGHT: usize = 1 << 17;
/// The body of that loop has no more steps.
const BODY: usize = 1 << 15;
const MADE: &str = "its coefficients are made of too many values";
pub(super) const COSTS: &str = "its closed form would cost more than the loop";
const OVERFLOWS: &str = "the powers of its coefficients are not finite";
const CANCELS: &str = "its numbers cancel where powers of its coefficients do not";
const UNDERFLOWS: &str = "the products of its coefficients underflow";

/// A system of recurrences: its next state as a function of its state.
pub(super) struct System {
    /// Its states, by their numbers among those of the loop.
    pub(super) states: Vec<usize>,
    pub(super) rows: Vec<Affine>,
    pub(super) firsts: Vec<Node>,
}

/// Which states are wanted, and what they may cost.
pub(super) struct Wanted<'a> {
    pub(super) states: &'a BTreeSet<usize>,
    /// Closed forms with derivatives of twice the precision have no more steps than this.
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
    let known = numeric(forms, system, times, wanted)?;
    if known.is_none() {
        forms.require_moderate(system);
    }
    let nodes = match known {
        Some(nodes) => nodes,
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

/// The nodes, other than states, that the rows refer to.
fn bases(system: &System) -> Vec<Node> {
    let all = system.rows.iter().flat_map(|row| row.keys());
    let nodes = all.filter_map(|base| match base {
        Base::Node(node) => Some(*node),
        Base::State(_) => None,
    });
    nodes.collect::<BTreeSet<Node>>().into_iter().collect()
}

fn column(system: &System, bases: &[Node], base: Base) -> Option<usize> {
    match base {
        Base::State(state) => system.states.iter().position(|&other| other == state),
        Base::Node(node) => {
            bases.iter().position(|&other| other == node).map(|at| at + system.states.len())
        }
    }
}

/// Where a coefficient comes from.
#[derive(Clone, Copy)]
enum Source<'a> {
    Number(Double),
    Table(&'a [Double]),
}

/// The result where all coefficients are known: they are composed here, and
/// what is left is one linear combination. `None` if not all are known.
fn numeric(
    forms: &mut Forms<'_, '_>,
    system: &System,
    times: usize,
    wanted: &Wanted<'_>,
) -> Result<Option<Vec<Node>>, &'static str> {
    let (size, bases) = (system.states.len(), bases(system));
    let width = size + bases.len();
    let mut changes = false;
    for coefficient in system.rows.iter().flat_map(|row| row.values()) {
        match coefficient {
            Coefficient::Table(_) => changes = true,
            Coefficient::Fixed(pair) if forms.number(*pair).is_some() => {}
            Coefficient::Fixed(_) | Coefficient::Polynomial(_) => {
                let is_fixed = |c: &Coefficient| matches!(c, Coefficient::Fixed(_));
                let fixed = system.rows.iter().flat_map(|row| row.values()).all(is_fixed);
                return if fixed { Ok(None) } else { Err(CHANGES) };
            }
        }
    }
    if changes && times.saturating_mul(size * size * width) > MOST_PRODUCTS {
        return Err("it has too many iterations to be folded");
    }
    let mut sources: Vec<Vec<(usize, Source<'_>)>> = Vec::with_capacity(size);
    for row in &system.rows {
        let places = row.iter().filter_map(|(&base, coefficient)| {
            let source = match coefficient {
                Coefficient::Table(table) => Source::Table(table),
                Coefficient::Fixed(pair) => Source::Number(forms.number(*pair)?),
                Coefficient::Polynomial(_) => return None,
            };
            column(system, &bases, base).map(|column| (column, source))
        });
        sources.push(places.collect());
    }
    let step = |i: usize| -> Matrix<Double> {
        let row = |places: &Vec<(usize, Source<'_>)>| {
            let mut numbers = vec![None; width];
            for &(column, source) in places {
                numbers[column] = match source {
                    Source::Table(table) => table.get(i).copied(),
                    Source::Number(number) => Some(number),
                };
            }
            numbers
        };
        sources.iter().map(row).collect()
    };
    let (earlier, total) = if changes {
        let (mut earlier, mut total) = (step(0), step(0));
        for i in 1..times {
            if i == times / 2 {
                earlier = total.clone();
            }
            total = composed(&step(i), &total);
        }
        (earlier, total)
    } else {
        // From the first digit on, so that what is before the last one is of half the steps.
        let (one, mut total) = (step(0), step(0));
        let mut earlier = total.clone();
        for digit in (0..times.ilog2()).rev() {
            earlier = total;
            total = composed(&earlier, &earlier);
            if times >> digit & 1 == 1 {
                total = composed(&one, &total);
            }
        }
        (earlier, total)
    };
    if let ([row], false) = (&total[..], changes)
        && row[0].is_some_and(|power| power.high.abs() > CANCELING)
    {
        return Ok(None);
    }
    let numbers = || total.iter().flatten().flatten();
    let in_range = |number: &Double| number.is_finite() && number.high.abs() >= LEAST;
    if !changes && !numbers().all(in_range) {
        // In steps the numbers stay in range, if those of the loop do.
        return Ok(None);
    }
    if numbers().any(|number| number.high.is_infinite()) {
        return Err(OVERFLOWS);
    }
    if !numbers().all(|number| number.high == 0.0 || in_range(number)) {
        return Err(UNDERFLOWS);
    }
    let mut largest = step(0);
    for i in 1..if changes { times } else { 1 } {
        for (largest, entry) in largest.iter_mut().flatten().zip(step(i).into_iter().flatten()) {
            if entry
                .is_some_and(|entry| largest.is_none_or(|own| own.high.abs() < entry.high.abs()))
            {
                *largest = entry;
            }
        }
    }
    let maps = [&largest, &earlier, &total];
    combine(forms.emitter, system, maps, (&bases, times), wanted).map(Some)
}

/// The states that `total`, a map of columns to rows, leads to after so many `times`; `step` is the
/// largest that one is, and `earlier` the map of half as many.
fn combine(
    emitter: &mut Emitter<'_>,
    system: &System,
    [step, earlier, total]: [&Matrix<Double>; 3],
    (bases, times): (&[Node], usize),
    wanted: &Wanted<'_>,
) -> Result<Vec<Node>, &'static str> {
    let size = total.len();
    let steps = emitter.constant(times as f64);
    let doubt = {
        let [map, earlier, power] = [step, earlier, total].map(|map| -> Matrix<Pair> {
            map.iter().map(|row| rough(emitter, &row[..size])).collect()
        });
        let first: Row = system.firsts.iter().map(|&first| Some(first.into())).collect();
        let mut change = Row::new();
        for row in step {
            let mut terms = Row::new();
            for (factor, &node) in rough(emitter, &row[size..]).into_iter().zip(bases) {
                terms
                    .push(factor.map(|factor| emitter.apply(Op::Mul, &[factor.high, node]).into()));
            }
            change.push(Some(size_of(emitter, &terms).into()));
        }
        Doubt::of(emitter, &map, [&earlier, &power], steps, [&first, &change])
    };
    let columns: Vec<Node> = system.firsts.iter().chain(bases).copied().collect();
    let mut ends = Vec::new();
    for (number, (row, state)) in total.iter().zip(&system.states).enumerate() {
        let mut sum = None;
        for (column, (entry, &node)) in row.iter().zip(&columns).enumerate() {
            let Some(entry) = entry else { continue };
            let least = match column < size {
                true => doubt.by_start(number, column),
                false => {
                    let added: Vec<_> = step.iter().map(|row| row[column]).collect();
                    let added = rough(emitter, &added);
                    doubt.by_added(emitter, number, &added)
                }
            };
            let least = least.map_or(Some(0.0), |least| emitter.value(least));
            if wanted.states.contains(state)
                && !least.is_some_and(|least| entry.high.abs() >= least)
            {
                return Err(CANCELS);
            }
            let factor = emitter.number(entry.high, entry.low);
            let product = emitter.product(factor, node.into());
            sum = emitter.sum(sum, Some(product));
        }
        ends.push(match (sum, doubt.end(number)) {
            (None, _) => emitter.constant(0.0),
            (Some(sum), None) => emitter.rounded(sum),
            (Some(sum), Some(least)) => {
                let sum = checked(emitter, sum, least);
                emitter.rounded(sum)
            }
        });
    }
    Ok(ends)
}

/// The first digits of numbers.
fn rough(emitter: &mut Emitter<'_>, row: &[Option<Double>]) -> Row {
    row.iter().map(|entry| entry.map(|entry| emitter.number(entry.high, 0.0))).collect()
}

/// The map `a` after the map `b`; both leave the columns beyond the rows as they are.
fn composed(a: &Matrix<Double>, b: &Matrix<Double>) -> Matrix<Double> {
    let size = a.len();
    let entry = |row: &Vec<Option<Double>>, column: usize| {
        let mut entry = row[column].filter(|_| column >= size);
        for (factor, other) in row[..size].iter().zip(b) {
            if let (Some(factor), Some(other)) = (*factor, other[column]) {
                let product = factor.times_in_range(other);
                entry = Some(entry.map_or(product, |entry| entry + product));
            }
        }
        entry
    };
    a.iter().map(|row| (0..row.len()).map(|column| entry(row, column)).collect()).collect()
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
    let start = Start::of(emitter, system, wanted.states).ok_or(MADE)?;
    let begun = emitter.items.len();
    let straight = binary::after(emitter, &start, times, wanted.most.min(STRAIGHT));
    let nodes = match straight {
        Some(ends) => {
            let mut nodes = system.firsts.clone();
            ends.into_iter().for_each(|(number, node)| nodes[number] = node);
            nodes
        }
        None => {
            emitter.forget(begun);
            if !wanted.allows_loop(system, digits(count)) {
                emitter.forget(before);
                return Err(COSTS);
            }
            let number = emitter.constant(times as f64);
            derived_by(emitter, &start, &system.firsts, number, count)
        }
    };
    emitter.prune(before, &nodes);
    emitter.derived += emitter.items.len() - before;
    Ok(nodes)
}

pub(super) fn linear_part(system: &System, row: &Affine) -> Vec<Option<Pair>> {
    let pair = |&state: &usize| match row.get(&Base::State(state)) {
        Some(Coefficient::Fixed(pair)) => Some(*pair),
        _ => None,
    };
    system.states.iter().map(pair).collect()
}

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
