//! Insertion: adds a trace to the tree, or restores the tree.

use hashbrown::HashSet;

use super::sharing_groups::SharingGroups;
use super::sharing_plan::Plan;
use super::tree::{Instance, Tree};
use super::walk::{Extension, Mismatch, Walk};
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
    /// `changes`. If a walk has extended the tree, `extended` is its result.
    pub(super) fn add(
        &mut self,
        trace: &Trace<'_>,
        limits: MergeLimits,
        mut extended: Option<Result<(), Mismatch>>,
        changes: &mut Changes,
    ) -> Result<(), MergeError> {
        for call in trace.calls {
            self.customs.entry(call.custom.id()).or_insert_with(|| call.custom.clone());
        }
        loop {
            let exclusions = changes.exclusions.as_ref().unwrap_or(&self.exclusions);
            let walked = extended.take().unwrap_or_else(|| {
                self.tree.work += work::APPEND_EVENT * trace.events.len() as u64;
                self.tree.step_bound.note_trace(trace.events.len());
                let (tree, buffers) = (&mut self.tree, &mut self.buffers);
                let mut walk = Walk::new(tree, Extension::Begun, &exclusions.merging, buffers);
                walk.run(trace).map_err(|mismatch| *mismatch)
            });
            let mismatch = match walked {
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
                Mismatch::NewPath(at) | Mismatch::Divergent(at) => {
                    return Err(MergeError::Divergent { at });
                }
                Mismatch::Limit(error) => return Err(error),
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
        if !self.tree.has_at_most(limits.nodes) {
            self.full = true;
            return Err(MergeError::TooManyNodes { limit: limits.nodes });
        }
        Ok(())
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

    /// Shares paths between instances that were extended, if they stay within the limits. Sharing
    /// that would exceed the allowed work stays pending.
    pub(super) fn share(&mut self) {
        let Some(PendingSharing { extended, limits }) = self.pending_sharing.take() else { return };
        // A graph is made after sharing only.
        debug_assert!(self.graph.is_none() && self.compact.is_none());
        if self.exhausted || self.exclusions.all_sharing {
            return;
        }
        self.tree.work += work::PLAN_SHARING * extended.len() as u64;
        let mut groups = core::mem::take(&mut self.tree.groups);
        groups.update(&self.tree, &self.exclusions.sharing);
        let plan = sharing_plan::plan(&groups, &extended);
        if !plan.is_empty() {
            self.share_as_planned(&groups, &plan, PendingSharing { extended, limits });
        }
        self.tree.groups = groups;
    }

    /// Shares paths as planned.
    fn share_as_planned(&mut self, groups: &SharingGroups, plan: &Plan, pending: PendingSharing) {
        let limits = pending.limits;
        let mut suffices = self.begin_sharing(groups, plan, limits);
        let is_cut_off = self.tree.work > self.tree.most_work;
        if !suffices && !is_cut_off {
            // The number of steps is perhaps less than the bound.
            self.tree.roll_back();
            self.tree.count_steps();
            suffices = self.begin_sharing(groups, plan, limits);
        }
        self.exhausted = !suffices && !is_cut_off;
        if is_cut_off {
            self.pending_sharing = Some(pending);
        }
        if self.tree.has_at_most(limits.nodes) {
            self.tree.commit();
        } else {
            self.tree.roll_back();
            self.exhausted = true;
        }
    }

    /// Begins a transaction and shares paths in it. Returns whether the limit of steps sufficed.
    fn begin_sharing(&mut self, groups: &SharingGroups, plan: &Plan, limits: MergeLimits) -> bool {
        self.tree.begin();
        self.tree.peel_in(plan.instances(groups));
        let budget = self.tree.remaining_steps(limits.nodes);
        sharing_plan::share(&mut self.tree, groups, plan, budget)
    }

    /// Clears the tree.
    pub(super) fn clear(&mut self, changes: Changes) {
        self.tree = self.tree.cleared(0);
        self.generation += changes.clears;
        if let Some(exclusions) = changes.exclusions {
            self.exclusions = exclusions;
        }
        (self.version, self.pending_sharing) = (0, None);
        (self.graph, self.compact) = (None, None);
    }
}
