//! Register planning at branches and regions: registers at the start of each arm, and values at
//! joins.

use super::loops::OpenLoop;
use super::planner::Planner;
use super::{Next, Step};
use crate::jit::schedule::Test;
use crate::jit::slots::Change;
use crate::jit::uses::Scope;
use crate::ssa::{Node, Region};

/// The regions and branches around the current position, innermost last.
#[derive(Default)]
pub(super) struct Structure {
    pub(super) regions: Vec<OpenRegion>,
    branches: Vec<OpenBranch>,
    /// The values evicted from registers since the outermost region without a cut began.
    evicted: Vec<Node>,
    /// True in an arm that profiled runs do not take.
    pub(super) is_cold: bool,
}

pub(super) struct OpenRegion {
    pub(super) region: Region,
    /// True if it is in one function with the code around it.
    uncut: bool,
    /// The scope around it, and the position of its end.
    around: Scope,
    end: u32,
    /// The length of the log of slots, and of the list of evictions, before it.
    mark: usize,
    evicted: usize,
    /// The block in which it began, the function of that, and the values in registers there.
    first: usize,
    function: usize,
    resident: Vec<Node>,
    /// The φs that are block parameters of the join.
    parameters: Vec<Node>,
    /// The blocks that end it, and the arguments of the current one.
    ends: Vec<usize>,
    passing: Vec<Node>,
    /// Values of the region that are used after it, with their slots.
    exported: Vec<(Node, u32)>,
    /// Values that released their slots on some path through the region.
    released: Vec<Node>,
    /// The data of a loop.
    pub(super) cycle: Option<OpenLoop>,
}

struct OpenBranch {
    /// The hot arm, and whether the branch itself is cold.
    hot: Option<bool>,
    is_cold: bool,
    /// The scope around it, and the position of its end.
    around: Scope,
    end: u32,
    /// The length of the log of slots before the arms.
    mark: usize,
    /// The block that ends with it, the function of that, and the values in registers there.
    block: usize,
    function: usize,
    resident: Vec<Node>,
}

impl Structure {
    /// True in a region without a cut.
    pub(super) fn is_uncut(&self) -> bool {
        self.regions.last().is_some_and(|region| region.uncut)
    }

    /// Records that `nodes` are no longer in registers.
    pub(super) fn evicted(&mut self, nodes: &[Node]) {
        if self.is_uncut() {
            self.evicted.extend_from_slice(nodes);
        }
    }
}

