//! What an affine recurrence comes to if all its coefficients are known numbers: its maps are
//! composed here, and what is left is one linear combination.
//!
//! Where numbers come to a node and are measured from it, as a - b for a -= (a - b)/8, little is
//! left of what both pass on to that: 1 - qⁿ, rounded, would leave 1 with its rounding error. So
//! derivatives by such a level are told by the way to it (`toward`).
//!
//! How many digits rounding has taken from it is measured. All is composed again with products
//! that are off by a small part, which is far larger than what rounding takes; the entries are
//! then off by as many times what rounding has taken from them. That counts where powers, or
//! what they are off by, are larger than polynomials of the number of steps may be: there a
//! program may rest while the terms of its form grow.

use std::collections::BTreeSet;

use super::emit::Emitter;
use super::form::{Base, CHANGES, Coefficient, Forms};
use super::multiples::{KNOWN, Level, Multiples};
use super::power::{Matrix, OVERFLOWS, System, Wanted};
use super::sizes::GROWTH;
use super::slopes::Digits;
use super::terms::{NOTHING, Terms};
use super::toward::Toward;
use crate::phi::double::Double;
use crate::ssa::Node;

/// Constants nearer to zero than this may have lost digits to underflow.
const LEAST: f64 = 1e-270;

/// Powers larger than this are not multiplied by the start of a single number: at a
/// fixed point all digits of the product would cancel.
const MOST_OF_ONE: f64 = 1e6;

/// So many products are computed at most where coefficients change, three times: one or two
/// seconds.
const MOST_PRODUCTS: usize = 1 << 24;

/// By about this part products are off, to one side or the other, in each of two more
/// compositions. Rounding takes 2⁻¹⁰⁴ of them and of their sums at most.
const OFF: f64 = 1.0 / (1u128 << 80) as f64;
const SEEDS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xD1B5_4A32_D192_ED03];

/// What entries are off by counts in any case if it is this part of the ways that lead from
/// one number to another: rounding has taken 2⁻⁴⁰ of them.
const MUCH: f64 = 1.0 / (1u32 << 16) as f64;

const CANCELS: &str = "its numbers cancel where powers of its coefficients do not";
const UNDERFLOWS: &str = "the products of its coefficients underflow";

/// Where a coefficient comes from.
#[derive(Clone, Copy)]
enum Source<'a> {
    Number(Double),
    Table(&'a [Double]),
}

impl Source<'_> {
    /// What it is in step `i`.
    fn number(self, i: usize) -> Option<Double> {
        match self {
            Source::Number(number) => Some(number),
            Source::Table(table) => table.get(i).copied(),
        }
    }
}

/// The map of each step, of columns to rows: the states and, behind them, the nodes that are
/// added.
struct Steps<'a> {
    rows: Vec<Vec<(usize, Source<'a>)>>,
    width: usize,
    times: usize,
    changes: bool,
}

/// The states after `times` steps where all coefficients are known; `None` if not all are, or
/// if numbers stay in range in steps only.
///
/// # Errors
///
/// Why there is no form.
pub(super) fn folded(
    forms: &mut Forms<'_, '_>,
    system: &System,
    times: usize,
    wanted: &Wanted<'_>,
) -> Result<Option<Vec<Node>>, &'static str> {
    let bases = bases(system);
    let Some(steps) = Steps::of(forms, system, &bases, times)? else { return Ok(None) };
    let (total, largest) = steps.composed_with_largest();
    if let ([row], false) = (&total[..], steps.changes)
        && row[0].is_some_and(|power| power.high.abs() > MOST_OF_ONE)
    {
        return Ok(None);
    }
    let numbers = || total.iter().flatten().flatten();
    let in_range = |number: &Double| number.is_finite() && number.high.abs() >= LEAST;
    if !steps.changes && !numbers().all(in_range) {
        // In steps the numbers stay in range, if those of the loop do.
        return Ok(None);
    }
    if numbers().any(|number| number.high.is_infinite()) {
        return Err(OVERFLOWS);
    }
    if !numbers().all(|number| number.high == 0.0 || in_range(number)) {
        return Err(UNDERFLOWS);
    }
    let is_wanted = |number: &usize| wanted.states.contains(&system.states[*number]);
    let outputs = (0..total.len()).filter(is_wanted);
    let off = steps.off(&total, &largest);
    // In steps it is looked at in each call how many digits are left.
    let cancels = || if steps.changes { Err(CANCELS) } else { Ok(None) };
    let mut entries = outputs.clone().flat_map(|number| total[number].iter().zip(&off[number]));
    // The entries are the derivatives.
    if !entries.all(|(entry, off)| entry.is_none_or(|entry| entry.high.abs() >= KNOWN * off)) {
        return cancels();
    }
    let columns: Vec<Node> = system.firsts.iter().chain(&bases).copied().collect();
    let emitter = &mut *forms.emitter;
    let (before, derived, overflows) = (emitter.items.len(), emitter.derived, emitter.overflows);
    let wanted: Vec<Multiples<'_>> = outputs
        .map(|number| Multiples { number, entries: &total[number], off: &off[number] })
        .collect();
    let level = match wanted.iter().all(|of| of.is_bounded(system.states.len())) {
        true => steps.level(emitter, system, &total, &columns),
        false => None,
    };
    let digits = Digits::of(wanted.len(), system.states.len(), level.is_some());
    let mut ends = system.firsts.clone();
    for of in &wanted {
        ends[of.number] = of.added(emitter, &columns, digits, level.as_ref());
    }
    if emitter.overflows && !overflows {
        // A derivative is known to have too few digits.
        emitter.forget(before);
        (emitter.derived, emitter.overflows) = (derived, false);
        return cancels();
    }
    Ok(Some(ends))
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

