//! Merging: the traces of one function become one graph.
//!
//! Data structures:
//!
//! - [`Tree`](tree): the merged traces, a decision tree of basic blocks for the function and for
//!   each instance of a region; `values` are its values, `trace_loop` the loops that are single
//!   steps of it. All are undo logs (`undo_log`), so that merging is atomic: a trace that cannot
//!   be merged leaves the tree as it was.
//! - `buffers`: what a walk knows about the events of its trace.
//!
//! Algorithm:
//!
//! 1. `walk` goes along a trace, compares it with the tree and appends what is new; `insert`
//!    commits or rolls back. A walk begins the transaction at the first unknown step. Two traces
//!    share nodes up to the first guard with different outcomes, where the tree branches. Paths
//!    join where a region ends (`joins`), if the static state is equal there: this is polyvariant
//!    partial evaluation (Jones, Gomard and Sestoft).
//! 2. `walk_loops` appends repetition as one step, `loop_match` compares such a step with a trace,
//!    `loop_splitting` peels iterations that differ.
//! 3. `live_in` notes the live-in values of instances. Instances of one region with equal static
//!    state share their paths (`sharing_groups`, `sharing_plan`, `path_sharing`; `jumps` for
//!    exits, `specialisation` for constants), when a trace has an unknown path or the graph is
//!    asked for.
//! 4. `emit` and `emit_loops` make the graph. It is faithful: each event is one node, in order,
//!    nothing folded or shared.
//!
//! `step_bound` tells when the tree has too many steps, without counting them.
//! `side_exit` finds where a run exits the paths of a kernel, `statistics` counts outcomes,
//! `state_splits` names the variables whose values multiply paths, `work` tells what merging costs.
//!
//! A region is excluded from merging if a variable cannot be carried out of it, or if a value
//! computed in it is used outside without being carried. Its events are then treated like code
//! without regions. The tree is cleared, because it was built under the assumption that the region
//! is merged. A trace that contradicts shared paths is no proof of hidden state: the tree is
//! cleared, and the regions that the trace was in are excluded from sharing.

mod buffers;
mod emit;
mod emit_loops;
mod insert;
mod joins;
mod jumps;
mod live_in;
mod loop_match;
mod loop_splitting;
mod path_sharing;
mod sharing_groups;
mod sharing_plan;
mod side_exit;
mod specialisation;
mod state_splits;
mod statistics;
mod step_bound;
#[cfg(test)]
mod tests;
mod trace_loop;
mod tree;
mod undo_log;
mod values;
mod walk;
mod walk_loops;
mod work;

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::custom::Custom;
use crate::ssa::{Graph, Place};
use crate::trace::{Site, Trace};
use buffers::WalkBuffers;
use insert::{Changes, Exclusions, PendingSharing};
use statistics::BranchStatistics;
use tree::Tree;
use walk::{Extension, Mismatch, Walk};

/// The size limits of a [`MergedTraces`] graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeLimits {
    /// The largest number of paths; see [`MergedTraces::paths`].
    pub paths: usize,
    /// The largest number of steps on all paths together; see [`MergedTraces::steps`].
    pub nodes: usize,
}

/// The outcome of merging a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The graph had the path already.
    Known,
    /// The trace is the first one.
    First,
    /// The path is new; it differs from the known paths from this guard on.
    New {
        /// The place of the guard in the user's source.
        at: Place,
    },
}

/// A reason why a trace was not merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// Two runs differ without a guard between them: the function reads state that is neither an
    /// input nor constant, or calls a recorded function whose number of outputs depends on a
    /// branch.
    #[error(
        "at {at} the function did something else than in an earlier run with the same comparisons: \
         it depends on state that is neither an input nor constant; pass that state as an input \
         (Tape::record_with); or the number of outputs of a recorded function that it calls depends \
         on a branch there"
    )]
    Divergent {
        /// The place where the runs differ.
        at: Place,
    },
    /// The graph has the largest allowed number of paths.
    #[error(
        "the function has more than {limit} paths (Limits::paths); annotate it with \
         `#[phigrad::traced]`, or choose with `Var::select`"
    )]
    TooManyPaths {
        /// The limit.
        limit: usize,
    },
    /// The graph has the largest allowed number of nodes.
    #[error(
        "all paths of the function together have more than {limit} steps (Limits::nodes); annotate \
         it with `#[phigrad::traced]`"
    )]
    TooManyNodes {
        /// The limit.
        limit: usize,
    },
}

