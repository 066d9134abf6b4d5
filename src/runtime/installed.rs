//! A kernel in use: what it was made from, and whether it pays.
//!
//! A call in which a kernel has no result costs a run on the tape besides that of the kernel. So a
//! kernel pays while its time, plus the tape's times the share of such calls, is less than that of
//! the tape. Now and then a few calls run both in the kernel and on the tape, and are timed. A
//! kernel that does not pay backs off: it is not tried for a while.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

use super::batch::BatchCodes;
use super::profile::GraphVersion;
use crate::jit::Kernel;
use crate::pipeline::{BatchSource, Purpose, Runs};

/// A kernel in use, the version of the graph it was made from, and its record.
pub(super) struct Installed {
    pub(super) kernel: Kernel,
    /// Its code for batches.
    pub(super) batches: BatchCodes,
    /// The runs that serve a call.
    pub(super) runs: Runs,
    pub(super) graph_version: GraphVersion,
    /// The number of calls that kernels for its purpose have served.
    calls: Arc<AtomicU64>,
    /// The number of such calls that do not count: those of earlier kernels, and old ones.
    old_calls: AtomicU64,
    /// The number of calls in which it had no result, but for old ones.
    exits: AtomicU32,
    /// The number of them in a row, and the number of calls served at the latest one.
    exits_in_row: AtomicU32,
    calls_at_exit: AtomicU64,
    plan: PlanCell,
    /// The number of times that it did not pay.
    losses: AtomicU32,
    /// The sums of the times of the timed calls, in nanoseconds.
    kernel_time: AtomicU64,
    tape_time: AtomicU64,
}

/// The executors of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dispatch {
    /// In the kernel; on the tape if that has no result.
    Kernel,
    /// In the kernel, whose time is taken, and on the tape.
    Timed,
    /// On the tape.
    Tape,
}

/// The executors of the next calls.
#[derive(Clone, Copy)]
enum Plan {
    /// In the kernel.
    Kernel,
    /// So many of them in the kernel and on the tape, timed; at least one.
    Timed(u32),
    /// So many of them on the tape; at least one.
    BackOff(u32),
}

/// A [`Plan`] that threads share, in one word: kernel calls read it.
struct PlanCell(AtomicU32);

impl PlanCell {
    /// The bit that tells [`Plan::Timed`] from [`Plan::BackOff`].
    const TIMED: u32 = 1 << 31;

    const fn new() -> Self {
        PlanCell(AtomicU32::new(0))
    }

    #[inline]
    fn get(&self) -> Plan {
        match self.0.load(Ordering::Relaxed) {
            0 => Plan::Kernel,
            word if word & Self::TIMED != 0 => Plan::Timed(word & !Self::TIMED),
            calls => Plan::BackOff(calls),
        }
    }

    fn set(&self, plan: Plan) {
        let word = match plan {
            Plan::Kernel | Plan::Timed(0) => 0,
            Plan::Timed(calls) => Self::TIMED | calls,
            Plan::BackOff(calls) => calls,
        };
        self.0.store(word, Ordering::Relaxed);
    }
}

/// The number of timed calls in a row. The first of them finds cold caches and does not count.
const TIMED_CALLS: u32 = 5;

/// The number of exits in a row after which a kernel backs off, and the number of calls that do not
/// try it after each further one.
const EXITS_BEFORE_BACK_OFF: u32 = 1000;
const BACK_OFF_AFTER_EXIT: u32 = 64;
/// The number of calls that do not try a kernel that takes too much time, after the first timing
/// and after the latest one at most.
const BACK_OFF: u32 = 256;
const MAX_BACK_OFF: u32 = 4096;

impl Installed {
    /// A kernel; `calls` counts those that kernels for its purpose serve.
    pub(super) fn new(
        (kernel, runs): (Kernel, Runs),
        batches: Option<BatchSource>,
        graph_version: GraphVersion,
        calls: Arc<AtomicU64>,
    ) -> Self {
        Installed {
            kernel,
            batches: BatchCodes::new(batches),
            runs,
            graph_version,
            old_calls: AtomicU64::new(calls.load(Ordering::Relaxed)),
            calls,
            exits: AtomicU32::new(0),
            exits_in_row: AtomicU32::new(0),
            calls_at_exit: AtomicU64::new(0),
            plan: PlanCell::new(),
            losses: AtomicU32::new(0),
            kernel_time: AtomicU64::new(0),
            tape_time: AtomicU64::new(0),
        }
    }

    /// The purpose of its products, if it serves a call by several.
    pub(super) fn product(&self) -> Option<Purpose> {
        match self.runs {
            Runs::One => None,
            Runs::EachProduct(product) | Runs::Groups(product, _) => Some(product),
        }
    }

    /// The executors of this call.
    #[inline]
    pub(super) fn dispatch(&self) -> Dispatch {
        // Concurrent calls may count as one, which is harmless.
        match self.plan.get() {
            Plan::Kernel => Dispatch::Kernel,
            Plan::Timed(calls) => {
                self.plan.set(Plan::Timed(calls - 1));
                Dispatch::Timed
            }
            Plan::BackOff(calls) => {
                self.plan.set(Plan::BackOff(calls - 1));
                Dispatch::Tape
            }
        }
    }

    /// Tests whether calls do not try it at present.
    pub(super) fn is_backing_off(&self) -> bool {
        matches!(self.plan.get(), Plan::BackOff(_))
    }

