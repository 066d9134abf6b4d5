//! The budget of profiling: bounds the cost of profiling runs, which record details and merge and
//! share paths, by the cost of the calls that the tape serves.
//!
//! Work is counted in events: the time in which the tape records and sweeps one. A run on the tape
//! earns a share of its events, a profiling run spends its additional cost. So 1,000 calls cost at
//! most twice as much as without profiling, but for the first calls, which have an allowance.
//!
//! The time of a unit of work depends on the program and the machine, so it is measured, and so is
//! that of an event; in programs that compile in the foreground both are the same.

use core::time::Duration;

/// The allowance of a new specialisation, besides the largest amount that may be saved: some 20
/// milliseconds.
const ALLOWANCE: u64 = 1 << 22;
/// The number of runs after which an unspent allowance is cancelled.
const FIRST_RUNS: u64 = 100;
/// The number of runs on the tape that earn the events of one, at first and where kernels serve.
const RUNS_PER_EARNED: u64 = 4;
/// The number of idle runs after which a run earns half of that, and the largest number that
/// counts.
const IDLE_RUNS: u64 = 1000;
const MAX_IDLE_RUNS: u64 = 15 * IDLE_RUNS;
/// The number of idle runs after which profiling is of no use.
const USELESS_RUNS: u64 = MAX_IDLE_RUNS / 4;
/// The largest number of runs whose events may be saved.
const MOST_SAVED: u64 = 200;
/// The time of an event until one has been measured, in nanoseconds.
const EVENT_TIME: f64 = 2.0;
/// The weight of a new measurement in an average.
const WEIGHT: f64 = 0.125;
/// The least and the largest measured time of a unit of work, in events. One measurement says
/// little: the system may have interrupted it.
const WORK_TIMES: [f64; 2] = [0.5, 16.0];
/// The divisor of earned and saved work once a limit has ended profiling.
const GIVEN_UP_DIVISOR: u64 = 16;

/// The work that profiling may still do.
#[derive(Debug)]
pub(super) struct Budget {
    /// In events; negative after an action that took more than expected.
    credit: i64,
    runs: u64,
    /// The number of idle runs: those on the tape, less one for each call that a kernel served. The
    /// more there are, the less profiling is worth.
    idle_runs: u64,
    /// The number of calls served by kernels up to the latest run.
    kernel_calls: u64,
    /// The events of an untracked run, on average over the latest ones.
    events: u64,
    /// The events of the latest run that recorded details, marks included.
    tracked_events: usize,
    /// The additional work of the latest run with details.
    detail: u64,
    /// True if a limit has ended profiling.
    has_given_up: bool,
    /// The multiple of all amounts; `None` if there is no bound.
    bound: Option<u64>,
    /// The time of an event on the tape, in nanoseconds.
    event_time: f64,
    /// The time of a unit of work, in events.
    work_time: f64,
}

impl Budget {
    /// A budget of `bound` times the usual amounts; `None` for no bound.
    pub(super) fn new(bound: Option<u64>) -> Self {
        Budget {
            bound,
            credit: 0,
            runs: 0,
            idle_runs: 0,
            kernel_calls: 0,
            events: 0,
            tracked_events: 0,
            detail: 0,
            has_given_up: false,
            event_time: EVENT_TIME,
            work_time: 1.0,
        }
    }

    /// Earns for a run of `events` events on the tape, and for the calls served by kernels since
    /// the last one, each of which saves most of a run; `kernel_calls` counts all of them.
    pub(super) fn earn(&mut self, events: usize, is_tracked: bool, kernel_calls: u64) {
        if is_tracked {
            self.tracked_events = events;
        }
        let events = events as u64;
        if self.runs == 0 {
            (self.events, self.credit) = (events, (ALLOWANCE + MOST_SAVED * events) as i64);
        }
        self.runs += 1;
        if !is_tracked || events < self.events {
            self.events = (7 * self.events + events) / 8;
        }
        let served = kernel_calls.saturating_sub(self.kernel_calls);
        self.kernel_calls = kernel_calls;
        self.idle_runs = (self.idle_runs + 1).saturating_sub(served).min(MAX_IDLE_RUNS);
        let saved = served.min(MOST_SAVED) * self.events;
        let divisor = self.divisor();
        let earned = (events.div_ceil(self.runs_per_earned()) + saved) / divisor;
        self.credit = self.credit.saturating_add(earned as i64);
        if self.runs > FIRST_RUNS {
            self.credit = self.credit.min((MOST_SAVED * self.events / divisor) as i64);
        }
    }

