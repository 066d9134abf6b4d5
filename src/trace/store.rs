//! The store of a recording: decides which parts of the events that leave the ring are kept.
//!
//! A run is kept whole up to [`RunLimits::whole`]. Beyond that the values of all events are kept,
//! and the steps of the latest ones; a repeated run keeps the steps of one window.

use core::cell::Cell;
use core::ops::Range;

use super::event::Step;
use super::{Events, Site, TraceError};

/// Fewer than there are ids, so that counting events never changes the stamp.
pub(super) const MAX_EVENTS: usize = i32::MAX as usize;

/// The limits of a run, in events without the inputs.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// The largest number of events that are kept whole.
    pub whole: usize,
    /// The largest number of events. A run with more is an error.
    pub call: usize,
    /// True if a long run is swept; otherwise only its value is computed.
    pub has_reverse_sweep: bool,
}

/// The number of events that have left the ring, and the parts of them that are kept.
pub(super) struct Store {
    kept: Kept,
    /// The number of events, the inputs included.
    len: usize,
    /// The number of events up to which `kept` is the same.
    end: usize,
    /// The number of inputs.
    inputs: usize,
    limits: RunLimits,
    /// The first operation beyond [`RunLimits::whole`].
    beyond: Option<Site>,
}

/// The number of events of a run, and of those that are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// The number of events, the inputs included.
    pub(super) len: usize,
    /// The event from which on all steps are kept.
    pub(super) first_step: usize,
    /// The largest number of events that are kept whole.
    pub(super) window: usize,
    /// The first operation beyond it.
    pub(super) beyond: Option<Site>,
}

/// The parts of the events that are kept.
enum Kept {
    /// Everything.
    Whole,
    /// All values, and the steps from this event on.
    Latest(usize),
    /// Only their number.
    Count,
    /// The steps of these events. The values are those of the first run, with which this one is
    /// compared.
    Window(Range<usize>),
}

impl Store {
    pub(super) const fn idle() -> Self {
        let limits = RunLimits { whole: 0, call: 0, has_reverse_sweep: false };
        Store { kept: Kept::Whole, len: 0, end: 0, inputs: 0, limits, beyond: None }
    }

    /// The store of a first run.
    pub(super) fn first(inputs: usize, limits: RunLimits) -> Self {
        let most = MAX_EVENTS - inputs;
        let call = limits.call.min(most);
        let whole = limits.whole.min(call);
        let limits = RunLimits { whole, call, ..limits };
        let (len, end) = (inputs, inputs + whole);
        Store { kept: Kept::Whole, len, end, inputs, limits, beyond: None }
    }

    /// The store of a run that repeats a long one of `len` events and keeps the steps of `window`.
    pub(super) fn repeated(inputs: usize, len: usize, window: Range<usize>) -> Self {
        let limits = RunLimits { whole: 0, call: 0, has_reverse_sweep: true };
        let kept = Kept::Window(window);
        Store { kept, len: inputs, end: len, inputs, limits, beyond: None }
    }

    /// The number of events, the inputs included.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// True if all of each event is kept.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.kept, Kept::Whole)
    }

    /// Tests whether the steps of some of these events are kept: the latest ones, or any in a
    /// repeated run.
    pub(super) fn keeps_steps(&self, events: Range<usize>) -> bool {
        match &self.kept {
            Kept::Whole | Kept::Latest(_) => true,
            Kept::Count => false,
            Kept::Window(window) => events.start < window.end && window.start < events.end,
        }
    }

    /// The number of events, and of those that are kept.
    pub(super) fn extent(&self) -> Extent {
        let first_step = match &self.kept {
            Kept::Whole => 0,
            Kept::Latest(first) => *first,
            Kept::Count => self.len,
            Kept::Window(window) => window.start,
        };
        Extent { len: self.len, first_step, window: self.limits.whole, beyond: self.beyond }
    }

    /// The number of events that may be added before [`Store::keep_less`].
    #[inline]
    pub(super) fn room(&self) -> usize {
        self.end.saturating_sub(self.len)
    }

    /// Begins to keep less, at the limit for a whole run and at the end of each window. The next
    /// event is at `at`.
    ///
    /// # Errors
    ///
    /// If there are as many events as there may be.
    pub(super) fn keep_less(&mut self, events: &mut Events, at: Site) -> Result<(), TraceError> {
        if matches!(self.kept, Kept::Window(_)) {
            return Err(TraceError::NotRepeatable { at });
        }
        let limit = self.limits.call;
        let most = self.inputs + limit;
        if self.len >= most {
            return Err(TraceError::TooLong { limit, name: "call_events", at });
        }
        self.beyond.get_or_insert(at);
        if self.limits.has_reverse_sweep {
            events.keep_values();
            self.kept = Kept::Latest(self.len);
            self.end = most.min(self.len + self.limits.whole.max(1));
        } else {
            events.keep_nothing();
            self.kept = Kept::Count;
            self.end = most;
        }
        Ok(())
    }

    /// Adds to `events`. Returns an error if the run repeats another one and differs.
    #[inline]
    pub(super) fn extend(
        &mut self,
        events: &mut Events,
        values: &[Cell<f64>],
        steps: &[Cell<Step>],
        sites: &[Cell<Site>],
    ) -> Result<(), TraceError> {
        let first = self.len;
        self.len += values.len();
        match &self.kept {
            Kept::Whole => events.extend(values, steps, sites),
            Kept::Latest(_) => events.extend_without_sites(values, steps),
            Kept::Count => {}
            Kept::Window(window) => {
                let start = window.start.clamp(first, self.len) - first;
                let end = window.end.clamp(first, self.len) - first;
                let expected = events.values.get(first + start..first + end);
                let found = &values[start..end];
                if let Some(differs) = first_difference(expected.unwrap_or(&[]), found) {
                    return Err(TraceError::NotRepeatable { at: sites[start + differs].get() });
                }
                events.steps.extend(steps[start..end].iter().map(Cell::get));
            }
        }
        Ok(())
    }
}

/// The index of the first of `found` that is not as expected; all NaN are equal.
fn first_difference(expected: &[f64], found: &[Cell<f64>]) -> Option<usize> {
    let is_same = |(expected, found): (&f64, &Cell<f64>)| {
        let found = found.get();
        expected.to_bits() == found.to_bits() || expected.is_nan() && found.is_nan()
    };
    let same = expected.iter().zip(found).take_while(|&pair| is_same(pair)).count();
    (same < found.len()).then_some(same)
}
