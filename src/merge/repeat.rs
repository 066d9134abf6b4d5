//! Repeats: parts of traces that repeat themselves, kept as one step of the tree.
//!
//! A repeat is nothing but a short form of its steps: iterations can be made single
//! steps at any time (`cut`), and values keep their ids. So whatever has to look at
//! single steps cuts it first: a walk of a trace that does something else in one
//! iteration, and sharing.

use std::sync::Arc;

use smallvec::SmallVec;

use super::tree::{Step, Tree, Value};
use crate::entity::{Entity, entity};
use crate::op::Op;
use crate::trace::Site;

entity!(
    /// A part of a trace that repeats itself.
    RepeatId,
    "t"
);

/// The same steps so many times.
#[derive(Clone, Debug)]
pub(super) struct Repeat {
    /// The value of the first part of the first iteration. The others follow, one
    /// for each part of each iteration.
    pub(super) first: Value,
    pub(super) times: usize,
    /// Whether it reads values of another one, in each iteration others.
    pub(super) goes_through_values: bool,
    /// Whether it was cut from a longer one.
    pub(super) is_piece: bool,
    /// The parts of an iteration.
    pub(super) body: Vec<Part>,
}

/// A part of each iteration.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// No step, and a value that is never used.
    Nothing,
    /// Applies a primitive; a guard follows if there is an outcome.
    Apply { op: Op, slots: SmallVec<[Slot; 2]>, outcome: Option<bool>, site: Site },
}

/// What an operand is in each iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// A value, in each iteration that many further.
    Value { first: Value, by: i64 },
    /// One constant for each iteration.
    Table(Arc<[u64]>),
    /// The value of this part in the iteration so far back. In the first iterations,
    /// as many as the distance, these.
    Inside { at: usize, distance: usize, firsts: SmallVec<[Value; 1]> },
}

impl Repeat {
    /// How many values it has.
    pub(super) fn len(&self) -> usize {
        self.body.len() * self.times
    }

    /// The value of part number `at` of an iteration.
    pub(super) fn value(&self, at: usize, iteration: usize) -> Value {
        Value::from_index(self.first.index() + iteration * self.body.len() + at)
    }

    /// The part and the iteration of `value`, one of its values.
    pub(super) fn part(&self, value: Value) -> (usize, usize) {
        let index = value.index() - self.first.index();
        (index % self.body.len(), index / self.body.len())
    }

    /// For how many steps it stands.
    pub(super) fn steps(&self) -> usize {
        let steps = self.body.iter().map(|part| match part {
            Part::Nothing => 0,
            Part::Apply { outcome: None, .. } => 1,
            Part::Apply { outcome: Some(_), .. } => 2,
        });
        steps.sum::<usize>().saturating_mul(self.times)
    }

    /// The operands of its parts.
    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        let slots = self.body.iter().map(|part| match part {
            Part::Nothing => &[][..],
            Part::Apply { slots, .. } => &slots[..],
        });
        slots.flatten()
    }
}

impl Tree {
    /// For how many steps `step` stands.
    pub(super) fn weight(&self, step: &Step) -> usize {
        match *step {
            Step::Value(_) | Step::Guard { .. } => 1,
            Step::Repeat(repeat) => self.repeats[repeat].steps(),
        }
    }

    /// Whether any step stands for others.
    pub(super) fn has_repeats(&self) -> bool {
        self.repeats.values().any(|repeat| repeat.times > 0)
    }
}
