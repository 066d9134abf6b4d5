//! Merging: merges the traces of one function into one graph.
//!
//! The traces are merged in a tree of their own (`tree`): `walk` goes along a
//! trace and adds what is new, `emit` makes the graph. The graph is faithful:
//! each event is one node, in order, nothing folded or shared. Two traces share
//! nodes up to the first guard that came out differently; there the tree parts.
//! It joins where a region ends, if the static state is the same there. Merging
//! is atomic: a trace that cannot be merged leaves the tree as it was.
//!
//! A region that cannot be merged (a variable cannot be carried, or a value of
//! the region is used outside without having been carried) is passed over: its
//! events are like those of code without regions. What was merged before is
//! then forgotten, because it was merged under other conditions.
//!
//! Regions that run the same code on the same state share their sides (`path_sharing`), as soon
//! as that tells something: a trace is not known without, or the graph is wanted.
//! A trace that does not fit what was shared says nothing about the function:
//! all is forgotten, and the regions that it was in share no more.

mod cut;
mod emit;
mod emit_repeats;
mod follow;
mod give;
mod insert;
mod jumps;
mod leave;
mod log;
mod notes;
mod path_sharing;
mod repeat;
mod sharing_plan;
mod side_exit;
mod skip;
mod special;
mod statistics;
#[cfg(test)]
mod tests;
mod tree;
mod values;
mod walk;

use std::borrow::Cow;
use std::sync::Arc;

use crate::ssa::{Graph, Place};
use crate::trace::{Site, Trace};
use insert::{Changes, Excluded, Unshared};
use notes::Notes;
use statistics::BranchStatistics;
use tree::Tree;
use walk::{Stop, Walk};

/// How much a [`MergedTraces`] graph may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeLimits {
    /// The largest number of paths; see [`MergedTraces::paths`].
    pub paths: usize,
    /// The largest number of steps on all paths together; see [`MergedTraces::steps`].
    pub nodes: usize,
}

/// What merging a trace came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The path was in the graph already.
    Known,
    /// The trace is the first one.
    First,
    /// The path is new; it left the known paths at this guard.
    New {
        /// Where in the user's source the guard is.
        at: Place,
    },
}

/// A reason why a trace was not merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// Two runs did different things without a guard between them: the function
    /// reads something that is neither an input nor constant.
    #[error(
        "at {at} the function did something else than in an earlier run with the same comparisons: \
         it depends on state that is neither an input nor constant; pass that state as an input \
         (Tape::record_with)"
    )]
    Divergent {
        /// Where the runs differ.
        at: Place,
    },
    /// The graph has as many paths as the limits allow.
    #[error("the function has more than {limit} paths (Limits::paths)")]
    TooManyPaths {
        /// The limit.
        limit: usize,
    },
    /// The graph has as many nodes as the limits allow.
    #[error("all paths of the function together have more than {limit} steps (Limits::nodes)")]
    TooManyNodes {
        /// The limit.
        limit: usize,
    },
}

pub use side_exit::SideExit;
pub use statistics::{Decision, TripCounts};

/// A region of an annotated function whose paths are not merged.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnmergedRegion {
    /// Where the region begins.
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
    #[error("`{name}` changes in it, and its type does not implement `Carry`; derive it")]
    Opaque {
        /// The name of the variable.
        name: &'static str,
    },
    /// A value computed in the region is used after it without being carried out, as through a
    /// static or a cell.
    #[error(
        "a value computed in it reaches {to} without passing through a tracked variable; return \
         it, or assign it to a local variable"
    )]
    UntrackedUse {
        /// Where the value is used.
        to: Place,
    },
    /// It has one path or several, depending on the path that leads to it.
    #[error("the number of its paths depends on the path that leads to it")]
    DependsOnContext,
    /// The function ended in the region.
    #[error("the function ended inside it")]
    EndsInside,
}

impl core::fmt::Display for UnmergedRegion {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "the paths through the region at {} are not merged: {}", self.at, self.reason)
    }
}

/// A graph that grows trace by trace.
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
    /// How many traces have changed the tree.
    version: u64,
    steps: usize,
    /// The steps that traces went along.
    walked: usize,
    /// How often the tree was forgotten.
    generation: usize,
    unmerged: Vec<UnmergedRegion>,
    excluded: Excluded,
    /// What regions have not shared yet: they do when a trace is not known without, or when
    /// somebody wants the graph. Meanwhile there is none.
    unshared: Option<Unshared>,
    /// Whether sharing more would need more steps than are allowed.
    exhausted: bool,
    /// The graph of the tree, once somebody has asked for it.
    graph: Option<Arc<Graph>>,
    /// The same with loops.
    compact: Option<Arc<Graph>>,
    /// Whether a trace was excluded because the tree would be too large.
    full: bool,
    notes: Notes,
    statistics: BranchStatistics,
}

impl MergedTraces {
    /// A graph of these inputs and no path.
    pub fn new(active: usize, inactive: usize) -> Self {
        MergedTraces {
            tree: Tree::new(active, inactive, 0),
            version: 0,
            steps: 0,
            walked: 0,
            generation: 0,
            unmerged: Vec::new(),
            excluded: Excluded::default(),
            unshared: None,
            exhausted: false,
            graph: None,
            compact: None,
            full: false,
            notes: Notes::default(),
            statistics: BranchStatistics::default(),
        }
    }

    /// The graph of all paths merged so far, and of what regions share: that is known from
    /// here on, also to traces that come later.
    pub fn graph(&mut self) -> &Arc<Graph> {
        self.share();
        self.graph.get_or_insert_with(|| {
            let mut tree = Cow::Borrowed(&self.tree);
            if tree.has_repeats() {
                tree.to_mut().expand_all();
            }
            Arc::new(emit::emit(&tree))
        })
    }