impl<'a> Steps<'a> {
    fn of(
        forms: &Forms<'_, '_>,
        system: &'a System,
        bases: &[Node],
        times: usize,
    ) -> Result<Option<Steps<'a>>, &'static str> {
        let all = || system.rows.iter().flat_map(|row| row.values());
        let changes = all().any(|coefficient| matches!(coefficient, Coefficient::Table(_)));
        let size = system.states.len();
        let width = size + bases.len();
        let mut rows = Vec::with_capacity(size);
        for row in &system.rows {
            let mut places = Vec::new();
            for (&base, coefficient) in row {
                let source = match coefficient {
                    Coefficient::Table(table) => Some(Source::Table(table)),
                    Coefficient::Fixed(pair) => forms.number(*pair).map(Source::Number),
                    Coefficient::Polynomial(_) => None,
                };
                let Some(source) = source else {
                    let is_fixed = |c: &Coefficient| matches!(c, Coefficient::Fixed(_));
                    return if all().all(is_fixed) { Ok(None) } else { Err(CHANGES) };
                };
                places.extend(column(system, bases, base).map(|column| (column, source)));
            }
            rows.push(places);
        }
        if changes && times.saturating_mul(size * size * width) > MOST_PRODUCTS {
            return Err("it has too many iterations to be folded");
        }
        Ok(Some(Steps { rows, width, times, changes }))
    }

    /// The map of step `i`.
    fn step(&self, i: usize) -> Matrix<Double> {
        let row = |places: &Vec<(usize, Source<'_>)>| {
            let mut numbers = vec![None; self.width];
            places.iter().for_each(|&(column, source)| numbers[column] = source.number(i));
            numbers
        };
        self.rows.iter().map(row).collect()
    }

    /// The map of step `i` after the map `before`.
    fn stepped(
        &self,
        i: usize,
        before: &Matrix<Double>,
        signs: &mut Option<Signs>,
    ) -> Matrix<Double> {
        let mut row = |places: &Vec<(usize, Source<'_>)>| {
            let mut row = vec![None; self.width];
            for &(column, source) in places {
                let Some(number) = source.number(i) else { continue };
                match before.get(column) {
                    Some(before) => add_multiple(&mut row, number, before, signs),
                    None => add(&mut row[column], number),
                }
            }
            row
        };
        self.rows.iter().map(&mut row).collect()
    }

    /// The map of all steps, and how large its entries are on the way.
    fn composed_with_largest(&self) -> (Matrix<Double>, Vec<Vec<f64>>) {
        let mut largest = vec![vec![0.0f64; self.width]; self.rows.len()];
        let total = self.composed(&mut None, |power| raise(&mut largest, power));
        (total, largest)
    }

    /// The map of all steps, with a look at those on the way; with `signs` products are off.
    fn composed(
        &self,
        signs: &mut Option<Signs>,
        mut look: impl FnMut(&Matrix<Double>),
    ) -> Matrix<Double> {
        let mut total = self.step(0);
        look(&total);
        if self.changes {
            for i in 1..self.times {
                total = self.stepped(i, &total, signs);
                look(&total);
            }
            return total;
        }
        for digit in (0..self.times.ilog2()).rev() {
            total = composed(&total, &total, signs);
            if self.times >> digit & 1 == 1 {
                total = self.stepped(0, &total, signs);
            }
            look(&total);
        }
        total
    }

