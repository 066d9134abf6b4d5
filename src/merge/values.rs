//! The values of the tree: a list of origins, with gaps for the values of loops.

use core::ops::Index;

use super::trace_loop::TraceLoopId;
use super::tree::{Origin, Value};
use crate::entity::Entity;

/// Values with their origins. Values of loops have ids, but no origin of their own.
#[derive(Clone, Debug)]
pub(super) struct Values {
    origins: Vec<Origin>,
    /// In the order of their first values, without gaps; at least one.
    pieces: Vec<Piece>,
    len: usize,
    before: Option<Before>,
}

/// The state at the beginning of a transaction.
#[derive(Clone, Debug)]
struct Before {
    len: usize,
    origins: usize,
    pieces: usize,
    /// All former pieces, if some were replaced rather than added.
    replaced: Option<Vec<Piece>>,
}

/// The values up to those of the next piece.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The index of the first value.
    first: usize,
    /// The place of the first value.
    at: Place,
}

impl Values {
    /// The number of values.
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

    /// Appends `count` values of a loop; returns the first one.
    pub(super) fn reserve(&mut self, count: usize, trace_loop: TraceLoopId) -> Value {
        let first = self.len;
        self.pieces.push(Piece { first, at: Place::Loop(trace_loop) });
        self.len += count;
        Value::from_index(first)
    }

    /// Replaces the values of the loop that begins with `first` by other sources, in order.
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
                Source::Loop(trace_loop, count) => (Place::Loop(trace_loop), count),
            };
            pieces.push(Piece { first, at });
            first += count;
        }
        self.pieces.splice(index..=index, pieces);
    }

    /// Begins a transaction.
    pub(super) fn begin(&mut self) {
        let (len, origins, pieces) = (self.len, self.origins.len(), self.pieces.len());
        self.before = Some(Before { len, origins, pieces, replaced: None });
    }

    /// Keeps the changes.
    pub(super) fn commit(&mut self) {
        self.before = None;
    }

    /// Undoes the changes.
    pub(super) fn roll_back(&mut self) {
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

    /// The origins added in this transaction.
    pub(super) fn newer(&self) -> &[Origin] {
        let origins = self.before.as_ref().map_or(self.origins.len(), |before| before.origins);
        &self.origins[origins..]
    }

    /// The place of `value`.
    pub(super) fn place(&self, value: Value) -> Place {
        let index = value.index();
        let next = self.pieces.partition_point(|piece| piece.first <= index);
        let piece = next.checked_sub(1).and_then(|last| self.pieces.get(last));
        piece.map_or(Place::Origin(index), |piece| piece.place(index))
    }

    /// All origins, in no particular order.
    pub(super) fn origins(&self) -> &[Origin] {
        &self.origins
    }
}

impl Piece {
    /// The place of the value with this index, which is in this piece.
    fn place(&self, index: usize) -> Place {
        match self.at {
            Place::Origin(first) => Place::Origin(first + index - self.first),
            Place::Loop(trace_loop) => Place::Loop(trace_loop),
        }
    }
}

/// The source of consecutive values.
pub(super) enum Source {
    Origins(Vec<Origin>),
    /// A number of values of this loop.
    Loop(TraceLoopId, usize),
}

/// The place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The origin with this index.
    Origin(usize),
    /// A loop.
    Loop(TraceLoopId),
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
            Place::Loop(_) => &Origin::InLoop,
        }
    }
}
