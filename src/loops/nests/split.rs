//! Splits an execution of a loop where its operands begin anew: an outer loop without steps of its
//! own leaves no other trace.
//!
//! ```text
//! for n in 1..4 { for m in 0..n { sum += x[n] · x[m] } }
//!
//! n     1  2  2  3  3  3
//! m     0  0  1  0  1  2     mostly one more than before
//!        |     |              pieces
//! ```
//!
//! Single operands are peculiar at the ends of rows, too, those of a stencil for example. So that as
//! many operands have to begin anew as are needed for pieces of regular lengths.

use core::ops::Range;
use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::operands::{Leaf, Source};
use super::parse::{Key, Parse, Token, iterations_in_gaps};
use super::recording::Recording;

/// The source of an operand, as far as iterations of a loop differ in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Feature {
    /// A constant, or a value of the same iteration.
    Any,
    /// A value of the iteration before.
    Before,
    /// The element with this index of the inputs (0) or of the results of steps of a form.
    Element { array: u32, index: i64 },
}

/// A piece of an execution of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Iterations that are no loop.
    Peeled,
    /// An execution of the loop.
    Row,
    /// An execution of another loop with the same body: the rest of a row.
    Rest,
}

/// The way in which executions of loops are split into rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Splitting {
    /// One row from each iteration in which operands begin anew to the next.
    Rows,
    /// In addition two pieces of each row that leaves out an iteration, which lies further on from row
    /// to row: the pairs of different points.
    Diagonals,
    /// In addition peeled first and last iterations whose operands follow other rules.
    Ends,
}

/// The rows of an execution of a loop.
pub(super) struct Rows {
    rows: Vec<Range<usize>>,
    /// The number of each iteration.
    numbers: Vec<i64>,
    /// The number of operands that begin anew with each iteration.
    votes: Vec<u32>,
}

/// The rows of `whole`, iterations of `period` tokens.
pub(super) fn rows(
    recording: &Recording<'_>,
    parse: &Parse,
    whole: &[Token],
    period: usize,
) -> Rows {
    /// The least number of iterations for several rows.
    const LEAST_ITERATIONS: usize = 4;
    let times = whole.len() / period;
    if times < LEAST_ITERATIONS {
        let numbers = (0..times as i64).collect();
        return Rows { rows: core::iter::once(0..times).collect(), numbers, votes: vec![0; times] };
    }
    let firsts: Vec<u32> = whole.iter().step_by(period).map(|token| token.first).collect();
    let gaps = parse.gaps(recording, whole, period).unwrap_or_default();
    // The number of each iteration.
    let numbers: Vec<i64> = (0..)
        .zip(&firsts)
        .map(|(listed, &first)| listed + i64::from(iterations_in_gaps(&gaps, first)))
        .collect();
    let mut steps = Vec::new();
    for iteration in whole.chunks(period) {
        push_steps(parse, iteration, &mut steps);
    }
    let width = steps.len() / times;
    // The number of operands that begin anew with each iteration.
    let mut votes = vec![0; times];
    // The iterations with which single operands begin anew, and those of all.
    let mut candidates: Vec<Vec<usize>> = Vec::new();
    for (number, &step) in steps[..width].iter().enumerate() {
        for slot in 0..recording.operands(step).len() {
            let of_iteration = steps.iter().skip(number).step_by(width).enumerate();
            let column = of_iteration.map(|(iteration, &step)| {
                let first = recording.position(firsts[iteration]);
                // In a gap iterations are as long as the one before it.
                let length =
                    iteration.checked_sub(1).map(|before| firsts[iteration] - firsts[before]);
                let before = length.map(|length| first - length);
                feature(recording, recording.operands(step)[slot], first, before)
            });
            if !is_regular(column.clone(), &numbers) {
                let column: Vec<Feature> = column.collect();
                let starts = beginnings(&column, &numbers);
                starts.iter().for_each(|&at| votes[at] += 1);
                candidates.push(starts);
            }
        }
    }
    let most = votes.iter().copied().max().unwrap_or(0);
    let of_several = |least: u32| (1..times).filter(|&at| votes[at] >= least).collect();
    candidates.sort_by_key(|starts| core::cmp::Reverse(starts.len()));
    candidates.splice(..0, (1..=most).map(of_several));
    let bounds_of = |starts: &Vec<usize>| -> Vec<usize> {
        core::iter::once(0).chain(starts.iter().copied()).chain([times]).collect()
    };
    let lengths_of = |bounds: &[usize]| -> Vec<usize> {
        let length = |pair: &[usize]| (numbers[pair[1] - 1] - numbers[pair[0]] + 1) as usize;
        bounds.windows(2).map(length).collect()
    };
    let has_rows =
        |bounds: &Vec<usize>| 2 * (bounds.len() - 1) <= times + 2 && are_rows(&lengths_of(bounds));
    // The first row may begin later, and the last one end earlier.
    let has_inner_rows = |bounds: &Vec<usize>| {
        let lengths = lengths_of(bounds);
        let first = usize::from(lengths[0] < lengths[lengths.len() / 2]);
        let last = lengths.len() - usize::from(lengths.last() < lengths.get(lengths.len() / 2));
        2 * lengths.len() <= times + 2 && first < last && are_rows(&lengths[first..last])
    };
    let all = || candidates.iter().map(bounds_of);
    let found = all().find(has_rows).or_else(|| all().find(has_inner_rows));
    let bounds = found.unwrap_or_else(|| by_trip_counts(parse, whole, period));
    let rows: Vec<Range<usize>> = bounds.windows(2).map(|pair| pair[0]..pair[1]).collect();
    Rows { rows, numbers, votes }
}

