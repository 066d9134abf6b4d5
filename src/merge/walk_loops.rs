//! Walking along loops of a trace, as single steps.

use core::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::buffers::EventValue;
use super::loop_match::LoopMatch;
use super::place;
use super::trace_loop::{LoopStep, OperandRule, TraceLoop, TraceLoopId};
use super::tree::{End, Step, Value};
use super::values::Place;
use super::walk::{Extension, Walk, Walked};
use crate::entity::Entity;
use crate::trace::{self, Event, Operand, Role, Trace};

/// The search for loops in the trace of a walk.
#[derive(Default)]
pub(super) struct LoopSearch {
    /// The loops, once they were searched for.
    found: Option<Vec<trace::LoopRange>>,
    /// Before this event there is no loop that fits the tree.
    none_before: usize,
}

impl Walk<'_> {
    /// Walks along the loop that begins with `event`, the next one, which is an operation or a
    /// constant, if the tree has a loop here or
    /// may be extended by one. Returns whether it did.
    ///
    /// If the trace differs from the tree's loop in some iteration, the loop is split there.
    pub(super) fn walk_loop(&mut self, trace: &Trace<'_>, event: &Event<'_>) -> Walked<bool> {
        let data = &self.tree.basic_blocks[self.basic_block];
        match data.steps.get(self.step) {
            Some(&Step::Loop(id)) => self.walk_known_loop(trace, event, id),
            None if !matches!(self.extension, Extension::Never) && data.end == End::Open => {
                self.append_loop(trace, event)
            }
            _ => Ok(false),
        }
    }

    /// Walks along loop `id`, the next step, as far as the trace agrees.
    fn walk_known_loop(
        &mut self,
        trace: &Trace<'_>,
        event: &Event<'_>,
        id: TraceLoopId,
    ) -> Walked<bool> {
        let TraceLoop { first, times, ref body, .. } = self.tree.loops[id];
        let period = body.len();
        let LoopMatch { iterations, other_branch } = self.match_loop(trace, id);
        if iterations < times {
            // A constant before the loop is no step.
            if iterations == 0 && event.role() == Role::Constant {
                return Ok(false);
            }
            if !matches!(self.extension, Extension::Begun)
                && let Some(guard) = other_branch
            {
                let guard = trace.events.at(guard);
                self.look();
                self.exit_finder
                    .iter_mut()
                    .for_each(|exit_finder| exit_finder.note_outcome(&guard, guard.value() != 0.0));
                self.require_extension(|| place(guard.site()))?;
            }
            self.tree.split_loop(self.basic_block, self.step, iterations);
            let steps = &self.tree.basic_blocks[self.basic_block].steps;
            if iterations == 0 || !matches!(steps.get(self.step), Some(Step::Loop(_))) {
                return Ok(false);
            }
        }
        self.look();
        self.step += 1;
        self.note_loop_values(trace, first, period * iterations)?;
        Ok(true)
    }

    /// Appends the loop that begins with the next event, if there is one.
    fn append_loop(&mut self, trace: &Trace<'_>, event: &Event<'_>) -> Walked<bool> {
        let index = self.known.len();
        if index < self.loop_search.none_before || !self.may_begin_loop(trace, index) {
            return Ok(false);
        }
        let Some(range) = self.loop_at(trace, index) else { return Ok(false) };
        let mut trace_loop = match self.loop_of(trace, range) {
            Ok(trace_loop) => trace_loop,
            Err(behind) => {
                self.loop_search.none_before = behind;
                return Ok(false);
            }
        };
        self.require_extension(|| place(event.site()))?;
        let (count, id) = (trace_loop.len(), self.tree.loops.next_key());
        let first = self.tree.values.reserve(count, id);
        trace_loop.first = first;
        self.tree.loops.push(trace_loop);
        self.push(Step::Loop(id));
        self.note_loop_values(trace, first, count)?;
        Ok(true)
    }

    /// Notes the values of the next `count` events: `first` and those that follow it.
    fn note_loop_values(&mut self, trace: &Trace<'_>, first: Value, count: usize) -> Walked {
        let entry = self.open.last().map_or(0, |open| open.entry);
        let start = self.known.len();
        self.known.push_loop(EventValue::new(first, entry), count);
        if let Some(exit_finder) = &mut self.exit_finder {
            let mut events = (start..start + count).rev().map(|index| trace.events.at(index));
            if let Some(guard) = events.find(|event| event.role() == Role::Guard) {
                exit_finder.note_outcome(&guard, guard.value() != 0.0);
            }
        }
        // Regions may begin after the last step.
        let mut marks = (start..start + count).rev().map(|index| trace.events.at(index));
        while let Some(event) = marks.next()
            && !matches!(event.role(), Role::Apply | Role::Guard | Role::Constant)
        {
            if event.role() == Role::Enter && !self.unmerged.contains(&event.site()) {
                self.pass_single_path(event.site())?;
            }
        }
        Ok(())
    }

    /// Tests whether there are enough events for a loop before the next one that lies in none. The
    /// search goes through the whole trace, and few traces need it.
    fn may_begin_loop(&mut self, trace: &Trace<'_>, index: usize) -> bool {
        if self.loop_search.found.is_some() {
            return true;
        }
        let least = index.saturating_add(self.tree.loop_threshold.events);
        let mut events = index..trace.events.len().min(least);
        let end = events.find(|&index| match trace.events.at(index).role() {
            Role::Apply | Role::Guard | Role::Constant => false,
            _ => !self.is_ignored_mark(trace, index),
        });
        let end = end.unwrap_or(trace.events.len());
        self.loop_search.none_before = if end < least { end } else { index };
        end >= least
    }

    /// The rest of a loop of `trace` from event `index` on, where an iteration begins.
    fn loop_at(&mut self, trace: &Trace<'_>, index: usize) -> Option<trace::LoopRange> {
        let worth = self.tree.loop_threshold;
        if self.loop_search.found.is_none() {
            let found =
                trace::find_loops(trace.events, &|mark| self.is_ignored_mark(trace, mark), worth);
            self.loop_search.found = Some(found);
        }
        let found = self.loop_search.found.as_deref().unwrap_or_default();
        let trace_loop =
            found.get(found.partition_point(|trace_loop| trace_loop.end() <= index))?;
        let done = index.checked_sub(trace_loop.start)?;
        if done % trace_loop.period != 0 {
            return None;
        }
        let times = trace_loop.times - done / trace_loop.period;
        let rest = trace::LoopRange { start: index, times, ..*trace_loop };
        worth.is_reached(&rest).then_some(rest)
    }

    /// Tests whether this event is a mark without effect on the walk.
    pub(super) fn is_ignored_mark(&self, trace: &Trace<'_>, mark: usize) -> bool {
        let event = trace.events.at(mark);
        let is_unmerged = || !self.unmerged.is_empty() && self.unmerged.contains(&event.site());
        let next = trace.events.get(mark + 1).map(|next| next.role());
        let carries_nothing = !next.is_some_and(Role::is_carried);
        let id = event.payload();
        match event.role() {
            Role::Enter => self.single_path.contains(mark) || is_unmerged(),
            Role::Iterate => {
                carries_nothing
                    && (self.single_path.contains(mark) || is_unmerged())
                    && !self.open.iter().any(|open| open.is_body && open.id == id)
            }
            Role::Join => {
                carries_nothing
                    && (event.has_single_path() || is_unmerged())
                    && !self.open.iter().any(|open| open.id == id)
            }
            _ => false,
        }
    }

    /// The tree's form of the first iterations of a loop of `trace`: as many as follow rules in
    /// terms of the tree's values. If they are too few, the event after which there may be a loop.
    fn loop_of(&mut self, trace: &Trace<'_>, range: trace::LoopRange) -> Result<TraceLoop, usize> {
        let trace::LoopRange { start, period, times } = range;
        let is_ignored = |mark: usize| self.is_ignored_mark(trace, mark);
        let induction = trace::infer_induction(trace.events, &is_ignored, start, period, times);
        let induction = induction.ok_or(range.end())?;
        // The first iterations determine the rules.
        let first = induction.first().ok_or(range.end())?;
        let operand_rules = first.body.iter().flat_map(trace::BodyEvent::operand_rules);
        let agreeing = operand_rules
            .map(|operand_rule| self.iterations_with_rule(operand_rule, times))
            .min()
            .unwrap_or(times);
        let behind = start + period * agreeing.max(1);
        if !self.tree.loop_threshold.is_reached(&trace::LoopRange { times: agreeing, ..range }) {
            return Err(behind);
        }
        let pattern = induction.pattern(agreeing).ok_or(behind)?;
        let times = pattern.times;
        if !self.tree.loop_threshold.is_reached(&trace::LoopRange { times, ..range }) {
            return Err(start + period * times.max(1));
        }
        let (mut body, mut reads_with_stride) = (Vec::with_capacity(period), false);
        for (at, step) in pattern.body.into_iter().enumerate() {
            let trace::BodyEvent::Step { op, outcome, operand_rules } = step else {
                body.push(LoopStep::NoStep);
                continue;
            };
            let mut known = SmallVec::new();
            for operand_rule in operand_rules {
                let operand_rule = self.tree_rule(operand_rule).ok_or(behind)?;
                reads_with_stride |= matches!(operand_rule, OperandRule::Value { first, stride }
                    if stride != 0 && first.index() >= self.tree.inputs());
                known.push(operand_rule);
            }
            let site = trace.events.at(start + at).site();
            body.push(LoopStep::Apply { op, operand_rules: known, outcome, site });
        }
        Ok(TraceLoop {
            first: self.tree.input(0),
            times,
            reads_with_stride,
            is_split_off: false,
            body,
        })
    }

    /// The number of iterations, at most `times`, in which an operand follows a rule in terms of
    /// the tree's values.
    fn iterations_with_rule(&self, operand_rule: &trace::OperandRule, times: usize) -> usize {
        let is_visible = |operand: &Operand| match *operand {
            Operand::Event(event) => self.visible(event as usize).is_some(),
            Operand::Constant(_) => true,
        };
        let iterations_with_rule = match *operand_rule {
            trace::OperandRule::Constant(_) | trace::OperandRule::Table(_) => times,
            trace::OperandRule::Event { first, stride: 0 } => match self.visible(first as usize) {
                Some(_) => times,
                None => 0,
            },
            trace::OperandRule::Event { first, stride } => {
                self.strided_count(first as usize, stride)
            }
            trace::OperandRule::Body { ref initial, .. } => match initial.iter().all(is_visible) {
                true => times,
                false => 0,
            },
        };
        iterations_with_rule.min(times)
    }

    /// The number of events, `first` and each `stride` further, that are inputs of one kind or
    /// values of one step of a loop.
    fn strided_count(&self, first: usize, stride: i64) -> usize {
        let tree = &self.tree;
        let steps_in = |at: usize, range: Range<usize>| match stride > 0 {
            true => (range.end - 1 - at) / stride.unsigned_abs() as usize + 1,
            false => (at - range.start) / stride.unsigned_abs() as usize + 1,
        };
        for strided_count in [0..tree.active, tree.active..tree.inputs()] {
            if strided_count.contains(&first) {
                return steps_in(first, strided_count);
            }
        }
        let Some(value) = self.visible(first) else { return 0 };
        match (self.known.loop_around(first), tree.values.place(value)) {
            (Some(events), Place::Loop(id)) if stride % tree.loops[id].body.len() as i64 == 0 => {
                let trace_loop = &tree.loops[id];
                let values = trace_loop.first.index()..trace_loop.first.index() + trace_loop.len();
                steps_in(first, events).min(steps_in(value.index(), values))
            }
            _ => 1,
        }
    }

    /// The tree's form of the rule of an operand.
    fn tree_rule(&mut self, operand_rule: trace::OperandRule) -> Option<OperandRule> {
        Some(match operand_rule {
            trace::OperandRule::Constant(bits) => {
                OperandRule::Value { first: self.tree.constant(bits), stride: 0 }
            }
            trace::OperandRule::Table(numbers) => OperandRule::Table(Arc::from(numbers)),
            trace::OperandRule::Event { first, stride } => {
                OperandRule::Value { first: self.visible(first as usize)?, stride }
            }
            trace::OperandRule::Body { at, distance, initial } => {
                let mut known = SmallVec::new();
                for operand in initial {
                    known.push(match operand {
                        Operand::Constant(value) => self.tree.constant(value.to_bits()),
                        Operand::Event(event) => self.visible(event as usize)?,
                    });
                }
                OperandRule::Body { at, distance, initial: known }
            }
        })
    }

    /// The value of an event, if it is visible here.
    #[inline]
    pub(super) fn visible(&self, event: usize) -> Option<Value> {
        let known = self.known.get(event)?;
        self.entries[known.entry()].open.then_some(known.value)
    }
}
