//! The tracing detail: what the next runs on the tape record besides operations and guards, and
//! whether they are timed.
//!
//! Captures let region instances share paths, but cost more than the run itself; marks and places
//! cost as much. So they are recorded on paths that may be new: in the first runs, in runs soon
//! after a new path, and after a side exit. The path of an untracked run is not merged; if it is
//! new, later runs are tracked. Without budget all runs are untracked.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::pipeline::Hotness;
use crate::trace::Detail;

/// The number of exits from a kernel without a new path after which only one of as many is merged.
const EXITS_WITHOUT_NEW_PATH: u32 = 32;
/// One of so many untracked runs on the tape is timed.
pub(super) const RUNS_PER_TIMED: u64 = 16;
/// The number of signatures of untracked runs that are compared without a lock.
const KNOWN_PATHS: usize = 16;
/// The number of runs on the tape that record captures, and the number after each new path.
const CAPTURED_RUNS: u32 = 8;
/// The number of runs after these that record marks and places.
const MARKED_RUNS: u32 = 64;
/// The number of runs on an event tape after one that repeats a run on a Jacobian tape.
const RUNS_ON_EVENTS: u32 = 32;

/// The tracing detail of one specialisation. Concurrent calls may count as one, which is harmless.
pub(super) struct TracingDetail {
    /// The number of further runs on the tape that record marks and places.
    detailed_runs: AtomicU32,
    /// The number of exits from kernels since the latest new path; always 0 unless cost
    /// decides when kernels are made.
    exits_since_new_path: AtomicU32,
    /// True if the budget has enough for such a run.
    may_profile: AtomicBool,
    /// True if of the untracked runs only those that are timed are recorded.
    is_idle: AtomicBool,
    /// The signatures of recent untracked runs.
    known_paths: [AtomicU64; KNOWN_PATHS],
    /// The number of untracked runs since the latest one that was recorded, and of their events.
    unrecorded_runs: AtomicU64,
    unrecorded_events: AtomicU64,
    /// The number of events of the latest run on an event tape.
    events: AtomicUsize,
    /// The number of further untracked runs for which a Jacobian tape is not tried.
    runs_on_events: AtomicU32,
}

impl TracingDetail {
    pub(super) fn new(hotness: Hotness) -> Self {
        TracingDetail {
            detailed_runs: AtomicU32::new(CAPTURED_RUNS + MARKED_RUNS),
            exits_since_new_path: AtomicU32::new(0),
            may_profile: AtomicBool::new(hotness != Hotness::TapeOnly),
            is_idle: AtomicBool::new(false),
            known_paths: [const { AtomicU64::new(0) }; KNOWN_PATHS],
            unrecorded_runs: AtomicU64::new(0),
            unrecorded_events: AtomicU64::new(0),
            events: AtomicUsize::new(0),
            runs_on_events: AtomicU32::new(0),
        }
    }

    /// Notes the number of events of a run. Returns that of the latest run on an event tape, if
    /// this one is on a Jacobian tape.
    pub(super) fn note_events(&self, events: Option<usize>) -> usize {
        match events {
            Some(events) => self.events.store(events, Ordering::Relaxed),
            None => return self.events.load(Ordering::Relaxed),
        }
        events.unwrap_or(0)
    }

    /// Tests whether a Jacobian tape serves the next untracked run, and counts one that it does not.
    pub(super) fn has_jacobian_tape(&self) -> bool {
        let runs = self.runs_on_events.load(Ordering::Relaxed);
        self.runs_on_events.store(runs.saturating_sub(1), Ordering::Relaxed);
        runs == 0
    }

    /// Notes that a run on a Jacobian tape was repeated: so functions that call one another do not
    /// repeat all runs on each level.
    pub(super) fn note_repeated(&self) {
        self.runs_on_events.store(RUNS_ON_EVENTS, Ordering::Relaxed);
    }