impl Planner<'_> {
    pub(super) fn enter(&mut self, region: Region, end: u32) {
        self.cut_if_due();
        let uncut = !self.is_cut_before(end);
        self.store_used_after(end);
        let mut phis: Vec<(u32, Node)> = Vec::new();
        for &phi in &self.graph.regions[region].phis {
            if self.layout.trajectory(phi).is_none() {
                phis.extend(self.uses.next(phi).map(|next| (next, phi)));
            }
        }
        phis.sort();
        let in_registers = if uncut { phis.len().min(self.registers / 2) } else { 0 };
        for (_, phi) in phis.drain(in_registers..) {
            self.slots.take(phi);
        }
        let mut parameters: Vec<Node> = phis.into_iter().map(|(_, phi)| phi).collect();
        parameters.sort();
        self.structure.regions.push(OpenRegion {
            region,
            uncut,
            around: self.scope,
            end,
            mark: self.slots.mark(),
            evicted: self.structure.evicted.len(),
            first: self.blocks.len(),
            function: self.functions.len(),
            resident: if uncut { self.resident.clone() } else { Vec::new() },
            parameters,
            ends: Vec::new(),
            passing: Vec::new(),
            exported: Vec::new(),
            released: Vec::new(),
            cycle: None,
        });
        if self.graph.regions[region].cycle.is_some() {
            self.begin_loop(region, end, uncut);
        }
        self.scope = self.scope.region(end);
        self.begin_iteration(region);
    }

    /// Returns `value` as output, or as φ, number `index`.
    pub(super) fn return_value(&mut self, index: u32, value: Node) {
        let Some(region) = self.structure.regions.last() else {
            self.bring(&[value]);
            self.steps.push(Step::Output(index, value));
            self.used(&[value]);
            self.spill_down_to(self.registers);
            return;
        };
        let phi = self.graph.regions[region.region].phis[index as usize];
        let in_register = region.parameters.contains(&phi);
        if self.layout.trajectory(phi).is_some() {
            self.bring(&[value]);
            self.steps.push(Step::Save(value, phi));
        } else if let Some(slot) = self.slots.get(phi) {
            self.bring(&[value]);
            self.steps.push(Step::Spill(value, slot));
        } else if in_register {
            self.bring(&[value]);
        }
        self.used(&[value]);
        let mut passing = 0;
        if let Some(region) = self.structure.regions.last_mut() {
            region.passing.extend(in_register.then_some(value));
            passing = region.passing.len();
        }
        self.spill_down_to(self.registers.saturating_sub(passing));
    }

    /// Ends a path, or a path through a region.
    pub(super) fn end(&mut self) {
        let Some(region) = self.structure.regions.last_mut() else {
            self.finish_block(Next::Done);
            return;
        };
        region.ends.push(self.blocks.len());
        let passing = core::mem::take(&mut region.passing);
        self.store_residents();
        self.finish_block(Next::Jump(0, passing));
    }

    pub(super) fn join(&mut self) {
        if let Some(mark) = self.structure.regions.last().map(|region| region.mark) {
            self.undo(mark);
        }
        let Some(region) = self.structure.regions.pop() else { return };
        self.scope = region.around;
        let here = self.blocks.len();
        for end in region.ends {
            if let Next::Jump(next, _) = &mut self.blocks[end].next {
                *next = here;
            }
        }
        for (node, slot) in region.exported {
            if self.slots.get(node).is_none() && self.next_use(node).is_some() {
                self.slots.hold(node, slot);
            }
        }
        for node in region.released {
            if self.next_use(node).is_none() {
                self.slots.release(node);
            }
        }
        self.resident.clear();
        self.after = (region.function == self.functions.len()).then_some(region.first);
        let is_saved = self.layout.last(region.region).is_some();
        self.steps.extend(is_saved.then_some(Step::SaveLast(region.region)));
        if region.uncut {
            let evicted = &self.structure.evicted[region.evicted..];
            let kept = region.resident.into_iter().filter(|node| !evicted.contains(node));
            self.resident.extend(kept);
            self.resident.extend(&region.parameters);
            self.parameters = region.parameters;
            self.drop_unused();
            if !self.structure.is_uncut() {
                self.structure.evicted.clear();
            }
            self.spill_down_to(self.registers);
        }
        if region.cycle.is_some() {
            let around = self.uses.around(region.end).to_vec();
            self.used(&around);
        }
    }

    pub(super) fn branch(&mut self, test: Test, hot: Option<bool>, otherwise: u32, end: u32) {
        if let Test::Node(condition) = test {
            self.bring(&[condition]);
            self.used(&[condition]);
            self.spill_down_to(self.registers);
        }
        match self.structure.regions.last() {
            // Each path through the region must have it in the same slot.
            Some(region) if region.uncut => self.store_used_after(region.end),
            // The other arm may be in another function.
            _ => self.store_residents(),
        }
        let block = self.blocks.len();
        let is_cold = self.structure.is_cold;
        self.structure.branches.push(OpenBranch {
            hot,
            is_cold,
            around: self.scope,
            end,
            mark: self.slots.mark(),
            block,
            function: self.functions.len(),
            resident: self.resident.clone(),
        });
        self.finish_block(Next::Branch { test, then: block + 1, otherwise: 0 });
        self.structure.is_cold = is_cold || hot == Some(false);
        self.begin_arm(self.scope, otherwise, block);
    }

    pub(super) fn otherwise(&mut self) {
        let Some(branch) = self.structure.branches.last() else { return };
        let (around, end, mark, block) = (branch.around, branch.end, branch.mark, branch.block);
        self.structure.is_cold = branch.is_cold || branch.hot == Some(true);
        self.resident.clear();
        let same_function = branch.function == self.functions.len();
        if same_function {
            self.resident.extend(&branch.resident);
        }
        self.undo(mark);
        let here = self.blocks.len();
        if let Next::Branch { otherwise, .. } = &mut self.blocks[block].next {
            *otherwise = here;
        }
        self.begin_arm(around, end, block);
        if !same_function {
            self.after = None;
        }
    }

    pub(super) fn close(&mut self) {
        let Some(branch) = self.structure.branches.pop() else { return };
        self.undo(branch.mark);
        self.scope = branch.around;
        self.structure.is_cold = branch.is_cold;
    }

    fn store_used_after(&mut self, end: u32) {
        for index in 0..self.resident.len() {
            let node = self.resident[index];
            if self.uses.at_or_after(node, end).is_some() {
                self.store(node);
            }
        }
    }

    /// Begins the arm of the branch after `block` that ends at `end`.
    fn begin_arm(&mut self, around: Scope, end: u32, block: usize) {
        self.scope = around.arm(end, !self.structure.regions.is_empty());
        self.after = Some(block);
        self.drop_unused();
    }

    fn drop_unused(&mut self) {
        let (uses, scope) = (&self.uses, self.scope);
        self.resident.retain(|&node| uses.next_in(node, scope).is_some());
    }

    /// Undoes the changes of slots since `mark`, and records those that concern values that are
    /// live at the join.
    fn undo(&mut self, mark: usize) {
        while let Some(change) = self.slots.undo(mark) {
            let Some(region) = self.structure.regions.last_mut() else { continue };
            match change {
                Change::Held(node, slot)
                    if self.uses.at_or_after(node, region.end).is_some()
                        && self.layout.trajectory(node).is_none() =>
                {
                    region.exported.push((node, slot));
                }
                Change::Held(..) => {}
                Change::Released(node, _) => region.released.push(node),
            }
        }
    }
}
