//! Loop detection in a trace: maximal segments that repeat with some period.
//!
//! A segment's events are compared by site and kind, then its operands must follow an [induction
//! pattern](InductionPattern). Of nested loops the outer one is found if it follows a pattern,
//! otherwise the inner ones.

use core::num::NonZeroU32;

use smallvec::SmallVec;

use super::event::Step;
use super::induction::{Induction, InductionPattern, infer_induction};
use super::{Events, Operand, Role};
use crate::entity::{Entity, entity};

/// A segment of a trace whose iterations have the same events, with operands that follow an
/// [induction pattern](InductionPattern).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopRange {
    /// The index of the first event.
    pub(crate) start: usize,
    /// The number of events of an iteration.
    pub(crate) period: usize,
    /// The number of iterations.
    pub(crate) times: usize,
}

/// The least size from which a segment is treated as a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopThreshold {
    /// The least number of iterations.
    pub(crate) iterations: usize,
    /// The least number of events.
    pub(crate) events: usize,
}

impl LoopThreshold {
    /// The threshold of the runtime.
    pub(crate) const DEFAULT: LoopThreshold = LoopThreshold { iterations: 32, events: 512 };

    /// Tests whether `range` is large enough.
    pub(crate) fn is_reached(&self, range: &LoopRange) -> bool {
        range.times >= self.iterations && range.end() - range.start >= self.events
    }
}

/// The largest number of iterations; longer segments become several loops.
const MAX_ITERATIONS: usize = 1 << 24;
/// A segment with equal events is tried again from a later iteration after its operands followed no
/// pattern: so often one after the other in a short segment,
const LEAST_RETRIES: usize = 4;
/// so often in a long one,
const MOST_RETRIES: usize = 64;
/// and once for so many iterations otherwise.
const ITERATIONS_PER_RETRY: usize = 16;
/// The number of iterations with a pattern from which on a try is not in vain, also without a loop: in
/// a triangle they become more.
const LEAST_EXECUTION: usize = 6;
/// The nesting depth to which a segment without a pattern is searched for shorter periods.
const MAX_DEPTH: usize = 4;
/// The number of latest equal events that are tried as candidates for the period.
const MAX_OCCURRENCES: usize = 8;
/// The largest number of periods that are tried as one iteration.
const MAX_GROUPED: usize = 4;
/// The number of loops in a segment for which an outer loop is tried.
const MAX_INNER_EXECUTIONS: usize = 4;
/// The number of periods of outer loops that are tried for one.
const MAX_OUTER_PERIODS: usize = 4;
/// The number of periods whose match length is cached.
const CACHED_PERIODS: usize = 64;
/// The size of the hash table of latest events, as a power of two.
const TABLE_BITS: u32 = 12;
/// The kind of a constant.
const CONSTANT: u32 = 3;

entity!(
    /// An event, by its index.
    EventIndex,
    "e"
);

/// The site and kind of an event that may lie in a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key(NonZeroU32);

impl Key {
    /// The number of bits of a kind.
    const KIND_BITS: u32 = 10;

    /// `None` if the number of the site does not fit.
    fn new(site: u32, kind: u32) -> Option<Key> {
        let is_small = site < u32::MAX >> Key::KIND_BITS;
        is_small.then(|| Key(NonZeroU32::MIN.saturating_add(site << Key::KIND_BITS | kind)))
    }

    fn bits(self) -> u32 {
        self.0.get() - 1
    }

    /// Tests whether the event is an ignored mark.
    fn is_mark(self) -> bool {
        let kind = self.bits() & ((1 << Key::KIND_BITS) - 1);
        kind & 3 == 3 && kind != CONSTANT
    }

    /// Its place in the hash table of latest events.
    fn cell(self) -> usize {
        (self.bits().wrapping_mul(0x9e37_79b1) >> (32 - TABLE_BITS)) as usize
    }
}

impl LoopRange {
    /// The index of the event after the last one.
    pub(crate) fn end(&self) -> usize {
        self.start + self.period * self.times
    }
}

/// The loops of `events`, in order. Marks for which `is_ignored` holds may lie in a loop; other
/// marks end it.
pub(crate) fn find_loops(
    events: &Events,
    is_ignored: &dyn Fn(usize) -> bool,
    threshold: LoopThreshold,
) -> Vec<LoopRange> {
    if events.len() < threshold.events {
        return Vec::new();
    }
    let key = |(index, site): (usize, u32)| {
        let kind = kind(&events.steps[index], events.values[index], || is_ignored(index))?;
        Key::new(site, kind)
    };
    let keys = events.site_numbers().into_iter().enumerate().map(key).collect();
    let (latest, earlier) = (vec![None; 1 << TABLE_BITS], vec![None; events.len()]);
    let (compared, found) = ([(0, 0); CACHED_PERIODS], Vec::new());
    let mut search =
        Search { events, is_ignored, threshold, keys, latest, earlier, compared, found };
    search.search(0, events.len(), events.len(), MAX_DEPTH);
    search.found
}

