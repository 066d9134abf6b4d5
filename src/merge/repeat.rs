//! Loops in merged traces: a segment of a trace that repeats is one step of the tree.
//!
//! A loop is a compressed form of its steps: iterations can be peeled at any time
//! (`loop_splitting`), and values keep their ids. Code that needs single steps peels them first:
//! path sharing, and the walk of a trace that differs in one iteration.

use std::sync::Arc;

use smallvec::SmallVec;

use super::tree::{Step, Tree, Value};
use crate::entity::{Entity, entity};
use crate::op::Op;
use crate::trace::Site;

entity!(
    /// A loop in the merged traces.
    RepeatId,
    "t"
);

/// A loop: the same steps, a number of times.
#[derive(Clone, Debug)]
pub(super) struct Repeat {
    /// The value of the first step of the first iteration. The others follow, one for each step of
    /// each iteration.
    pub(super) first: Value,
    pub(super) times: usize,
    /// True if it reads values of another loop with a stride.
    pub(super) goes_through_values: bool,
    /// True if it was split from a longer loop.
    pub(super) is_piece: bool,
    /// The steps of an iteration.
    pub(super) body: Vec<Part>,
}

/// A step of each iteration.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// No step, and a value that is never used.
    Nothing,
    /// Applies a primitive; a guard of it follows if there is an outcome.
    Apply { op: Op, slots: SmallVec<[Slot; 2]>, outcome: Option<bool>, site: Site },
}

/// The rule of an operand over the iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The value `first + stride · iteration`.
    Value { first: Value, by: i64 },
    /// A constant for each iteration.
    Table(Arc<[u64]>),
    /// The value of step `at` of the body, `distance` iterations earlier; in the first `distance`
    /// iterations the values `initial`.
    Inside { at: usize, distance: usize, firsts: SmallVec<[Value; 1]> },
}

impl Repeat {
    /// The number of its values.
    pub(super) fn len(&self) -> usize {
        self.body.len() * self.times
    }

    /// The value of step number `at` of an iteration.
    pub(super) fn value(&self, at: usize, iteration: usize) -> Value {
        Value::from_index(self.first.index() + iteration * self.body.len() + at)
    }

    /// The step and the iteration of `value`, one of its values.
    pub(super) fn part(&self, value: Value) -> (usize, usize) {
        let index = value.index() - self.first.index();
        (index % self.body.len(), index / self.body.len())
    }

    /// The number of steps if all iterations are peeled.
    pub(super) fn steps(&self) -> usize {
        let steps = self.body.iter().map(|part| match part {
            Part::Nothing => 0,
            Part::Apply { outcome: None, .. } => 1,
            Part::Apply { outcome: Some(_), .. } => 2,
        });
        steps.sum::<usize>().saturating_mul(self.times)
    }

    /// The operands of all steps.
    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        let slots = self.body.iter().map(|part| match part {
            Part::Nothing => &[][..],
            Part::Apply { slots, .. } => &slots[..],
        });
        slots.flatten()
    }
}

impl Tree {
    /// The number of steps that `step` counts for.
    pub(super) fn weight(&self, step: &Step) -> usize {
        match *step {
            Step::Value(_) | Step::Guard { .. } => 1,
            Step::Repeat(repeat) => self.repeats[repeat].steps(),
        }
    }

    /// Tests whether any step is a loop.
    pub(super) fn has_repeats(&self) -> bool {
        self.repeats.values().any(|repeat| repeat.times > 0)
    }
}
