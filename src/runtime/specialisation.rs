//! A specialisation: the calls with one length of input. Merges their paths, has kernels compiled
//! when they are due, and counts who served.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use arc_swap::ArcSwapOption;

use super::installed::Installed;
use super::job::Job;
use super::profile::{ExitReason, KernelExit, Profile};
use super::report::{DecisionReport, KernelReport, Report, Waiting};
use super::workers;
use crate::merge::{MergeError, MergeLimits, MergeOutcome};
use crate::pipeline::{Hotness, Options, Purpose, Recording, Refusal};
use crate::ssa::{End, Graph, Item, Place, most_steps};
use crate::trace::{Detail, Inputs, LongRun, Trace};

pub(super) struct Specialisation {
    pub(super) active: usize,
    pub(super) inactive: usize,
    /// The kernel for each purpose.
    kernels: [ArcSwapOption<Installed>; 3],
    profile: Mutex<Profile>,
    compiled: Condvar,
    pub(super) tape_calls: AtomicU64,
    /// The number of calls that kernels have served, for each purpose.
    kernel_calls: [Arc<AtomicU64>; 3],
    fallbacks: AtomicU64,
    non_finite: AtomicU64,
    /// The number of further runs of the tape that record marks and places.
    detailed_runs: AtomicU32,
    /// The number of exits from kernels since the latest new path; always 0 if profiling is not
    /// bounded.
    exits_since_new_path: AtomicU32,
    /// True if the budget has enough for such a run.
    may_profile: AtomicBool,
    /// True if of the untracked runs only those that are timed are recorded.
    is_idle: AtomicBool,
    /// True while a compilation makes the recorded graph: then calls do not wait for the profile.
    is_emitting: AtomicBool,
    /// The number of calls that no longer count as recent.
    old_calls: AtomicU64,
    /// The bytes of all recorded paths of the function.
    profile_bytes: Arc<AtomicUsize>,
}

/// The number of exits from a kernel without a new path after which only one of as many is merged.
const EXITS_WITHOUT_NEW_PATH: u32 = 32;
/// One of so many untracked runs on the tape is timed.
const RUNS_PER_TIMED: u64 = 16;
/// The number of runs on the tape that record captures, and the number after each new path.
const CAPTURED_RUNS: u32 = 8;
/// The number of runs after these that record marks and places. Later runs are untracked: they
/// record operations and guards only.
const MARKED_RUNS: u32 = 64;

impl Specialisation {
    /// For this length of input; `profile_bytes` counts the bytes of all recorded paths of the
    /// function.
    pub(super) fn new(
        (active, inactive): (usize, usize),
        hotness: Hotness,
        profile_bytes: Arc<AtomicUsize>,
    ) -> Self {
        Specialisation {
            active,
            inactive,
            kernels: Default::default(),
            profile: Mutex::new(Profile::new(active, inactive, hotness)),
            compiled: Condvar::new(),
            tape_calls: AtomicU64::new(0),
            kernel_calls: Default::default(),
            fallbacks: AtomicU64::new(0),
            non_finite: AtomicU64::new(0),
            detailed_runs: AtomicU32::new(CAPTURED_RUNS + MARKED_RUNS),
            exits_since_new_path: AtomicU32::new(0),
            may_profile: AtomicBool::new(hotness != Hotness::TapeOnly),
            is_idle: AtomicBool::new(false),
            is_emitting: AtomicBool::new(false),
            old_calls: AtomicU64::new(0),
            profile_bytes,
        }
    }

    /// The kernel for `purpose`, if there is one.
    pub(super) fn kernel(&self, purpose: Purpose) -> arc_swap::Guard<Option<Arc<Installed>>> {
        self.kernels[purpose as usize].load()
    }

    /// The number of calls that kernels for `purpose` have served.
    pub(super) fn kernel_calls(&self, purpose: Purpose) -> Arc<AtomicU64> {
        Arc::clone(&self.kernel_calls[purpose as usize])
    }

