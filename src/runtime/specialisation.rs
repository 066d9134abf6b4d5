//! A specialisation: the calls with one length of input. It merges their paths, has kernels
//! compiled when they are due, and counts who served.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use arc_swap::ArcSwapOption;

use super::core::SpecialisationKey;
use super::installed::Installed;
use super::job::Job;
use super::outputs::OutputShape;
use super::patterns::KnownPattern;
use super::profile::{ExitReason, GraphVersion, KernelExit, Profile};
use super::tracing_detail::{RUNS_PER_TIMED, TracingDetail, is_compared_run, is_timed_run};
use super::workers;
use crate::merge::{MergeError, MergeLimits, MergeOutcome, SideExit};
use crate::pipeline::{Hotness, Matrix, Options, Purpose, Recording, Refusal};
use crate::sparse::MatrixKind;
use crate::ssa::Place;
use crate::trace::{Detail, Inputs, JacobianRun, LongRun, Trace};

pub(super) struct Specialisation {
    pub(super) active: usize,
    pub(super) inactive: usize,
    /// The outputs, if there are several.
    pub(super) outputs: Option<OutputShape>,
    /// The patterns of its Hessian and of its Jacobian.
    patterns: [KnownPattern; 2],
    /// The kernel for each purpose.
    kernels: [ArcSwapOption<Installed>; Purpose::COUNT],
    profile: Mutex<Profile>,
    compiled: Condvar,
    tape_calls: AtomicU64,
    /// The number of calls that kernels have served, for each purpose.
    kernel_calls: [Arc<AtomicU64>; Purpose::COUNT],
    /// The number of side exits from kernels, and of results that were not finite.
    pub(super) fallbacks: AtomicU64,
    pub(super) non_finite: AtomicU64,
    tracing_detail: TracingDetail,
    /// True while a compilation makes the recorded graph: then calls do not wait for the profile.
    is_emitting: AtomicBool,
    /// The number of calls that no longer count as recent.
    old_calls: AtomicU64,
    /// The bytes of all recorded paths of the function.
    profile_bytes: Arc<AtomicUsize>,
}

/// A run that has served a call.
#[derive(Clone, Copy)]
pub(super) struct ServedRun<'a> {
    /// A hash of the path.
    pub(super) signature: u64,
    /// The number of events; `None` of a Jacobian tape, which has fewer entries than operations.
    pub(super) events: Option<usize>,
    /// The trace, if it has marks and sites.
    pub(super) tracked: Option<&'a Trace<'a>>,
    /// A custom operation has returned an error.
    pub(super) has_failed_call: bool,
}

impl<'a> ServedRun<'a> {
    /// A run on an event tape.
    pub(super) fn on_events(trace: &'a Trace<'a>) -> Self {
        ServedRun {
            signature: trace.signature,
            events: Some(trace.events.len()),
            tracked: (!trace.is_untracked()).then_some(trace),
            has_failed_call: trace.has_failed_call,
        }
    }

    /// A run on a Jacobian tape.
    pub(super) fn on_jacobian(run: &JacobianRun<'_>) -> Self {
        let JacobianRun { signature, has_failed_call, .. } = *run;
        ServedRun { signature, events: None, tracked: None, has_failed_call }
    }
}

/// The numbers of calls that the tape and kernels served.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServedCalls {
    pub(super) tape: u64,
    pub(super) kernels: u64,
}

impl Specialisation {
    /// For this length of input and shape of outputs; `profile_bytes` counts the bytes of all
    /// recorded paths of the function.
    pub(super) fn new(
        key: SpecialisationKey<'_>,
        hotness: Hotness,
        profile_bytes: Arc<AtomicUsize>,
    ) -> Self {
        let ((active, inactive), outputs) = (key.lengths(), key.outputs.cloned());
        let weights = outputs.as_ref().map_or(0, |outputs| outputs.count);
        let first = outputs.as_ref().map(|outputs| MatrixKind::Jacobian { outputs: outputs.count });
        let patterns = [MatrixKind::Hessian, first.unwrap_or(MatrixKind::Gradient)];
        Specialisation {
            active,
            inactive,
            outputs,
            patterns: patterns.map(KnownPattern::new),
            kernels: Default::default(),
            profile: Mutex::new(Profile::new(active, inactive + weights, hotness)),
            compiled: Condvar::new(),
            tape_calls: AtomicU64::new(0),
            kernel_calls: Default::default(),
            fallbacks: AtomicU64::new(0),
            non_finite: AtomicU64::new(0),
            tracing_detail: TracingDetail::new(hotness),
            is_emitting: AtomicBool::new(false),
            old_calls: AtomicU64::new(0),
            profile_bytes,
        }
    }

