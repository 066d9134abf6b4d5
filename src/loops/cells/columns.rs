//! The columns of cells: where each value of an array is in a row.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use crate::ssa::Node;

/// A value of an array in one iteration of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Value {
    /// The entry φ with this number.
    Carried(u32),
    /// The value of this node in this iteration of an inner loop.
    Saved(Node, u32),
    /// Another node of the loop's body.
    Single(Node),
    /// A node from before the loop.
    Invariant(Node),
}

/// The contents of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Value(Value),
    /// A copy of a value that is in another column: this node.
    Copy(Value, Node),
    /// Written, but not read.
    Reserved,
}

/// Columns of one matrix of cells, by position, which may be negative.
pub(super) type Columns = BTreeMap<i64, Column>;

/// The position of element i of an array: `scale · i + offset` in the columns of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    pub(super) matrix: usize,
    pub(super) scale: i64,
    pub(super) offset: i64,
}

/// The matrices so far.
#[derive(Default)]
pub(super) struct Layout {
    pub(super) matrices: Vec<Columns>,
    /// The matrix and column of each value that is not invariant.
    places: HashMap<Value, (usize, i64)>,
}

impl Layout {
    /// Places an array of `nodes` with these values, with copies of some: of `u[n - 1]` in front of
    /// `u[0]`, for example.
    pub(super) fn place(&mut self, nodes: &[Node], values: &[Value]) -> Placement {
        let values: Vec<Option<Value>> = values.iter().copied().map(Some).collect();
        let most = (values.len() / 8).max(1);
        let found =
            self.candidates(&values).into_iter().find(|place| self.fits(&values, place, most));
        let Some(place) = found else { return self.place_all(&values) };
        for ((&value, &node), index) in values.iter().zip(nodes).zip(0..) {
            let (at, Some(value)) = (place.scale * index + place.offset, value) else { continue };
            let is_own = self.places.get(&value).is_none_or(|&known| known == (place.matrix, at));
            let column = if is_own { Column::Value(value) } else { Column::Copy(value, node) };
            self.set(&place, at, column);
        }
        place
    }

    /// Places values of which each is in one column; `None` is written but not read.
    pub(super) fn place_all(&mut self, values: &[Option<Value>]) -> Placement {
        let found = self.candidates(values).into_iter().find(|place| self.fits(values, place, 0));
        let place = found.unwrap_or_else(|| {
            self.matrices.push(Columns::new());
            Placement { matrix: self.matrices.len() - 1, scale: 1, offset: 0 }
        });
        for (&value, index) in values.iter().zip(0..) {
            let at = place.scale * index + place.offset;
            self.set(&place, at, value.map_or(Column::Reserved, Column::Value));
        }
        place
    }

    fn set(&mut self, place: &Placement, at: i64, column: Column) {
        self.matrices[place.matrix].entry(at).or_insert(column);
        if let Column::Value(value) = column
            && !matches!(value, Value::Invariant(_))
        {
            self.places.entry(value).or_insert((place.matrix, at));
        }
    }

    /// The placements that agree with the first two values that are placed already, or with two in
    /// the middle.
    fn candidates(&self, values: &[Option<Value>]) -> Vec<Placement> {
        let known = values.iter().zip(0i64..).filter_map(|(value, index)| {
            let &(matrix, at) = self.places.get(value.as_ref()?)?;
            Some((index, matrix, at))
        });
        let known: Vec<(i64, usize, i64)> = known.collect();
        let middle = known.len() / 2;
        let pairs = [0, middle].map(|at| &known[at..known.len().min(at + 2)]);
        pairs.into_iter().flat_map(Layout::through).collect()
    }

    /// The placements with these indices at these columns of matrices.
    fn through(known: &[(i64, usize, i64)]) -> Vec<Placement> {
        let place = |matrix, scale, index: i64, at: i64| Placement {
            matrix,
            scale,
            offset: at - scale * index,
        };
        match *known {
            [(index, matrix, at)] => [1, -1].map(|scale| place(matrix, scale, index, at)).to_vec(),
            [(index, matrix, at), (other, same, to)] if matrix == same => {
                let (rise, run) = (to - at, other - index);
                let is_whole = rise != 0 && rise % run == 0;
                is_whole.then(|| place(matrix, rise / run, index, at)).into_iter().collect()
            }
            _ => vec![],
        }
    }

    /// Tests whether an array with this placement has its values in their columns, but for `most`
    /// copies, and no column of another value.
    fn fits(&self, values: &[Option<Value>], place: &Placement, most: usize) -> bool {
        let columns = &self.matrices[place.matrix];
        let mut copies = 0;
        values.iter().zip(0..).all(|(value, index)| {
            let at = place.scale * index + place.offset;
            let of_value = value.as_ref().and_then(|value| self.places.get(value));
            let is_own = of_value.is_none_or(|&known| known == (place.matrix, at));
            copies += usize::from(!is_own);
            let is_free = match columns.get(&at) {
                None => true,
                Some(Column::Value(there) | Column::Copy(there, _)) => {
                    Some(there) == value.as_ref()
                }
                Some(Column::Reserved) => false,
            };
            copies <= most && is_free
        })
    }
}