/// A number below 1024 for the operation of an event; `None` if it cannot lie in a loop.
fn kind(step: &Step, value: f64, is_ignored: impl Fn() -> bool) -> Option<u32> {
    let op = step.kind.op as u32;
    match step.kind.role {
        Role::Apply => Some(op << 2),
        Role::Guard => Some(op << 2 | if value != 0.0 { 2 } else { 1 }),
        Role::Constant => Some(CONSTANT),
        Role::Enter | Role::Iterate | Role::Join => {
            is_ignored().then_some((step.kind.role as u32) << 2 | 3)
        }
        _ => None,
    }
}

struct Search<'a> {
    events: &'a Events,
    is_ignored: &'a dyn Fn(usize) -> bool,
    threshold: LoopThreshold,
    /// The key of each event; `None` for those that lie in no loop.
    keys: Vec<Option<Key>>,
    /// The latest event of each key, by a hash of the key.
    latest: Vec<Option<(Key, EventIndex)>>,
    /// For each visited event the latest earlier event with the same key, if known.
    earlier: Vec<Option<EventIndex>>,
    /// For some periods the index up to which events are known to equal those one period before.
    compared: [(usize, usize); CACHED_PERIODS],
    /// The loops found, in order.
    found: Vec<LoopRange>,
}

impl Search<'_> {
    /// Searches events `at..until` for loops with periods less than `below`. Returns where
    /// the search ended: at `until`, or earlier, where a repetition begins that goes on after `until`.
    ///
    /// The candidates for the period at an event are the distances to the latest events with the
    /// same key; a period is kept as long as the events equal those one period before. So at the
    /// end of an inner loop the outer period is found, at the second event outside the inner loop,
    /// and is kept to the end of the outer loop.
    fn search(&mut self, mut at: usize, until: usize, below: usize, depth: usize) -> usize {
        let first = at;
        while at < until {
            let Some((period, length)) = self.period(at, below) else {
                at += 1;
                continue;
            };
            let (mut start, mut end) = (at - period, at + length);
            if end > until && at > first {
                break;
            }
            let mut is_rolled = false;
            if end - start >= period * self.threshold.iterations {
                while start > 0 && self.keys[start - 1] == self.keys[start - 1 + period] {
                    start -= 1;
                }
                is_rolled = self.roll(start, end, period);
            }
            if !is_rolled && period > 1 && depth > 0 {
                let inner = self.search(at, end, period, depth - 1);
                if inner < end {
                    at = inner;
                    continue;
                }
                end = inner;
            }
            // The last iteration stands for the others.
            for index in (at + 1).max(end - period)..end {
                self.note(index);
            }
            at = end;
        }
        at
    }

    /// The smallest candidate for a period less than `below` with which events repeat from `at` on,
    /// for one period at least, and the number of events that repeat.
    fn period(&mut self, at: usize, below: usize) -> Option<(usize, usize)> {
        let mut earlier = self.note(at);
        for _ in 0..MAX_OCCURRENCES {
            // Later events have been visited by a search for longer periods.
            let before = earlier.filter(|&before| before < at)?;
            let period = at - before;
            if period >= below {
                return None;
            }
            let length = self.length(at, period);
            if length >= period {
                return Some((period, length));
            }
            earlier = self.earlier(before);
        }
        None
    }

    /// The number of events from `at` on that equal the event one period before.
    fn length(&mut self, at: usize, period: usize) -> usize {
        let (known, end) = self.compared[period % CACHED_PERIODS];
        if known == period && end > at {
            return end - at;
        }
        let (before, now) = (&self.keys[at - period..], &self.keys[at..]);
        let is_other = |(before, now): (&Option<Key>, &Option<Key>)| before != now || now.is_none();
        let length = before.iter().zip(now).position(is_other).unwrap_or(now.len());
        self.compared[period % CACHED_PERIODS] = (period, at + length);
        length
    }

    /// Marks event `at` as visited; returns the latest earlier event with the same key.
    fn note(&mut self, at: usize) -> Option<usize> {
        let key = self.keys[at]?;
        let latest = &mut self.latest[key.cell()];
        let before = latest.filter(|(known, _)| *known == key).map(|(_, before)| before);
        if before.is_none_or(|before| before.index() < at) {
            *latest = Some((key, EventIndex::from_index(at)));
            self.earlier[at] = before;
        }
        self.earlier(at)
    }

    /// The latest earlier event with the same key, if known.
    fn earlier(&self, at: usize) -> Option<usize> {
        self.earlier[at].map(EventIndex::index)
    }

    /// Tests whether event `at` exists and is an ignored mark.
    fn is_mark(&self, at: usize) -> bool {
        self.keys.get(at).copied().flatten().is_some_and(Key::is_mark)
    }

    /// Adds the loops in events `start..end`, which repeat but for their operands. Returns whether
    /// they cover at least half of the events.
    fn roll(&mut self, start: usize, end: usize, period: usize) -> bool {
        (1..=MAX_GROUPED).any(|periods| self.roll_with_period(start, end, period * periods))
    }

    fn roll_with_period(&mut self, mut start: usize, mut end: usize, period: usize) -> bool {
        let (mut tries, mut rolled, mut loops, whole) = (0, 0, 0, end - start);
        let most_tries = (whole / period / ITERATIONS_PER_RETRY).clamp(LEAST_RETRIES, MOST_RETRIES);
        // Ignored marks may precede the loop; then as many behind it complete its last iteration.
        while start < end && self.is_mark(start) {
            start += 1;
            if self.is_mark(end) {
                end += 1;
            }
        }
        let first = start;
        while end.saturating_sub(start) >= period * self.threshold.iterations && tries < most_tries
        {
            let range = self.longest(start, end, period);
            start = range.start;
            if self.threshold.is_reached(&range) {
                loops += 1;
                let outer = if loops > MAX_INNER_EXECUTIONS {
                    None
                } else {
                    self.outer(first, end, &range)
                };
                let range = outer.unwrap_or(range);
                self.push(range);
                rolled += range.period * range.times;
                start = range.end();
                tries = 0;
            } else {
                start += period * range.times.max(1);
                tries += usize::from(range.times < LEAST_EXECUTION);
            }
        }
        rolled * 2 >= whole
    }

    /// The loop from event `start` on of which `row` is an iteration, if there is one: in events of the
    /// same kinds alone its period shows nowhere else but in the distance from the values that `row`
    /// reads to their uses, if these are values of the row before.
    fn outer(&self, start: usize, end: usize, row: &LoopRange) -> Option<LoopRange> {
        let period = row.period;
        let middle = row.start + row.times / 2 * period;
        let mut periods: SmallVec<[usize; 4]> = SmallVec::new();
        for at in middle..middle + period {
            let (now, next) = (self.events.at(at), self.events.at(at + period));
            for pair in now.operands().zip(next.operands()) {
                let (Operand::Event(read), Operand::Event(next)) = pair else { continue };
                let is_row = (read as usize) < row.start && next as usize == read as usize + period;
                let outer = (at - read as usize).next_multiple_of(period);
                if is_row && periods.len() < MAX_OUTER_PERIODS && !periods.contains(&outer) {
                    periods.push(outer);
                }
            }
        }
        periods.sort_unstable();
        let longest = periods.iter().map(|&outer| self.longest(start, end, outer));
        let is_whole = |range: &LoopRange| 2 * (range.end() - start) >= end - start;
        longest.filter(|range| self.threshold.is_reached(range)).find(is_whole)
    }

    /// The longest loop that begins with event `start`, where the events to `end` repeat but for
    /// their operands. It is rotated to begin later, and end at `end`, if it carries fewer values
    /// then.
    fn longest(&self, start: usize, end: usize, period: usize) -> LoopRange {
        let most = ((end - start) / period).min(MAX_ITERATIONS);
        let induction_from =
            |start| infer_induction(self.events, self.is_ignored, start, period, most);
        let mut later = start + (end - start - period * most);
        // A loop does not begin with a mark.
        while self.is_mark(later) {
            later += 1;
        }
        let induction = induction_from(start);
        // The first iterations tell how many values all of them carry.
        let is_less = |first: InductionPattern| first.carried().is_smaller_rotated(later - start);
        let times = |induction: Option<Induction<'_>>| {
            induction
                .and_then(|induction| induction.pattern(most))
                .map_or(0, |pattern| pattern.times)
        };
        if later > start && induction.as_ref().and_then(Induction::first).is_some_and(is_less) {
            // With marks between iterations there may be none behind the last one.
            let times = times(induction_from(later));
            if times + 1 >= most {
                return LoopRange { start: later, period, times };
            }
        }
        LoopRange { start, period, times: times(induction) }
    }

    /// Adds a loop and shortens or removes earlier ones that it overlaps.
    fn push(&mut self, range: LoopRange) {
        while let Some(latest) = self.found.last_mut()
            && latest.end() > range.start
        {
            latest.times = range.start.saturating_sub(latest.start) / latest.period;
            let latest = *latest;
            if self.threshold.is_reached(&latest) {
                break;
            }
            self.found.pop();
        }
        self.found.push(range);
    }
}

