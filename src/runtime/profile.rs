//! The profile of a specialisation: what the tape has recorded, and what its kernels wait for.

use core::time::Duration;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::budget::Budget;
use super::report::{KernelReport, Wait};
use crate::merge::{MergedTraces, SideExit};
use crate::op::Op;
use crate::phi::{Applied, OpenLoop};
use crate::pipeline::{Hotness, Options, Purpose, Refusal};
use crate::ssa::Place;
use crate::trace::{Inputs, Trace};

/// A version of the merged graph. The generation changes when the graph is built anew.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct GraphVersion {
    pub(super) generation: usize,
    pub(super) version: u64,
}

/// A call in which a kernel had no result.
#[derive(Clone, Copy)]
pub(super) struct KernelExit {
    /// The version of the graph that the kernel was made from.
    pub(super) graph_version: GraphVersion,
    pub(super) reason: ExitReason,
}

impl KernelExit {
    /// Tests whether all results were finite, so that the call has another path.
    pub(super) fn is_finite(self) -> bool {
        !matches!(self.reason, ExitReason::NonFinite)
    }
}

/// The reason why a kernel had no result.
#[derive(Clone, Copy)]
pub(super) enum ExitReason {
    /// A guard failed.
    SideExit,
    /// An output was not finite.
    NonFinite,
}

/// The runs on the tape, merged and counted.
pub(super) struct Profile {
    pub(super) traces: MergedTraces,
    pub(super) budget: Budget,
    /// The size of the recorded paths when it was last counted.
    pub(super) bytes: usize,
    /// The number of events of one run along each path, if kernels wait for that many.
    pub(super) path_events: u64,
    /// The paths taken on the tape, by the signature of the trace.
    pub(super) traced_paths: HashMap<u64, TracedPath>,
    /// The signatures of untracked runs.
    pub(super) untracked: HashSet<u64>,
    pub(super) longest: usize,
    pub(super) last_new_path: Option<Place>,
    /// The number of side exits at each comparison, and the last one.
    pub(super) side_exits: HashMap<(Place, Op), u64>,
    pub(super) last_side_exit: Option<SideExit>,
    pub(super) requested: [bool; Purpose::COUNT],
    /// The latest compilation for each purpose.
    pub(super) attempts: [Attempt; Purpose::COUNT],
    /// The number of events recorded since the last compilation.
    pub(super) taped_events: u64,
    pub(super) compiling: bool,
    /// The number of compilations so far.
    pub(super) compilations: u32,
    /// The latest compilation that has ended.
    compiled: Option<Compiled>,
    /// The reasons why paths were not merged.
    pub(super) refusals: Vec<Refusal>,
    /// The closed forms of the latest kernels.
    pub(super) closed_forms: ClosedForms,
    /// True if the recorded paths take as much memory as they may: then no path is added.
    pub(super) is_full: bool,
    /// True if two runs of one path differed: then there are no kernels.
    pub(super) divergent: bool,
    /// The inputs of profiling runs, active before inactive: those of the first run, whose path
    /// is probably hot, and of the latest runs with a new path, in order.
    profiling_inputs: Vec<Arc<[f64]>>,
}

/// A compilation that has ended.
struct Compiled {
    /// Its time, in events.
    work: u64,
    /// The number of recorded steps.
    steps: u64,
}

/// The closed forms of the latest kernels, and the loops without one.
#[derive(Default)]
pub(super) struct ClosedForms {
    pub(super) closed: Vec<Applied>,
    pub(super) open: Vec<OpenLoop>,
}

/// A path through the function.
#[derive(Default)]
pub(super) struct TracedPath {
    /// The number of runs on the tape that took it.
    pub(super) count: u64,
    /// The side exit of calls that took it, from kernels of this version.
    pub(super) side_exit: Option<(GraphVersion, Option<SideExit>)>,
}

/// The latest compilation for one purpose.
#[derive(Default)]
pub(super) struct Attempt {
    /// The version of the graph that was compiled; 0 before the first compilation.
    pub(super) version: u64,
    pub(super) refusal: Option<Refusal>,
    /// The kernel in use, from this compilation or an earlier one.
    pub(super) kernel: Option<KernelReport>,
}

