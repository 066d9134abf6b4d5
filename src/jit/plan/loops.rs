//! Register planning at loops: the registers or slots of entry φs, and back edges.
//!
//! The entry φs of a loop without a cut are block parameters, as far as there are registers; the
//! others have slots from before the loop to its end. Values that are in registers before such a
//! loop and used in it stay there as long as there is room.

use super::planner::Planner;
use super::{Next, Source, Step};
use crate::ssa::{Def, Node, Region};

/// A loop around the current position.
pub(super) struct OpenLoop {
    /// The header: the block in which iterations begin.
    header: usize,
    /// The entry φs that are parameters of the header.
    parameters: Vec<Node>,
    /// Their operands on the current path.
    passing: Vec<Node>,
    /// The slots that hold operands of entry φs until the back edge, by the numbers of the φs,
    /// in order.
    held: Vec<(u32, u32)>,
}

impl Planner<'_> {
    /// Jumps from the code before the loop, the innermost region, to its header.
    pub(super) fn begin_loop(&mut self, region: Region, end: u32, uncut: bool) {
        let entries = self.graph.entries(region);
        let is_used =
            |phi: Node| self.uses.next(phi).is_some() || self.layout.trajectory(phi).is_some();
        let mut used: Vec<(u32, Node)> = Vec::new();
        for entry in entries.iter().filter(|entry| is_used(entry.phi)) {
            used.push((self.uses.next(entry.phi).unwrap_or(end), entry.phi));
        }
        used.sort();
        let in_registers = if uncut { used.len().min(self.registers / 2) } else { 0 };
        for &(_, phi) in &used[in_registers..] {
            self.pinned[phi] = true;
            self.slots.take(phi);
        }
        let mut parameters: Vec<Node> = used[..in_registers].iter().map(|&(_, phi)| phi).collect();
        parameters.sort();
        let mut passing = Vec::new();
        for entry in entries {
            if let Some(slot) = self.slots.get(entry.phi) {
                self.bring(&[entry.first]);
                self.steps.push(Step::Spill(entry.first, slot));
                self.spill_down_to(self.registers);
            } else if parameters.contains(&entry.phi) {
                self.bring(&[entry.first]);
                passing.push(entry.first);
                self.spill_down_to(self.registers.saturating_sub(passing.len()));
            }
        }
        let firsts: Vec<Node> = entries.iter().map(|entry| entry.first).collect();
        self.used(&firsts);
        self.steps.push(Step::Begin(region));
        // Values that the loop does not use give up their registers.
        let room = self.registers.saturating_sub(parameters.len() + 3);
        let (mut stay, mut evicted): (Vec<Node>, Vec<Node>) = self
            .resident
            .drain(..)
            .partition(|&node| uncut && self.uses.next(node).is_some_and(|next| next < end));
        stay.sort_by_key(|&node| self.uses.next(node));
        evicted.extend(stay.drain(room.min(stay.len())..));
        self.structure.evicted(&evicted);
        self.resident.extend(stay);
        self.resident.extend(&parameters);
        let before = self.blocks.len();
        let header = before + 1;
        self.finish_block(Next::Jump(header, passing));
        self.after = Some(before);
        self.parameters.extend(&parameters);
        if let Some(open) = self.structure.regions.last_mut() {
            let (passing, held) = (Vec::new(), Vec::new());
            open.cycle = Some(OpenLoop { header, parameters, passing, held });
        }
    }

    /// Saves entry φs that have a trajectory.
    pub(super) fn begin_iteration(&mut self, region: Region) {
        for entry in self.graph.entries(region) {
            if self.layout.trajectory(entry.phi).is_some() {
                self.bring(&[entry.phi]);
                self.steps.push(Step::Save(entry.phi, entry.phi));
                if self.next_use(entry.phi).is_none() {
                    self.resident.retain(|&node| node != entry.phi);
                }
                self.spill_down_to(self.registers);
            }
        }
    }

    /// Keeps `value`, an entry φ, for its use as operand of entry φ `number`, if its slot is
    /// overwritten before that.
    pub(super) fn hold(&mut self, number: u32, value: Node) {
        let Some(phi) = self.entry(number) else { return };
        let overwritten = self.pinned[value];
        if overwritten && self.pinned[phi] {
            self.bring(&[value]);
            let slot = self.slots.borrow();
            self.steps.push(Step::Spill(value, slot));
            if let Some(cycle) = self.cycle() {
                cycle.held.push((number, slot));
            }
        } else if overwritten && self.is_parameter(phi) {
            // A value in a register can be a block argument whatever happens to its slot.
            self.bring(&[value]);
        }
        self.used(&[value]);
        self.spill_down_to(self.registers);
    }

    /// Assigns `value` to entry φ `number` of the next iteration.
    pub(super) fn next(&mut self, number: u32, value: Node) {
        let Some(phi) = self.entry(number) else { return };
        let held = self.cycle().and_then(|cycle| {
            let index = cycle.held.binary_search_by_key(&number, |&(held, _)| held).ok()?;
            Some(cycle.held[index].1)
        });
        let mut passing = 0;
        if let (Some(from), Some(to)) = (held, self.slots.get(phi)) {
            self.steps.push(Step::Load(value, Source::Slot(from)));
            self.steps.push(Step::Spill(value, to));
            self.slots.return_slot(from);
        } else if self.is_parameter(phi) {
            // `hold` has loaded it; its slot may have been overwritten since.
            let held = self.pinned[value] && self.is_entry(value);
            if !held || value == phi {
                self.bring(&[value]);
            }
            if let Some(cycle) = self.cycle() {
                cycle.passing.push(value);
                passing = cycle.passing.len();
            }
        } else if self.pinned[phi] && phi != value {
            self.bring(&[value]);
            if let Some(slot) = self.slots.get(phi) {
                self.steps.push(Step::Spill(value, slot));
            }
        }
        self.used(&[value]);
        self.spill_down_to(self.registers.saturating_sub(passing));
    }

    /// Ends an iteration with a jump to the header.
    pub(super) fn back_edge(&mut self) {
        let Some(region) = self.structure.regions.last().map(|open| open.region) else { return };
        let Some(cycle) = self.cycle() else { return };
        cycle.held.clear();
        let (header, passing) = (cycle.header, core::mem::take(&mut cycle.passing));
        self.finish_block(Next::BackEdge(region, header, passing));
    }

    fn cycle(&mut self) -> Option<&mut OpenLoop> {
        self.structure.regions.last_mut().and_then(|open| open.cycle.as_mut())
    }

    /// The entry φ with this number of the innermost loop.
    fn entry(&self, number: u32) -> Option<Node> {
        let region = self.structure.regions.last()?.region;
        self.graph.entries(region).get(number as usize).map(|entry| entry.phi)
    }

    /// True if `node` is an entry φ of the innermost loop.
    fn is_entry(&self, node: Node) -> bool {
        let region = self.structure.regions.last().map(|open| open.region);
        matches!(self.graph.nodes[node].def, Def::Entry(of, _) if Some(of) == region)
    }

    fn is_parameter(&mut self, phi: Node) -> bool {
        self.cycle().is_some_and(|cycle| cycle.parameters.contains(&phi))
    }
}
