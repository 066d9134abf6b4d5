//! The values of the tree: a list that has gaps, in which the values of repeats lie.

use core::ops::Index;

use super::repeat::RepeatId;
use super::tree::{Origin, Value};
use crate::entity::Entity;

/// Values with their origins. Those of repeats have ids, and no origin of their own.
#[derive(Clone, Debug)]
pub(super) struct Values {
    origins: Vec<Origin>,
    /// In the order of their first values, without gaps; one at least.
    pieces: Vec<Piece>,
    len: usize,
    before: Option<Before>,
}

/// How it was before changes that may be taken back.
#[derive(Clone, Debug)]
struct Before {
    len: usize,
    origins: usize,
    pieces: usize,
    /// All of them, if not only some were added.
    replaced: Option<Vec<Piece>>,
}

/// Values up to the next piece.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The index of the first value.
    first: usize,
    /// Where that is found.
    at: Place,
}

impl Values {
    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Appends a value.
    pub(super) fn push(&mut self, origin: Origin) -> Value {
        let next = Place::Origin(self.origins.len());
        if !self.pieces.last().is_some_and(|piece| piece.place(self.len) == next) {
            self.pieces.push(Piece { first: self.len, at: next });
        }
        self.origins.push(origin);
        self.len += 1;
        Value::from_index(self.len - 1)
    }

    /// Appends so many values of `repeat`; returns the first one.
    pub(super) fn reserve(&mut self, count: usize, repeat: RepeatId) -> Value {
        let first = self.len;
        self.pieces.push(Piece { first, at: Place::Repeat(repeat) });
        self.len += count;
        Value::from_index(first)
    }

    /// Gives the values of the repeat that begins with `first` other sources, in order.
    pub(super) fn replace(&mut self, first: Value, sources: Vec<Source>) {
        let mut first = first.index();
        let found = self.pieces.binary_search_by_key(&first, |piece| piece.first);
        let Ok(index) = found else { return };
        if let Some(before) = &mut self.before
            && before.replaced.is_none()
        {
            before.replaced = Some(self.pieces[..before.pieces].to_vec());
        }
        let mut pieces = Vec::with_capacity(sources.len());
        for source in sources {
            let (at, count) = match source {
                Source::Origins(origins) => {
                    let (at, count) = (Place::Origin(self.origins.len()), origins.len());
                    self.origins.extend(origins);
                    (at, count)
                }
                Source::Repeat(repeat, count) => (Place::Repeat(repeat), count),
            };
            pieces.push(Piece { first, at });
            first += count;
        }
        self.pieces.splice(index..=index, pieces);
    }

    /// From here on changes can be taken back.
    pub(super) fn begin(&mut self) {
        let (len, origins, pieces) = (self.len, self.origins.len(), self.pieces.len());
        self.before = Some(Before { len, origins, pieces, replaced: None });
    }

    /// What has changed stays so.
    pub(super) fn keep(&mut self) {
        self.before = None;
    }

    /// Takes back what has changed.
    pub(super) fn undo(&mut self) {
        let Some(Before { len, origins, pieces, replaced }) = self.before.take() else { return };
        (self.len, self.pieces) = match replaced {
            Some(replaced) => (len, replaced),
            None => {
                self.pieces.truncate(pieces);
                (len, core::mem::take(&mut self.pieces))
            }
        };
        self.origins.truncate(origins);
    }

    /// The origins that came in since changes can be taken back.
    pub(super) fn newer(&self) -> &[Origin] {
        let origins = self.before.as_ref().map_or(self.origins.len(), |before| before.origins);
        &self.origins[origins..]
    }

    /// Where `value` is found.
    pub(super) fn place(&self, value: Value) -> Place {
        let index = value.index();
        let next = self.pieces.partition_point(|piece| piece.first <= index);
        let piece = next.checked_sub(1).and_then(|last| self.pieces.get(last));
        piece.map_or(Place::Origin(index), |piece| piece.place(index))
    }

    /// The origins that are known, in any order.
    pub(super) fn origins(&self) -> &[Origin] {
        &self.origins
    }
}

impl Piece {
    /// Where the value with this index is, if it is in this piece.
    fn place(&self, index: usize) -> Place {
        match self.at {
            Place::Origin(first) => Place::Origin(first + index - self.first),
            Place::Repeat(repeat) => Place::Repeat(repeat),
        }
    }
}

/// Where values that follow one another come from.
pub(super) enum Source {
    Origins(Vec<Origin>),
    /// So many of this repeat.
    Repeat(RepeatId, usize),
}

/// Where a value is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Among the origins, with this number.
    Origin(usize),
    /// In this repeat.
    Repeat(RepeatId),
}

impl FromIterator<Origin> for Values {
    fn from_iter<I: IntoIterator<Item = Origin>>(origins: I) -> Self {
        let origins: Vec<Origin> = origins.into_iter().collect();
        let (len, pieces) = (origins.len(), vec![Piece { first: 0, at: Place::Origin(0) }]);
        Values { origins, pieces, len, before: None }
    }
}

impl Index<Value> for Values {
    type Output = Origin;

    fn index(&self, value: Value) -> &Origin {
        if let [_] = self.pieces[..] {
            return &self.origins[value.index()];
        }
        match self.place(value) {
            Place::Origin(index) => &self.origins[index],
            Place::Repeat(_) => &Origin::Repeated,
        }
    }
}
