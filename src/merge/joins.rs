//! Joins: ends of regions and heads of loops.

use smallvec::SmallVec;

use super::buffers::{Carried, OpenRegion};
use super::tree::{Applied, BasicBlock, End, ExitKey, Target, Value};
use super::walk::{Mismatch, Walk, Walked, unmerge};
use super::{UnmergedReason, place};
use crate::op::Op;
use crate::ssa::Place;
use crate::trace::{Event, Operand, Role, Site, Trace};

impl Walk<'_> {
    pub(super) fn join(&mut self, trace: &Trace<'_>) -> Walked {
        let carried = self.read_carried(trace);
        let result = self.join_with(trace, &carried);
        *self.carried = carried;
        result
    }

    fn join_with(&mut self, trace: &Trace<'_>, carried: &Carried) -> Walked {
        let event = trace.events.at(self.known.len());
        self.known.push(None);
        // The body of a loop ends with the loop.
        let is_ended = |open: &OpenRegion| open.id == event.payload();
        let last = self.open.iter().rposition(is_ended);
        let around =
            |level: usize| self.open[..level].iter().rev().take_while(|open| is_ended(open));
        match last.map(|level| level - around(level).count()) {
            Some(level) => self.exit_to(level, Target::Join, trace, event.site(), carried),
            None => self.copy_carried(trace, carried),
        }
    }

    pub(super) fn iterate(&mut self, trace: &Trace<'_>) -> Walked {
        let carried = self.read_carried(trace);
        let result = self.iterate_with(trace, &carried);
        *self.carried = carried;
        result
    }

    /// The values and the state carried to the next event.
    fn read_carried(&mut self, trace: &Trace<'_>) -> Carried {
        let mut carried = core::mem::take(self.carried);
        carried.read(trace, self.known.len());
        carried
    }

    fn iterate_with(&mut self, trace: &Trace<'_>, carried: &Carried) -> Walked {
        let index = self.known.len();
        let event = trace.events.at(index);
        self.known.push(None);
        let (id, site) = (event.payload(), event.site());
        match self.open.iter().rposition(|open| open.is_body && open.id == id) {
            Some(level) => self.exit_to(level, Target::Iterate, trace, site, carried)?,
            None => self.copy_carried(trace, carried)?,
        }
        if self.unmerged.contains(&site) || self.single_path.contains(index) {
            return Ok(());
        }
        self.enter(id, true, index, trace)?;
        if event.has_complete_state() && carried.opaque.is_none() {
            self.note_head_live_in(carried)?;
        }
        Ok(())
    }

    /// Copies carried values at a point where nothing is merged: x + -0.0.
    fn copy_carried(&mut self, trace: &Trace<'_>, carried: &Carried) -> Walked {
        for index in self.known.len()..carried.end {
            let event = trace.events.at(index);
            if event.role() != Role::Phi {
                self.known.push(None);
                continue;
            }
            let (operand, site) = (phi_operand(&event), event.site());
            let value = match operand {
                Operand::Constant(value) => self.tree.constant(value.to_bits()),
                Operand::Event(_) => {
                    let value = self.operand(operand, || place(site))?;
                    let zero = self.tree.constant((-0.0f64).to_bits());
                    self.apply(Applied::Primitive(Op::Add), &[value, zero], || site)?
                }
            };
            self.note(value);
        }
        Ok(())
    }

    /// Exits all open regions from number `level` on, to `target` of the outermost of them, with
    /// the carried values.
    fn exit_to(
        &mut self,
        level: usize,
        target: Target,
        trace: &Trace<'_>,
        site: Site,
        carried: &Carried,
    ) -> Walked {
        let region_site = self.entries[self.open[level].entry].site;
        if let Some(opaque) = carried.opaque {
            let name = trace.opaque.iter().find(|(event, _)| *event as usize == opaque);
            let name = name.map_or("a variable", |(_, name)| name);
            return Err(unmerge(region_site, UnmergedReason::Opaque { name }));
        }
        let at = || place(site);
        let mut values = core::mem::take(self.values);
        values.clear();
        for &phi in &carried.phis {
            values.push(self.operand(phi_operand(&trace.events.at(phi)), at)?);
        }
        // The outermost exit first, because the key of an inner one names it.
        let (mut to, mut state) = (target, &carried.state[..]);
        let mut exits: SmallVec<[usize; 4]> = SmallVec::new();
        let outermost = level;
        for level in level..self.open.len() {
            let instance = self.open[level].instance;
            let exit = match self.tree.find_exit_to(instance, to, state, values.len()) {
                Some(exit) => exit,
                None => {
                    self.require_extension(at)?;
                    if level == outermost {
                        self.note_state_split((instance, region_site), to, carried, trace);
                    }
                    let (state, carried) = (SmallVec::from_slice(state), values.len());
                    self.tree.new_exit(instance, ExitKey { to, state, carried })
                }
            };
            exits.push(exit);
            (to, state) = (Target::Outer(exit), &[]);
        }
        while let Some(exit) = exits.pop() {
            let Some(open) = self.open.pop() else { break };
            self.end_with(exit, &values, at)?;
            self.entries[open.entry].open = false;
            if open.is_extended {
                self.extended.push(open.instance);
                if let Some(around) = self.open.last_mut() {
                    around.is_extended = true;
                }
            }
            let tail = self.tail(&open, exit);
            self.go(tail);
            values.clone_from_slice(&self.tree.instances[open.instance].exits[exit].carried);
        }
        // After the exit each value is the φ of its own event.
        let mut phis = values.iter();
        for index in self.known.len()..carried.end {
            let is_phi = trace.events.at(index).role() == Role::Phi;
            match if is_phi { phis.next() } else { None } {
                Some(&value) => self.note(value),
                None => self.known.push(None),
            }
        }
        *self.values = values;
        Ok(())
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

fn phi_operand(event: &Event<'_>) -> Operand {
    event.operands().next().unwrap_or(Operand::Constant(event.value()))
}