    /// The graph of all paths merged so far, in which long repetition of one path is
    /// loops. It means the same as [`MergedTraces::graph`], to the last bit.
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
        self.share();
        // Of the pieces of what was cut more is made, chains of exits above all, if all
        // iterations are there.
        match self.tree.has_repeats() && !self.tree.has_short_pieces() {
            true => self.compact.get_or_insert_with(|| Arc::new(emit::emit(&self.tree))),
            false => self.graph(),
        }
    }

    /// How many events the runs along all paths together have, inputs included:
    /// paths that were taken, not those that are known from other places.
    pub fn events(&self) -> usize {
        self.walked + (self.tree.active + self.tree.inactive) * self.paths()
    }

    /// How often what was merged before was forgotten, because a region turned
    /// out to be one that cannot be merged, or one that shared what it should not.
    pub fn generation(&self) -> usize {
        self.generation
    }

    /// Grows with each trace that added something.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The number of steps on all paths together; a step that several paths
    /// share counts for each of them. Derivatives grow with this number, because
    /// each path has a reverse sweep of its own. Behind a region its ways are one
    /// path.
    pub fn steps(&mut self) -> usize {
        self.share();
        self.steps
    }

    /// The number of paths merged so far: one, and one more for each side of a
    /// guard that was seen after its other side. Where regions join paths, the
    /// graph stands for many more combinations.
    pub fn paths(&self) -> usize {
        if self.version == 0 { 0 } else { self.tree.splits + 1 }
    }

    /// Whether regions share no more sides, because that would need more steps than
    /// are allowed.
    pub fn is_sharing_exhausted(&mut self) -> bool {
        self.share();
        self.exhausted
    }

    /// The regions whose ways are not merged, in the order in which that was
    /// found.
    pub fn unmerged(&self) -> &[UnmergedRegion] {
        &self.unmerged
    }

    /// The comparisons that decided something, with how they came out, by place.
    pub fn decisions(&self) -> Vec<Decision> {
        self.statistics.decisions()
    }

    /// The loops of annotated functions, with their numbers of iterations.
    pub fn loops(&self) -> Vec<TripCounts> {
        self.statistics.loops()
    }

    /// Adds the path of `trace`, a run of the function whose other traces were
    /// merged before, with as many inputs. For an example see [`MergedTraces`].
    ///
    /// # Errors
    ///
    /// See [`MergeError`]; the graph is then unchanged. It is empty if it was wrong and what is
    /// right is beyond the limits.
    pub fn merge(
        &mut self,
        trace: &Trace<'_>,
        limits: MergeLimits,
    ) -> Result<MergeOutcome, MergeError> {
        self.statistics.count(trace);
        let (mut inside, mut forgets) = (false, false);
        let merged = if self.version == 0 {
            MergeOutcome::First
        } else {
            let mut walked = self.walk(trace);
            if matches!(walked, Err(Stop::New { .. })) && self.share() {
                walked = self.walk(trace);
            }
            match walked {
                Ok(()) => return Ok(MergeOutcome::Known),
                Err(Stop::New { at, in_region }) => {
                    inside = in_region;
                    MergeOutcome::New { at }
                }
                Err(Stop::Divergent(at)) if !self.tree.is_shared => {
                    return Err(MergeError::Divergent { at });
                }
                Err(Stop::Unmerged(_, unmerged)) => MergeOutcome::New { at: unmerged.at },
                // What kernels know may be wrong, too, whatever the limits say.
                Err(Stop::Divergent(at)) => {
                    forgets = true;
                    MergeOutcome::New { at }
                }
                Err(Stop::Unshare(site)) => {
                    forgets = true;
                    MergeOutcome::New { at: place(site) }
                }
            }
        };
        let is_split = self.version > 0 && !inside && !forgets;
        if is_split && self.tree.splits + 1 >= limits.paths {
            return Err(MergeError::TooManyPaths { limit: limits.paths });
        }
        if self.full && !forgets {
            return Err(MergeError::TooManyNodes { limit: limits.nodes });
        }
        let mut changes = Changes::default();
        self.tree.begin();
        self.tree.version = self.version + 1;
        let added = self.add(trace, limits, &mut changes);
        let steps = match added {
            Ok(steps) => steps,
            Err(error) => {
                self.take_back(&mut changes);
                if forgets && matches!(error, MergeError::TooManyNodes { .. }) {
                    self.forget(changes);
                }
                return Err(error);
            }
        };
        self.tree.keep();
        (self.steps, self.walked) = (steps, self.tree.steps(false));
        self.generation += changes.forgotten;
        if let Some(excluded) = changes.excluded {
            self.excluded = excluded;
        }
        self.unmerged.append(&mut changes.unmerged);
        // What has not been shared now was of a tree that is forgotten.
        debug_assert!(self.unshared.is_none() || changes.forgotten > 0);
        self.unshared = Some(Unshared { grew: core::mem::take(&mut self.notes.grew), limits });
        (self.graph, self.compact) = (None, None);
        self.version += 1;
        Ok(merged)
    }

    /// Walks along a trace that may be known.
    ///
    /// Most traces add nothing; only for others changes are noted, to be taken back.
    /// A repeat may be cut here, too, which means the same.
    fn walk(&mut self, trace: &Trace<'_>) -> Result<(), Stop> {
        Walk::new(&mut self.tree, false, &self.excluded.merging, &mut self.notes).run(trace)
    }
}

fn place(site: Site) -> Place {
    Place::new(site.file(), site.line(), site.column())
}

fn unknown_place() -> Place {
    Place { file: "unknown".into(), line: 0, column: 0, nth: 0 }
}
