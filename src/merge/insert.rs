//! Insertion: adds a trace to the tree, or restores the tree.

use hashbrown::HashSet;

use super::tree::{Instance, Tree};
use super::walk::{Mismatch, Walk};
use super::{
    MergeError, MergeLimits, MergedTraces, UnmergedReason, UnmergedRegion, sharing_plan, work,
};
use crate::trace::{Site, Trace};

/// Changes besides those of the tree, while a trace is added.
#[derive(Default)]
pub(super) struct Changes {
    /// The former tree, if it was replaced.
    pub(super) tree: Option<Tree>,
    /// The number of times that the tree was cleared.
    pub(super) clears: usize,
    pub(super) unmerged: Vec<UnmergedRegion>,
    /// The new exclusions, if they changed.
    pub(super) exclusions: Option<Exclusions>,
}

/// Path sharing that is still to be done.
#[derive(Clone, Debug)]
pub(super) struct PendingSharing {
    /// The instances that were extended.
    pub(super) extended: Vec<Instance>,
    /// The size limits of the tree.
    pub(super) limits: MergeLimits,
}

/// Regions excluded from merging or sharing.
#[derive(Clone, Debug, Default)]
pub(super) struct Exclusions {
    /// Regions whose paths are not merged.
    pub(super) merging: HashSet<Site>,
    /// Regions that do not share paths.
    pub(super) sharing: HashSet<Site>,
    /// True if no region shares paths.
    pub(super) all_sharing: bool,
}

impl Exclusions {
    /// Excludes the regions at these sites from sharing. If all of them are excluded already, every
    /// region is, so that merging terminates.
    fn exclude_from_sharing(&mut self, sites: impl Iterator<Item = Site>) {
        let before = self.sharing.len();
        self.sharing.extend(sites);
        self.all_sharing |= self.sharing.len() == before;
    }
}

impl MergedTraces {
    /// Adds `trace` to the tree, which is cleared if it was wrong; other changes are noted in
    /// `changes`. Returns the number of steps on all paths.
    pub(super) fn add(
        &mut self,
        trace: &Trace<'_>,
        limits: MergeLimits,
        changes: &mut Changes,
    ) -> Result<usize, MergeError> {
        for call in trace.calls {
            self.customs.entry(call.custom.id()).or_insert_with(|| call.custom.clone());
        }
        loop {
            self.tree.work += work::APPEND_EVENT * trace.events.len() as u64;
            let exclusions = changes.exclusions.as_ref().unwrap_or(&self.exclusions);
            let walked = Walk::new(&mut self.tree, true, &exclusions.merging, &mut self.buffers);
            let mismatch = match { walked }.run(trace) {
                Ok(()) => break,
                Err(mismatch) => mismatch,
            };
            let exclusions = changes.exclusions.get_or_insert_with(|| self.exclusions.clone());
            match mismatch {
                Mismatch::Unmerged(
                    _,
                    UnmergedRegion { reason: UnmergedReason::DependsOnContext, .. },
                )
                | Mismatch::Divergent(_)
                    if self.tree.is_shared =>
                {
                    let open = self.buffers.open.iter();
                    exclusions.exclude_from_sharing(
                        open.map(|open| self.tree.instances[open.instance].site),
                    );
                }
                Mismatch::WrongSharing(site) => exclusions.exclude_from_sharing([site].into_iter()),
                Mismatch::Unmerged(site, reason) => {
                    exclusions.merging.insert(site);
                    changes.unmerged.push(reason);
                }
                Mismatch::NewPath { at, .. } | Mismatch::Divergent(at) => {
                    return Err(MergeError::Divergent { at });
                }
            }
            let cleared = self.tree.cleared(self.version + 1);
            let mut tree = core::mem::replace(&mut self.tree, cleared);
            if changes.tree.is_none() {
                tree.roll_back();
                changes.tree = Some(tree);
            }
            changes.clears += 1;
        }
        if self.tree.splits >= limits.paths {
            return Err(MergeError::TooManyPaths { limit: limits.paths });
        }
        let steps = self.tree.steps(true);
        self.tree.work += work::COUNT_ADDED * self.tree.size() as u64;
        if steps > limits.nodes {
            self.full = true;
            return Err(MergeError::TooManyNodes { limit: limits.nodes });
        }
        Ok(steps)
    }

    /// Restores the tree as it was before a trace was added.
    pub(super) fn roll_back(&mut self, changes: &mut Changes) {
        match changes.tree.take() {
            Some(tree) => {
                let work = self.tree.work;
                self.tree = tree;
                self.tree.work = work;
            }
            None => self.tree.roll_back(),
        }
    }

    /// Does all pending sharing, whatever it costs.
    pub(super) fn share_fully(&mut self) {
        self.tree.most_work = u64::MAX;
        self.share();
    }

    /// Shares paths between instances that were extended, if they stay within the limits. Returns
    /// whether that may have changed the tree. Sharing that would exceed the allowed work stays
    /// pending.
    pub(super) fn share(&mut self) -> bool {
        let Some(PendingSharing { extended, limits }) = self.pending_sharing.take() else {
            return false;
        };
        // A graph is made after sharing only.
        debug_assert!(self.graph.is_none() && self.compact.is_none());
        if self.exhausted || self.exclusions.all_sharing {
            return false;
        }
        self.tree.work += work::PLAN_SHARING * self.tree.size() as u64;
        let plan = sharing_plan::plan(&self.tree, &extended, &self.exclusions.sharing);
        if plan.is_empty() {
            return false;
        }
        self.tree.begin();
        self.tree.peel_in(plan.instances());
        let budget = limits.nodes.saturating_sub(self.steps);
        let suffices = sharing_plan::share(&mut self.tree, &plan, budget);
        let is_cut_off = self.tree.work > self.tree.most_work;
        self.exhausted = !suffices && !is_cut_off;
        if is_cut_off {
            self.pending_sharing = Some(PendingSharing { extended, limits });
        }
        let steps = self.tree.steps(true);
        self.tree.work += work::COUNT_SHARED * self.tree.size() as u64;
        if steps <= limits.nodes {
            self.tree.commit();
            self.steps = steps;
        } else {
            self.tree.roll_back();
            self.exhausted = true;
        }
        true
    }

    /// Clears the tree.
    pub(super) fn clear(&mut self, changes: Changes) {
        self.tree = self.tree.cleared(0);
        self.generation += changes.clears;
        if let Some(exclusions) = changes.exclusions {
            self.exclusions = exclusions;
        }
        (self.steps, self.walked, self.version, self.pending_sharing) = (0, 0, 0, None);
        (self.graph, self.compact) = (None, None);
    }
}