impl Rows {
    /// The pieces of the rows. With `has_rests` each row is split where its operands begin anew, if that
    /// is once in each row; with `peels` its ends are pieces of their own.
    pub(super) fn pieces(&self, has_rests: bool, peels: bool) -> Vec<(Range<usize>, Piece)> {
        let rests = if has_rests { self.rests() } else { None };
        let (first, last) = match rests {
            None if peels => peeled(&self.rows, &self.votes),
            _ => (0, 0),
        };
        let pieces = self.rows.iter().enumerate().flat_map(|(number, row)| {
            let inner = row.start + first..row.end - last;
            let rest = rests.as_ref().map_or(inner.end, |rests| rests[number]);
            [
                (row.start..inner.start, Piece::Peeled),
                (inner.start..rest, Piece::Row),
                (rest..inner.end, Piece::Rest),
                (inner.end..row.end, Piece::Peeled),
            ]
        });
        pieces.filter(|(piece, _)| !piece.is_empty()).collect()
    }

    /// The number of iterations of a row up to one.
    fn length(&self, row: &Range<usize>, end: usize) -> i64 {
        let after = end.checked_sub(1).map_or(0, |last| self.numbers[last] + 1);
        after - self.numbers[row.start]
    }

    /// For each row the iteration with which its operands begin anew, if that is once at most.
    fn breaks(&self) -> Option<Vec<Option<usize>>> {
        let of_row = |row: &Range<usize>| {
            let mut inside = (row.start + 1..row.end).filter(|&at| self.votes[at] > 0);
            let first = inside.next();
            inside.next().is_none().then_some(first)
        };
        self.rows.iter().map(of_row).collect()
    }

    /// The lengths of the pieces of the only row.
    pub(super) fn only_break(&self) -> Option<(i64, i64)> {
        let [row] = &self.rows[..] else { return None };
        let at = self.breaks()?[0]?;
        let before = self.length(row, at);
        Some((before, self.length(row, row.end) - before))
    }

    /// Tests whether the rests begin further on from row to row.
    pub(super) fn has_diagonal(&self) -> bool {
        self.rows.len() > 1 && self.rests().is_some()
    }

    /// For each row where its rest begins, if operands begin anew once in each row, further on or back
    /// by the same number of iterations from row to row.
    fn rests(&self) -> Option<Vec<usize>> {
        let breaks = self.breaks()?;
        let places: Vec<(i64, i64)> = (0..)
            .zip(breaks.iter().zip(&self.rows))
            .filter_map(|(number, (at, row))| Some((number, self.length(row, (*at)?))))
            .collect();
        let (&(first, place), &(last, other)) = (places.first()?, places.last()?);
        let by = (other - place).checked_div(last - first).unwrap_or(0);
        (by != 0 || self.rows.len() == 1).then_some(())?;
        let place = |number: i64| place + by * (number - first);
        places.iter().all(|&(number, at)| place(number) == at).then_some(())?;
        let rest = |(number, (at, row)): (i64, (&Option<usize>, &Range<usize>))| match at {
            Some(at) => Some(*at),
            None if place(number) <= 0 => Some(row.start),
            None if place(number) >= self.length(row, row.end) => Some(row.end),
            None => None,
        };
        (0..).zip(breaks.iter().zip(&self.rows)).map(rest).collect()
    }
}

