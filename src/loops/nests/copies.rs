//! Groups the values that a matrix holds from before all loops into few loops of stores.

use std::collections::BTreeMap;

use super::operands::Leaf;

/// A value in a cell.
type Stored = (i64, Leaf);

/// The changes of the cell and of the number of the input from one value to another.
pub(super) type Change = (i64, i64);

/// Values in a nest of loops: cells, and numbers of inputs, are progressions in each loop. Constants are
/// the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Copies {
    pub(super) first: Stored,
    /// The loops, outermost first.
    pub(super) loops: Vec<CopyLoop>,
}

/// A loop that copies values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CopyLoop {
    /// The trip count in the first iteration of the loop around.
    pub(super) count: i64,
    pub(super) by: Change,
    /// The number by which the trip count of the next inner loop grows from one iteration to the next.
    pub(super) longer: i64,
}

impl Copies {
    /// The change from the first value to that of `next`, and by how many iterations its outermost
    /// loop is longer; `None` if the loops differ otherwise.
    fn change(&self, next: &Copies) -> Option<(Change, i64)> {
        let (Some((own, inner)), Some((other, rest))) =
            (self.loops.split_first(), next.loops.split_first())
        else {
            return None;
        };
        let is_same = CopyLoop { count: other.count, ..*own } == *other && inner == rest;
        let by = change(self.first, next.first).filter(|_| is_same)?;
        Some((by, other.count - own.count))
    }
}

/// The largest number of rows.
const MOST_ROWS: usize = 1 << 12;
/// The largest number of loops and stores for values from before all loops.
const MOST_PARTS: usize = 64;
/// The number of next values or rows that are tried as the second of a progression.
const TRIED: usize = 4;
/// The least number of values and of rows in a loop.
const LEAST_VALUES: usize = 4;
const LEAST_ROWS: usize = 3;

/// `leaves` in few loops and stores; `None` if there are too many.
pub(super) fn copies(leaves: &BTreeMap<i64, Leaf>) -> Option<Vec<Copies>> {
    let mut all = rows(leaves)?;
    loop {
        let before = all.len();
        all = in_loops(&all);
        if all.len() == before {
            return (before <= MOST_PARTS).then_some(all);
        }
    }
}

/// `copies` in loops around those whose first values are progressions.
fn in_loops(copies: &[Copies]) -> Vec<Copies> {
    let mut free: BTreeMap<i64, &Copies> = copies.iter().map(|one| (one.first.0, one)).collect();
    let mut found = Vec::new();
    for (at, first) in copies.iter().enumerate() {
        if !free.contains_key(&first.first.0) {
            continue;
        }
        let from = |by: Change, longer: i64| {
            let next = |&one: &&Copies| {
                let next = *free.get(&(one.first.0 + by.0))?;
                (one.change(next) == Some((by, longer))).then_some(next)
            };
            core::iter::successors(Some(first), next).map(|one| one.first.0).collect::<Vec<_>>()
        };
        let others = copies[at + 1..].iter().filter(|other| free.contains_key(&other.first.0));
        let changes = others.filter_map(|other| first.change(other)).take(TRIED);
        let longest = changes
            .map(|(by, longer)| (from(by, longer), by, longer))
            .max_by_key(|(cells, ..)| cells.len())
            .filter(|(cells, ..)| cells.len() >= LEAST_ROWS);
        let (mut loops, mut cells) = (first.loops.clone(), vec![first.first.0]);
        if let Some((all, by, longer)) = longest {
            loops.insert(0, CopyLoop { count: all.len() as i64, by, longer });
            cells = all;
        }
        cells.iter().for_each(|cell| _ = free.remove(cell));
        found.push(Copies { first: first.first, loops });
    }
    found
}