    /// The kernel for `purpose`, if there is one.
    pub(super) fn kernel(&self, purpose: Purpose) -> arc_swap::Guard<Option<Arc<Installed>>> {
        self.kernels[purpose as usize].load()
    }

    /// The pattern of the results for `purpose`, a sparse Hessian or Jacobian.
    pub(super) fn pattern(&self, purpose: Purpose) -> &KnownPattern {
        let [hessian, jacobian] = &self.patterns;
        if purpose == Purpose::SparseHessian { hessian } else { jacobian }
    }

    /// The number of calls that kernels for `purpose` have served.
    pub(super) fn kernel_calls(&self, purpose: Purpose) -> Arc<AtomicU64> {
        Arc::clone(&self.kernel_calls[purpose as usize])
    }

    /// Compares a run on the tape that repeats a kernel call with the recorded paths. Returns the
    /// point where it leaves those that the kernel has, made from version `kernel` of the graph.
    pub(super) fn audit(
        &self,
        (trace, inputs): (&Trace<'_>, Inputs<'_>),
        kernel: GraphVersion,
        options: &Options,
    ) -> Option<SideExit> {
        let mut profile = self.lock_to_record(options)?;
        if profile.divergent {
            return None;
        }
        let is_current = kernel.generation == profile.traces.generation();
        let find_exit = |profile: &mut Profile| profile.traces.side_exit(trace, kernel.version);
        let side_exit = spend(&mut profile, options, find_exit);
        self.merge(&mut profile, (trace, inputs), None, options);
        side_exit.filter(|_| is_current && !profile.divergent)
    }

    /// Discards all kernels: runs with the same inputs differ at `at`.
    pub(super) fn refuse_divergent(&self, at: Place) {
        let mut profile = self.lock();
        profile.divergent = true;
        self.withdraw(&mut profile);
        profile.budget.give_up();
        profile.refuse(MergeError::Divergent { at }.into());
    }