/// The numbers of first and last iterations of `rows` that have operands of their own.
fn peeled(rows: &[Range<usize>], votes: &[u32]) -> (usize, usize) {
    const MOST: usize = 2;
    /// The least number of iterations that a row keeps.
    const LEAST_ROW: usize = 2;
    if rows.iter().any(|row| row.len() < 2 * MOST + LEAST_ROW) {
        return (0, 0);
    }
    let is_usual = |at: &dyn Fn(&Range<usize>) -> usize| {
        2 * rows.iter().filter(|&row| votes[at(row)] > 0).count() > rows.len()
    };
    let most = |is_end: &dyn Fn(usize) -> bool| (1..=MOST).filter(|&count| is_end(count)).max();
    let first = most(&|count| is_usual(&|row| row.start + count));
    let last = most(&|count| is_usual(&|row| row.end - count));
    (first.unwrap_or(0), last.unwrap_or(0))
}

/// Appends the steps of an iteration; of inner loops those of the first iteration.
fn push_steps(parse: &Parse, iteration: &[Token], steps: &mut Vec<u32>) {
    for token in iteration {
        match token.key {
            Key::Form(_) => steps.push(token.first),
            Key::Loop(number) => {
                let period = parse.bodies[number as usize].len();
                let tokens = &parse.executions[token.execution as usize].tokens;
                push_steps(parse, &tokens[..period], steps);
            }
        }
    }
}

/// The source of an operand in an iteration that begins at position `first`, the one before at
/// `before`.
fn feature(recording: &Recording<'_>, source: Source, first: u32, before: Option<u32>) -> Feature {
    match source {
        Source::Step(step) if recording.position(step) >= first => Feature::Any,
        Source::Step(step) if before.is_some_and(|at| recording.position(step) >= at) => {
            Feature::Before
        }
        Source::Step(step) => {
            let array = recording.form_of_step[recording.representative(step) as usize] + 1;
            Feature::Element { array, index: i64::from(recording.ordinals[step as usize]) }
        }
        Source::Leaf(Leaf::Input(number)) => {
            Feature::Element { array: 0, index: i64::from(number) }
        }
        Source::Leaf(Leaf::Const(_)) => Feature::Any,
    }
}

/// Tests whether the operand of each iteration follows from the one before in the same way.
fn is_regular(column: impl Iterator<Item = Feature>, numbers: &[i64]) -> bool {
    let mut column = column.zip(numbers.iter().copied());
    let Some(mut before) = column.next() else { return true };
    let mut usual = None;
    column.all(|next| {
        let way = match (before.0, next.0) {
            (_, Feature::Before) => Some(Feature::Before),
            (Feature::Any, Feature::Any) => Some(Feature::Any),
            _ => change(before, next)
                .flatten()
                .map(|(array, index)| Feature::Element { array, index }),
        };
        before = next;
        way.is_some_and(|way| *usual.get_or_insert(way) == way)
    })
}

/// The iterations whose operand does not follow from the one before as in most iterations.
fn beginnings(column: &[Feature], numbers: &[i64]) -> Vec<usize> {
    let carried = column.iter().filter(|&&feature| feature == Feature::Before).count();
    let is_carried = 2 * carried >= column.len();
    let feature = |at: usize| (column[at], numbers[at]);
    let change = |at: usize| change(feature(at - 1), feature(at));
    let changes = || (1..column.len()).filter_map(change);
    let usual = if is_carried { HashMap::new() } else { usual(changes) };
    let is_unusual = |&at: &usize| match change(at) {
        _ if is_carried => column[at] != Feature::Before,
        Some(Some((array, by))) => usual.get(&array).is_some_and(|&usual| by != usual),
        Some(None) => !usual.is_empty(),
        None => false,
    };
    (1..column.len()).filter(is_unusual).collect()
}