    /// What numbers come to where powers vanish, with those of all steps as `total`, if these are
    /// multiples of one node: they stay there. A mean by rounded weights, as 0.9 and 0.1, has none: it
    /// moves on by what these miss of 1.
    fn level(
        &self,
        emitter: &Emitter<'_>,
        system: &System,
        total: &Matrix<Double>,
        columns: &[Node],
    ) -> Option<Level> {
        (self.rows.len()..self.width).find_map(|column| {
            let node = columns[column];
            if !emitter.may_be_active(node) {
                return None;
            }
            let parts = rest(total, column)?;
            // Only what most of has come to that cancels where it is taken away.
            let is_most = |(row, part): (&Vec<Option<Double>>, &f64)| {
                let entry = row[column].map_or(0.0, |entry| entry.high);
                *part != 0.0 && 2.0 * entry.abs() > part.abs()
            };
            if !total.iter().zip(&parts).any(is_most) || !self.stay(&parts, column) {
                return None;
            }
            let level = Terms::of_node(emitter, node);
            let point = |&part: &f64| match part {
                0.0 => Terms::default(),
                part => level.scaled(part),
            };
            let point: Vec<Terms> = parts.iter().map(point).collect();
            // What they begin as, and what else is added, tells its own derivatives by totals.
            let (firsts, nodes) = (vec![Terms::default(); point.len()], BTreeSet::new());
            let toward = Toward::of(emitter, &system.rows, &firsts, &point, &nodes)?;
            Some(Level { column, toward })
        })
    }

    /// Whether numbers that are so many times what the column is stay so, if nothing else is added,
    /// but for the rounding of pairs: a rate of two constants, as 0.01/0.3, has no last digit. The
    /// program, which takes from the one what it adds to the other, stays, whatever the rate is; so
    /// the derivative is that by the way, and not what this rounding, after all steps, leaves of it.
    fn stay(&self, parts: &[f64], column: usize) -> bool {
        let steps = if self.changes { self.times } else { 1 };
        let part = |at: usize| if at == column { 1.0 } else { parts.get(at).map_or(0.0, |p| *p) };
        (0..steps).all(|i| {
            self.rows.iter().zip(parts).all(|(row, &own)| {
                let (mut left, mut size) = (Double::from(-own), own.abs());
                for &(at, source) in row {
                    let Some(number) = source.number(i) else { continue };
                    let product = number * Double::from(part(at));
                    (left, size) = (left + product, size.max(product.high.abs()));
                }
                left.high.abs() <= NOTHING * size && size <= MOST_OF_ONE * own.abs().max(1.0)
            })
        })
    }

    /// By how much the entries of `total` are off if products are, or zero if that does not
    /// count; on the way they are as large as `largest`.
    fn off(&self, total: &Matrix<Double>, largest: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let size = self.rows.len();
        let mut off: Vec<Vec<f64>> = total.iter().map(|row| vec![0.0; row.len()]).collect();
        for seed in SEEDS {
            let other = self.composed(&mut Some(Signs(seed)), |_| {});
            for ((off, row), other) in off.iter_mut().zip(total).zip(other) {
                for ((off, entry), other) in off.iter_mut().zip(row).zip(other) {
                    let Some((a, b)) = entry.zip(other) else { continue };
                    let difference = (a - b).rounded().abs();
                    *off = if difference.is_nan() { f64::INFINITY } else { off.max(difference) };
                }
            }
        }
        let ways = self.ways();
        let power = i32::try_from(size).map_or(0, |size| size - 1);
        let most = GROWTH * (self.times as f64).powi(power);
        for (i, (off, way)) in off.iter_mut().zip(&ways).enumerate() {
            let grown: Vec<bool> = (0..size)
                .map(|j| sandwich(&ways, largest, (i, j)) > most * way[j].max(f64::MIN_POSITIVE))
                .collect();
            let any = grown.iter().any(|&grown| grown);
            for (column, (off, way)) in off.iter_mut().zip(way).enumerate() {
                let has_grown = grown.get(column).copied().unwrap_or(any);
                let size = way + total[i][column].map_or(0.0, |entry| entry.high.abs());
                // Each step adds to it.
                let few = OFF * most * self.times as f64 * size;
                if !has_grown && *off <= few.min(MUCH * way) {
                    *off = 0.0;
                }
            }
        }
        off
    }

