//! The budget of profiling: bounds the cost of profiling runs, which record details and merge and
//! share paths, by the cost of the calls that the tape serves.
//!
//! Work is counted in events: the time in which the tape records and sweeps one. A run on the tape
//! earns a share of its events, a profiling run spends what it costs more. So 1,000 calls cost at
//! most twice as much as without profiling, but for the first calls, which have an allowance.

/// The allowance of a new specialisation, besides the largest amount that may be saved: some 20
/// milliseconds.
const ALLOWANCE: u64 = 1 << 22;
/// The number of runs after which the rest of the allowance is lost.
const FIRST_RUNS: u64 = 100;
/// The number of runs on the tape that earn the events of one.
const RUNS_PER_EARNED: u64 = 4;
/// The number of calls served by kernels that earn the events of one run: each of them saves most
/// of a run.
const KERNEL_CALLS_PER_EARNED: u64 = 2;
/// The largest number of runs whose events may be saved.
const MOST_SAVED: u64 = 200;
/// The factor by which all is less once a limit has ended profiling.
const GIVEN_UP: u64 = 16;

/// The work that profiling may still do.
#[derive(Debug)]
pub(super) struct Budget {
    /// In events; negative after an action that took more than expected.
    credit: i64,
    runs: u64,
    /// The number of calls served by kernels up to the latest run.
    kernel_calls: u64,
    /// The events of a run, on average over the latest ones.
    events: u64,
    /// The additional work of the latest run with details.
    detail: u64,
    /// True if a limit has ended profiling.
    has_given_up: bool,
    is_bounded: bool,
}

impl Budget {
    /// A budget, without end unless it `is_bounded`.
    pub(super) fn new(is_bounded: bool) -> Self {
        Budget {
            is_bounded,
            credit: 0,
            runs: 0,
            kernel_calls: 0,
            events: 0,
            detail: 0,
            has_given_up: false,
        }
    }

    /// Earns for a run of `events` events on the tape, and for the calls served by kernels since
    /// the last one; `kernel_calls` counts all of them.
    pub(super) fn earn(&mut self, events: usize, kernel_calls: u64) {
        let events = events as u64;
        if self.runs == 0 {
            (self.events, self.credit) = (events, (ALLOWANCE + MOST_SAVED * events) as i64);
        }
        self.events = (7 * self.events + events).div_ceil(8);
        self.runs += 1;
        let served = kernel_calls.saturating_sub(self.kernel_calls);
        self.kernel_calls = kernel_calls;
        let saved = served.min(MOST_SAVED * KERNEL_CALLS_PER_EARNED) * self.events;
        let earned = events.div_ceil(RUNS_PER_EARNED) + saved / KERNEL_CALLS_PER_EARNED;
        let factor = if self.has_given_up { GIVEN_UP } else { 1 };
        self.credit = self.credit.saturating_add((earned / factor) as i64);
        if self.runs > FIRST_RUNS {
            self.credit = self.credit.min((MOST_SAVED * self.events / factor) as i64);
        }
    }

    /// Spends `work`.
    pub(super) fn spend(&mut self, work: u64) {
        self.credit = self.credit.saturating_sub(i64::try_from(work).unwrap_or(i64::MAX));
    }

    /// Spends the additional work of a run with details.
    pub(super) fn spend_detail(&mut self, work: u64) {
        self.detail = work;
        self.spend(work);
    }

    /// The work that may be done now.
    pub(super) fn credit(&self) -> u64 {
        if self.is_bounded { u64::try_from(self.credit).unwrap_or(0) } else { u64::MAX }
    }

    /// Tests whether a run with details and this work after it may be done.
    pub(super) fn allows(&self, work: u64) -> bool {
        self.runs == 0 || self.credit() >= self.detail.saturating_add(work)
    }

    /// The number of events of a run.
    pub(super) fn events(&self) -> usize {
        self.events as usize
    }

    /// Ends profiling, but for now and then a run.
    pub(super) fn give_up(&mut self) {
        self.has_given_up = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiling_costs_less_than_the_calls_after_the_first_ones() {
        let mut budget = Budget::new(true);
        let mut spent = Vec::new();
        for _ in 0..5000 {
            budget.earn(100, 0);
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
        let mut budget = Budget::new(true);
        (0..10_000).for_each(|_| budget.earn(100, 0));
        assert_eq!(budget.credit(), 100 * MOST_SAVED);
        budget.give_up();
        budget.earn(100, 0);
        assert_eq!(budget.credit(), 100 * MOST_SAVED / GIVEN_UP);
    }
}
