//! Timing: contenders that take turns, so that noise of the machine hits all of
//! them alike, and the median of each.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// The extent of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Samples of each contender.
    pub rounds: u32,
    /// Each sample repeats its call for at least about this long.
    pub sample: Duration,
    /// Fresh recordings for what can be timed only once in each: the first call
    /// and, where it is cheap, compiling.
    pub fresh: u32,
}

impl Plan {
    /// For numbers to be quoted.
    pub const FULL: Plan = Plan { rounds: 41, sample: Duration::from_millis(5), fresh: 7 };
    /// For a look.
    pub const QUICK: Plan = Plan { rounds: 5, sample: Duration::from_millis(1), fresh: 3 };
}

/// Called after every round.
pub type RoundDone<'a> = &'a dyn Fn();

/// Something to time. It holds a loop, not a call: so the call is compiled into
/// the loop, without a virtual call in between.
pub struct Contender<'a> {
    repeat: Box<dyn FnMut(u64) -> Result<(), phigrad::Error> + 'a>,
    batch: u64,
    calls: u64,
    samples: Vec<f64>,
}

impl<'a> Contender<'a> {
    /// Times `call` at points next to `base`: every call gets another first
    /// coordinate, so that no result can be reused, and so near that the path
    /// through the program stays the same.
    pub fn new(
        base: &[f64],
        mut call: impl FnMut(&[f64]) -> Result<(), phigrad::Error> + 'a,
    ) -> Self {
        let mut x = base.to_vec();
        let first = base.first().copied().unwrap_or_default();
        let repeat = move |calls: u64| {
            for k in 0..calls {
                if let Some(slot) = x.first_mut() {
                    *slot = first + 1e-10 * (k & 15) as f64;
                }
                call(black_box(&x))?;
            }
            Ok(())
        };
        Contender { repeat: Box::new(repeat), batch: 1, calls: 0, samples: Vec::new() }
    }

    /// All calls made so far.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Median time of one call in nanoseconds; not a number without samples.
    pub fn median_ns(&self) -> f64 {
        median(&self.samples)
    }

    /// The shortest time of one call in nanoseconds; infinite without samples.
    pub fn best_ns(&self) -> f64 {
        self.samples.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn run(&mut self) -> Result<Duration, phigrad::Error> {
        let start = Instant::now();
        (self.repeat)(self.batch)?;
        let elapsed = start.elapsed();
        self.calls += self.batch;
        Ok(elapsed)
    }

    /// A call that is not timed: the others have used the caches meanwhile.
    fn warm_up(&mut self) -> Result<(), phigrad::Error> {
        self.calls += 1;
        (self.repeat)(1)
    }

    /// Finds the number of calls that takes `sample`.
    fn calibrate(&mut self, sample: Duration) -> Result<(), phigrad::Error> {
        self.warm_up()?;
        loop {
            let elapsed = self.run()?;
            if elapsed >= sample {
                return Ok(());
            }
            // At most eightfold, as the first calls may be untypically slow.
            let factor = 1.2 * sample.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
            self.batch = (self.batch as f64 * factor.clamp(1.5, 8.0)).ceil() as u64;
        }
    }

    fn sample(&mut self) -> Result<(), phigrad::Error> {
        self.warm_up()?;
        let elapsed = self.run()?;
        self.samples.push(elapsed.as_secs_f64() * 1e9 / self.batch as f64);
        Ok(())
    }
}

/// Takes `plan.rounds` samples of every contender, one each in every round, and
/// reports every round.
pub fn interleave(
    contenders: &mut [&mut Contender<'_>],
    plan: &Plan,
    round_done: RoundDone,
) -> Result<(), phigrad::Error> {
    for contender in &mut *contenders {
        contender.calibrate(plan.sample)?;
    }
    for _ in 0..plan.rounds {
        for contender in &mut *contenders {
            contender.sample()?;
        }
        round_done();
    }
    Ok(())
}

/// The median, of an even number of values the mean of the two in the middle;
/// not a number if there are none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.len() / 2;
    match (sorted.get(upper), sorted.len() % 2) {
        (None, _) => f64::NAN,
        (Some(middle), 1) => *middle,
        (Some(middle), _) => 0.5 * (sorted[upper - 1] + middle),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    #[test]
    fn median_is_the_middle_of_the_sorted_values() {
        assert_eq!(median(&[5.0]), 5.0);
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&[4.0, 1.0, 100.0, 2.0]), 3.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn median_ignores_an_outlier() {
        assert_eq!(median(&[1.0, 1.0, 1.0, 1e9, 1.0]), 1.0);
    }

    #[test]
    fn contenders_take_turns_and_count_their_calls() {
        let plan = Plan { rounds: 3, sample: Duration::ZERO, fresh: 1 };
        let order = RefCell::new(String::new());
        let note = |letter| {
            order.borrow_mut().push(letter);
            Ok(())
        };
        let mut a = Contender::new(&[1.0], |_| note('a'));
        let mut b = Contender::new(&[1.0], |_| note('b'));
        let rounds = Cell::new(0);
        interleave(&mut [&mut a, &mut b], &plan, &|| rounds.set(rounds.get() + 1)).unwrap();
        // Each of the four times begins with a call that is not timed.
        assert_eq!((a.calls(), b.calls(), rounds.get()), (8, 8, 3));
        assert!(a.median_ns() >= 0.0);
        drop((a, b));
        assert_eq!(order.into_inner(), "aabb".repeat(4));
    }

    #[test]
    fn every_call_gets_another_point_next_to_the_base() {
        let seen = RefCell::new(Vec::new());
        let mut contender = Contender::new(&[2.0, 7.0], |x| {
            seen.borrow_mut().push((x[0], x[1]));
            Ok(())
        });
        contender.batch = 16;
        contender.sample().unwrap();
        drop(contender);
        // The first call is the one that is not timed.
        let seen = seen.into_inner().split_off(1);
        assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(seen.iter().all(|(x, y)| (x - 2.0).abs() < 1e-8 && *y == 7.0));
    }
}