    /// Counts an untracked run of `events` events if its path is known; `false` if the run has to
    /// be recorded.
    pub(super) fn count_known(&self, signature: u64, events: usize) -> bool {
        let is_known = self.known_path(signature).load(Ordering::Relaxed) == signature;
        if is_known {
            self.unrecorded_runs.fetch_add(1, Ordering::Relaxed);
            self.unrecorded_events.fetch_add(events as u64, Ordering::Relaxed);
        }
        is_known
    }

    /// The number of runs since the latest recorded one, and of their events; they count as
    /// recorded from now on.
    pub(super) fn take_unrecorded(&self) -> (u64, u64) {
        let runs = self.unrecorded_runs.swap(0, Ordering::Relaxed);
        (runs, self.unrecorded_events.swap(0, Ordering::Relaxed))
    }

    /// Notes the path of an untracked run.
    pub(super) fn note_path(&self, signature: u64) {
        self.known_path(signature).store(signature, Ordering::Relaxed);
    }

    /// Forgets all paths of untracked runs.
    pub(super) fn forget_paths(&self) {
        self.known_paths.iter().for_each(|path| path.store(0, Ordering::Relaxed));
    }

    fn known_path(&self, signature: u64) -> &AtomicU64 {
        &self.known_paths[signature as usize % KNOWN_PATHS]
    }

    /// The detail that the next run records, after `runs` earlier ones.
    pub(super) fn next(&self, runs: u64, has_kernel: impl FnOnce() -> bool) -> Detail {
        if !self.may_profile.load(Ordering::Relaxed) {
            return Detail::Untracked;
        }
        let detailed_runs = self.detailed_runs.load(Ordering::Relaxed);
        if detailed_runs > MARKED_RUNS || has_kernel() && self.expects_new_path() {
            Detail::Captures
        } else if detailed_runs > 0 || is_compared_run(runs) {
            Detail::Marks
        } else {
            Detail::Untracked
        }
    }

    /// Tests whether the call after an exit from a kernel may take a new path. Often it does not: a
    /// guard of a closed form rejects inputs on known paths.
    pub(super) fn expects_new_path(&self) -> bool {
        let exits = self.exits_since_new_path.load(Ordering::Relaxed);
        exits < EXITS_WITHOUT_NEW_PATH || exits.is_multiple_of(EXITS_WITHOUT_NEW_PATH)
    }

    /// Tests whether of the untracked runs only those that are timed are recorded.
    pub(super) fn is_idle(&self) -> bool {
        self.is_idle.load(Ordering::Relaxed)
    }

    /// Counts a run.
    pub(super) fn count_run(&self) {
        let detailed_runs = self.detailed_runs.load(Ordering::Relaxed);
        self.detailed_runs.store(detailed_runs.saturating_sub(1), Ordering::Relaxed);
    }

    /// Counts an exit from a kernel.
    pub(super) fn count_exit(&self) {
        self.exits_since_new_path.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a new path was merged: others may follow soon.
    pub(super) fn note_new_path(&self) {
        self.exits_since_new_path.store(0, Ordering::Relaxed);
        self.track_next_runs();
    }

    /// Has the next runs tracked.
    pub(super) fn track_next_runs(&self) {
        self.detailed_runs.store(CAPTURED_RUNS + MARKED_RUNS, Ordering::Relaxed);
    }

    /// Notes what the budget allows, and whether profiling has been of no use for long.
    pub(super) fn note_budget(&self, may_profile: bool, is_idle: bool) {
        self.may_profile.store(may_profile, Ordering::Relaxed);
        self.is_idle.store(is_idle, Ordering::Relaxed);
    }
}

/// Tests whether the run after `runs` others is timed if it is untracked.
pub(super) fn is_timed_run(runs: u64) -> bool {
    runs.is_multiple_of(RUNS_PER_TIMED)
}

/// Tests whether the run after `runs` others is compared with the graph in any case.
pub(super) fn is_compared_run(runs: u64) -> bool {
    runs.is_power_of_two()
}