/// `leaves` in rows: progressions of at least four, and single ones.
fn rows(leaves: &BTreeMap<i64, Leaf>) -> Option<Vec<Copies>> {
    let (mut free, mut rows) = (leaves.clone(), Vec::new());
    // One value in many cells first: what is left are rows of different values.
    let mut groups: BTreeMap<Leaf, Vec<Stored>> = BTreeMap::new();
    for (&index, &leaf) in leaves {
        groups.entry(leaf).or_default().push((index, leaf));
    }
    for group in groups.values() {
        take_rows(group, None, &mut free, &mut rows)?;
    }
    // Then the rows of matrices, of which each begins somewhere else.
    let mut counts: BTreeMap<Change, usize> = BTreeMap::new();
    let rest = stored(&free);
    let changes = rest.windows(2).filter_map(|pair| change(pair[0], pair[1]));
    changes.for_each(|by| *counts.entry(by).or_default() += 1);
    let usual = counts.into_iter().max_by_key(|&(_, count)| count).map(|(by, _)| by);
    take_rows(&rest, usual, &mut free, &mut rows)?;
    take_rows(&stored(&free), None, &mut free, &mut rows)?;
    // Single values stay single.
    (free.len() <= MOST_PARTS).then_some(())?;
    rows.extend(free.into_iter().map(|first| Copies { first, loops: Vec::new() }));
    Some(rows)
}

fn stored(leaves: &BTreeMap<i64, Leaf>) -> Vec<Stored> {
    leaves.iter().map(|(&index, &leaf)| (index, leaf)).collect()
}

/// Moves progressions that begin with two of `leaves`, with the change `by` if there is one, from
/// `free` to `rows`.
fn take_rows(
    leaves: &[Stored],
    by: Option<Change>,
    free: &mut BTreeMap<i64, Leaf>,
    rows: &mut Vec<Copies>,
) -> Option<()> {
    for (at, &first) in leaves.iter().enumerate() {
        if !free.contains_key(&first.0) {
            continue;
        }
        let from = |by: Change| {
            let next = |&leaf: &Stored| {
                let index = leaf.0 + by.0;
                let next = (index, *free.get(&index)?);
                (change(leaf, next) == Some(by)).then_some(next)
            };
            (core::iter::successors(Some(first), next).collect::<Vec<_>>(), by)
        };
        let others = leaves[at + 1..].iter().filter(|other| free.contains_key(&other.0));
        let changes = others.take(TRIED).filter_map(|&other| change(first, other));
        let changes = changes.filter(|&own| by.is_none_or(|by| by == own));
        let longest = changes.map(from).max_by_key(|(row, _)| row.len());
        if let Some((row, by)) = longest.filter(|(row, _)| row.len() >= LEAST_VALUES) {
            row.iter().for_each(|leaf| _ = free.remove(&leaf.0));
            let row = CopyLoop { count: row.len() as i64, by, longer: 0 };
            rows.push(Copies { first, loops: vec![row] });
            (rows.len() <= MOST_ROWS).then_some(())?;
        }
    }
    Some(())
}

/// The change from one value to another one.
fn change(from: Stored, to: Stored) -> Option<Change> {
    let number = match (from.1, to.1) {
        (Leaf::Input(from), Leaf::Input(to)) => Some(i64::from(to) - i64::from(from)),
        (from, to) => (from == to).then_some(0),
    };
    number.map(|number| (to.0 - from.0, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triangles_are_rows_of_rows() {
        // The elements of a matrix but those of its diagonal, in cells of another width.
        let inputs = (0..20).flat_map(|i| (0..20).map(move |j| (i, j))).filter(|(i, j)| i != j);
        let leaves = inputs.map(|(i, j)| (i64::from(30 * i + j), Leaf::Input(20 * i + j)));
        let parts = copies(&leaves.collect()).unwrap();
        assert!(parts.len() < 16, "{parts:?}");
        let count = |part: &Copies| match part.loops[..] {
            [] => 1,
            [row] => row.count,
            [rows, row] => (0..rows.count).map(|at| row.count + at * rows.longer).sum::<i64>(),
            _ => panic!("{part:?}"),
        };
        assert_eq!(parts.iter().map(count).sum::<i64>(), 380);
        // The four sides of a grid, in time steps.
        let sides = (0..9).flat_map(|t| (1..21).map(move |at| (t, at)));
        let sides = sides.flat_map(|(t, at)| {
            [(0, at), (21, at), (at, 0), (at, 21)].map(|(i, j)| (500 * t + 22 * i + j, 22 * i + j))
        });
        let leaves = sides.map(|(cell, input)| (i64::from(cell), Leaf::Input(input as u32)));
        let parts = copies(&leaves.collect()).unwrap();
        assert!(parts.len() < 8, "{parts:?}");
        // Nothing tells where the next one is.
        let scattered = (0..200).map(|i| (i64::from(i * i), Leaf::Input(i)));
        assert_eq!(copies(&scattered.collect()), None);
    }
}
