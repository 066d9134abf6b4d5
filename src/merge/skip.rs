//! Walking along loops of a trace, as single steps.

use core::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::notes::Known;
use super::place;
use super::repeat::{Part, Repeat, RepeatId, Slot};
use super::tree::{End, Step, Value};
use super::values::Place;
use super::walk::{Stop, Walk};
use crate::entity::Entity;
use crate::trace::{self, Event, Operand, Role, Trace};

/// The search for loops in the trace of a walk.
#[derive(Default)]
pub(super) struct Ahead {
    /// The loops, once they were searched for.
    found: Option<Vec<trace::Repeat>>,
    /// Before this event there is no loop that fits the tree.
    refused: usize,
}

impl Walk<'_> {
    /// Walks along the loop that begins with `event`, the next one, if the tree has a loop here or
    /// may be extended by one. Returns whether it did.
    ///
    /// If the trace differs from the tree's loop in some iteration, the loop is split there.
    pub(super) fn skip(&mut self, trace: &Trace<'_>, event: &Event<'_>) -> Result<bool, Stop> {
        if !matches!(event.role(), Role::Apply | Role::Guard | Role::Constant) {
            return Ok(false);
        }
        let data = &self.tree.basic_blocks[self.basic_block];
        match data.steps.get(self.step) {
            Some(&Step::Repeat(id)) => self.skip_known(trace, event, id),
            None if self.grow && data.end == End::Open => self.grow_by_repeat(trace, event),
            _ => Ok(false),
        }
    }

    /// Walks along loop `id`, the next step, as far as the trace agrees.
    fn skip_known(
        &mut self,
        trace: &Trace<'_>,
        event: &Event<'_>,
        id: RepeatId,
    ) -> Result<bool, Stop> {
        let Repeat { first, times, ref body, .. } = self.tree.repeats[id];
        let period = body.len();
        let followed = self.follows(trace, id);
        let iterations = followed.iterations;
        if iterations < times {
            // A constant before the loop is no step.
            if iterations == 0 && event.role() == Role::Constant {
                return Ok(false);
            }
            if let (false, Some(guard)) = (self.grow, followed.other_side) {
                let guard = trace.events.at(guard);
                self.look();
                self.watch.iter_mut().for_each(|watch| watch.decide(&guard, guard.value() != 0.0));
                self.must_grow(|| place(guard.site()))?;
            }
            self.tree.cut(self.basic_block, self.step, iterations);
            let steps = &self.tree.basic_blocks[self.basic_block].steps;
            if iterations == 0 || !matches!(steps.get(self.step), Some(Step::Repeat(_))) {
                return Ok(false);
            }
        }
        self.look();
        self.step += 1;
        self.pass_over(trace, first, period * iterations)?;
        Ok(true)
    }

    /// Appends the loop that begins with the next event, if there is one.
    fn grow_by_repeat(&mut self, trace: &Trace<'_>, event: &Event<'_>) -> Result<bool, Stop> {
        let index = self.known.len();
        if index < self.repeats.refused {
            return Ok(false);
        }
        let Some(ahead) = self.ahead(trace, index) else { return Ok(false) };
        let mut repeat = match self.repeat(trace, ahead) {
            Ok(repeat) => repeat,
            Err(behind) => {
                self.repeats.refused = behind;
                return Ok(false);
            }
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

    /// Notes the values of the next `count` events: `first` and those that follow it.
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
        // Regions may begin after the last step.
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

    /// The rest of a loop of `trace` from event `index` on, where an iteration begins.
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

    /// Tests whether this event is a mark without effect on the walk.
    pub(super) fn is_nothing(&self, trace: &Trace<'_>, mark: usize) -> bool {
        let event = trace.events.at(mark);
        let is_unmerged = || !self.unmerged.is_empty() && self.unmerged.contains(&event.site());
        let next = trace.events.get(mark + 1).map(|next| next.role());
        let is_bare = !matches!(next, Some(Role::Phi | Role::State | Role::Opaque));
        let id = event.payload();
        match event.role() {
            Role::Enter => self.one_way.contains(mark) || is_unmerged(),
            Role::Iterate => {
                is_bare
                    && (self.one_way.contains(mark) || is_unmerged())
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

    /// The tree's form of the first iterations of a loop of `trace`: as many as follow rules in
    /// terms of the tree's values. If they are too few, the event after which there may be a loop.
    fn repeat(&mut self, trace: &Trace<'_>, repeat: trace::Repeat) -> Result<Repeat, usize> {
        let trace::Repeat { start, period, times } = repeat;
        let passes = |mark: usize| self.is_nothing(trace, mark);
        let opening = trace::opening(trace.events, &passes, start, period, times);
        let opening = opening.ok_or(repeat.end())?;
        // The first iterations determine the rules.
        let first = opening.first().ok_or(repeat.end())?;
        let slots = first.body.iter().flat_map(trace::Part::slots);
        let fits = slots.map(|slot| self.fits(slot, times)).min().unwrap_or(times);
        let behind = start + period * fits.max(1);
        if !self.tree.worth.is_reached(&trace::Repeat { times: fits, ..repeat }) {
            return Err(behind);
        }
        let pattern = opening.pattern(fits).ok_or(behind)?;
        let times = pattern.times;
        if !self.tree.worth.is_reached(&trace::Repeat { times, ..repeat }) {
            return Err(start + period * times.max(1));
        }
        let (mut body, mut goes_through_values) = (Vec::with_capacity(period), false);
        for (at, part) in pattern.body.into_iter().enumerate() {
            let trace::Part::Step { op, outcome, slots } = part else {
                body.push(Part::Nothing);
                continue;
            };
            let mut known = SmallVec::new();
            for slot in slots {
                let slot = self.slot(slot).ok_or(behind)?;
                goes_through_values |= matches!(slot, Slot::Value { first, by }
                    if by != 0 && first.index() >= self.tree.inputs());
                known.push(slot);
            }
            let site = trace.events.at(start + at).site();
            body.push(Part::Apply { op, slots: known, outcome, site });
        }
        Ok(Repeat { first: self.tree.input(0), times, goes_through_values, is_piece: false, body })
    }

    /// The number of iterations, at most `times`, in which an operand follows a rule in terms of
    /// the tree's values.
    fn fits(&self, slot: &trace::Slot, times: usize) -> usize {
        let is_visible = |operand: &Operand| match *operand {
            Operand::Event(event) => self.visible(event as usize).is_some(),
            Operand::Constant(_) => true,
        };
        let fits = match *slot {
            trace::Slot::Constant(_) | trace::Slot::Table(_) => times,
            trace::Slot::Event { first, by: 0 } => match self.visible(first as usize) {
                Some(_) => times,
                None => 0,
            },
            trace::Slot::Event { first, by } => self.row(first as usize, by),
            trace::Slot::Inside { ref firsts, .. } => match firsts.iter().all(is_visible) {
                true => times,
                false => 0,
            },
        };
        fits.min(times)
    }

    /// The number of events, `first` and each `stride` further, that are inputs of one kind or
    /// values of one step of a loop.
    fn row(&self, first: usize, by: i64) -> usize {
        let tree = &self.tree;
        let steps_in = |at: usize, range: Range<usize>| match by > 0 {
            true => (range.end - 1 - at) / by.unsigned_abs() as usize + 1,
            false => (at - range.start) / by.unsigned_abs() as usize + 1,
        };
        for row in [0..tree.active, tree.active..tree.inputs()] {
            if row.contains(&first) {
                return steps_in(first, row);
            }
        }
        let Some(value) = self.visible(first) else { return 0 };
        match (self.known.repeat_around(first), tree.values.place(value)) {
            (Some(events), Place::Repeat(id)) if by % tree.repeats[id].body.len() as i64 == 0 => {
                let repeat = &tree.repeats[id];
                let values = repeat.first.index()..repeat.first.index() + repeat.len();
                steps_in(first, events).min(steps_in(value.index(), values))
            }
            _ => 1,
        }
    }

    /// The tree's form of the rule of an operand.
    fn slot(&mut self, slot: trace::Slot) -> Option<Slot> {
        Some(match slot {
            trace::Slot::Constant(bits) => Slot::Value { first: self.tree.constant(bits), by: 0 },
            trace::Slot::Table(numbers) => Slot::Table(Arc::from(numbers)),
            trace::Slot::Event { first, by } => {
                Slot::Value { first: self.visible(first as usize)?, by }
            }
            trace::Slot::Inside { at, distance, firsts } => {
                let mut known = SmallVec::new();
                for operand in firsts {
                    known.push(match operand {
                        Operand::Constant(value) => self.tree.constant(value.to_bits()),
                        Operand::Event(event) => self.visible(event as usize)?,
                    });
                }
                Slot::Inside { at, distance, firsts: known }
            }
        })
    }

    /// The value of an event, if it is visible here.
    pub(super) fn visible(&self, event: usize) -> Option<Value> {
        let Known { value, entry } = self.known.get(event)?;
        self.entries[entry].open.then_some(value)
    }
}