#[cfg(test)]
mod tests {
    use core::panic::Location;

    use super::*;
    use crate::trace::{Inputs, Tracer, Var};

    const THRESHOLD: LoopThreshold = LoopThreshold { iterations: 8, events: 8 };

    /// The loops of `f` with three inputs: the number of events before each, its period and its
    /// number of iterations.
    fn found(f: impl Fn(&[Var]) -> Var) -> Vec<(usize, usize, usize)> {
        let mut tracer = Tracer::default();
        let inputs = Inputs { active: &[0.3, 0.7, 0.9], inactive: &[] };
        let trace = tracer.run(|x, _| f(x), inputs, 1 << 20, Location::caller()).unwrap();
        let all = find_loops(trace.events, &|_| false, THRESHOLD);
        all.iter().map(|range| (range.start - 3, range.period, range.times)).collect()
    }

    #[test]
    fn loops_are_found_with_their_periods() {
        let sum =
            |x: &[Var], times: usize| (0..times).fold(x[0], |sum, i| (sum * x[1] + i as f64).sin());
        assert_eq!(found(|x| sum(x, 7)), []);
        assert_eq!(found(|x| sum(x, 100)), [(0, 3, 100)]);
        assert_eq!(found(|x| sum(x, 20) + sum(x, 30)), [(0, 3, 20), (60, 3, 30)]);
        // Events before a loop are no part of it.
        assert_eq!(found(|x| (sum(x, 10) + x[2]).sin() * 2.0), [(0, 3, 10)]);
    }

