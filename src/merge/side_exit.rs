//! Side exits: the comparison at which a run exits the paths known to a kernel.
//!
//! A kernel has the graph of some version. Each basic block of the tree has the version that
//! created it; a walk along the run finds the first block that is younger than the kernel.

use super::tree::{BasicBlock, Tree};
use super::walk::Extension;
use super::{MergedTraces, place};
use crate::op::Op;
use crate::ssa::Place;
use crate::trace::{Event, Site, Trace};

/// A comparison with an outcome for which a kernel had no path.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SideExit {
    /// The place of the comparison.
    pub at: Place,
    /// The comparison; [`Op::Same`] is an escape, of a number that was read out.
    pub op: Op,
    /// The outcome.
    pub held: bool,
}

/// Finds the side exit from an older version during a walk.
pub(super) struct ExitFinder {
    /// The version.
    version: u64,
    /// The latest comparison.
    last: Option<(Site, Op, bool)>,
    /// True if `last` is the side exit.
    found: bool,
}

impl ExitFinder {
    pub(super) fn new(version: u64) -> ExitFinder {
        ExitFinder { version, last: None, found: false }
    }

    /// For another walk.
    pub(super) fn restarted(&self) -> ExitFinder {
        ExitFinder::new(self.version)
    }

    /// The side exit, if the walk found one.
    pub(super) fn side_exit(self) -> Option<SideExit> {
        let (site, op, held) = self.last.filter(|_| self.found)?;
        Some(SideExit { at: place(site), op, held })
    }

    /// Notes the outcome of a comparison.
    pub(super) fn note_outcome(&mut self, event: &Event, outcome: bool) {
        if !self.found {
            self.last = Some((event.site(), event.op(), outcome));
        }
    }

    /// The continuation is in no version.
    pub(super) fn exit_to(&mut self) {
        self.found = true;
    }

    /// Checks the version of this step of `basic_block`.
    pub(super) fn visit(&mut self, tree: &Tree, basic_block: BasicBlock, step: usize) {
        let data = &tree.basic_blocks[basic_block];
        let is_younger = |(version, at)| version > self.version && step >= at;
        self.found |= data.created > self.version || data.extension.is_some_and(is_younger);
    }
}

impl MergedTraces {
    /// The comparison at which `trace`, which was merged, exits the paths of an older `version` of
    /// this generation; `None` if it takes one of them.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::panic::Location;
    ///
    /// use phigrad::internals::op::Op;
    /// use phigrad::internals::merge::{MergedTraces, MergeLimits};
    /// use phigrad::internals::trace::{Inputs, Tracer, Var};
    ///
    /// let program = |x: &[Var], _: &[Var]| if x[0] > 0.0 { x[0].sqrt() } else { -x[0] };
    /// let (mut tracer, mut traces) = (Tracer::default(), MergedTraces::new(1, 0));
    /// for x in [4.0, -9.0] {
    ///     let inputs = Inputs { active: &[x], inactive: &[] };
    ///     let trace = tracer.run(program, inputs, 100, Location::caller())?;
    ///     traces.merge(&trace, MergeLimits { paths: 10, nodes: 100 })?;
    ///     let side_exit = traces.side_exit(&trace, 1);
    ///     let found = side_exit.map(|exit| (exit.op, exit.held));
    ///     assert_eq!(found, (x < 0.0).then_some((Op::Gt, false)));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn side_exit(&mut self, trace: &Trace<'_>, version: u64) -> Option<SideExit> {
        self.share();
        let mut finder = Some(ExitFinder::new(version));
        // If the walk fails, the tree does not know the continuation.
        let _ = self.walk(trace, Extension::Never, &mut finder);
        finder.and_then(ExitFinder::side_exit)
    }
}
