//! Sparsity patterns: the entries of a matrix that may be other than zero, row by row.

/// The entries of a matrix that may be other than zero, in compressed rows. The columns of each row
/// are sorted and distinct. For an example see [`pattern_of_graph`](super::pattern_of_graph).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub(crate) columns: usize,
    /// The number of the first entry of each row, and the number of entries.
    pub(crate) offsets: Vec<usize>,
    /// The column of each entry.
    pub(crate) indices: Vec<usize>,
}

impl Default for Pattern {
    /// That of a matrix without rows and columns.
    fn default() -> Self {
        Pattern::with_columns(0)
    }
}

impl Pattern {
    /// A pattern without rows.
    pub(crate) fn with_columns(columns: usize) -> Self {
        Pattern { columns, offsets: vec![0], indices: Vec::new() }
    }

    /// The pattern with all entries.
    pub(crate) fn dense(rows: usize, columns: usize) -> Self {
        Pattern {
            columns,
            offsets: (0..=rows).map(|row| row * columns).collect(),
            indices: (0..rows).flat_map(|_| 0..columns).collect(),
        }
    }

    /// Appends a row with these columns, which are sorted and distinct.
    pub(crate) fn push_row(&mut self, columns: impl IntoIterator<Item = usize>) {
        self.indices.extend(columns);
        self.offsets.push(self.indices.len());
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.indices.len()
    }

    /// The columns of `row`.
    pub fn row(&self, row: usize) -> &[usize] {
        &self.indices[self.offsets[row]..self.offsets[row + 1]]
    }

    /// The number of the entry at `row` and `column`.
    pub(crate) fn find(&self, row: usize, column: usize) -> Option<usize> {
        let found = self.row(row).binary_search(&column).ok()?;
        Some(self.offsets[row] + found)
    }

    /// The largest number of entries in a row.
    pub(crate) fn longest_row(&self) -> usize {
        self.offsets.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0)
    }

    /// Tests whether all entries of `other`, a pattern of the same size, are entries.
    pub(crate) fn covers(&self, other: &Pattern) -> bool {
        (0..self.rows()).all(|row| is_subset(other.row(row), self.row(row)))
    }

    /// The entries of both patterns, which are of one size.
    pub(crate) fn union(&self, other: &Pattern) -> Pattern {
        let mut union = Pattern::with_columns(self.columns);
        let mut columns = Vec::new();
        for row in 0..self.rows() {
            columns.clear();
            columns.extend([self.row(row), other.row(row)].concat());
            columns.sort_unstable();
            columns.dedup();
            union.push_row(columns.iter().copied());
        }
        union
    }

    /// The pattern of the transposed matrix, and for each of its entries the number of the one
    /// here.
    pub(crate) fn transposed(&self) -> (Pattern, Vec<usize>) {
        let mut offsets = vec![0; self.columns + 1];
        self.indices.iter().for_each(|&column| offsets[column + 1] += 1);
        (0..self.columns).for_each(|column| offsets[column + 1] += offsets[column]);
        let (mut next, mut indices) = (offsets.clone(), vec![0; self.len()]);
        let mut entries = vec![0; self.len()];
        for row in 0..self.rows() {
            for entry in self.offsets[row]..self.offsets[row + 1] {
                let place = &mut next[self.indices[entry]];
                (indices[*place], entries[*place]) = (row, entry);
                *place += 1;
            }
        }
        (Pattern { columns: self.rows(), offsets, indices }, entries)
    }
}

/// Tests whether all of `some` are in `all`; both are sorted.
fn is_subset(some: &[usize], all: &[usize]) -> bool {
    let mut rest = all.iter();
    some.len() <= all.len() && some.iter().all(|one| rest.any(|other| other == one))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(columns: usize, rows: &[&[usize]]) -> Pattern {
        let mut pattern = Pattern::with_columns(columns);
        rows.iter().for_each(|row| pattern.push_row(row.iter().copied()));
        pattern
    }

    #[test]
    fn unions_cover_both() {
        let (a, b) = (pattern(4, &[&[0, 2], &[], &[1]]), pattern(4, &[&[1, 2], &[3], &[1]]));
        let union = a.union(&b);
        assert_eq!(union, pattern(4, &[&[0, 1, 2], &[3], &[1]]));
        assert!(union.covers(&a) && union.covers(&b) && !a.covers(&b) && !b.covers(&a));
        assert!(Pattern::dense(3, 4).covers(&union));
    }

    #[test]
    fn transposed_entries_are_numbered() {
        let a = pattern(3, &[&[0, 2], &[2]]);
        let (transposed, entries) = a.transposed();
        assert_eq!(transposed, pattern(2, &[&[0], &[], &[0, 1]]));
        assert_eq!(entries, [0, 1, 2]);
        assert_eq!((a.find(1, 2), a.find(1, 0), a.longest_row()), (Some(2), None, 2));
    }
}