    /// Compares a run on the tape that repeats a kernel call with the recorded paths.
    pub(super) fn audit(&self, (trace, inputs): (&Trace<'_>, Inputs<'_>), options: &Options) {
        let mut profile = self.lock();
        if !profile.divergent {
            self.merge(&mut profile, (trace, inputs), options);
        }
    }

    /// Counts a call that the tape serves after an exit from a kernel.
    pub(super) fn fell_back(&self, exit: KernelExit) {
        let counter = match exit.reason {
            ExitReason::SideExit => &self.fallbacks,
            ExitReason::NonFinite => &self.non_finite,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The detail that the next run on the tape records. Captures let region instances share
    /// paths, but cost more than the run itself; marks and places cost as much. So they are
    /// recorded on paths that may be new: in the first runs, in runs soon after a new path, and
    /// after a side exit.
    ///
    /// The path of an untracked run is not merged; if it is new, later runs are tracked. Without
    /// budget all runs are untracked.
    pub(super) fn detail(&self) -> Detail {
        if !self.may_profile.load(Ordering::Relaxed) {
            return Detail::Untracked;
        }
        let detailed_runs = self.detailed_runs.load(Ordering::Relaxed);
        if detailed_runs > MARKED_RUNS || self.has_kernel() && self.expects_new_path() {
            Detail::Captures
        } else if detailed_runs > 0 || is_checked(self.tape_calls.load(Ordering::Relaxed)) {
            Detail::Marks
        } else {
            Detail::Untracked
        }
    }

    fn has_kernel(&self) -> bool {
        self.kernels.iter().any(|kernel| kernel.load().is_some())
    }

    /// Tests whether the call after an exit from a kernel may take a new path. Often it does not: a
    /// guard of a closed form rejects inputs on known paths.
    fn expects_new_path(&self) -> bool {
        let exits = self.exits_since_new_path.load(Ordering::Relaxed);
        exits < EXITS_WITHOUT_NEW_PATH || exits.is_multiple_of(EXITS_WITHOUT_NEW_PATH)
    }

    /// Tests whether the time of the next run is taken.
    pub(super) fn times_run(&self) -> bool {
        self.tape_calls.load(Ordering::Relaxed).is_multiple_of(RUNS_PER_TIMED)
    }

    /// Merges the path of a call that the tape served, after an `exit` if a kernel was tried, and
    /// starts a compilation if one is due. `time` is that of the run, if it was taken.
    pub(super) fn record(
        self: &Arc<Self>,
        (trace, inputs): (&Trace<'_>, Inputs<'_>),
        purpose: Purpose,
        (exit, time): (Option<KernelExit>, Option<Duration>),
        options: &Options,
    ) {
        let before = self.tape_calls.fetch_add(1, Ordering::Relaxed);
        // Concurrent calls may count as one, which is harmless.
        let detailed_runs = self.detailed_runs.load(Ordering::Relaxed);
        self.detailed_runs.store(detailed_runs.saturating_sub(1), Ordering::Relaxed);
        let is_tracked = !trace.is_untracked();
        let is_idle = self.is_idle.load(Ordering::Relaxed);
        if is_idle && !is_tracked && time.is_none() {
            return;
        }
        let Some(mut profile) = self.lock_to_record(options) else { return };
        profile.longest = profile.longest.max(trace.events.len());
        let runs = if is_idle && !is_tracked { RUNS_PER_TIMED } else { 1 };
        profile.taped_events += runs * trace.events.len() as u64;
        profile.requested[purpose as usize] = true;
        profile.budget.earn(trace.events.len(), is_tracked, self.served_calls().1);
        if let Some(time) = time {
            profile.budget.time_run(trace.events.len(), time);
        }
        if is_tracked {
            profile.budget.spend_detail(trace.detail_work());
        }
        if exit.is_some()
            && options.hotness.is_measured()
            && (is_tracked || !self.expects_new_path())
        {
            self.exits_since_new_path.fetch_add(1, Ordering::Relaxed);
        }
        if !is_tracked {
            if profile.note_untracked(trace) && self.expects_new_path() {
                self.detailed_runs.store(CAPTURED_RUNS + MARKED_RUNS, Ordering::Relaxed);
            }
        } else {
            let path = profile.path(trace);
            path.count += 1;
            // A known path is compared with the graph now and then, to detect functions that
            // depend on hidden state.
            let is_due = path.count.is_power_of_two() || is_checked(before);
            let work = profile.traces.work_to_add(trace.events.len());
            if is_due && profile.is_open() && profile.budget.credit() >= work {
                self.merge(&mut profile, (trace, inputs), options);
            }
            if let Some(exit) = exit
                && profile.budget.credit() >= profile.traces.work_to_add(trace.events.len())
            {
                spend(&mut profile, options, |profile| profile.note_side_exit(trace, exit));
            }
        }
        self.may_profile.store(profile.may_profile(), Ordering::Relaxed);
        self.is_idle.store(profile.budget.is_idle() && options.is_timed(), Ordering::Relaxed);
        if profile.is_hot(purpose, options) {
            self.start_compiling(profile, options);
        }
    }

    /// Counts a long call that the tape served. It is not merged, and it neither earns for profiling
    /// nor brings a compilation nearer, because a kernel would not serve it.
    pub(super) fn record_long(&self, run: &LongRun<'_>, options: &Options) {
        self.tape_calls.fetch_add(1, Ordering::Relaxed);
        let detailed_runs = self.detailed_runs.load(Ordering::Relaxed);
        self.detailed_runs.store(detailed_runs.saturating_sub(1), Ordering::Relaxed);
        let Some(mut profile) = self.lock_to_record(options) else { return };
        profile.longest = profile.longest.max(run.events());
        // One place is enough.
        if !profile.refusals.iter().any(|refusal| matches!(refusal, Refusal::LongRun { .. })) {
            let (limit, at) = (options.limits.trace_events, run.beyond());
            let at = Place::new(at.file(), at.line(), at.column());
            profile.refuse(Refusal::LongRun { limit, at });
        }
    }

    fn merge(
        &self,
        profile: &mut Profile,
        (trace, inputs): (&Trace<'_>, Inputs<'_>),
        options: &Options,
    ) {
        let limits = MergeLimits { paths: options.limits.paths, nodes: options.limits.nodes };
        let generation = profile.traces.generation();
        let merged = spend(profile, options, |profile| profile.traces.merge(trace, limits));
        if profile.traces.generation() != generation {
            // A region turned out not to be mergeable, and the graph was built anew.
            profile.traced_paths.clear();
            profile.untracked.clear();
            self.withdraw(profile);
        }
        let limit = options.limits.profile_bytes;
        if !matches!(merged, Ok(MergeOutcome::Known)) && self.count_bytes(profile) > limit {
            profile.budget.give_up();
            profile.is_full = true;
            profile.refuse(Refusal::ProfileTooLarge { limit });
        }
        match merged {
            Ok(MergeOutcome::Known) => {}
            Ok(MergeOutcome::First) => profile.add_profiling_inputs(inputs),
            Ok(MergeOutcome::New { at }) => {
                profile.add_profiling_inputs(inputs);
                profile.last_new_path = Some(at);
                self.exits_since_new_path.store(0, Ordering::Relaxed);
                self.detailed_runs.store(CAPTURED_RUNS + MARKED_RUNS, Ordering::Relaxed);
            }
            Err(error) => {
                if matches!(error, MergeError::Divergent { .. }) {
                    profile.divergent = true;
                    self.withdraw(profile);
                }
                profile.budget.give_up();
                profile.refuse(error.into());
            }
        }
    }

    /// Updates the bytes of recorded paths. Returns those of the function.
    fn count_bytes(&self, profile: &mut Profile) -> usize {
        let bytes = profile.traces.bytes();
        let before = core::mem::replace(&mut profile.bytes, bytes);
        self.profile_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.profile_bytes.fetch_sub(before, Ordering::Relaxed) - before
    }

    /// Discards all kernels.
    fn withdraw(&self, profile: &mut Profile) {
        profile.withdraw();
        self.kernels.iter().for_each(|kernel| kernel.store(None));
    }

    /// Replaces the kernel for `purpose`.
    pub(super) fn install(&self, purpose: Purpose, installed: Installed) {
        self.kernels[purpose as usize].store(Some(Arc::new(installed)));
    }

    /// Calls `make` on the profile, while calls on the tape are not merged.
    pub(super) fn without_merging<T>(&self, make: impl FnOnce(&mut Profile) -> T) -> T {
        /// Ends the state also if `make` panics.
        struct Emitting<'a>(&'a AtomicBool);
        impl Drop for Emitting<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Relaxed);
            }
        }
        self.is_emitting.store(true, Ordering::Relaxed);
        let _emitting = Emitting(&self.is_emitting);
        make(&mut self.lock())
    }

    /// Wakes the threads that wait for the end of a compilation.
    pub(super) fn end_compiling(&self) {
        self.lock().compiling = false;
        self.compiled.notify_all();
    }

    fn start_compiling(self: &Arc<Self>, profile: MutexGuard<'_, Profile>, options: &Options) {
        let job = Job::start(self, profile, |profile| profile.requested);
        if !options.background || options.hotness == Hotness::FirstCall {
            job.run(options);
            return;
        }
        let options = *options;
        if let Err(error) = workers::run(move || job.run_in_tiers(&options)) {
            self.lock().refuse(Refusal::Thread { reason: error.to_string() });
        }
    }

    /// Compiles for all purposes now, after a compilation under way. False if nothing has been
    /// recorded.
    pub(super) fn compile_now(self: &Arc<Self>, options: &Options) -> Result<bool, Refusal> {
        let mut profile = self.lock();
        while profile.compiling {
            profile = self.compiled.wait(profile).unwrap_or_else(PoisonError::into_inner);
        }
        if !profile.is_compilable() {
            return profile.refusals.last().map_or(Ok(false), |refusal| Err(refusal.clone()));
        }
        Job::start(self, profile, |_| [true; 3]).run(options);
        let profile = self.lock();
        let refused = profile.attempts.iter().find_map(|attempt| attempt.refusal.clone());
        refused.map_or(Ok(true), Err)
    }

    /// Adds this specialisation to `report`.
    pub(super) fn report(&self, report: &mut Report, options: &Options) {
        let mut profile = self.lock();
        report.trace_events = report.trace_events.max(profile.longest);
        report.paths += profile.traces.paths();
        report.conditions += conditions(profile.traces.compact());
        let (tape_calls, kernel_calls) = self.served_calls();
        report.tape_calls += tape_calls;
        report.kernel_calls += kernel_calls;
        report.fallbacks += self.fallbacks.load(Ordering::Relaxed);
        report.non_finite += self.non_finite.load(Ordering::Relaxed);
        report.last_new_path = profile.last_new_path.clone().or(report.last_new_path.take());
        profile.refusals.iter().for_each(|refusal| report.add_refusal(refusal));
        if profile.traces.is_sharing_exhausted() {
            report.add_refusal(&Refusal::TooManyToShare { limit: options.limits.nodes });
        }
        report.last_side_exit = profile.last_side_exit.clone().or(report.last_side_exit.take());
        report.waiting.extend(Purpose::ALL.into_iter().filter_map(|purpose| {
            let wait = profile.wait(purpose, options)?;
            let replaces = profile.attempts[purpose as usize].kernel.is_some();
            let (active, inactive) = (self.active, self.inactive);
            Some(Waiting { active, inactive, purpose, replaces, wait })
        }));
        for decision in profile.traces.decisions() {
            let side_exits = profile.side_exits.get(&(decision.at.clone(), decision.op));
            let side_exits = side_exits.copied().unwrap_or(0);
            report.add_decision(DecisionReport { decision, side_exits });
        }
        profile.traces.loops().into_iter().for_each(|trips| report.add_loop(trips));
        let traces = &profile.traces;
        for unmerged in traces.unmerged().iter().chain(traces.state_splits()) {
            if !report.unmerged.contains(unmerged) {
                report.unmerged.push(unmerged.clone());
            }
        }
        report.closed_forms.extend(profile.closed_forms.closed.iter().cloned());
        for open in &profile.closed_forms.open {
            if !report.open_loops.contains(open) {
                report.open_loops.push(open.clone());
            }
        }
        for (attempt, installed) in profile.attempts.iter().zip(&self.kernels) {
            let installed = installed.load();
            let is_backing_off = installed.as_ref().is_some_and(|one| one.is_backing_off());
            let kernel = attempt.kernel.clone();
            report.kernels.extend(kernel.map(|one| KernelReport { is_backing_off, ..one }));
            attempt.refusal.iter().for_each(|refusal| report.add_refusal(refusal));
        }
    }

    /// The recorded graph; `None` if nothing has been recorded.
    pub(super) fn recording(&self, options: &Options) -> Result<Option<Recording>, Refusal> {
        let mut profile = self.lock();
        if !profile.is_compilable() {
            return profile.refusals.last().map_or(Ok(None), |refusal| Err(refusal.clone()));
        }
        let (graph, paths) = (Arc::clone(profile.traces.compact()), profile.traces.paths());
        Ok(Some(Recording { graph, paths, options: *options }))
    }

    /// The number of recent calls.
    pub(super) fn recent_calls(&self) -> u64 {
        self.calls().saturating_sub(self.old_calls.load(Ordering::Relaxed))
    }

    /// Makes half of the recent calls old ones.
    pub(super) fn age(&self) {
        self.old_calls.fetch_add(self.recent_calls() / 2, Ordering::Relaxed);
    }

    /// The number of calls.
    pub(super) fn calls(&self) -> u64 {
        let (tape, kernel) = self.served_calls();
        tape + kernel
    }

    /// The numbers of calls that the tape and kernels served.
    pub(super) fn served_calls(&self) -> (u64, u64) {
        let kernel_calls = self.kernel_calls.iter().map(|calls| calls.load(Ordering::Relaxed));
        (self.tape_calls.load(Ordering::Relaxed), kernel_calls.sum())
    }

    /// The profile, to record a call; `None` if the call should not wait for it.
    fn lock_to_record(&self, options: &Options) -> Option<MutexGuard<'_, Profile>> {
        if options.background && self.is_emitting.load(Ordering::Relaxed) {
            return None;
        }
        if !options.is_timed() {
            return Some(self.lock());
        }
        match self.profile.try_lock() {
            Ok(profile) => Some(profile),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Profile> {
        // No user code runs under the lock, and each step leaves it consistent.
        self.profile.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Specialisation {
    fn drop(&mut self) {
        let bytes = self.lock().bytes;
        self.profile_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Does `work`, as much of it as the budget allows, and pays for it.
fn spend<T>(profile: &mut Profile, options: &Options, work: impl FnOnce(&mut Profile) -> T) -> T {
    let before = profile.traces.work();
    profile.traces.allow_work(profile.budget.credit());
    let start = options.is_timed().then(Instant::now);
    let result = work(profile);
    let done = profile.traces.work() - before;
    match start {
        Some(start) => profile.budget.spend_time(done, start.elapsed()),
        None => profile.budget.spend(done),
    }
    result
}

/// True if call number `calls` is compared with the graph in any case.
fn is_checked(calls: u64) -> bool {
    calls.is_power_of_two()
}

/// The number of guards and branches of a recorded graph, in all iterations.
fn conditions(graph: &Graph) -> usize {
    let guards = most_steps(graph, |item| u64::from(matches!(item, Item::Guard { .. })));
    // The loops of a recorded graph have no branches.
    let ends = graph.blocks.values().map(|block| &block.end);
    let branches = ends.filter(|end| matches!(end, End::Branch { .. })).count();
    branches.saturating_add(usize::try_from(guards).unwrap_or(usize::MAX))
}
