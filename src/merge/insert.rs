//! Insertion: adds a trace to the tree, or restores the tree.

use hashbrown::HashSet;

use super::tree::{Instance, Tree};
use super::walk::{Stop, Walk};
use super::{MergeError, MergeLimits, MergedTraces, UnmergedReason, UnmergedRegion, sharing_plan};
use crate::trace::{Site, Trace};

/// Changes besides those of the tree, while a trace is added.
#[derive(Default)]
pub(super) struct Changes {
    /// The former tree, if it was replaced.
    pub(super) tree: Option<Tree>,
    /// The number of times that the tree was cleared.
    pub(super) forgotten: usize,
    pub(super) unmerged: Vec<UnmergedRegion>,
    /// The new exclusions, if they changed.
    pub(super) excluded: Option<Excluded>,
}

/// Path sharing that is still to be done.
#[derive(Clone, Debug)]
pub(super) struct Unshared {
    /// The instances that were extended.
    pub(super) grew: Vec<Instance>,
    /// The size limits of the tree.
    pub(super) limits: MergeLimits,
}

/// Regions excluded from merging or sharing.
#[derive(Clone, Debug, Default)]
pub(super) struct Excluded {
    /// Regions whose paths are not merged.
    pub(super) merging: HashSet<Site>,
    /// Regions that do not share paths.
    pub(super) sharing: HashSet<Site>,
    /// True if no region shares paths.
    pub(super) all_sharing: bool,
}

impl Excluded {
    /// Excludes the regions at these sites from sharing. If all of them are excluded already, every
    /// region is, so that merging terminates.
    fn unshare(&mut self, sites: impl Iterator<Item = Site>) {
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
        loop {
            let excluded = changes.excluded.as_ref().unwrap_or(&self.excluded);
            let walked = Walk::new(&mut self.tree, true, &excluded.merging, &mut self.notes);
            let stop = match { walked }.run(trace) {
                Ok(()) => break,
                Err(stop) => stop,
            };
            let excluded = changes.excluded.get_or_insert_with(|| self.excluded.clone());
            match stop {
                Stop::Unmerged(
                    _,
                    UnmergedRegion { reason: UnmergedReason::DependsOnContext, .. },
                )
                | Stop::Divergent(_)
                    if self.tree.is_shared =>
                {
                    let open = self.notes.open.iter();
                    excluded.unshare(open.map(|open| self.tree.instances[open.instance].site));
                }
                Stop::Unshare(site) => excluded.unshare([site].into_iter()),
                Stop::Unmerged(site, reason) => {
                    excluded.merging.insert(site);
                    changes.unmerged.push(reason);
                }
                Stop::New { at, .. } | Stop::Divergent(at) => {
                    return Err(MergeError::Divergent { at });
                }
            }
            let anew = self.tree.anew(self.version + 1);
            let mut tree = core::mem::replace(&mut self.tree, anew);
            if changes.tree.is_none() {
                tree.undo();
                changes.tree = Some(tree);
            }
            changes.forgotten += 1;
        }
        if self.tree.splits >= limits.paths {
            return Err(MergeError::TooManyPaths { limit: limits.paths });
        }
        let steps = self.tree.steps(true);
        if steps > limits.nodes {
            self.full = true;
            return Err(MergeError::TooManyNodes { limit: limits.nodes });
        }
        Ok(steps)
    }

    /// Restores the tree as it was before a trace was added.
    pub(super) fn take_back(&mut self, changes: &mut Changes) {
        match changes.tree.take() {
            Some(tree) => self.tree = tree,
            None => self.tree.undo(),
        }
    }

    /// Shares paths between instances that were extended, if they stay within the limits. Returns
    /// whether that may have changed the tree.
    pub(super) fn share(&mut self) -> bool {
        let Some(Unshared { grew, limits }) = self.unshared.take() else { return false };
        // A graph is made after sharing only.
        debug_assert!(self.graph.is_none() && self.compact.is_none());
        if self.exhausted || self.excluded.all_sharing {
            return false;
        }
        let plan = sharing_plan::plan(&self.tree, &grew, &self.excluded.sharing);
        if plan.is_empty() {
            return false;
        }
        self.tree.begin();
        self.tree.expand_in(plan.instances());
        let budget = limits.nodes.saturating_sub(self.steps);
        self.exhausted = !sharing_plan::share(&mut self.tree, &plan, budget);
        let steps = self.tree.steps(true);
        if steps <= limits.nodes {
            self.tree.keep();
            self.steps = steps;
        } else {
            self.tree.undo();
            self.exhausted = true;
        }
        true
    }

    /// Clears the tree.
    pub(super) fn forget(&mut self, changes: Changes) {
        self.tree = self.tree.anew(0);
        self.generation += changes.forgotten;
        if let Some(excluded) = changes.excluded {
            self.excluded = excluded;
        }
        (self.steps, self.walked, self.version, self.unshared) = (0, 0, 0, None);
        (self.graph, self.compact) = (None, None);
    }
}