use side_exit::ExitFinder;
pub use side_exit::SideExit;
pub use statistics::{Decision, TripCounts};

/// A region of an annotated function whose paths are not merged.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnmergedRegion {
    /// The place where the region begins.
    pub at: Place,
    /// The reason why its paths are not merged.
    pub reason: UnmergedReason,
}

/// A reason why the paths through a region are not merged.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnmergedReason {
    /// A variable that changes in the region cannot be carried out of it.
    #[error(
        "`{name}` is used in it and cannot be carried out of it: its type does not implement `Carry` \
         (derive it, or bound the type parameter by it), it is borrowed there, or the \
         attribute does not know a method that is called on it"
    )]
    Opaque {
        /// The name of the variable.
        name: &'static str,
    },
    /// A value computed in the region is used after it without being carried out, for example
    /// through a static or a cell.
    #[error(
        "a value computed in it reaches {to} without passing through a tracked variable; return \
         it, or assign it to a local variable"
    )]
    UntrackedUse {
        /// The place where the value is used.
        to: Place,
    },
    /// Paths end with ever more values of a variable that is static state, and join only where they
    /// are equal.
    #[error(
        "they end with different values of `{name}` ({declared}), which are not carried as numbers; \
         keep them in a local `bool`, integer (of 64 bits at most, below 2^53) or `enum` without \
         fields, or choose with `Var::select`"
    )]
    State {
        /// The name of the variable.
        name: &'static str,
        /// The place where it is declared.
        declared: Place,
    },
    /// Some paths to the region allow for a single path through it, others for several.
    #[error(
        "the number of its paths depends on the path that leads to it; annotate the function that \
         calls this one, too"
    )]
    DependsOnContext,
    /// The function ended in the region.
    #[error("the function ended inside it, as by a panic")]
    EndsInside,
}

impl core::fmt::Display for UnmergedRegion {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "the paths through the region at {} are not merged: {}", self.at, self.reason)
    }
}

/// The graph of all traces merged so far.
///
/// # Examples
///
/// ```
/// use std::panic::Location;
///
/// use phigrad::internals::merge::{MergedTraces, MergeOutcome, MergeLimits};
/// use phigrad::internals::trace::{Inputs, Tracer, Var};
///
/// let program = |x: &[Var], _: &[Var]| if x[0] > 0.0 { x[0].sqrt() } else { -x[0] };
/// let (mut tracer, mut traces) = (Tracer::default(), MergedTraces::new(1, 0));
/// let limits = MergeLimits { paths: 10, nodes: 100 };
/// let mut merge = |x: f64| -> Result<MergeOutcome, Box<dyn std::error::Error>> {
///     let inputs = Inputs { active: &[x], inactive: &[] };
///     let trace = tracer.run(program, inputs, 100, Location::caller())?;
///     Ok(traces.merge(&trace, limits)?)
/// };
/// assert_eq!(merge(4.0)?, MergeOutcome::First);
/// assert_eq!(merge(9.0)?, MergeOutcome::Known);
/// assert!(matches!(merge(-9.0)?, MergeOutcome::New { .. }));
/// assert_eq!(traces.paths(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MergedTraces {
    tree: Tree,
    /// The number of traces that have changed the tree.
    version: u64,
    /// The number of times that the tree was cleared.
    generation: usize,
    unmerged: Vec<UnmergedRegion>,
    exclusions: Exclusions,
    /// Path sharing that is pending: it is done when a trace contains an unknown path, or when the
    /// graph is asked for. Until then there is no graph.
    pending_sharing: Option<PendingSharing>,
    /// True if further sharing would exceed the limit of steps.
    exhausted: bool,
    /// The graph of the tree, if it was asked for.
    graph: Option<Arc<Graph>>,
    /// The graph with loops.
    compact: Option<Arc<Graph>>,
    /// True if a trace was rejected because the tree would be too large.
    full: bool,
    /// The custom operations that are called, by their numbers.
    customs: HashMap<u64, Custom>,
    buffers: WalkBuffers,
    statistics: BranchStatistics,
}

