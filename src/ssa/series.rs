//! Loops of the graph, and the series of values that they read and write.

use smallvec::SmallVec;

use super::graph::{Node, Region};
use crate::entity::entity;

entity!(
    /// Values in a row, read by index.
    Series,
    "a"
);

entity!(
    /// A place in a series as a function of iteration numbers.
    Access,
    "i"
);

/// What makes a region a loop: its tree is gone through again and again.
///
/// Each end of its tree passes on `again`, then a value for each entry φ, then
/// one for each φ of the region. While `again` is not 0, the entry φs get their
/// values and the next iteration begins; otherwise the φs get theirs. A loop has
/// at least one iteration. One that wants more than `bound` iterations stops the
/// graph without a result, as a guard does.
///
/// A loop that replays another is gone through once for each iteration of that,
/// in reverse order. Its ends pass on no `again`; in each iteration it sees what
/// the other computed in that iteration. After the last one, the φs get their
/// values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The largest number of iterations; for a loop that replays, that of the other.
    pub bound: u32,
    /// The entry φs, in order.
    pub entries: Vec<Entry>,
}

/// An entry φ of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The φ, visible in the loop.
    pub phi: Node,
    /// Its value in the first iteration.
    pub first: Node,
}

/// What a series holds.
#[derive(Clone, Debug, PartialEq)]
pub enum SeriesData {
    /// Numbers, by their bits.
    Constants(Vec<u64>),
    /// Nodes that are visible where the series is read.
    Nodes(Vec<Node>),
    /// What a node was in each iteration of its innermost loop, a loop that has
    /// ended (within the current iteration of the loops around both).
    History(Node),
    /// Sums that grow by accumulation. [`Item::Fill`](super::Item::Fill) sets
    /// them to these nodes, or to zero.
    Sums(Vec<Option<Node>>),
}

/// A place in a series: `base` plus, for each stride, the current iteration
/// number of its loop times the stride.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessData {
    /// The series.
    pub series: Series,
    /// The index when all iteration numbers are zero.
    pub base: u32,
    /// Loops whose iteration number is known here (those around, and those that
    /// are replayed by those around), with what one iteration adds to the index.
    pub strides: SmallVec<[(Region, i32); 2]>,
}
