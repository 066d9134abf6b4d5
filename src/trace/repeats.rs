//! Where a run repeats itself: the loops of the user's code, long ones inside others
//! only where those are not found as a whole.

use super::event::Step;
use super::pattern::{Opening, Pattern, opening};
use super::{Events, Role};

/// A part of a run that is the same events again and again, with operands that follow
/// a rule; see [`Pattern`](super::Pattern).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    /// The first event.
    pub(crate) start: usize,
    /// How many events an iteration has.
    pub(crate) period: usize,
    /// How many iterations there are.
    pub(crate) times: usize,
}

/// What repetition is worth to be treated as such.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worth {
    /// The least number of iterations.
    pub(crate) iterations: usize,
    /// The least number of events.
    pub(crate) events: usize,
}

impl Worth {
    /// What the runtime makes a loop at any rate.
    pub(crate) const DEFAULT: Worth = Worth { iterations: 32, events: 512 };

    /// Whether `repeat` is worth it.
    pub(crate) fn is_reached(&self, repeat: &Repeat) -> bool {
        repeat.times >= self.iterations && repeat.end() - repeat.start >= self.events
    }
}

/// The largest number of iterations; more become several loops.
const MOST: usize = 1 << 24;
/// How often a part that repeats itself, but for its operands, is tried again from a later
/// iteration on.
const TRIES: usize = 4;
/// How deep parts without a rule are searched for shorter repetition.
const DEPTH: usize = 4;
/// How many of the latest events that are alike are tried: the body of a loop may have as
/// many.
const OCCURRENCES: usize = 8;
/// How many iterations may be one, if operands then follow rules.
const TOGETHER: usize = 4;
/// For how many periods it is known how far they go.
const COMPARED: usize = 64;
/// The size of a table of events, as a power of two.
const TABLE: u32 = 12;
/// The kind of a constant.
const CONSTANT: u32 = 3;
/// An event that never repeats another.
const NEVER: u32 = u32::MAX;

impl Repeat {
    /// The event behind the last one.
    pub(crate) fn end(&self) -> usize {
        self.start + self.period * self.times
    }
}

/// The parts of `events` that repeat themselves, in their order. Marks that mean nothing
/// are those for which `passes` holds.
pub(crate) fn repeats(
    events: &Events,
    passes: &dyn Fn(usize) -> bool,
    worth: Worth,
) -> Vec<Repeat> {
    if events.len() < worth.events {
        return Vec::new();
    }
    let mut keys = events.places();
    for (index, key) in keys.iter_mut().enumerate() {
        *key = match kind(&events.steps[index], events.values[index], || passes(index)) {
            // Places that are too many to be told apart are no loop.
            Some(kind) if *key < NEVER >> 10 => *key << 10 | kind,
            _ => NEVER,
        };
    }
    let (latest, earlier) = (vec![(NEVER, 0); 1 << TABLE], vec![NEVER; events.len()]);
    let (compared, found) = ([(0, 0); COMPARED], Vec::new());
    let mut search = Search { events, passes, worth, keys, latest, earlier, compared, found };
    search.search(0, events.len(), usize::MAX, DEPTH);
    search.found
}

/// A number below 1024 for what an event does, if it may be part of a loop.
fn kind(step: &Step, value: f64, passes: impl Fn() -> bool) -> Option<u32> {
    let op = step.kind.op as u32;
    match step.kind.role {
        Role::Apply => Some(op << 2),
        Role::Guard => Some(op << 2 | if value != 0.0 { 2 } else { 1 }),
        Role::Constant => Some(CONSTANT),
        Role::Enter | Role::Iterate | Role::Join => {
            passes().then_some((step.kind.role as u32) << 2 | 3)
        }
        _ => None,
    }
}

/// Whether the event with this key is a mark that means nothing.
fn is_mark(key: u32) -> bool {
    key != NEVER && key & 3 == 3 && key & 1023 != CONSTANT
}

struct Search<'a> {
    events: &'a Events,
    passes: &'a dyn Fn(usize) -> bool,
    worth: Worth,
    /// What each event is, but for its operands.
    keys: Vec<u32>,
    /// By a hash of what they are the latest events.
    latest: Vec<(u32, u32)>,
    /// For each event that was looked at the latest one before that was alike.
    earlier: Vec<u32>,
    /// For some periods up to where it was compared last whether events repeat
    /// themselves.
    compared: [(usize, usize); COMPARED],
    /// In order.
    found: Vec<Repeat>,
}