/// The estimated work of a compilation, and for each step and kernel, in events of the tape: half a
/// millisecond and ten microseconds.
const COMPILE_WORK: u64 = 100_000;
const COMPILE_WORK_PER_STEP: u64 = 2_000;
/// The time of an event on the tape, by which the time of a compilation is expressed as work.
const EVENT_TIME: Duration = Duration::from_nanos(5);
/// The number of calls on the tape after which a first kernel is made, however long that takes, and
/// a second one; each later one waits for twice as many.
const CALLS_BEFORE_FIRST: u64 = 300;
const CALLS_BEFORE_SECOND: u64 = 32;
/// The number of compilations after which `compile_at_first_call` no longer compiles in each call
/// with a new path.
const MOST_IN_CALLS: u32 = 64;
/// The largest number of profiling runs, and of numbers in their inputs.
const PROFILING_INPUTS: usize = 8;
const PROFILING_NUMBERS: usize = 1 << 16;
/// The largest number of paths that are counted; then counting starts again.
const MAX_TRACED_PATHS: usize = 4096;

impl Profile {
    pub(super) fn new(active: usize, inactive: usize, hotness: Hotness) -> Self {
        Profile {
            traces: MergedTraces::new(active, inactive),
            bytes: 0,
            path_events: 0,
            budget: Budget::new(hotness.profiling_bound()),
            traced_paths: HashMap::new(),
            // Allocated here, so that the first untracked runs do not allocate.
            untracked: HashSet::with_capacity(16),
            longest: 0,
            last_new_path: None,
            side_exits: HashMap::new(),
            last_side_exit: None,
            requested: [false; Purpose::COUNT],
            attempts: Default::default(),
            taped_events: 0,
            compiling: false,
            compilations: 0,
            compiled: None,
            refusals: Vec::new(),
            closed_forms: ClosedForms::default(),
            is_full: hotness == Hotness::TapeOnly,
            divergent: false,
            profiling_inputs: Vec::new(),
        }
    }

    /// Adds the inputs of a run with a new path, unless they are too large.
    pub(super) fn add_profiling_inputs(&mut self, inputs: Inputs<'_>) {
        let size = inputs.active.len() + inputs.inactive.len();
        let most = PROFILING_INPUTS.min(PROFILING_NUMBERS / size.max(1));
        if most == 0 {
            return;
        }
        if self.profiling_inputs.len() >= most {
            self.profiling_inputs.remove(usize::from(most > 1));
        }
        self.profiling_inputs.push([inputs.active, inputs.inactive].concat().into());
    }

    /// The inputs of profiling runs, first run first, then the latest.
    pub(super) fn profiling_inputs(&self) -> Vec<Arc<[f64]>> {
        let (first, others) = self.profiling_inputs.split_at(self.profiling_inputs.len().min(1));
        first.iter().chain(others.iter().rev()).cloned().collect()
    }

    /// True if paths may be added.
    pub(super) fn is_open(&self) -> bool {
        !self.divergent && !self.is_full
    }

    /// True if a profiling run may be done.
    pub(super) fn may_profile(&self) -> bool {
        self.is_open() && self.budget.allows(self.traces.work_to_add(self.budget.tracked_events()))
    }

    /// True if a kernel can be made of the recorded paths.
    pub(super) fn is_compilable(&self) -> bool {
        self.traces.paths() > 0 && !self.divergent
    }

    /// The path that `trace` took.
    pub(super) fn path(&mut self, trace: &Trace<'_>) -> &mut TracedPath {
        if self.traced_paths.len() >= MAX_TRACED_PATHS {
            self.traced_paths.clear();
        }
        self.traced_paths.entry(trace.signature).or_default()
    }

    /// Counts an untracked run; true if no untracked run took the same path before.
    pub(super) fn note_untracked(&mut self, signature: u64) -> bool {
        if self.untracked.len() >= MAX_TRACED_PATHS {
            self.untracked.clear();
        }
        self.untracked.insert(signature)
    }

    /// True if paths were added to the graph after the latest compilation for `purpose`.
    pub(super) fn is_stale(&self, purpose: Purpose) -> bool {
        self.attempts[purpose as usize].version < self.traces.version()
    }

    /// The event that a kernel for `purpose` waits for; `None` if no kernel is due.
    pub(super) fn wait(&self, purpose: Purpose, options: &Options) -> Option<Wait> {
        if self.divergent || !self.requested[purpose as usize] || !self.is_stale(purpose) {
            return None;
        }
        let needed = match options.hotness {
            _ if self.compiling => return Some(Wait::Compiling),
            Hotness::OnRequest => return Some(Wait::Compile),
            Hotness::TapeOnly => return None,
            Hotness::FirstCall if self.compilations < MOST_IN_CALLS => 0,
            Hotness::FirstCall => self.compile_work(),
            Hotness::Calls(calls) => u64::from(calls).saturating_mul(self.path_events.max(1)),
            Hotness::Measured => self.compile_work(),
        };
        Some(Wait::Cold { recorded: self.taped_events, needed })
    }

