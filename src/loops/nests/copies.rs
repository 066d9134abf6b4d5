//! Values from before all loops in a matrix of cells, as few loops that store them.

use std::collections::BTreeMap;

use super::operands::Leaf;

/// A value in a cell.
type Stored = (i64, Leaf);

/// The changes of the cell and of the number of the input from one value to another.
pub(super) type Change = (i64, i64);

/// Values whose cells, and numbers of inputs, are progressions. Constants are the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) first: Stored,
    pub(super) count: i64,
    pub(super) by: Change,
}

/// Rows that begin in progressions, each so many values longer than the one before.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rows {
    pub(super) first: Row,
    pub(super) count: i64,
    pub(super) by: Change,
    pub(super) longer: i64,
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

/// `leaves` in rows of rows; `None` if there are too many.
pub(super) fn copies(leaves: &BTreeMap<i64, Leaf>) -> Option<Vec<Rows>> {
    let rows = rows(leaves)?;
    let mut free: BTreeMap<i64, Row> = rows.iter().map(|row| (row.first.0, row.clone())).collect();
    let mut parts = Vec::new();
    for (at, first) in rows.iter().enumerate() {
        if !free.contains_key(&first.first.0) {
            continue;
        }
        let from = |by: Change, longer: i64| {
            let next = |row: &Row| {
                let next = free.get(&(row.first.0 + by.0))?;
                (row_change(row, next) == Some((by, longer))).then(|| next.clone())
            };
            core::iter::successors(Some(first.clone()), next).collect::<Vec<_>>()
        };
        let others = rows[at + 1..].iter().filter(|other| free.contains_key(&other.first.0));
        let others = others.filter(|other| other.by == first.by).take(TRIED);
        let longest = others
            .filter_map(|other| row_change(first, other))
            .map(|(by, longer)| (from(by, longer), by, longer))
            .max_by_key(|(rows, ..)| rows.len())
            .filter(|(rows, ..)| rows.len() >= LEAST_ROWS && first.count > 1);
        let (rows, by, longer) = longest.unwrap_or_else(|| (vec![first.clone()], (0, 0), 0));
        rows.iter().for_each(|row| _ = free.remove(&row.first.0));
        parts.push(Rows { first: first.clone(), count: rows.len() as i64, by, longer });
        (parts.len() <= MOST_PARTS).then_some(())?;
    }
    Some(parts)
}

/// `leaves` in rows: progressions of at least four, and single ones.
fn rows(leaves: &BTreeMap<i64, Leaf>) -> Option<Vec<Row>> {
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
    rows.extend(free.into_iter().map(|first| Row { first, count: 1, by: (0, 0) }));
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
    rows: &mut Vec<Row>,
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
            rows.push(Row { first, count: row.len() as i64, by });
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

/// The change from the first value of a row to that of another one, and by how many values that is
/// longer.
fn row_change(from: &Row, to: &Row) -> Option<(Change, i64)> {
    let by = change(from.first, to.first).filter(|_| from.by == to.by)?;
    Some((by, to.count - from.count))
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
        let count = |part: &Rows| {
            (0..part.count).map(|row| part.first.count + row * part.longer).sum::<i64>()
        };
        assert_eq!(parts.iter().map(count).sum::<i64>(), 380);
        // Nothing tells where the next one is.
        let scattered = (0..200).map(|i| (i64::from(i * i), Leaf::Input(i)));
        assert_eq!(copies(&scattered.collect()), None);
    }
}