impl Search<'_> {
    /// Searches from `at` on, as far as `until`, for repetition with periods less than
    /// `below`. Returns where it came to.
    ///
    /// As long as the events are those one period before, that is the period; where they
    /// are not, it is the distance to one of the latest events that were alike. So at the
    /// end of an inner loop the period of the outer one is found, at the second
    /// event that is not in the inner one, and it stays to the end.
    fn search(&mut self, mut at: usize, until: usize, below: usize, depth: usize) -> usize {
        while at < until {
            let Some((period, length)) = self.period(at, below) else {
                at += 1;
                continue;
            };
            let (mut start, mut end) = (at - period, at + length);
            let mut is_rolled = false;
            if end - start >= period * self.worth.iterations {
                while start > 0 && self.keys[start - 1] == self.keys[start - 1 + period] {
                    start -= 1;
                }
                is_rolled = self.roll(start, end, period);
            }
            if !is_rolled && period > 1 && depth > 0 {
                end = end.max(self.search(at, end, period, depth - 1));
            }
            // In a loop the last iteration tells of the others.
            for index in (at + 1).max(end - period)..end {
                self.note(index);
            }
            at = end;
        }
        at
    }

    /// A period less than `below` with which events repeat themselves from `at` on, for one
    /// period at least, and for how many events they do.
    fn period(&mut self, at: usize, below: usize) -> Option<(usize, usize)> {
        let mut earlier = self.note(at);
        for _ in 0..OCCURRENCES {
            // What comes later is known from a search for longer periods.
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

    /// For how many events from `at` on each is that one period before.
    fn length(&mut self, at: usize, period: usize) -> usize {
        let (known, end) = self.compared[period % COMPARED];
        if known == period && end > at {
            return end - at;
        }
        let (before, now) = (&self.keys[at - period..], &self.keys[at..]);
        let is_other = |(&before, &now): (&u32, &u32)| before != now || now == NEVER;
        let length = before.iter().zip(now).position(is_other).unwrap_or(now.len());
        self.compared[period % COMPARED] = (period, at + length);
        length
    }

    /// Notes that the event with this index was looked at; returns the latest one before
    /// it that is alike, if it is known.
    fn note(&mut self, at: usize) -> Option<usize> {
        let key = self.keys[at];
        if key == NEVER {
            return None;
        }
        let cell = (key.wrapping_mul(0x9e37_79b1) >> (32 - TABLE)) as usize;
        let (known, before) = self.latest[cell];
        if known != key || (before as usize) < at {
            self.latest[cell] = (key, at as u32);
            self.earlier[at] = if known == key { before } else { NEVER };
        }
        self.earlier(at)
    }

    /// The latest event before this one that is alike, if it is known.
    fn earlier(&self, at: usize) -> Option<usize> {
        Some(self.earlier[at]).filter(|&before| before != NEVER).map(|before| before as usize)
    }

    /// Looks for loops where the events from `start` to `end` repeat themselves but
    /// perhaps for their operands. Says whether most is in loops.
    fn roll(&mut self, start: usize, end: usize, period: usize) -> bool {
        (1..=TOGETHER).any(|together| self.roll_by(start, end, period * together))
    }

    fn roll_by(&mut self, mut start: usize, mut end: usize, period: usize) -> bool {
        let (mut tries, mut rolled, whole) = (0, 0, end - start);
        // What means nothing may come before a loop, too; it makes an iteration whole as
        // well behind it.
        while start < end && is_mark(self.keys[start]) {
            start += 1;
            if self.keys.get(end).is_some_and(|&key| is_mark(key)) {
                end += 1;
            }
        }
        while end.saturating_sub(start) >= period * self.worth.iterations && tries < TRIES {
            let repeat = self.longest(start, end, period);
            start = repeat.start;
            if self.worth.is_reached(&repeat) {
                self.push(repeat);
                rolled += period * repeat.times;
                start = repeat.end();
            } else {
                start += period * repeat.times.max(1);
                tries += 1;
            }
        }
        rolled * 2 >= whole
    }

    /// The loop of the events from `start` on, of which those to `end` repeat themselves but perhaps
    /// for their operands. It ends there, and begins later, if it carries fewer numbers then.
    fn longest(&self, start: usize, end: usize, period: usize) -> Repeat {
        let most = ((end - start) / period).min(MOST);
        let opening = |start| opening(self.events, self.passes, start, period, most);
        let mut later = start + (end - start - period * most);
        // A mark before a step is none that a loop begins with.
        later += self.keys[later..].iter().take_while(|&&key| is_mark(key)).count();
        let opened = opening(start);
        // The first iterations tell what all of them carry.
        let is_less = |first: Pattern| first.carried().is_less_from(later - start);
        let times = |opened: Option<Opening<'_>>| {
            opened.and_then(|opened| opened.pattern(most)).map_or(0, |pattern| pattern.times)
        };
        if later > start && opened.as_ref().and_then(Opening::first).is_some_and(is_less) {
            // If there are marks between iterations, there may be none behind the last one.
            let times = times(opening(later));
            if times + 1 >= most {
                return Repeat { start: later, period, times };
            }
        }
        Repeat { start, period, times: times(opened) }
    }

    /// Adds what was found, in place of what it overlaps.
    fn push(&mut self, repeat: Repeat) {
        while let Some(latest) = self.found.last_mut()
            && latest.end() > repeat.start
        {
            latest.times = repeat.start.saturating_sub(latest.start) / latest.period;
            let latest = *latest;
            if self.worth.is_reached(&latest) {
                break;
            }
            self.found.pop();
        }
        self.found.push(repeat);
    }
}

