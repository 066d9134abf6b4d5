//! Walking past parts of a trace that repeat themselves: as one step.

use std::sync::Arc;

use smallvec::SmallVec;

use super::notes::Known;
use super::repeat::{Part, Repeat, Slot};
use super::tree::{End, Step, Value};
use super::values::Place;
use super::walk::{Stop, Walk};
use super::{place, unknown_place};
use crate::entity::Entity;
use crate::trace::{self, Event, Operand, Role, Trace};

/// The repeats of a trace that is being walked along.
#[derive(Default)]
pub(super) struct Ahead {
    /// Once they have been looked for.
    found: Option<Vec<trace::Repeat>>,
    /// Before this event there are none that the tree could have.
    refused: usize,
}

impl Walk<'_> {
    /// Passes over the repeat that begins with `event`, the next one, if the tree has
    /// it or may take it in. Says whether there was one.
    ///
    /// Where the tree has one that the trace does not have, it is expanded.
    pub(super) fn skip(&mut self, trace: &Trace<'_>, event: &Event<'_>) -> Result<bool, Stop> {
        if !matches!(event.role(), Role::Apply | Role::Guard | Role::Constant) {
            return Ok(false);
        }
        let data = &self.tree.stretches[self.stretch];
        match data.steps.get(self.step) {
            Some(&Step::Repeat(id)) => {
                let known = &self.tree.repeats[id];
                let (first, period, times) = (known.first, known.body.len(), known.times);
                let seen = trace::Repeat { start: self.known.len(), period, times };
                let seen = self.repeat(trace, seen);
                if seen.is_some_and(|seen| seen.is_same(&self.tree.repeats[id])) {
                    self.look();
                    self.step += 1;
                    self.pass_over(trace, first, period * times)?;
                    return Ok(true);
                }
                // A constant before it is no step.
                if event.role() != Role::Constant {
                    self.tree.expand(self.stretch, self.step);
                }
                Ok(false)
            }
            None if self.grow && data.end == End::Open => self.grow_by_repeat(trace, event),
            _ => Ok(false),
        }
    }

    /// Adds the repeat that begins with the next event, if there is one.
    fn grow_by_repeat(&mut self, trace: &Trace<'_>, event: &Event<'_>) -> Result<bool, Stop> {
        let index = self.known.len();
        if index < self.repeats.refused {
            return Ok(false);
        }
        let Some(ahead) = self.ahead(trace, index) else { return Ok(false) };
        let Some(mut repeat) = self.repeat(trace, ahead) else {
            self.repeats.refused = ahead.end();
            return Ok(false);
        };
        self.must_grow(|| place(event.site()))?;
        let (count, id) = (repeat.len(), self.tree.repeats.next_key());
        let first = self.tree.values.reserve(count, id);
        repeat.first = first;
        self.tree.repeats.push(repeat);
        self.push(Step::Repeat(id));
        self.pass_over(trace, first, count)?;
        Ok(true)
    }

    /// The next `count` events stand for the values from `first` on.
    fn pass_over(&mut self, trace: &Trace<'_>, first: Value, count: usize) -> Result<(), Stop> {
        let entry = self.open.last().map_or(0, |open| open.entry);
        let start = self.known.len();
        self.known.push_repeat(Known { value: first, entry }, count);
        if let Some(watch) = &mut self.watch {
            let mut events = (start..start + count).rev().map(|index| trace.events.at(index));
            if let Some(guard) = events.find(|event| event.role() == Role::Guard) {
                watch.decide(&guard, guard.value() != 0.0);
            }
        }
        // Behind the last step regions may begin.
        let mut marks = (start..start + count).rev().map(|index| trace.events.at(index));
        while let Some(event) = marks.next()
            && !matches!(event.role(), Role::Apply | Role::Guard | Role::Constant)
        {
            if event.role() == Role::Enter && !self.unmerged.contains(&event.site()) {
                self.pass(event.site())?;
            }
        }
        Ok(())
    }

    /// The repeat of `trace` that goes on at this event, from here on.
    fn ahead(&mut self, trace: &Trace<'_>, index: usize) -> Option<trace::Repeat> {
        let worth = self.tree.worth;
        if self.repeats.found.is_none() {
            let found = trace::repeats(trace.events, &|mark| self.is_nothing(trace, mark), worth);
            self.repeats.found = Some(found);
        }
        let found = self.repeats.found.as_deref().unwrap_or_default();
        let repeat = found.get(found.partition_point(|repeat| repeat.end() <= index))?;
        let done = index.checked_sub(repeat.start)?;
        if done % repeat.period != 0 {
            return None;
        }
        let times = repeat.times - done / repeat.period;
        let rest = trace::Repeat { start: index, times, ..*repeat };
        worth.is_reached(&rest).then_some(rest)
    }

    /// Whether this event, a mark, means nothing to the walk.
    fn is_nothing(&self, trace: &Trace<'_>, mark: usize) -> bool {
        let event = trace.events.at(mark);
        let is_unmerged = || !self.unmerged.is_empty() && self.unmerged.contains(&event.site());
        let next = trace.events.get(mark + 1).map(|next| next.role());
        let is_bare = !matches!(next, Some(Role::Phi | Role::State | Role::Opaque));
        let id = event.payload();
        match event.role() {
            Role::Enter => self.one_way.contains(&mark) || is_unmerged(),
            Role::Iterate => {
                is_bare
                    && (self.one_way.contains(&mark) || is_unmerged())
                    && !self.open.iter().any(|open| open.is_body && open.id == id)
            }
            Role::Join => {
                is_bare
                    && (event.has_one_way() || is_unmerged())
                    && !self.open.iter().any(|open| open.id == id)
            }
            _ => false,
        }
    }

    /// What `repeat` of `trace` is in the tree, but for its values; none if it is no
    /// repeat there.
    fn repeat(&mut self, trace: &Trace<'_>, repeat: trace::Repeat) -> Option<Repeat> {
        let trace::Repeat { start, period, times } = repeat;
        let passes = |mark: usize| self.is_nothing(trace, mark);
        let pattern = trace::pattern(trace.events, &passes, start, period, times)?;
        if pattern.times != times {
            return None;
        }
        let mut body = Vec::with_capacity(period);
        for (at, part) in pattern.body.into_iter().enumerate() {
            let trace::Part::Step { op, outcome, slots } = part else {
                body.push(Part::Nothing);
                continue;
            };
            let mut known = SmallVec::new();
            for slot in slots {
                known.push(self.slot(slot, times)?);
            }
            let site = trace.events.at(start + at).site();
            body.push(Part::Apply { op, slots: known, outcome, site });
        }
        Some(Repeat { first: self.tree.input(0), times, body })
    }

    /// What an operand is in the tree, if it follows a rule there, too.
    fn slot(&mut self, slot: trace::Slot, times: usize) -> Option<Slot> {
        Some(match slot {
            trace::Slot::Constant(bits) => Slot::Value { first: self.tree.constant(bits), by: 0 },
            trace::Slot::Table(numbers) => Slot::Table(Arc::from(numbers)),
            trace::Slot::Event { first, by } => {
                let last = i64::from(first) + by * (times as i64 - 1);
                let (first, last) = (first as usize, usize::try_from(last).ok()?);
                let value = self.visible(Operand::Event(first as u32))?;
                let inputs = [0..self.tree.active, self.tree.active..self.tree.inputs()];
                let is_row = inputs.iter().any(|row| row.contains(&first) && row.contains(&last));
                let is_even = by == 0
                    || is_row
                    || self.known.are_in_one_repeat(first, last)
                    || (0..times as i64).all(|iteration| {
                        let event = first as i64 + by * iteration;
                        let expected = value.index() as i64 + by * iteration;
                        self.visible(Operand::Event(event as u32))
                            .is_some_and(|value| value.index() as i64 == expected)
                    });
                let slot = Slot::Value { first: value, by };
                return (is_even && self.is_a_row(value, by, times)).then_some(slot);
            }
            trace::Slot::Inside { at, distance, firsts } => {
                let firsts = firsts.into_iter().map(|operand| self.visible(operand));
                Slot::Inside { at, distance, firsts: firsts.collect::<Option<_>>()? }
            }
        })
    }

    /// The value of an operand that is visible here.
    fn visible(&mut self, operand: Operand) -> Option<Value> {
        self.operand(operand, unknown_place).ok()
    }

    /// Whether the values from `first` on, so many apart, are inputs of one kind or those
    /// of one part of a repeat.
    fn is_a_row(&self, first: Value, by: i64, times: usize) -> bool {
        if by == 0 {
            return true;
        }
        let tree = &self.tree;
        let (index, inputs) = (first.index(), tree.inputs());
        let Ok(last) = usize::try_from(index as i64 + by * (times as i64 - 1)) else {
            return false;
        };
        if index < inputs {
            return last < inputs && (index < tree.active) == (last < tree.active);
        }
        match tree.values.place(first) {
            Place::Repeat(id) => {
                tree.values.place(Value::from_index(last)) == Place::Repeat(id)
                    && by % tree.repeats[id].body.len() as i64 == 0
            }
            Place::Origin(_) => false,
        }
    }
}
