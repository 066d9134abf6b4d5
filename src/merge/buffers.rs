//! The buffers of a walk: what it knows about the events of its trace.

use core::ops::Range;

use super::state_splits::StateSplits;
use super::tree::{BasicBlock, Instance, Value};
use crate::entity::Entity;
use crate::trace::{Role, Site, StateWord, Trace};

/// The tree's value for an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventValue {
    pub(super) value: Value,
    entry: u32,
}

impl EventValue {
    /// A value computed in this region entry.
    pub(super) fn new(value: Value, entry: usize) -> Self {
        EventValue { value, entry: entry as u32 }
    }

    /// The number of the region entry in which it was computed.
    pub(super) fn entry(self) -> usize {
        self.entry as usize
    }
}

/// The tree's values for the events so far.
#[derive(Clone, Debug, Default)]
pub(super) struct EventValues {
    /// Those of events that were walked one by one.
    single: Vec<Option<EventValue>>,
    /// Those of events that were walked as loops, in order.
    loops: Vec<KnownLoop>,
    len: usize,
}

/// The events of a loop that was walked as a whole.
#[derive(Clone, Copy, Debug)]
struct KnownLoop {
    start: usize,
    end: usize,
    /// The value of the first event; those of the others follow.
    first: EventValue,
    /// The number of events before it that were walked one by one.
    single: usize,
}

impl EventValues {
    /// The number of events.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn clear(&mut self) {
        self.single.clear();
        self.loops.clear();
        self.len = 0;
    }

    /// Adds the next event, with its value if it has one.
    pub(super) fn push(&mut self, known: Option<EventValue>) {
        self.single.push(known);
        self.len += 1;
    }

    /// Adds the next `count` events, whose values are `first` and those that follow it.
    pub(super) fn push_loop(&mut self, first: EventValue, count: usize) {
        let (start, end) = (self.len, self.len + count);
        self.loops.push(KnownLoop { start, end, first, single: self.single.len() });
        self.len = end;
    }

    /// The value of this event.
    #[inline]
    pub(super) fn get(&self, event: usize) -> Option<EventValue> {
        if self.loops.is_empty() {
            return self.single.get(event).copied()?;
        }
        let Some(trace_loop) = self.before(event) else { return self.single.get(event).copied()? };
        match event.checked_sub(trace_loop.end) {
            Some(behind) => self.single.get(trace_loop.single + behind).copied()?,
            None => {
                let value = trace_loop.first.value.index() + (event - trace_loop.start);
                Some(EventValue { value: Value::from_index(value), ..trace_loop.first })
            }
        }
    }

    /// The events around this one whose values follow one another; `None` if it was walked by
    /// itself.
    pub(super) fn loop_around(&self, event: usize) -> Option<Range<usize>> {
        let trace_loop = self.before(event).filter(|trace_loop| event < trace_loop.end)?;
        Some(trace_loop.start..trace_loop.end)
    }

    /// The last loop that begins with this event or before.
    fn before(&self, event: usize) -> Option<&KnownLoop> {
        let next = self.loops.partition_point(|trace_loop| trace_loop.start <= event);
        self.loops.get(next.checked_sub(1)?)
    }
}

/// An entry into a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) open: bool,
    pub(super) site: Site,
}

/// A region that has been entered and not exited.
#[derive(Clone, Debug)]
pub(super) struct OpenRegion {
    /// The id of the region in this run; the body of a loop has that of the loop.
    pub(super) id: u64,
    pub(super) is_body: bool,
    pub(super) instance: Instance,
    /// The basic block that ends with it.
    pub(super) block: BasicBlock,
    pub(super) entry: usize,
    /// True if the trace has extended it.
    pub(super) is_extended: bool,
}

/// The values and state carried to a point, as recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct Carried {
    /// The index of the event after them.
    pub(super) end: usize,
    pub(super) state: Vec<StateWord>,
    /// The φ events.
    pub(super) phis: Vec<usize>,
    pub(super) opaque: Option<usize>,
}

/// The buffers of a walk, kept for their memory.
#[derive(Clone, Debug, Default)]
pub(super) struct WalkBuffers {
    /// The value of each event so far; guards and marks have none.
    pub(super) known: EventValues,
    pub(super) entries: Vec<Entry>,
    pub(super) open: Vec<OpenRegion>,
    /// The instances that were extended.
    pub(super) extended: Vec<Instance>,
    /// The events that begin regions and iterations with a single path.
    pub(super) single_path: SinglePaths,
    /// The values carried to the current point, the tree's values for them, and live-in values.
    pub(super) carried: Carried,
    pub(super) values: Vec<Value>,
    pub(super) captured: Vec<Value>,
    /// The exits that differ by static state alone, of all walks.
    pub(super) splits: StateSplits,
}

/// The events that begin regions and iterations with a single path.
#[derive(Clone, Debug, Default)]
pub(super) struct SinglePaths {
    events: Events,
    /// For each region, by its id, the events that began it and its latest iteration, while it is
    /// open.
    begun: Vec<Option<(usize, Option<usize>)>>,
}

/// A bit set of events.
#[derive(Clone, Debug, Default)]
struct Events {
    words: Vec<u64>,
}

impl Events {
    fn contains(&self, event: usize) -> bool {
        self.words.get(event / 64).is_some_and(|word| word >> (event % 64) & 1 != 0)
    }

    fn insert(&mut self, event: usize) {
        if self.words.len() <= event / 64 {
            self.words.resize(event / 64 + 1, 0);
        }
        self.words[event / 64] |= 1 << (event % 64);
    }
}

impl Carried {
    /// Reads the values and state carried to the event `index`.
    pub(super) fn read(&mut self, trace: &Trace<'_>, index: usize) {
        self.state.clear();
        self.phis.clear();
        self.opaque = None;
        self.end = index + 1;
        while let Some(role) = trace.events.role(self.end) {
            match role {
                Role::Phi => self.phis.push(self.end),
                Role::Opaque => self.opaque = Some(self.end),
                _ if !role.is_carried() => break,
                _ => self.state.extend(trace.events.at(self.end).state_word()),
            }
            self.end += 1;
        }
    }
}

impl SinglePaths {
    /// Tests whether this event begins a region or iteration with a single path.
    pub(super) fn contains(&self, event: usize) -> bool {
        self.events.contains(event)
    }

    /// Finds these events in `trace`, by the marks at which the regions and iterations end.
    pub(super) fn find(&mut self, trace: &Trace<'_>) {
        let SinglePaths { events, begun } = self;
        events.words.clear();
        begun.clear();
        for event in trace.events.marks() {
            let index = event.index();
            // Regions are counted.
            let id = event.payload() as usize;
            match event.role() {
                Role::Enter => {
                    begun.resize(begun.len().max(id + 1), None);
                    begun[id] = Some((index, None));
                }
                Role::Iterate => {
                    let Some(Some((_, iteration))) = begun.get_mut(id) else { continue };
                    let begun = iteration.replace(index).filter(|_| event.has_single_path());
                    begun.into_iter().for_each(|index| events.insert(index));
                }
                Role::Join => {
                    let begun = begun.get_mut(id).and_then(Option::take);
                    let Some((region, iteration)) = begun else { continue };
                    if event.has_single_path() {
                        events.insert(region);
                        iteration.into_iter().for_each(|index| events.insert(index));
                    }
                }
                _ => {}
            }
        }
    }
}