    /// Earns for further `runs` on the tape like the latest ones.
    pub(super) fn earn_again(&mut self, runs: u64) {
        if self.runs == 0 {
            return;
        }
        self.runs += runs;
        self.idle_runs = (self.idle_runs + runs).min(MAX_IDLE_RUNS);
        let earned = runs * self.events / (self.runs_per_earned() * self.divisor());
        self.credit = self.credit.saturating_add(earned as i64);
    }

    /// The number of runs on the tape that earn the events of one.
    fn runs_per_earned(&self) -> u64 {
        RUNS_PER_EARNED * (1 + self.idle_runs / IDLE_RUNS)
    }

    fn divisor(&self) -> u64 {
        if self.has_given_up { GIVEN_UP_DIVISOR } else { 1 }
    }

    /// Spends `work`.
    pub(super) fn spend(&mut self, work: u64) {
        self.spend_events(work as f64 * self.work_time);
    }

    /// Measures the time of an event by that of an untracked run.
    pub(super) fn time_run(&mut self, events: usize, elapsed: Duration) {
        let time = elapsed.as_nanos() as f64 / events.max(1) as f64;
        self.event_time += WEIGHT * (time.min(8.0 * self.event_time) - self.event_time);
    }

    /// Spends `work` that took this time, and measures the time of a unit.
    pub(super) fn spend_time(&mut self, work: u64, elapsed: Duration) {
        if work == 0 {
            return self.spend_events(elapsed.as_nanos() as f64 / self.event_time);
        }
        let [least, largest] = WORK_TIMES;
        let work = work as f64;
        let time = (elapsed.as_nanos() as f64 / self.event_time / work).clamp(least, largest);
        self.spend_events(work * time);
        self.work_time += WEIGHT * (time - self.work_time);
    }

    fn spend_events(&mut self, events: f64) {
        let bound = self.bound.unwrap_or(1) as f64;
        self.credit = self.credit.saturating_sub((events / bound) as i64);
    }

    /// Spends the additional work of a run with details.
    pub(super) fn spend_detail(&mut self, work: u64) {
        self.detail = work;
        self.spend(work);
    }

    /// The work that may be done now.
    pub(super) fn credit(&self) -> u64 {
        match self.bound {
            Some(bound) => (self.credit.max(0) as f64 * bound as f64 / self.work_time) as u64,
            None => u64::MAX,
        }
    }

    /// Tests whether a run with details and this work after it may be done.
    pub(super) fn allows(&self, work: u64) -> bool {
        self.runs == 0 || self.credit() >= self.detail.saturating_add(work)
    }

    /// The number of events of a run.
    pub(super) fn events(&self) -> u64 {
        self.events.max(1)
    }

    /// The number of events of a run that records details.
    pub(super) fn tracked_events(&self) -> usize {
        self.tracked_events
    }

    /// Tests whether profiling has been of no use for long.
    pub(super) fn is_idle(&self) -> bool {
        self.idle_runs >= USELESS_RUNS
    }

    /// Notes that a limit has ended profiling: from now on few runs earn enough for it.
    pub(super) fn give_up(&mut self) {
        self.has_given_up = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiling_costs_less_than_the_calls_after_the_first_ones() {
        let mut budget = Budget::new(Some(1));
        let mut spent = Vec::new();
        for _ in 0..5000 {
            budget.earn(100, false, 0);
            let work = budget.credit();
            budget.spend(work);
            spent.push(work);
        }
        assert!(spent[..FIRST_RUNS as usize].iter().sum::<u64>() >= ALLOWANCE);
        let windows = spent[FIRST_RUNS as usize..].windows(1000);
        assert!(windows.map(|window| window.iter().sum::<u64>()).all(|sum| sum <= 100 * 1000));
    }

    #[test]
    fn what_is_saved_is_bounded() {
        let mut budget = Budget::new(Some(1));
        (0..10_000).for_each(|_| budget.earn(100, false, 0));
        assert_eq!(budget.credit(), 100 * MOST_SAVED);
        budget.give_up();
        budget.earn(100, false, 0);
        assert_eq!(budget.credit(), 100 * MOST_SAVED / GIVEN_UP_DIVISOR);
    }
}