/// The change of the index in one iteration, and the array, from one element to another, which may be
/// that of several iterations later. `Some(None)` to one of another array.
fn change(from: (Feature, i64), to: (Feature, i64)) -> Option<Option<(u32, i64)>> {
    let iterations = to.1 - from.1;
    match (from.0, to.0) {
        (Feature::Element { array, index }, Feature::Element { array: same, index: next }) => {
            let is_whole = array == same && (next - index) % iterations == 0;
            Some(is_whole.then_some((array, (next - index) / iterations)))
        }
        _ => None,
    }
}

/// For each array the change that at least half of its `changes` are.
fn usual<I: Iterator<Item = Option<(u32, i64)>>>(changes: impl Fn() -> I) -> HashMap<u32, i64> {
    let Some(first) = changes().next() else { return HashMap::new() };
    if changes().all(|change| change == first) {
        return first.into_iter().collect();
    }
    let mut counts: HashMap<(u32, i64), usize> = HashMap::new();
    changes().flatten().for_each(|change| *counts.entry(change).or_default() += 1);
    let mut all: HashMap<u32, usize> = HashMap::new();
    counts.iter().for_each(|(&(array, _), count)| *all.entry(array).or_default() += count);
    let most = counts.into_iter().filter(|&((array, _), count)| 2 * count >= all[&array]);
    let mut most: Vec<((u32, i64), usize)> = most.collect();
    most.sort_unstable_by_key(|&(change, count)| (count, change));
    most.into_iter().map(|(change, _)| change).collect()
}

/// The bounds of the pieces of `whole` in which the trip counts of inner loops are progressions.
fn by_trip_counts(parse: &Parse, whole: &[Token], period: usize) -> Vec<usize> {
    /// The largest number of pieces without regular lengths.
    const MOST_PIECES: usize = 4;
    let times = whole.len() / period;
    let trips = |iteration: usize| {
        whole[iteration * period..][..period].iter().filter_map(|token| match token.key {
            Key::Loop(_) => Some(i64::from(parse.executions[token.execution as usize].times)),
            Key::Form(_) => None,
        })
    };
    let change = |at: usize| trips(at).zip(trips(at - 1)).map(|(own, before)| own - before);
    let is_same = |at: usize, other: usize| change(at).eq(change(other));
    let (mut bounds, all) = (vec![0, times], 0..times);
    let mut pending = vec![all];
    while let Some(part) = pending.pop() {
        if part.len() < 2 {
            continue;
        }
        let middle = part.start + part.len() / 2;
        let first = (part.start + 1..middle).rev().take_while(|&at| is_same(at, middle)).last();
        let last = (middle..part.end).take_while(|&at| is_same(at, middle)).last();
        let piece = first.unwrap_or(middle) - 1..last.unwrap_or(middle) + 1;
        bounds.extend([piece.start, piece.end]);
        pending.extend([part.start..piece.start, piece.end..part.end]);
    }
    bounds.sort_unstable();
    bounds.dedup();
    let lengths: Vec<usize> = bounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    match lengths.len() <= MOST_PIECES || are_rows(&lengths) {
        true => bounds,
        false => vec![0, times],
    }
}

/// Tests whether these may be the lengths of the rows of rectangles or triangles: from one to the next
/// mostly the same change, and otherwise back.
fn are_rows(lengths: &[usize]) -> bool {
    const LEAST_ROWS: usize = 3;
    if lengths.len() < LEAST_ROWS {
        return false;
    }
    let changes = || lengths.windows(2).map(|pair| pair[1] as i64 - pair[0] as i64);
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    changes().for_each(|by| *counts.entry(by).or_default() += 1);
    let Some((usual, count)) = counts.into_iter().max_by_key(|&(by, count)| (count, by)) else {
        return false;
    };
    // Back to the first row, or to a shorter or longer one.
    let is_back = |by: i64| by == usual || by.signum() == -usual.signum() && usual != 0;
    4 * count >= 3 * (lengths.len() - 1) && changes().all(is_back)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_lengths_in_progression() {
        let pyramid = &[1, 2, 1, 2, 3, 1, 2, 3, 4, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6];
        for rows in [&[5, 5, 5][..], &[1, 2, 3, 4], &[3, 2, 1, 3, 2, 1], &[7, 5, 3], pyramid] {
            assert!(are_rows(rows), "{rows:?}");
        }
        for others in [&[5, 5][..], &[1, 20, 1], &[1, 5], &[4, 4, 5, 4], &[3, 2, 1, 3, 1]] {
            assert!(!are_rows(others), "{others:?}");
        }
    }
}
