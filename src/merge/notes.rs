//! What a walk notes down about the trace that it goes along.

use core::ops::Range;

use hashbrown::HashMap;

use super::tree::{BasicBlock, Instance, Value};
use crate::entity::Entity;
use crate::trace::{Role, Site, Trace};

/// What an event of the trace stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) value: Value,
    /// The entry into a region, by number, in which it was computed.
    pub(super) entry: usize,
}

/// What the events so far stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownEvents {
    /// Those that were looked at one by one.
    single: Vec<Option<Known>>,
    /// In order.
    repeats: Vec<KnownRepeat>,
    len: usize,
}

/// Events that stand for the values of a repeat.
#[derive(Clone, Copy, Debug)]
struct KnownRepeat {
    start: usize,
    end: usize,
    /// The value of the first event; others follow.
    first: Known,
    /// How many events before it were looked at one by one.
    single: usize,
}

impl KnownEvents {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn clear(&mut self) {
        self.single.clear();
        self.repeats.clear();
        self.len = 0;
    }

    /// The next event stands for this, or for nothing.
    pub(super) fn push(&mut self, known: Option<Known>) {
        self.single.push(known);
        self.len += 1;
    }

    /// The next `count` events stand for values, this one and those that follow it.
    pub(super) fn push_repeat(&mut self, first: Known, count: usize) {
        let (start, end) = (self.len, self.len + count);
        self.repeats.push(KnownRepeat { start, end, first, single: self.single.len() });
        self.len = end;
    }

    /// What this event stands for.
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

    /// Up to where the events around this one stand for values that follow one another,
    /// and from where on; none if it was looked at by itself.
    pub(super) fn repeat_around(&self, event: usize) -> Option<Range<usize>> {
        let repeat = self.before(event).filter(|repeat| event < repeat.end)?;
        Some(repeat.start..repeat.end)
    }

    /// The last repeat that begins with this event or before.
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

/// A region that has been entered and not left.
#[derive(Clone, Debug)]
pub(super) struct Open {
    /// The number of the region in this run; the body of a loop has that of the loop.
    pub(super) id: u64,
    pub(super) is_body: bool,
    pub(super) instance: Instance,
    /// The basic block whose end it is.
    pub(super) home: BasicBlock,
    pub(super) entry: usize,
    /// Whether the trace has added something to it.
    pub(super) grew: bool,
}

/// What is carried to a point, as recorded there.
#[derive(Clone, Debug, Default)]
pub(super) struct Carried {
    /// The event after it.
    pub(super) end: usize,
    pub(super) state: Vec<u64>,
    /// The events of the values.
    pub(super) phis: Vec<usize>,
    pub(super) opaque: Option<usize>,
}

/// What a walk notes down, kept from walk to walk for its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    /// What the events so far stand for; guards and marks for nothing.
    pub(super) known: KnownEvents,
    pub(super) entries: Vec<Entry>,
    pub(super) open: Vec<Open>,
    /// The instances that grew.
    pub(super) grew: Vec<Instance>,
    /// The events with which regions and iterations begin that have one way.
    pub(super) one_way: OneWay,
    /// What is carried where the walk is, what the tree calls it, and what a region is
    /// given; for their memory.
    pub(super) carried: Carried,
    pub(super) values: Vec<Value>,
    pub(super) captured: Vec<Value>,
}

/// The events with which regions and iterations begin that have only one way.
#[derive(Clone, Debug, Default)]
pub(super) struct OneWay {
    events: Events,
    /// By region where it and its latest iteration began; empty between walks.
    begun: HashMap<u64, (usize, Option<usize>)>,
}

/// A set of events.
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
    /// Notes what the events behind number `index` say is carried there.
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
    /// Whether this event is one of them.
    pub(super) fn contains(&self, event: usize) -> bool {
        self.events.contains(event)
    }

    /// Finds those of `trace`; the marks with which they end tell.
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
