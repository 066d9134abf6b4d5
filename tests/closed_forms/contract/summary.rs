//! The results of the families, and the table of them.

use std::fmt::Write;
use std::time::Duration;

use super::judge::Verdict;

/// The number of violations of a family that are shown.
const SHOWN: usize = 4;

/// The results of one family.
#[derive(Default)]
pub struct Summary {
    pub name: String,
    pub points: usize,
    pub components: usize,
    /// The largest share of 4 t + 4 ulp among components that do not violate the contract.
    pub worst: f64,
    pub below_floor: usize,
    pub unmeasured: usize,
    /// Components that violate the contract with the bits of the loop's result.
    pub as_loop: usize,
    /// Components of the loop's own kernel that would violate it.
    pub loop_worse: usize,
    pub violations: usize,
    /// The largest of these, in units of the allowed error.
    pub largest: f64,
    /// Results of sums that four times the tape's error allows at nearby points, but not here.
    pub by_chance: usize,
    /// Points at which the closed form is known to be rejected.
    pub rejected: usize,
    pub formulas: usize,
    pub kernel_calls: u64,
    pub time: Duration,
    pub compilation: Duration,
    pub shown: Vec<String>,
}

impl Summary {
    /// Counts a component.
    pub fn count(&mut self, verdict: Verdict, is_loops: bool, show: impl FnOnce() -> String) {
        self.components += 1;
        match verdict {
            Verdict::Accurate(share) => self.worst = self.worst.max(share),
            Verdict::BelowFloor => self.below_floor += 1,
            Verdict::Unmeasured => self.unmeasured += 1,
            Verdict::Violated(_) if is_loops => self.as_loop += 1,
            Verdict::Violated(times) => {
                self.violations += 1;
                self.largest = self.largest.max(times);
                if self.shown.len() < SHOWN {
                    self.shown.push(show());
                }
            }
        }
    }
}

/// The table of all families, and the violations below it.
pub fn table(summaries: &[Summary]) -> String {
    let mut text = format!(
        "{:34} {:>6} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7} {:>6} {:>8} {:>6} {:>6} {:>5} {:>6} {:>7} \
         {:>7}\n",
        "family",
        "points",
        "numbers",
        "worst",
        "floor",
        "unmeas",
        "as loop",
        "loop >",
        "viol",
        "largest",
        "chance",
        "reject",
        "forms",
        "kernel",
        "compile",
        "time",
    );
    let mut add = |summary: &Summary| {
        let share = 100.0 * summary.kernel_calls as f64 / summary.points.max(1) as f64;
        let _ = writeln!(
            text,
            "{:34} {:>6} {:>8} {:>7.3} {:>7} {:>7} {:>7} {:>7} {:>6} {:>8.1e} {:>6} {:>6} {:>5} \
             {:>5.0}% {:>6.2}s {:>6.2}s",
            summary.name,
            summary.points,
            summary.components,
            summary.worst,
            summary.below_floor,
            summary.unmeasured,
            summary.as_loop,
            summary.loop_worse,
            summary.violations,
            summary.largest,
            summary.by_chance,
            summary.rejected,
            summary.formulas,
            share,
            summary.compilation.as_secs_f64(),
            summary.time.as_secs_f64(),
        );
    };
    let mut all = Summary { name: "all".into(), ..Summary::default() };
    for summary in summaries {
        add(summary);
        all.points += summary.points;
        all.components += summary.components;
        all.worst = all.worst.max(summary.worst);
        all.below_floor += summary.below_floor;
        all.unmeasured += summary.unmeasured;
        all.as_loop += summary.as_loop;
        all.loop_worse += summary.loop_worse;
        all.violations += summary.violations;
        all.largest = all.largest.max(summary.largest);
        all.by_chance += summary.by_chance;
        all.rejected += summary.rejected;
        all.formulas += summary.formulas;
        all.kernel_calls += summary.kernel_calls;
        all.time += summary.time;
        all.compilation += summary.compilation;
    }
    add(&all);
    for summary in summaries {
        for shown in &summary.shown {
            let _ = writeln!(text, "{}: {shown}", summary.name);
        }
    }
    text
}
