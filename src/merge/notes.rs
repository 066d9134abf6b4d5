//! The buffers of a walk: what it knows about the events of its trace.

use core::ops::Range;

use hashbrown::HashMap;

use super::tree::{BasicBlock, Instance, Value};
use crate::entity::Entity;
use crate::trace::{Role, Site, Trace};

/// The tree's value for an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) value: Value,
    /// The number of the region entry in which it was computed.
    pub(super) entry: usize,
}

/// The tree's values for the events so far.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownEvents {
    /// Those of events that were walked one by one.
    single: Vec<Option<Known>>,
    /// Those of events that were walked as loops, in order.
    repeats: Vec<KnownRepeat>,
    len: usize,
}

/// The events of a loop that was walked as a whole.
#[derive(Clone, Copy, Debug)]
struct KnownRepeat {
    start: usize,
    end: usize,
    /// The value of the first event; those of the others follow.
    first: Known,
    /// The number of events before it that were walked one by one.
    single: usize,
}

impl KnownEvents {
    /// The number of events.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn clear(&mut self) {
        self.single.clear();
        self.repeats.clear();
        self.len = 0;
    }

    /// Adds the next event, with its value if it has one.
    pub(super) fn push(&mut self, known: Option<Known>) {
        self.single.push(known);
        self.len += 1;
    }

    /// Adds the next `count` events, whose values are `first` and those that follow it.
    pub(super) fn push_repeat(&mut self, first: Known, count: usize) {
        let (start, end) = (self.len, self.len + count);
        self.repeats.push(KnownRepeat { start, end, first, single: self.single.len() });
        self.len = end;
    }

    /// The value of this event.
    pub(super) fn get(&self, event: usize) -> Option<Known> {
        let Some(repeat) = self.before(event) else { return self.single.get(event).copied()? };
        match event.checked_sub(repeat.end) {
            Some(behind) => self.single.get(repeat.single + behind).copied()?,
            None => {
                let value = repeat.first.value.index() + (event - repeat.start);
                Some(Known { value: Value::from_index(value), ..repeat.first })
            }
        }
    }

    /// The events around this one whose values follow one another; `None` if it was walked by
    /// itself.
    pub(super) fn repeat_around(&self, event: usize) -> Option<Range<usize>> {
        let repeat = self.before(event).filter(|repeat| event < repeat.end)?;
        Some(repeat.start..repeat.end)
    }

    /// The last loop that begins with this event or before.
    fn before(&self, event: usize) -> Option<&KnownRepeat> {
        let next = self.repeats.partition_point(|repeat| repeat.start <= event);
        self.repeats.get(next.checked_sub(1)?)
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
pub(super) struct Open {
    /// The id of the region in this run; the body of a loop has that of the loop.
    pub(super) id: u64,
    pub(super) is_body: bool,
    pub(super) instance: Instance,
    /// The basic block that ends with it.
    pub(super) home: BasicBlock,
    pub(super) entry: usize,
    /// True if the trace has extended it.
    pub(super) grew: bool,
}

/// The values and state carried to a point, as recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct Carried {
    /// The index of the event after them.
    pub(super) end: usize,
    pub(super) state: Vec<u64>,
    /// The φ events.
    pub(super) phis: Vec<usize>,
    pub(super) opaque: Option<usize>,
}

/// The buffers of a walk, kept for their memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    /// The value of each event so far; guards and marks have none.
    pub(super) known: KnownEvents,
    pub(super) entries: Vec<Entry>,
    pub(super) open: Vec<Open>,
    /// The instances that were extended.
    pub(super) grew: Vec<Instance>,
    /// The events that begin regions and iterations with a single path.
    pub(super) one_way: OneWay,
    /// The values carried to the current point, the tree's values for them, and live-in values.
    pub(super) carried: Carried,
    pub(super) values: Vec<Value>,
    pub(super) captured: Vec<Value>,
}

/// The events that begin regions and iterations with a single path.
#[derive(Clone, Debug, Default)]
pub(super) struct OneWay {
    events: Events,
    /// For each open region the events that began it and its latest iteration; empty between walks.
    begun: HashMap<u64, (usize, Option<usize>)>,
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
        while let Some(event) = trace.events.get(self.end) {
            match event.role() {
                Role::Phi => self.phis.push(self.end),
                Role::State => self.state.push(event.payload()),
                Role::Opaque => self.opaque = Some(self.end),
                _ => break,
            }
            self.end += 1;
        }
    }
}

impl OneWay {
    /// Tests whether this event begins a region or iteration with a single path.
    pub(super) fn contains(&self, event: usize) -> bool {
        self.events.contains(event)
    }

    /// Finds these events in `trace`, by the marks at which the regions and iterations end.
    pub(super) fn find(&mut self, trace: &Trace<'_>) {
        let OneWay { events, begun } = self;
        events.words.clear();
        begun.clear();
        for event in trace.events.marks() {
            let index = event.index();
            let id = event.payload();
            match event.role() {
                Role::Enter => {
                    begun.insert(id, (index, None));
                }
                Role::Iterate => {
                    let Some((_, iteration)) = begun.get_mut(&id) else { continue };
                    let begun = iteration.replace(index).filter(|_| event.has_one_way());
                    begun.into_iter().for_each(|index| events.insert(index));
                }
                Role::Join => {
                    let Some((region, iteration)) = begun.remove(&id) else { continue };
                    if event.has_one_way() {
                        events.insert(region);
                        iteration.into_iter().for_each(|index| events.insert(index));
                    }
                }
                _ => {}
            }
        }
    }
}