    /// How large the ways from columns to rows are in the largest of all steps: Σ|A|ᵏ for
    /// states, where there are as many steps on a way as other states at most, and what comes
    /// to them of what is added.
    fn ways(&self) -> Vec<Vec<f64>> {
        let size = self.rows.len();
        let mut largest = vec![vec![0.0f64; self.width]; size];
        for i in 0..if self.changes { self.times } else { 1 } {
            raise(&mut largest, &self.step(i));
        }
        let mut ways = vec![vec![0.0; self.width]; size];
        for _ in 0..size {
            let before = ways.clone();
            for (i, row) in ways.iter_mut().enumerate() {
                for (column, entry) in row.iter_mut().enumerate() {
                    let through = (0..size).map(|k| largest[i][k] * before[k][column]);
                    let own = match column < size {
                        true => f64::from(u8::from(i == column)),
                        false => self.times as f64 * largest[i][column],
                    };
                    *entry = through.sum::<f64>() + own;
                }
            }
        }
        ways
    }
}

/// How many times the column numbers are where they rest by the map of all steps, as numbers of few
/// digits; `None` if all are zero. Those that do not rest may be any.
fn rest(total: &Matrix<Double>, column: usize) -> Option<Vec<f64>> {
    /// So often the map is applied: a power that leaves the larger part to the column is less than
    /// a half of what it is applied to.
    const TIMES: usize = 64;
    /// Next to the largest of them, rounding leaves less.
    const ROUNDED: f64 = 1.0 / (1u32 << 30) as f64;
    let mut parts = vec![0.0f64; total.len()];
    for _ in 0..TIMES {
        let next = |row: &Vec<Option<Double>>| {
            let entry = |at: usize| row[at].map_or(0.0, |entry| entry.high);
            let powers = parts.iter().enumerate().map(|(at, part)| entry(at) * part);
            powers.fold(entry(column), |sum, product| sum + product)
        };
        parts = total.iter().map(next).collect();
    }
    let largest = parts.iter().fold(0.0f64, |largest, part| largest.max(part.abs()));
    let few = |part: &f64| match part.abs() <= largest * ROUNDED {
        true => 0.0,
        false => f64::from(*part as f32),
    };
    (largest > 0.0).then(|| parts.iter().map(few).collect())
}

/// Makes entries as large as those of `map` are.
fn raise(largest: &mut [Vec<f64>], map: &Matrix<Double>) {
    for (largest, entry) in largest.iter_mut().flatten().zip(map.iter().flatten()) {
        *largest = largest.max(entry.map_or(0.0, |entry| entry.high.abs()));
    }
}

/// An entry of `ways · power · ways`.
fn sandwich(ways: &[Vec<f64>], power: &[Vec<f64>], (row, column): (usize, usize)) -> f64 {
    let size = ways.len();
    let inner = |k: usize| (0..size).map(|l| power[k][l] * ways[l][column]).sum::<f64>();
    (0..size).map(|k| ways[row][k] * inner(k)).sum()
}

/// To which sides products are off, and by how much: not all by the same, or what cancels would
/// do so again.
struct Signs(u64);

impl Signs {
    /// The next factor, by Marsaglia's xorshift.
    fn next(&mut self) -> Double {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let part = OFF * (0.5 + (self.0 & u64::from(u32::MAX)) as f64 / f64::from(u32::MAX));
        Double { high: 1.0, low: if self.0 >> 63 == 0 { part } else { -part } }
    }
}

/// The map `a` after the map `b`; both leave the columns beyond the rows as they are.
fn composed(a: &Matrix<Double>, b: &Matrix<Double>, signs: &mut Option<Signs>) -> Matrix<Double> {
    let mut row = |numbers: &Vec<Option<Double>>| {
        let (own, beyond) = numbers.split_at(b.len());
        let mut row = vec![None; own.len()];
        row.extend(beyond);
        for (number, before) in own.iter().zip(b) {
            number.iter().for_each(|&number| add_multiple(&mut row, number, before, signs));
        }
        row
    };
    a.iter().map(&mut row).collect()
}

/// Adds `number` times `other` to `row`.
fn add_multiple(
    row: &mut [Option<Double>],
    number: Double,
    other: &[Option<Double>],
    signs: &mut Option<Signs>,
) {
    for (entry, other) in row.iter_mut().zip(other) {
        let Some(other) = *other else { continue };
        let mut product = number.times_in_range(other);
        if let Some(signs) = signs {
            product = product * signs.next();
        }
        add(entry, product);
    }
}

fn add(entry: &mut Option<Double>, number: Double) {
    *entry = Some(entry.map_or(number, |entry| entry + number));
}
