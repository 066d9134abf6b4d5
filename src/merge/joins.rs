//! Joins: ends of regions and heads of loops.

use smallvec::SmallVec;

use super::buffers::OpenRegion;
use super::tree::{Applied, BasicBlock, End, ExitKey, Target, Value};
use super::walk::{Mismatch, Walk, Walked, pad, unmerge};
use super::{UnmergedReason, place};
use crate::op::Op;
use crate::ssa::Place;
use crate::trace::{Operand, Role, Trace};

impl Walk<'_> {
    pub(super) fn join(&mut self, trace: &Trace<'_>) -> Walked {
        let index = self.known.len();
        self.known.push(None);
        self.carried.read(trace, index);
        let id = trace.events.at(index).payload();
        // The body of a loop ends with the loop.
        let is_ended = |open: &OpenRegion| open.id == id;
        let last = self.open.iter().rposition(is_ended);
        let around =
            |level: usize| self.open[..level].iter().rev().take_while(|open| is_ended(open));
        match last.map(|level| level - around(level).count()) {
            Some(level) => self.exit_to(level, Target::Join, trace, index),
            None => self.copy_carried(trace),
        }
    }

    pub(super) fn iterate(&mut self, trace: &Trace<'_>) -> Walked {
        let index = self.known.len();
        self.known.push(None);
        self.carried.read(trace, index);
        let event = trace.events.at(index);
        let id = event.payload();
        match self.open.iter().rposition(|open| open.is_body && open.id == id) {
            Some(level) => self.exit_to(level, Target::Iterate, trace, index)?,
            None => self.copy_carried(trace)?,
        }
        if self.single_path.contains(index) || self.is_unmerged(|| event.site()) {
            return Ok(());
        }
        self.enter(id, true, index, trace)?;
        if event.has_complete_state() && self.carried.opaque.is_none() {
            self.note_head_live_in()?;
        }
        Ok(())
    }

    /// Copies carried values at a point where nothing is merged: x + -0.0.
    fn copy_carried(&mut self, trace: &Trace<'_>) -> Walked {
        for index in self.known.len()..self.carried.end {
            let event = trace.events.at(index);
            if event.role() != Role::Phi {
                self.known.push(None);
                continue;
            }
            let (operand, site) = (event.operand(0), event.site());
            let value = match operand {
                Operand::Constant(value) => self.tree.constant(value.to_bits()),
                Operand::Event(_) => {
                    let value = self.operand(operand, || place(site))?;
                    let zero = self.tree.constant((-0.0f64).to_bits());
                    self.apply(Applied::Primitive(Op::Add), pad(&[value, zero]), || site)?
                }
            };
            self.note(value);
        }
        Ok(())
    }

    /// Exits all open regions from number `level` on, to `target` of the outermost of them, with
    /// the carried values, at event number `event`.
    fn exit_to(&mut self, level: usize, target: Target, trace: &Trace<'_>, event: usize) -> Walked {
        if let Some(opaque) = self.carried.opaque {
            let name = trace.opaque.iter().find(|(event, _)| *event as usize == opaque);
            let name = name.map_or("a variable", |(_, name)| name);
            let site = self.entries[self.open[level].entry].site;
            return Err(unmerge(site, UnmergedReason::Opaque { name }));
        }
        let at = || place(trace.events.at(event).site());
        let mut values = core::mem::take(self.values);
        values.clear();
        for number in 0..self.carried.phis.len() {
            let phi = trace.events.at(self.carried.phis[number]);
            values.push(self.operand(phi.operand(0), at)?);
        }
        // The outermost exit first, because the key of an inner one names it.
        let outermost = self.exit(level, target, &values, trace, at)?;
        let mut exits: SmallVec<[usize; 4]> = SmallVec::new();
        let mut last = outermost;
        for level in level + 1..self.open.len() {
            exits.push(last);
            last = self.exit(level, Target::Outer(last), &values, trace, at)?;
        }
        while let Some(open) = self.open.pop() {
            self.end_with(last, &values, at)?;
            self.entries[open.entry].open = false;
            if open.is_extended {
                self.extended.push(open.instance);
                if let Some(around) = self.open.last_mut() {
                    around.is_extended = true;
                }
            }
            let tail = self.tail(&open, last);
            self.go(tail);
            values.clone_from_slice(&self.tree.instances[open.instance].exits[last].carried);
            match exits.pop() {
                Some(outer) => last = outer,
                None => break,
            }
        }
        // After the exit each value is the φ of its own event.
        let mut phis = values.iter();
        for index in self.known.len()..self.carried.end {
            let is_phi = trace.events.role(index) == Some(Role::Phi);
            match if is_phi { phis.next() } else { None } {
                Some(&value) => self.note(value),
                None => self.known.push(None),
            }
        }
        *self.values = values;
        Ok(())
    }

    /// The exit of the open region number `level` to this target, with these values; a new one if
    /// need be. The carried state is that at the target of the outermost region.
    fn exit(
        &mut self,
        level: usize,
        to: Target,
        values: &[Value],
        trace: &Trace<'_>,
        at: impl FnOnce() -> Place,
    ) -> Walked<usize> {
        let OpenRegion { instance, entry, .. } = self.open[level];
        let is_outermost = !matches!(to, Target::Outer(_));
        let state = if is_outermost { &self.carried.state[..] } else { &[] };
        if let Some(exit) = self.tree.find_exit_to(instance, to, state, values.len()) {
            return Ok(exit);
        }
        self.require_extension(at)?;
        if is_outermost {
            self.note_state_split((instance, self.entries[entry].site), to, trace);
        }
        let state = if is_outermost { &self.carried.state[..] } else { &[] };
        let (state, carried) = (SmallVec::from_slice(state), values.len());
        Ok(self.tree.new_exit(instance, ExitKey { to, state, carried }))
    }

    /// Ends the basic block with this exit and these values, or compares its end with them.
    fn end_with(&mut self, exit: usize, carried: &[Value], at: impl FnOnce() -> Place) -> Walked {
        if self.at_open_end() {
            self.require_extension(at)?;
            let end = End::Exit { exit, values: SmallVec::from_slice(carried) };
            self.tree.set_end(self.basic_block, end);
            return Ok(());
        }
        match &self.tree.basic_blocks[self.basic_block].end {
            End::Exit { exit: known, values }
                if self.at_end() && *known == exit && values[..] == *carried =>
            {
                Ok(())
            }
            _ => Err(Box::new(Mismatch::Divergent(at()))),
        }
    }

    /// The basic block after `exit` of `open`.
    fn tail(&mut self, open: &OpenRegion, exit: usize) -> BasicBlock {
        if let End::Region { tails, .. } = &self.tree.basic_blocks[open.block].end
            && let Some(&tail) = tails.get(exit)
        {
            return tail;
        }
        // The exit is new, and the latest.
        let tail = self.tree.new_basic_block();
        if let End::Region { tails, .. } = &mut self.tree.basic_blocks[open.block].end {
            tails.push(tail);
            let is_another = tails.len() > 1;
            if is_another && self.open.is_empty() {
                self.tree.step_bound.add_path();
            }
        }
        tail
    }
}