#[cfg(test)]
mod tests {
    use core::panic::Location;

    use super::*;
    use crate::trace::{Inputs, Tracer, Var};

    const WORTH: Worth = Worth { iterations: 8, events: 8 };

    /// The repeats of what `f` does with three inputs: after how many events they begin,
    /// their periods and their numbers of iterations.
    fn found(f: impl Fn(&[Var]) -> Var) -> Vec<(usize, usize, usize)> {
        let mut tracer = Tracer::default();
        let inputs = Inputs { active: &[0.3, 0.7, 0.9], inactive: &[] };
        let trace = tracer.run(|x, _| f(x), inputs, 1 << 20, Location::caller()).unwrap();
        let all = repeats(trace.events, &|_| false, WORTH);
        all.iter().map(|repeat| (repeat.start - 3, repeat.period, repeat.times)).collect()
    }

    #[test]
    fn loops_are_found_with_their_periods() {
        let sum =
            |x: &[Var], times: usize| (0..times).fold(x[0], |sum, i| (sum * x[1] + i as f64).sin());
        assert_eq!(found(|x| sum(x, 7)), []);
        assert_eq!(found(|x| sum(x, 100)), [(0, 3, 100)]);
        assert_eq!(found(|x| sum(x, 20) + sum(x, 30)), [(0, 3, 20), (60, 3, 30)]);
        // What comes before is no part of it.
        assert_eq!(found(|x| (sum(x, 10) + x[2]).sin() * 2.0), [(0, 3, 10)]);
    }

    #[test]
    fn of_loops_in_loops_the_outer_one_is_found_if_it_follows_rules() {
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
        // Here it has too few iterations.
        let inner: Vec<_> = (0..3).map(|i| (62 * i, 2, 30)).collect();
        assert_eq!(found(|x| nested(x, 3, 30, 0.0)), inner);
        // And here the operands of the outer one are in no order.
        let inner: Vec<_> = (0..12).map(|i| (62 * i, 2, 30)).collect();
        assert_eq!(found(|x| nested(x, 12, 30, 1.7)), inner);
    }

    #[test]
    fn operands_decide_where_a_loop_ends() {
        // From the tenth iteration on another input.
        let switched =
            |x: &[Var]| (0..30).fold(x[0], |sum, i| (sum * x[if i < 10 { 1 } else { 2 }]).sin());
        assert_eq!(found(switched), [(0, 2, 10), (20, 2, 20)]);
        // A value of four iterations before; of five, which is in the third pair of
        // iterations before; of more.
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
        // 0.9·m is no step of the first iteration; where the second one begins, w and m are
        // carried, and before that of x₂·slope these and the slope.
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
    fn guards_repeat_if_they_come_out_alike() {
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