    #[test]
    fn of_nested_loops_the_outer_one_is_found_if_it_follows_rules() {
        let nested = |x: &[Var], outer: usize, inner: usize, by: f64| {
            let mut state = x[0];
            for i in 0..outer {
                for j in 0..inner {
                    state = state * x[1] + j as f64;
                }
                state = state.sin() + x[(i as f64 * by) as usize % 3];
            }
            state
        };
        assert_eq!(found(|x| nested(x, 9, 3, 0.0)), [(0, 8, 9)]);
        assert_eq!(found(|x| nested(x, 9, 30, 0.0)), [(0, 62, 9)]);
        // Too few iterations of the outer loop.
        let inner: Vec<_> = (0..3).map(|i| (62 * i, 2, 30)).collect();
        assert_eq!(found(|x| nested(x, 3, 30, 0.0)), inner);
        // The operands of the outer loop follow no rule.
        let inner: Vec<_> = (0..12).map(|i| (62 * i, 2, 30)).collect();
        assert_eq!(found(|x| nested(x, 12, 30, 1.7)), inner);
    }

    #[test]
    fn operands_decide_where_a_loop_ends() {
        // Another input from the tenth iteration on.
        let switched =
            |x: &[Var]| (0..30).fold(x[0], |sum, i| (sum * x[if i < 10 { 1 } else { 2 }]).sin());
        assert_eq!(found(switched), [(0, 2, 10), (20, 2, 20)]);
        // A value of four iterations before; of five, which is three pairs of iterations before; of
        // more.
        let back = |distance: usize| {
            move |x: &[Var]| {
                let mut all = vec![x[0]; distance];
                for i in 0..20 {
                    all.push((all[i] * 1.5).cos());
                }
                all[all.len() - 1]
            }
        };
        assert_eq!(found(back(4)), [(0, 2, 20)]);
        assert_eq!(found(back(5)), [(0, 4, 10)]);
        assert_eq!(found(back(17)), [(0, 2, 17)]);
    }

    #[test]
    fn a_loop_begins_where_it_carries_the_fewest_numbers() {
        // 0.9·m is no step of the first iteration; at the head of the second one w and m are
        // carried, and before its step x₂·slope the slope as well.
        let momentum = |x: &[Var]| {
            (0..20).fold((x[0], Var::from(0.0)), |(w, m), _| {
                let slope = (w - x[1]) * w;
                let m = 0.9 * m - x[2] * slope;
                (w + m, m)
            })
        };
        assert_eq!(found(|x| momentum(x).0), [(5, 6, 19)]);
    }

    #[test]
    fn guards_repeat_if_their_outcomes_are_equal() {
        let guarded = |bound: f64| {
            move |x: &[Var]| {
                (0..20).fold(x[0], |sum, i| {
                    let next = sum + x[1] * i as f64;
                    if next > bound { next * 0.5 } else { next * 0.25 }
                })
            }
        };
        assert_eq!(found(guarded(-1.0)), [(0, 4, 20)]);
        assert_ne!(found(guarded(5.0)), [(0, 4, 20)]);
    }
}