    /// The number of events on the tape that pay for a compilation: as many as fit into the
    /// compile time, or those of some hundred calls at most. The compile time is estimated by the
    /// size of the recorded paths, and by the latest compilation.
    fn compile_work(&self) -> u64 {
        let kernels = self.requested.iter().filter(|&&requested| requested).count() as u64;
        let steps = self.traces.distinct_steps() as u64;
        let estimated = match self.compiled {
            Some(Compiled { work, steps: before }) => {
                (work as f64 * steps as f64 / before.max(1) as f64) as u64
            }
            None => COMPILE_WORK + kernels * steps * COMPILE_WORK_PER_STEP,
        };
        let calls = match self.compilations {
            0 => CALLS_BEFORE_FIRST,
            before => CALLS_BEFORE_SECOND << (before - 1).min(20),
        };
        estimated.min(calls * self.budget.events())
    }

    /// Stores the time of a compilation of the recorded paths of now.
    pub(super) fn compiled(&mut self, elapsed: Duration, steps: usize) {
        let work = (elapsed.as_nanos() / EVENT_TIME.as_nanos()).max(1);
        let work = u64::try_from(work).unwrap_or(u64::MAX);
        self.compiled = Some(Compiled { work, steps: steps as u64 });
    }

    /// True if the tape has served enough calls to compile for `purpose`.
    pub(super) fn is_hot(&self, purpose: Purpose, options: &Options) -> bool {
        matches!(self.wait(purpose, options),
            Some(Wait::Cold { recorded, needed }) if recorded >= needed)
    }

    /// Removes the records of kernels, which are discarded.
    pub(super) fn withdraw(&mut self) {
        self.attempts = Default::default();
        self.closed_forms = ClosedForms::default();
        self.profiling_inputs.clear();
    }

    /// Records the comparison at which the call of `trace` took a side exit from a kernel; `found`
    /// if merging has found it.
    pub(super) fn note_side_exit(
        &mut self,
        trace: &Trace<'_>,
        KernelExit { graph_version, reason }: KernelExit,
        found: Option<Option<SideExit>>,
    ) {
        let is_current = !self.divergent && graph_version.generation == self.traces.generation();
        if !is_current || matches!(reason, ExitReason::NonFinite) {
            return;
        }
        let path = self.traced_paths.entry(trace.signature).or_default();
        let side_exit = match (&path.side_exit, found) {
            (Some((before, side_exit)), _) if *before == graph_version => side_exit.clone(),
            (_, found) => {
                let find = || self.traces.side_exit(trace, graph_version.version);
                let side_exit = found.unwrap_or_else(find);
                path.side_exit = Some((graph_version, side_exit.clone()));
                side_exit
            }
        };
        if let Some(side_exit) = side_exit {
            *self.side_exits.entry((side_exit.at.clone(), side_exit.op)).or_insert(0) += 1;
            self.last_side_exit = Some(side_exit);
        }
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        if !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_profiling_input_and_the_latest_are_kept() {
        let mut profile = Profile::new(1, 1, Hotness::Measured);
        for number in 0..20 {
            profile.add_profiling_inputs(Inputs { active: &[f64::from(number)], inactive: &[0.5] });
        }
        let first: Vec<f64> = profile.profiling_inputs().iter().map(|inputs| inputs[0]).collect();
        assert_eq!(first, [0.0, 19.0, 18.0, 17.0, 16.0, 15.0, 14.0, 13.0]);
        assert_eq!(profile.profiling_inputs()[0][..], [0.0, 0.5]);
        profile.withdraw();
        assert!(profile.profiling_inputs().is_empty());
    }

    #[test]
    fn profiling_inputs_of_many_numbers_are_few() {
        let kept = |size: usize| {
            let mut profile = Profile::new(size, 0, Hotness::Measured);
            (0..20).for_each(|_| {
                profile.add_profiling_inputs(Inputs { active: &vec![1.0; size], inactive: &[] })
            });
            profile.profiling_inputs().len()
        };
        let numbers = PROFILING_NUMBERS;
        assert_eq!([0, 1, numbers / 3, numbers, numbers + 1].map(kept), [8, 8, 3, 1, 0]);
    }
}
