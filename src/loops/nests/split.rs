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

use hashbrown::HashMap;

use super::parse::{Key, Parse, Token};
use super::recording::Recording;
use crate::ssa::{Def, Node};

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

/// The pieces of `whole`, iterations of `period` tokens.
pub(super) fn split<'t>(
    recording: &Recording<'_>,
    parse: &Parse,
    whole: &'t [Token],
    period: usize,
) -> Vec<&'t [Token]> {
    /// The least number of iterations for pieces.
    const LEAST_ITERATIONS: usize = 4;
    let times = whole.len() / period;
    if times < LEAST_ITERATIONS {
        return vec![whole];
    }
    let firsts: Vec<u32> = whole.iter().step_by(period).map(|token| token.first).collect();
    let mut steps = Vec::new();
    for iteration in whole.chunks(period) {
        push_steps(parse, iteration, &mut steps);
    }
    let width = steps.len() / times;
    // The number of operands that begin anew with each iteration.
    let mut votes = vec![0; times];
    for (number, &step) in steps[..width].iter().enumerate() {
        for slot in 0..recording.operands(step).len() {
            let of_iteration = steps.iter().skip(number).step_by(width).enumerate();
            let column = of_iteration.map(|(iteration, &step)| {
                let before = iteration.checked_sub(1).map(|before| firsts[before]);
                feature(recording, recording.operands(step)[slot], firsts[iteration], before)
            });
            let column: Vec<Feature> = column.collect();
            beginnings(&column).into_iter().for_each(|at| votes[at] += 1);
        }
    }
    let most = votes.iter().copied().max().unwrap_or(0);
    let bounds = |least: u32| -> Vec<usize> {
        let starts = (1..times).filter(|&at| votes[at] >= least);
        core::iter::once(0).chain(starts).chain([times]).collect()
    };
    let is_found = |bounds: &Vec<usize>| {
        let lengths: Vec<usize> = bounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // The first row may begin later, and the last one end earlier.
        let first = usize::from(lengths[0] < lengths[lengths.len() / 2]);
        let last = lengths.len() - usize::from(lengths.last() < lengths.get(lengths.len() / 2));
        let is_inner = first < last && are_rows(&lengths[first..last]);
        2 * lengths.len() <= times + 2 && (are_rows(&lengths) || is_inner)
    };
    let found = (1..=most).map(bounds).find(is_found);
    let bounds = found.unwrap_or_else(|| without_ends(parse, whole, period));
    bounds.windows(2).map(|bounds| &whole[bounds[0] * period..bounds[1] * period]).collect()
}

/// Appends the steps of an iteration; of inner loops those of the first iteration.
fn push_steps(parse: &Parse, iteration: &[Token], steps: &mut Vec<u32>) {
    for token in iteration {
        match token.key {
            Key::Form(_) => steps.push(token.first),
            Key::Loop(number) => {
                let period = parse.bodies[number as usize].len();
                push_steps(parse, &parse.executions[token.execution as usize][..period], steps);
            }
        }
    }
}

/// The source of `node` in an iteration that begins at step `first`, the one before at `before`.
fn feature(recording: &Recording<'_>, node: Node, first: u32, before: Option<u32>) -> Feature {
    let graph = recording.graph;
    match recording.step_of(node) {
        Some(step) if step >= first => Feature::Any,
        Some(step) if before.is_some_and(|before| step >= before) => Feature::Before,
        Some(step) => {
            let array = recording.form_of_step[step as usize] + 1;
            Feature::Element { array, index: i64::from(recording.ordinals[step as usize]) }
        }
        None => match graph.nodes[node].def {
            Def::Input(number) => Feature::Element { array: 0, index: i64::from(number) },
            _ => Feature::Any,
        },
    }
}

/// The iterations whose operand does not follow from the one before as in most iterations.
fn beginnings(column: &[Feature]) -> Vec<usize> {
    let carried = column.iter().filter(|&&feature| feature == Feature::Before).count();
    let is_carried = 2 * carried >= column.len();
    let changes = || column.windows(2).filter_map(|pair| change(pair[0], pair[1]));
    let usual = if is_carried { None } else { usual(changes) };
    let is_unusual = |&at: &usize| match usual {
        _ if is_carried => column[at] != Feature::Before,
        Some(_) => change(column[at - 1], column[at]).is_some_and(|by| by != usual),
        None => false,
    };
    (1..column.len()).filter(is_unusual).collect()
}

/// The change of the index from one element to another; `Some(None)` to one of another array.
fn change(from: Feature, to: Feature) -> Option<Option<i64>> {
    match (from, to) {
        (Feature::Element { array, index }, Feature::Element { array: same, index: next }) => {
            Some((array == same).then_some(next - index))
        }
        _ => None,
    }
}

/// The change that at least half of `changes` are.
fn usual<I: Iterator<Item = Option<i64>>>(changes: impl Fn() -> I) -> Option<i64> {
    let first = changes().next()?;
    if first.is_some() && changes().all(|change| change == first) {
        return first;
    }
    let mut counts: HashMap<i64, usize> = HashMap::new();
    changes().flatten().for_each(|by| *counts.entry(by).or_default() += 1);
    let most = counts.into_iter().max_by_key(|&(by, count)| (count, by));
    most.filter(|&(_, count)| 2 * count >= changes().count()).map(|(by, _)| by)
}

/// The bounds of the pieces of `whole`: all iterations, but for a first and a last one in which inner
/// loops have other trip counts than follow from the others.
fn without_ends(parse: &Parse, whole: &[Token], period: usize) -> Vec<usize> {
    let times = whole.len() / period;
    let trips = |iteration: usize| {
        whole[iteration * period..][..period].iter().filter_map(|token| match token.key {
            Key::Loop(number) => {
                let tokens = &parse.executions[token.execution as usize];
                Some((tokens.len() / parse.bodies[number as usize].len()) as i64)
            }
            Key::Form(_) => None,
        })
    };
    let change = |at: usize| trips(at).zip(trips(at - 1)).map(|(own, before)| own - before);
    let is_usual = |at: usize| change(at).eq(change(times / 2));
    let mut bounds = vec![0];
    if !is_usual(1) {
        bounds.push(1);
    }
    if !is_usual(times - 1) {
        bounds.push(times - 1);
    }
    bounds.push(times);
    bounds
}

/// Tests whether these may be the lengths of the rows of a rectangle or triangle, or of several equal
/// ones.
fn are_rows(lengths: &[usize]) -> bool {
    const LEAST_ROWS: usize = 3;
    if lengths.len() < LEAST_ROWS {
        return false;
    }
    let change = |at: usize| lengths[at] as i64 - lengths[at - 1] as i64;
    let rows = (2..lengths.len()).find(|&at| change(at) != change(1)).unwrap_or(lengths.len());
    rows >= LEAST_ROWS && (rows..lengths.len()).all(|at| lengths[at] == lengths[at - rows])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_lengths_in_progression() {
        for rows in [&[5, 5, 5][..], &[1, 2, 3, 4], &[3, 2, 1, 3, 2, 1], &[7, 5, 3]] {
            assert!(are_rows(rows), "{rows:?}");
        }
        for others in [&[5, 5][..], &[1, 20, 1], &[1, 5], &[4, 4, 5, 4], &[3, 2, 1, 3, 1]] {
            assert!(!are_rows(others), "{others:?}");
        }
    }
}
