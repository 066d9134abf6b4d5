//! The store of a recording: the events that have left the ring, whole or in part.
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
    pub is_swept: bool,
}

/// The events that have left the ring.
pub(super) struct Store {
    /// Those parts of them that are kept.
    pub(super) events: Events,
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
        let limits = RunLimits { whole: 0, call: 0, is_swept: false };
        Store {
            events: Events::new(),
            kept: Kept::Whole,
            len: 0,
            end: 0,
            inputs: 0,
            limits,
            beyond: None,
        }
    }

    /// The store of a first run; `events` are its inputs.
    pub(super) fn first(events: Events, limits: RunLimits) -> Self {
        let inputs = events.len();
        let most = MAX_EVENTS - inputs;
        let call = limits.call.min(most);
        let whole = limits.whole.min(call);
        let limits = RunLimits { whole, call, ..limits };
        let (len, end) = (inputs, inputs + whole);
        Store { events, kept: Kept::Whole, len, end, inputs, limits, beyond: None }
    }

    /// The store of a run that repeats a long one of `len` events, with these values, and keeps
    /// the steps of `window`.
    pub(super) fn repeated(
        mut events: Events,
        inputs: usize,
        len: usize,
        window: Range<usize>,
    ) -> Self {
        events.steps.clear();
        events.steps.reserve(window.len());
        let limits = RunLimits { whole: 0, call: 0, is_swept: true };
        let kept = Kept::Window(window);
        Store { events, kept, len: inputs, end: len, inputs, limits, beyond: None }
    }

    /// The number of events, the inputs included.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// True if all of each event is kept.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.kept, Kept::Whole)
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

    /// The number of events, at least one, that may be added before the next call; the first of
    /// them is at `at`.
    pub(super) fn room(&mut self, at: Site) -> Result<usize, TraceError> {
        if self.len >= self.end {
            self.keep_less(at)?;
        }
        Ok(self.end - self.len)
    }

    /// Begins to keep less, at the limit for a whole run and at the end of each window.
    fn keep_less(&mut self, at: Site) -> Result<(), TraceError> {
        if matches!(self.kept, Kept::Window(_)) {
            return Err(TraceError::NotRepeatable { at });
        }
        let limit = self.limits.call;
        let most = self.inputs + limit;
        if self.len >= most {
            return Err(TraceError::TooLong { limit, at });
        }
        self.beyond.get_or_insert(at);
        if self.limits.is_swept {
            self.events.keep_values();
            self.kept = Kept::Latest(self.len);
            self.end = most.min(self.len + self.limits.whole.max(1));
        } else {
            self.events.keep_nothing();
            self.kept = Kept::Count;
            self.end = most;
        }
        Ok(())
    }

    /// Adds events. Returns an error if the run repeats another one and differs.
    pub(super) fn extend(
        &mut self,
        values: &[Cell<f64>],
        steps: &[Cell<Step>],
        sites: &[Cell<Site>],
    ) -> Result<(), TraceError> {
        let first = self.len;
        self.len += values.len();
        match &self.kept {
            Kept::Whole => self.events.extend(values, steps, sites),
            Kept::Latest(_) => self.events.extend_without_sites(values, steps),
            Kept::Count => {}
            Kept::Window(window) => {
                let start = window.start.clamp(first, self.len) - first;
                let end = window.end.clamp(first, self.len) - first;
                let expected = self.events.values.get(first + start..first + end);
                let found = &values[start..end];
                if let Some(differs) = first_difference(expected.unwrap_or(&[]), found) {
                    return Err(TraceError::NotRepeatable { at: sites[start + differs].get() });
                }
                self.events.steps.extend(steps[start..end].iter().map(Cell::get));
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