    /// Has the next calls timed.
    pub(super) fn time_calls(&self) {
        self.plan.set(Plan::Timed(TIMED_CALLS));
    }

    /// Counts so many calls that it served.
    #[inline]
    pub(super) fn served(&self, count: usize) {
        self.calls.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// The number of the latest call that it served, from 1.
    #[inline]
    pub(super) fn latest_call(&self) -> u64 {
        let calls = self.calls.load(Ordering::Relaxed);
        calls.saturating_sub(self.old_calls.load(Ordering::Relaxed))
    }

    /// Tests whether calls try it without taking its time.
    pub(super) fn is_in_use(&self) -> bool {
        matches!(self.plan.get(), Plan::Kernel)
    }

    /// Counts a call without a result. A kernel that has had none for long backs off.
    pub(super) fn exit(&self) {
        self.exits.fetch_add(1, Ordering::Relaxed);
        let calls = self.calls.load(Ordering::Relaxed);
        if self.calls_at_exit.swap(calls, Ordering::Relaxed) != calls {
            self.exits_in_row.store(0, Ordering::Relaxed);
        }
        if self.exits_in_row.fetch_add(1, Ordering::Relaxed) >= EXITS_BEFORE_BACK_OFF {
            self.plan.set(Plan::BackOff(BACK_OFF_AFTER_EXIT));
        }
    }

    /// Adds the times of a call by the kernel and on the tape. After the last of the timed calls a
    /// kernel that does not pay backs off, each time for longer.
    pub(super) fn add_times(&self, kernel: Duration, tape: Duration) {
        let plan = self.plan.get();
        if matches!(plan, Plan::Timed(calls) if calls == TIMED_CALLS - 1) {
            self.kernel_time.store(0, Ordering::Relaxed);
            self.tape_time.store(0, Ordering::Relaxed);
            return;
        }
        let add = |sum: &AtomicU64, time: Duration| {
            let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            (sum.fetch_add(nanoseconds, Ordering::Relaxed) + nanoseconds) as f64
        };
        let (kernel, tape) = (add(&self.kernel_time, kernel), add(&self.tape_time, tape));
        if matches!(plan, Plan::Kernel) && kernel + tape * self.exit_share() > tape {
            let losses = self.losses.fetch_add(1, Ordering::Relaxed);
            let back_off = BACK_OFF << losses.min(MAX_BACK_OFF.ilog2());
            self.plan.set(Plan::BackOff(back_off.min(MAX_BACK_OFF)));
            // After that it is timed again soon, as if it were new.
            self.old_calls.store(self.calls.load(Ordering::Relaxed), Ordering::Relaxed);
            self.exits.store(0, Ordering::Relaxed);
        }
    }

    /// The share of calls in which it had no result.
    fn exit_share(&self) -> f64 {
        let exits = f64::from(self.exits.load(Ordering::Relaxed));
        exits / (exits + self.latest_call() as f64).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jit::schedule;
    use crate::ssa::parse;

    fn installed() -> Installed {
        let graph =
            parse("graph active 1 inactive 0\nb0:\n  v1 = add v0 v0\n  return v1\n").unwrap();
        let kernel = schedule(&graph).unwrap().compile(&[]).unwrap();
        let made = (kernel, Runs::One);
        Installed::new(made, None, GraphVersion { generation: 0, version: 1 }, Arc::default())
    }

    /// Serves `count` calls, `exits` of them with an exit. Returns how many tried the kernel.
    fn calls(installed: &Installed, count: u64, exits: u64) -> u64 {
        let tried = (0..count).filter(|_| installed.dispatch() != Dispatch::Tape);
        tried.map(|i| if i < exits { installed.exit() } else { installed.served(1) }).count() as u64
    }

    /// Times calls by the kernel and on the tape, in microseconds.
    fn time(installed: &Installed, kernel: u64, tape: u64) {
        installed.time_calls();
        while installed.dispatch() == Dispatch::Timed {
            installed.served(1);
            installed.add_times(Duration::from_micros(kernel), Duration::from_micros(tape));
        }
    }

    #[test]
    fn a_kernel_slower_than_the_tape_is_tried_less_and_less_often() {
        let installed = installed();
        time(&installed, 9, 10);
        assert_eq!(calls(&installed, 100, 0), 100);
        time(&installed, 11, 10);
        assert!(installed.is_backing_off());
        assert_eq!(calls(&installed, 1000, 0), u64::from(1001 - BACK_OFF));
        (0..40).for_each(|_| time(&installed, 11, 10));
        assert_eq!(calls(&installed, 5000, 0), u64::from(5001 - MAX_BACK_OFF));
        time(&installed, 9, 10);
        assert!(!installed.is_backing_off());
    }

    #[test]
    fn exits_cost_a_run_on_the_tape() {
        let installed = installed();
        calls(&installed, 1000, 400);
        time(&installed, 5, 10);
        assert!(!installed.is_backing_off());
        time(&installed, 7, 10);
        assert!(installed.is_backing_off());
    }

    #[test]
    fn a_kernel_without_results_is_tried_less_often() {
        let installed = installed();
        assert!((1000..1100).contains(&calls(&installed, 5000, 5000)));
        // It is back after a result.
        calls(&installed, 64, 0);
        assert_eq!(calls(&installed, 100, 50), 100);
    }
}
