//! What a system of several numbers comes to after a number of steps that is known, and its
//! derivatives, by squares.
//!
//! The maps of 1, 2, 4, … steps are made of each other: `jet` tells how a map and what it
//! adds double. The binary digits of the number of steps say by which of them the state is
//! advanced, v → P·v + w. Derivatives go back the same way, as in a sweep, but in pairs. A
//! row λ, which begins as the unit row of the number that is wanted, passes the advances from
//! the last to the first:
//!
//! ```text
//! K_P += v·λ,    s_P += λ,    λ → λ·P.
//! ```
//!
//! K_P is the derivative by that map, and s_P that by what it adds. Those of the map of twice
//! as many steps belong to the map that it is the square of:
//!
//! ```text
//! K_P += P·K_{P²} + K_{P²}·P + w·s_{P²},    s_P += s_{P²} + s_{P²}·P.
//! ```
//!
//! So a digit that is 1 costs products of matrices with columns and rows alone.

use super::doubt::Halves;
use super::emit::Emitter;
use super::jet::Output;
use super::power::Matrix;
use super::products::{Factors, Row, applied, both, dot, square, times, total};
use super::start::Start;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::Node;

/// The last map of so many numbers is applied at least so often, so that it is in the range of
/// numbers if the result is. Matrices of more than two are squared only where that is less than
/// to apply them twice more.
fn least_repeats(size: usize) -> usize {
    if size > 2 { 4 } else { 2 }
}

/// The map of a number of steps.
struct Level {
    power: Matrix<Pair>,
    added: Row,
}

/// The states that `start` wants, in their order, after `times` steps; `None` if they would
/// take more than `most` steps of code.
pub(super) fn after(
    emitter: &mut Emitter<'_>,
    start: &Start,
    times: usize,
    most: usize,
) -> Option<Vec<(usize, Node)>> {
    let most = emitter.items.len() + most;
    let least = least_repeats(start.map.len());
    let mut levels = vec![Level { power: start.map.clone(), added: start.change.clone() }];
    while let Some(last) = levels.last()
        && times >> levels.len() >= least
    {
        let added = applied(emitter, &last.power, &last.added, &last.added);
        let power = square(emitter, &last.power);
        levels.push(Level { power, added });
        if emitter.items.len() > most {
            return None;
        }
    }
    // The level of each advance, from the first to the last, and the state before it.
    let mut advances: Vec<(usize, Row)> = Vec::new();
    let mut state = start.first.clone();
    for (number, level) in levels.iter().enumerate().rev() {
        let is_last = number + 1 == levels.len();
        let repeat = if is_last { times >> number } else { times >> number & 1 };
        for _ in 0..repeat {
            let next = applied(emitter, &level.power, &state, &level.added);
            advances.push((number, core::mem::replace(&mut state, next)));
        }
    }
    let steps = emitter.constant(times as f64);
    let [power, later, earlier] = rough(emitter, start, &levels, &advances);
    let halves = Halves { power: &power, later: &later, earlier: &earlier };
    let end = start.ended(emitter, &state, &halves, steps);
    if emitter.items.len() > most {
        return None;
    }
    let mut ends = Vec::new();
    for &number in &start.outputs {
        let (output, row) = back(emitter, start, number, (&levels, &advances), most)?;
        let node = start.end(emitter, &output, &row, state[number], &end);
        ends.push((number, node));
    }
    Some(ends)
}

/// What is known of the derivatives of one number, and its row of the power of the map;
/// `None` if there would be more than `most` steps of code.
fn back(
    emitter: &mut Emitter<'_>,
    start: &Start,
    number: usize,
    (levels, advances): (&[Level], &[(usize, Row)]),
    most: usize,
) -> Option<(Output, Row)> {
    let size = start.map.len();
    let one = emitter.number(1.0, 0.0);
    let nothing = vec![None; size];
    let mut row: Row = (0..size).map(|other| (other == number).then_some(one)).collect();
    // For each level the states and rows that meet there.
    let mut meetings: Vec<Vec<(&Row, Row)>> = levels.iter().map(|_| Vec::new()).collect();
    for (level, state) in advances.iter().rev() {
        let next = times(emitter, &row, &levels[*level].power, &[]);
        meetings[*level].push((state, core::mem::replace(&mut row, next)));
    }
    let (mut by_map, mut sums) = (vec![nothing.clone(); size], nothing);
    for (at, meetings) in meetings.iter().enumerate().rev() {
        let own = |i: usize, j: usize| meetings.iter().map(move |(state, row)| (state[i], row[j]));
        let before = emitter.items.len();
        let above = (at + 1 < levels.len()).then(|| &levels[at]);
        if start.has_slopes {
            by_map = match above {
                Some(level) => both(emitter, &level.power, &by_map, |i, j| {
                    own(i, j).chain([(level.added[i], sums[j])]).collect::<Vec<Factors>>()
                }),
                None => (0..size)
                    .map(|i| (0..size).map(|j| total(emitter, own(i, j), [])).collect())
                    .collect(),
            };
        }
        if start.has_offset {
            let mut rows: Vec<&Row> = meetings.iter().map(|(_, row)| row).collect();
            let map = match above {
                Some(level) => {
                    rows.push(&sums);
                    &level.power
                }
                None => &start.map,
            };
            sums = times(emitter, &sums, map, &rows);
        }
        // The levels below cost no less.
        if emitter.items.len() + at * (emitter.items.len() - before) > most {
            return None;
        }
    }
    Some((Output { number, sums, by_map }, row))
}

/// About what the power of the map is that belongs to all advances, as far as it is needed, and
/// what it is for those after half of all steps and for those before.
fn rough(
    emitter: &mut Emitter<'_>,
    start: &Start,
    levels: &[Level],
    advances: &[(usize, Row)],
) -> [Matrix<Pair>; 3] {
    let (one, size) = (emitter.number(1.0, 0.0), start.map.len());
    let last = levels.len() - 1;
    // The last map is applied several times, if there is more than one step, and others once: a
    // third of all steps at least are in each half.
    let repeat = advances.iter().filter(|&&(level, _)| level == last).count().div_ceil(2);
    let needed = start.needed();
    let units = (0..size).map(|number| {
        let unit = |other| (other == number && needed.contains(&number)).then_some(one);
        (0..size).map(unit).collect()
    });
    let mut later: Matrix<Pair> = units.collect();
    for &(level, _) in advances.iter().skip(repeat).rev() {
        later = rough_product(emitter, &later, &levels[level].power);
    }
    let own = &levels[last].power;
    let mut earlier = own.clone();
    for _ in 1..repeat {
        earlier = rough_product(emitter, &earlier, own);
    }
    let power = rough_product(emitter, &later, &earlier);
    [power, later, earlier]
}

/// `a · b`, without second parts.
fn rough_product(emitter: &mut Emitter<'_>, a: &Matrix<Pair>, b: &Matrix<Pair>) -> Matrix<Pair> {
    let mut entry = |row: &Row, column: usize| {
        let terms = row
            .iter()
            .zip(b)
            .filter_map(|(entry, row)| Some((Pair::from(entry.as_ref()?.high), row[column]?.high)));
        let terms: Vec<(Pair, Node)> = terms.collect();
        (!terms.is_empty()).then(|| Pair::from(dot(emitter, &terms, None)))
    };
    a.iter().map(|row| (0..row.len()).map(|column| entry(row, column)).collect()).collect()
}