    /// Counts a call that the tape serves after an exit from a kernel.
    pub(super) fn fell_back(&self, exit: KernelExit) {
        let counter = match exit.reason {
            ExitReason::SideExit => &self.fallbacks,
            ExitReason::NonFinite => &self.non_finite,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Tests whether a Jacobian tape serves the next untracked run.
    pub(super) fn has_jacobian_tape(&self) -> bool {
        self.tracing_detail.has_jacobian_tape()
    }

    /// Notes that a run on a Jacobian tape had to be repeated.
    pub(super) fn note_repeated(&self) {
        self.tracing_detail.note_repeated();
    }

    /// The detail that the next run on the tape records.
    pub(super) fn detail(&self) -> Detail {
        self.tracing_detail.next(self.tape_calls.load(Ordering::Relaxed), || self.has_kernel())
    }

    fn has_kernel(&self) -> bool {
        self.kernels.iter().any(|kernel| kernel.load().is_some())
    }

    /// Tests whether the time of the next run is taken.
    pub(super) fn times_run(&self) -> bool {
        is_timed_run(self.tape_calls.load(Ordering::Relaxed))
    }

    /// Merges the path of a call that the tape served, after an `exit` if a kernel was tried, and
    /// starts a compilation if one is due. `time` is that of the run, if it was taken.
    pub(super) fn record(
        self: &Arc<Self>,
        (run, inputs): (ServedRun<'_>, Inputs<'_>),
        purpose: Purpose,
        (exit, time): (Option<KernelExit>, Option<Duration>),
        options: &Options,
    ) {
        let before = self.tape_calls.fetch_add(1, Ordering::Relaxed);
        self.tracing_detail.count_run();
        let ServedRun { signature, tracked, .. } = run;
        let is_tracked = tracked.is_some();
        let is_idle = self.tracing_detail.is_idle();
        let events = self.tracing_detail.note_events(run.events);
        if is_idle && !is_tracked && time.is_none() {
            return;
        }
        if exit.is_some()
            && options.hotness.is_measured()
            && (is_tracked || !self.tracing_detail.expects_new_path())
        {
            self.tracing_detail.count_exit();
        }
        // Of the untracked runs along a known path one is recorded for all since the one before.
        if options.is_timed()
            && !is_tracked
            && time.is_none()
            && self.tracing_detail.count_known(signature, events)
        {
            return;
        }
        let Some(mut profile) = self.lock_to_record(options) else { return };
        let (unrecorded_runs, unrecorded_events) = self.tracing_detail.take_unrecorded();
        profile.longest = profile.longest.max(events);
        let runs = if is_idle && !is_tracked { RUNS_PER_TIMED } else { 1 };
        profile.taped_events += runs * events as u64 + unrecorded_events;
        profile.requested[purpose as usize] = true;
        let kernel_calls = self.served_calls().kernels;
        profile.budget.earn_again(unrecorded_runs);
        profile.budget.earn(events, is_tracked, kernel_calls);
        if let Some(time) = time {
            profile.budget.time_run(events, time);
        }
        if let Some(trace) = tracked {
            profile.budget.spend_detail(trace.detail_work());
            let path = profile.path(trace);
            path.count += 1;
            // A known path is compared with the graph now and then, to detect functions that
            // depend on hidden state.
            let is_due = path.count.is_power_of_two() || is_compared_run(before);
            let work = profile.traces.work_to_add(trace.events.len());
            let mut found = None;
            if is_due && profile.is_open() && profile.budget.credit() >= work {
                found = self.merge(&mut profile, (trace, inputs), exit, options);
            }
            if let Some(exit) = exit
                && (found.is_some() || profile.budget.credit() >= work)
            {
                spend(&mut profile, options, |profile| profile.note_side_exit(trace, exit, found));
            }
        } else {
            self.tracing_detail.note_path(signature);
            if profile.note_untracked(signature) && self.tracing_detail.expects_new_path() {
                self.tracing_detail.track_next_runs();
            }
        }
        let is_idle = profile.budget.is_idle() && options.is_timed();
        self.tracing_detail.note_budget(profile.may_profile(), is_idle);
        if profile.is_hot(purpose, options) {
            self.start_compiling(profile, options);
        }
    }

    /// Counts a call in which the function returned an error.
    pub(super) fn count_failed(&self) {
        self.tape_calls.fetch_add(1, Ordering::Relaxed);
        // Otherwise such calls would record captures for ever.
        self.tracing_detail.count_run();
    }

    /// The inputs that are the weights of the outputs.
    pub(super) fn weights(&self) -> Range<u32> {
        let (start, outputs) = (self.active + self.inactive, self.outputs.as_ref());
        let count = outputs.map_or(0, |outputs| outputs.count);
        start as u32..(start + count) as u32
    }

    /// The products that give the matrix of calls for `purpose`, if that is one.
    pub(super) fn matrix(&self, purpose: Purpose) -> Option<Matrix> {
        let weights = self.weights();
        let products = match purpose {
            Purpose::Jacobian => weights.len().min(self.active),
            Purpose::Hessian => self.active,
            sparse if sparse.is_sparse() => self.pattern(sparse).products(),
            _ => return None,
        };
        Some(Matrix { purpose, product: self.product(purpose), products, weights })
    }

    /// The purpose of the products that give a matrix; otherwise `purpose`. Those of a Jacobian are
    /// its rows, or its columns if these are fewer.
    fn product(&self, purpose: Purpose) -> Purpose {
        match purpose {
            Purpose::Jacobian if self.weights().len() <= self.active => {
                Purpose::VectorJacobianProduct
            }
            Purpose::Jacobian => Purpose::JacobianVectorProduct,
            Purpose::Hessian => Purpose::HessianProduct,
            sparse if sparse.is_sparse() => self.pattern(sparse).product(),
            other => other,
        }
    }

    /// Counts a long call that the tape served. It is not merged, and it neither earns for
    /// profiling nor brings a compilation nearer, because a kernel would not serve it.
    pub(super) fn record_long(&self, run: &LongRun<'_>, options: &Options) {
        self.tape_calls.fetch_add(1, Ordering::Relaxed);
        self.tracing_detail.count_run();
        let Some(mut profile) = self.lock_to_record(options) else { return };
        profile.longest = profile.longest.max(run.events());
        // One place is enough.
        if !profile.refusals.iter().any(|refusal| matches!(refusal, Refusal::LongRun { .. })) {
            let (limit, at) = (options.limits.trace_events, run.beyond());
            let at = Place::new(at.file(), at.line(), at.column());
            profile.refuse(Refusal::LongRun { limit, at });
        }
    }

    /// Merges the path of `trace`. After an `exit` from a kernel it returns the comparison at which
    /// the path leaves those of the kernel.
    fn merge(
        &self,
        profile: &mut Profile,
        (trace, inputs): (&Trace<'_>, Inputs<'_>),
        exit: Option<KernelExit>,
        options: &Options,
    ) -> Option<Option<SideExit>> {
        let limits = MergeLimits { paths: options.limits.paths, nodes: options.limits.nodes };
        let generation = profile.traces.generation();
        let (merged, side_exit) = spend(profile, options, |profile| match exit {
            Some(KernelExit { graph_version: GraphVersion { version, .. }, .. }) => {
                let (merged, side_exit) = profile.traces.merge_after_exit(trace, limits, version);
                (merged, Some(side_exit))
            }
            None => (profile.traces.merge(trace, limits), None),
        });
        if profile.traces.generation() != generation {
            // A region turned out not to be mergeable, and the graph was built anew.
            profile.traced_paths.clear();
            profile.untracked.clear();
            self.tracing_detail.forget_paths();
            self.withdraw(profile);
        }
        let (limit, is_known) =
            (options.limits.profile_bytes, matches!(merged, Ok(MergeOutcome::Known)));
        if !is_known && matches!(options.hotness, Hotness::Calls(_)) {
            profile.path_events = profile.traces.events() as u64;
        }
        if !is_known && self.count_bytes(profile) > limit {
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
                self.tracing_detail.note_new_path();
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
        side_exit
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

    /// Compiles now, after a compilation under way: for all purposes that were requested, and if
    /// `with_basic` for the basic ones. False if nothing has been recorded.
    pub(super) fn compile_now(
        self: &Arc<Self>,
        with_basic: bool,
        options: &Options,
    ) -> Result<bool, Refusal> {
        let mut profile = self.lock();
        while profile.compiling {
            profile = self.compiled.wait(profile).unwrap_or_else(PoisonError::into_inner);
        }
        if !profile.is_compilable() {
            return profile.refusals.last().map_or(Ok(false), |refusal| Err(refusal.clone()));
        }
        let has_outputs = self.outputs.is_some();
        let asked = |profile: &Profile| {
            Purpose::ALL.map(|one| {
                let is_basic = !one.needs_whole_run() && one.has_weights() == has_outputs;
                is_basic && with_basic || profile.requested[one as usize]
            })
        };
        Job::start(self, profile, asked).run(options);
        let profile = self.lock();
        let refused = profile.attempts.iter().find_map(|attempt| attempt.refusal.clone());
        refused.map_or(Ok(true), Err)
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
        let ServedCalls { tape, kernels } = self.served_calls();
        tape + kernels
    }

    pub(super) fn served_calls(&self) -> ServedCalls {
        let kernel_calls = self.kernel_calls.iter().map(|calls| calls.load(Ordering::Relaxed));
        ServedCalls { tape: self.tape_calls.load(Ordering::Relaxed), kernels: kernel_calls.sum() }
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
