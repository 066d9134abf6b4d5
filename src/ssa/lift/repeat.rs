//! Repeats: parts of traces that repeat themselves, kept as one step of the tree.
//!
//! A repeat is nothing but a short form of its steps: it can be expanded into them
//! at any time, and its values keep their ids. So whatever has to look at single
//! steps expands it first: a walk of a trace that does something else there, and
//! sharing.

use std::sync::Arc;

use smallvec::SmallVec;

use super::tree::{Origin, Step, Stretch, Tree, Value};
use super::values::Place;
use super::walk::pad;
use crate::entity::{Array, Entity, entity};
use crate::op::{MAX_ARITY, Op};
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

    /// Whether both stand for the same steps, wherever these come from.
    pub(super) fn is_same(&self, other: &Repeat) -> bool {
        let is_same = |pair: (&Part, &Part)| match pair {
            (Part::Nothing, Part::Nothing) => true,
            (
                Part::Apply { op, slots, outcome, .. },
                Part::Apply { op: other, slots: others, outcome: result, .. },
            ) => op == other && outcome == result && slots == others,
            _ => false,
        };
        self.times == other.times
            && self.body.len() == other.body.len()
            && self.body.iter().zip(&other.body).all(is_same)
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

    /// Expands the repeat that is step number `step` of `stretch`, and those that go
    /// through the values of repeats that are expanded.
    pub(super) fn expand(&mut self, stretch: Stretch, step: usize) {
        let Some(&Step::Repeat(id)) = self.stretches[stretch].steps.get(step) else { return };
        let mut wanted = Array::filled(false, self.repeats.len());
        wanted[id] = true;
        // They use what is older.
        for other in self.repeats.keys().skip(id.index() + 1) {
            let goes_through = |slot: &Slot| match *slot {
                Slot::Value { first, by } if by != 0 => match self.values.place(first) {
                    Place::Repeat(used) => wanted[used],
                    Place::Origin(_) => false,
                },
                _ => false,
            };
            wanted[other] = self.repeats[other].slots().any(goes_through);
        }
        self.expand_all_of(&wanted);
    }

    /// Expands all repeats.
    pub(super) fn expand_all(&mut self) {
        if self.has_repeats() {
            self.expand_all_of(&Array::filled(true, self.repeats.len()));
        }
    }

    /// Whether any step stands for others.
    pub(super) fn has_repeats(&self) -> bool {
        self.repeats.values().any(|repeat| repeat.times > 0)
    }

    /// Puts the steps that they stand for in place of these repeats.
    fn expand_all_of(&mut self, wanted: &Array<RepeatId, bool>) {
        let is_wanted = |step: &Step| matches!(step, Step::Repeat(id) if wanted[*id]);
        for stretch in self.stretches.keys() {
            if !self.stretches[stretch].steps.iter().any(is_wanted) {
                continue;
            }
            let short = core::mem::take(&mut self.stretches[stretch].steps);
            let (mut steps, count) = (Vec::new(), short.len());
            // How many steps there are now in place of so many.
            let mut places = Vec::with_capacity(count + 1);
            for step in short {
                places.push(steps.len());
                match step {
                    Step::Repeat(id) if wanted[id] => self.append(id, &mut steps),
                    _ => steps.push(step),
                }
            }
            places.push(steps.len());
            let data = &mut self.stretches[stretch];
            data.steps = steps;
            if let Some((_, at)) = &mut data.grown {
                *at = places[(*at).min(count)];
            }
        }
    }

    /// Appends the steps that the repeat stands for to `steps`; it is no more.
    fn append(&mut self, id: RepeatId, steps: &mut Vec<Step>) {
        let nothing = Repeat { first: self.input(0), times: 0, body: Vec::new() };
        let repeat = core::mem::replace(&mut self.repeats[id], nothing);
        let mut origins = Vec::with_capacity(repeat.len());
        steps.reserve(repeat.steps());
        for iteration in 0..repeat.times {
            for (at, part) in repeat.body.iter().enumerate() {
                let Part::Apply { op, slots, outcome, site } = part else {
                    origins.push(Origin::Repeated);
                    continue;
                };
                let mut args: SmallVec<[Value; MAX_ARITY]> = SmallVec::new();
                for slot in slots {
                    args.push(self.operand(&repeat, slot, iteration));
                }
                origins.push(Origin::Apply(*op, pad(&args), site));
                let condition = repeat.value(at, iteration);
                steps.push(Step::Value(condition));
                steps.extend(outcome.map(|expect| Step::Guard { condition, expect }));
            }
        }
        self.values.fill(repeat.first, origins);
    }

    /// What the operand `slot` of `repeat` is in an iteration.
    fn operand(&mut self, repeat: &Repeat, slot: &Slot, iteration: usize) -> Value {
        match slot {
            Slot::Value { first, by: 0 } => *first,
            Slot::Value { first, by } => {
                let index = first.index() as i64 + by * iteration as i64;
                Value::from_index(usize::try_from(index).unwrap_or(0))
            }
            Slot::Table(numbers) => self.constant(numbers[iteration]),
            Slot::Inside { at, distance, firsts } => match iteration.checked_sub(*distance) {
                Some(earlier) => repeat.value(*at, earlier),
                None => firsts[iteration],
            },
        }
    }
}
