//! What a walk notes down about the trace that it goes along.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::tree::{Meeting, Stretch, Value};
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

    /// Whether both events are in one repeat.
    pub(super) fn are_in_one_repeat(&self, one: usize, other: usize) -> bool {
        self.before(one)
            .is_some_and(|repeat| one < repeat.end && (repeat.start..repeat.end).contains(&other))
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
    pub(super) meeting: Meeting,
    /// The stretch whose end it is.
    pub(super) home: Stretch,
    pub(super) entry: usize,
    /// Whether the trace has taught something about it.
    pub(super) grew: bool,
}

/// What is carried to a point, as recorded there.
pub(super) struct Carried {
    /// The event after it.
    pub(super) end: usize,
    pub(super) state: SmallVec<[u64; 4]>,
    /// The events of the values.
    pub(super) phis: SmallVec<[usize; 4]>,
    pub(super) opaque: Option<usize>,
}

/// What a walk notes down, kept from walk to walk for its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    /// What the events so far stand for; guards and marks for nothing.
    pub(super) known: KnownEvents,
    pub(super) entries: Vec<Entry>,
    pub(super) open: Vec<Open>,
    /// The meetings that grew.
    pub(super) grew: Vec<Meeting>,
    /// The events with which regions and iterations begin that have one way.
    pub(super) one_way: Events,
}

/// A set of events.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    words: Vec<u64>,
}

impl Events {
    pub(super) fn contains(&self, event: &usize) -> bool {
        self.words.get(event / 64).is_some_and(|word| word >> (event % 64) & 1 != 0)
    }

    fn insert(&mut self, event: usize) {
        if self.words.len() <= event / 64 {
            self.words.resize(event / 64 + 1, 0);
        }
        self.words[event / 64] |= 1 << (event % 64);
    }
}

/// What the events behind number `index` say is carried there.
pub(super) fn carried(trace: &Trace<'_>, index: usize) -> Carried {
    let (mut state, mut phis, mut opaque) = (SmallVec::new(), SmallVec::new(), None);
    let mut end = index + 1;
    while let Some(event) = trace.events.get(end) {
        match event.role() {
            Role::Phi => phis.push(end),
            Role::State => state.push(event.payload()),
            Role::Opaque => opaque = Some(end),
            _ => break,
        }
        end += 1;
    }
    Carried { end, state, phis, opaque }
}

/// Finds the events with which regions and iterations begin that have only one
/// way; the marks with which they end tell.
pub(super) fn find_one_way(trace: &Trace<'_>, one_way: &mut Events) {
    one_way.words.clear();
    // By region, where it and its latest iteration began.
    let mut begun: HashMap<u64, (usize, Option<usize>)> = HashMap::new();
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
                begun.into_iter().for_each(|index| one_way.insert(index));
            }
            Role::Join => {
                let Some((region, iteration)) = begun.remove(&id) else { continue };
                if event.has_one_way() {
                    one_way.insert(region);
                    iteration.into_iter().for_each(|index| one_way.insert(index));
                }
            }
            _ => {}
        }
    }
}