impl MergedTraces {
    /// A graph with these inputs and no paths.
    pub fn new(active: usize, inactive: usize) -> Self {
        MergedTraces {
            tree: Tree::new(active, inactive, 0),
            version: 0,
            generation: 0,
            unmerged: Vec::new(),
            exclusions: Exclusions::default(),
            pending_sharing: None,
            exhausted: false,
            graph: None,
            compact: None,
            customs: HashMap::new(),
            full: false,
            buffers: WalkBuffers::default(),
            statistics: BranchStatistics::default(),
        }
    }

    /// The graph of all merged paths and of the paths shared between regions. Later traces may take
    /// shared paths without changing the graph.
    pub fn graph(&mut self) -> &Arc<Graph> {
        self.share_fully();
        self.graph.get_or_insert_with(|| {
            let mut tree = Cow::Borrowed(&self.tree);
            if tree.has_loops() {
                tree.to_mut().peel_all();
            }
            Arc::new(emit::emit(&tree, &self.customs))
        })
    }

    /// The graph of all merged paths, with long repetition on one path as loops. It is equivalent
    /// to [`MergedTraces::graph`], to the last bit.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::panic::Location;
    ///
    /// use phigrad::internals::merge::{MergedTraces, MergeLimits};
    /// use phigrad::internals::ssa::interpret;
    /// use phigrad::internals::trace::{Inputs, Tracer, Var};
    ///
    /// let program = |x: &[Var], _: &[Var]| (0..1000).fold(x[0], |y, i| (y + i as f64).sin());
    /// let (mut tracer, mut traces) = (Tracer::default(), MergedTraces::new(1, 0));
    /// let inputs = Inputs { active: &[0.5], inactive: &[] };
    /// let trace = tracer.run(program, inputs, 10_000, Location::caller())?;
    /// traces.merge(&trace, MergeLimits { paths: 10, nodes: 10_000 })?;
    /// assert!(traces.compact().nodes.len() < 20);
    /// assert_eq!(interpret(traces.compact(), &[0.7]), interpret(traces.graph(), &[0.7]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compact(&mut self) -> &Arc<Graph> {
        self.share_fully();
        // If a loop was split, all iterations are emitted: rerolling finds more in them than in the
        // pieces, above all exit chains.
        match self.tree.has_loops() && !self.tree.is_small_and_split() {
            true => {
                self.compact.get_or_insert_with(|| Arc::new(emit::emit(&self.tree, &self.customs)))
            }
            false => self.graph(),
        }
    }

    /// The number of events of runs along all paths together, inputs included. Counts paths that
    /// traces have taken, not paths shared from other regions.
    pub fn events(&self) -> usize {
        self.tree.steps(false) + (self.tree.active + self.tree.inactive) * self.paths()
    }

    /// The number of times that the tree was cleared, because a region had to be excluded from
    /// merging or from path sharing.
    pub fn generation(&self) -> usize {
        self.generation
    }

    /// The number of traces that have changed the graph.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The number of steps on all paths together; a step common to several paths counts for each of
    /// them. The size of derivatives is proportional to it, because each path has a reverse sweep
    /// of its own. After a region all its paths count as one.
    pub fn steps(&mut self) -> usize {
        self.share_fully();
        self.tree.steps(true)
    }

    /// The number of paths merged so far: one, and one more for each guard outside regions that was
    /// seen with both outcomes. Where regions join paths, the graph has many more combinations.
    pub fn paths(&self) -> usize {
        if self.version == 0 { 0 } else { self.tree.splits + 1 }
    }

    /// Tests whether path sharing has stopped, because it would exceed the limit of steps.
    pub fn is_sharing_exhausted(&mut self) -> bool {
        self.share_fully();
        self.exhausted
    }

    /// The work done so far (`work`).
    pub(crate) fn work(&self) -> u64 {
        self.tree.work
    }

    /// The least work of adding the path of a run of `events` events.
    pub(crate) fn work_to_add(&self, events: usize) -> u64 {
        work::to_add(events)
    }

    /// Limits the work of path sharing while traces are merged. The rest is done when the graph is
    /// asked for.
    pub(crate) fn allow_work(&mut self, work: u64) {
        self.tree.most_work = self.tree.work.saturating_add(work);
    }

    /// The approximate size in bytes of all that is kept, without graphs.
    pub(crate) fn bytes(&self) -> usize {
        self.tree.bytes()
    }

    /// The number of steps of the tree, those of a loop counted once.
    pub(crate) fn distinct_steps(&self) -> usize {
        self.tree.values.origins().len()
    }

    /// The regions whose paths are not merged, in the order of their discovery.
    pub fn unmerged(&self) -> &[UnmergedRegion] {
        &self.unmerged
    }

    /// The regions whose paths multiply, because they are merged only where static state is equal;
    /// one for each variable, in the order of their discovery.
    pub fn state_splits(&self) -> &[UnmergedRegion] {
        &self.buffers.splits.reported
    }

    /// The comparisons that guards were made of, with the counts of their outcomes, by place.
    pub fn decisions(&self) -> Vec<Decision> {
        self.statistics.decisions()
    }

    /// The loops of annotated functions with their trip counts.
    pub fn loops(&self) -> Vec<TripCounts> {
        self.statistics.loops()
    }

    /// Adds the path of `trace`, a run of the same function with the same number of inputs as all
    /// runs before. For an example see [`MergedTraces`].
    ///
    /// # Errors
    ///
    /// See [`MergeError`]; the graph is then unchanged. It is empty if it was wrong and the
    /// corrected one exceeds the limits.
    pub fn merge(
        &mut self,
        trace: &Trace<'_>,
        limits: MergeLimits,
    ) -> Result<MergeOutcome, MergeError> {
        self.merge_with(trace, limits, &mut None)
    }

    /// [`MergedTraces::merge`] after a side exit from a kernel of an older `version` of this
    /// generation; returns also the [`MergedTraces::side_exit`], for which the same walk serves.
    pub fn merge_after_exit(
        &mut self,
        trace: &Trace<'_>,
        limits: MergeLimits,
        version: u64,
    ) -> (Result<MergeOutcome, MergeError>, Option<SideExit>) {
        let mut finder = Some(ExitFinder::new(version));
        let merged = self.merge_with(trace, limits, &mut finder);
        // The next calls probably take new paths, too, and the walks along them go further then.
        if matches!(merged, Ok(MergeOutcome::New { .. })) {
            self.share();
        }
        (merged, finder.and_then(ExitFinder::side_exit))
    }

    fn merge_with(
        &mut self,
        trace: &Trace<'_>,
        limits: MergeLimits,
        finder: &mut Option<ExitFinder>,
    ) -> Result<MergeOutcome, MergeError> {
        self.statistics.count(trace);
        let (mut must_clear, mut extended) = (false, None);
        let merged = if self.version == 0 {
            MergeOutcome::First
        } else {
            match self.compare(trace, limits, finder) {
                (Ok(()), None) => return Ok(MergeOutcome::Known),
                (Err(Mismatch::Limit(error)), _) => return Err(error),
                (walked, Some(at)) => {
                    extended = Some(walked);
                    MergeOutcome::New { at }
                }
                (Err(Mismatch::Divergent(at)), None) if !self.tree.is_shared => {
                    return Err(MergeError::Divergent { at });
                }
                (Err(Mismatch::Unmerged(_, unmerged)), None) => {
                    MergeOutcome::New { at: unmerged.at }
                }
                // A kernel made of the graph may be wrong, too, so the limits do not matter.
                (Err(Mismatch::Divergent(at) | Mismatch::NewPath(at)), None) => {
                    must_clear = true;
                    MergeOutcome::New { at }
                }
                (Err(Mismatch::WrongSharing(site)), None) => {
                    must_clear = true;
                    MergeOutcome::New { at: place(site) }
                }
            }
        };
        let mut changes = Changes::default();
        if extended.is_none() {
            // Limits that can be tested before the tree changes.
            let is_split = self.version > 0 && !must_clear;
            if is_split && self.tree.splits + 1 >= limits.paths {
                return Err(MergeError::TooManyPaths { limit: limits.paths });
            }
            if self.full && !must_clear {
                return Err(MergeError::TooManyNodes { limit: limits.nodes });
            }
            self.tree.begin();
            self.tree.version = self.version + 1;
        }
        if let Err(error) = self.add(trace, limits, extended, &mut changes) {
            self.roll_back(&mut changes);
            if must_clear && matches!(error, MergeError::TooManyNodes { .. }) {
                self.clear(changes);
            }
            return Err(error);
        }
        self.tree.commit();
        self.generation += changes.clears;
        if let Some(exclusions) = changes.exclusions {
            self.exclusions = exclusions;
        }
        self.unmerged.append(&mut changes.unmerged);
        let mut extended = core::mem::take(&mut self.buffers.extended);
        // What is still pending refers to a tree that has been cleared, or goes on.
        if let Some(pending) = self.pending_sharing.take().filter(|_| changes.clears == 0) {
            extended.extend(pending.extended);
        }
        self.pending_sharing = Some(PendingSharing { extended, limits });
        (self.graph, self.compact) = (None, None);
        self.version += 1;
        Ok(merged)
    }

    /// Walks along a trace that may be known, perhaps after pending sharing. Where its path is new,
    /// a transaction begins, and the tree is extended; returns also the place.
    ///
    /// Most traces add nothing; so changes are logged only for the others. The walk before the
    /// transaction may split a loop, which does not change the meaning of the tree.
    fn compare(
        &mut self,
        trace: &Trace<'_>,
        limits: MergeLimits,
        finder: &mut Option<ExitFinder>,
    ) -> (Result<(), Mismatch>, Option<Place>) {
        if self.pending_sharing.is_some() {
            let walked = self.walk(trace, Extension::Never, finder);
            if !matches!(walked.0, Err(Mismatch::NewPath(_))) {
                return walked;
            }
            self.share();
        }
        self.walk(trace, Extension::FromUnknown { limits, is_full: self.full }, finder)
    }

    fn walk(
        &mut self,
        trace: &Trace<'_>,
        extension: Extension,
        finder: &mut Option<ExitFinder>,
    ) -> (Result<(), Mismatch>, Option<Place>) {
        self.tree.work += work::COMPARE_EVENT * trace.events.len() as u64;
        self.tree.step_bound.note_trace(trace.events.len());
        let merging = &self.exclusions.merging;
        let mut walk = Walk::new(&mut self.tree, extension, merging, &mut self.buffers);
        walk.exit_finder = finder.as_ref().map(ExitFinder::restarted);
        let walked = walk.run(trace).map_err(|mismatch| *mismatch);
        *finder = walk.exit_finder.take();
        if walked.is_err() {
            finder.iter_mut().for_each(ExitFinder::exit_to);
        }
        let new_path = walk.new_path.take();
        let appended = new_path.as_ref().map_or(0, |path| trace.events.len() - path.event);
        self.tree.work += work::APPEND_EVENT * appended as u64;
        (walked, new_path.map(|path| path.at))
    }
}

fn place(site: Site) -> Place {
    Place::new(site.file(), site.line(), site.column())
}

fn unknown_place() -> Place {
    Place { file: "unknown".into(), line: 0, column: 0, nth: 0 }
}
