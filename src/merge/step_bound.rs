//! The number of steps on all paths, which is limited. Counting them visits the whole tree; so a
//! bound is kept, and they are counted only where it exceeds the limit.

use super::tree::{BasicBlock, End, Instance, Tree};
use super::work;
use crate::entity::PrimaryMap;

/// A bound on the number of steps on all paths through the function together.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepBound {
    steps: usize,
    /// The number of paths outside regions: leaves of the tree of the function.
    paths: usize,
    /// The largest number of steps of a path outside regions.
    longest: usize,
    /// The number of steps added inside regions.
    in_regions: usize,
}

impl Default for StepBound {
    fn default() -> Self {
        StepBound { steps: 0, paths: 1, longest: 0, in_regions: 0 }
    }
}

impl StepBound {
    /// Notes that a trace of `events` events is about to be added: a step and perhaps a guard for
    /// each event.
    pub(super) fn note_trace(&mut self, events: usize) {
        self.longest = self.longest.max(events.saturating_mul(2));
    }

    /// Adds steps at an open end. All paths go through a region.
    pub(super) fn add_steps(&mut self, steps: usize, in_region: bool) {
        if in_region {
            self.in_regions = self.in_regions.saturating_add(steps);
        }
        let paths = if in_region { self.paths } else { 1 };
        self.steps = self.steps.saturating_add(steps.saturating_mul(paths));
    }

    /// Adds a path outside regions.
    pub(super) fn add_path(&mut self) {
        self.paths += 1;
        self.steps = self.steps.saturating_add(self.longest).saturating_add(self.in_regions);
    }
}

impl Tree {
    /// Tests whether there are at most `limit` steps on all paths.
    pub(super) fn has_at_most(&mut self, limit: usize) -> bool {
        self.step_bound.steps <= limit || self.count_steps() <= limit
    }

    /// The least number of steps that may be added up to `limit`.
    pub(super) fn remaining_steps(&self, limit: usize) -> usize {
        limit.saturating_sub(self.step_bound.steps)
    }

    /// Counts the steps on all paths, which become the bound.
    pub(super) fn count_steps(&mut self) -> usize {
        self.work += work::COUNT_STEPS * self.size() as u64;
        self.step_bound.steps = self.steps(true);
        self.step_bound.steps
    }

    /// The number of steps on all paths through the function together, where a region counts once
    /// for each path through it. Counts `all` paths, or only those taken by traces.
    pub(super) fn steps(&self, all: bool) -> usize {
        // The blocks to visit with the number of steps above them. A region is summed by itself,
        // because its paths join.
        let mut inner: PrimaryMap<Instance, usize> = PrimaryMap::filled(0, self.instances.len());
        // Inner instances are younger, so their sums are known first.
        let instances: Vec<Instance> = self.instances.keys().collect();
        for &instance in instances.iter().rev() {
            inner[instance] = self.sum(self.instances[instance].root, &inner, false, all);
        }
        self.sum(self.root(), &inner, true, all)
    }

    /// The number of steps in the tree of `root`: of each block once, or along each path.
    fn sum(
        &self,
        root: BasicBlock,
        inner: &PrimaryMap<Instance, usize>,
        per_path: bool,
        all: bool,
    ) -> usize {
        let (mut total, mut pending) = (0usize, vec![(root, 0usize)]);
        while let Some((basic_block, above)) = pending.pop() {
            let data = &self.basic_blocks[basic_block];
            if !all && !data.is_walked {
                continue;
            }
            let own = data.weight;
            let below = if per_path { above.saturating_add(own) } else { 0 };
            if !per_path {
                total = total.saturating_add(own);
            }
            match &data.end {
                End::Branch { then, otherwise, .. } => {
                    pending.extend([(*then, below), (*otherwise, below)]);
                }
                End::Region { instance, tails } => {
                    let inner = inner[*instance];
                    let below = if per_path { below.saturating_add(inner) } else { 0 };
                    if !per_path {
                        total = total.saturating_add(inner);
                    }
                    pending.extend(tails.iter().map(|&tail| (tail, below)));
                }
                End::Return(_) | End::Exit { .. } | End::Open => {
                    total = total.saturating_add(below);
                }
            }
        }
        total
    }
}
