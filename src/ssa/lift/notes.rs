//! What a walk notes down about the trace that it goes along.

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::tree::{Meeting, Stretch, Value};
use crate::trace::{Role, Site, Trace};

/// What an event of the trace stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) value: Value,
    /// The entry into a region, by number, in which it was computed.
    pub(super) entry: usize,
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
    pub(super) known: Vec<Option<Known>>,
    pub(super) entries: Vec<Entry>,
    pub(super) open: Vec<Open>,
    /// The meetings that grew.
    pub(super) grew: Vec<Meeting>,
    /// The events with which regions and iterations begin that have one way.
    pub(super) one_way: HashSet<usize>,
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
pub(super) fn find_one_way(trace: &Trace<'_>, one_way: &mut HashSet<usize>) {
    one_way.clear();
    // By region, where it and its latest iteration began.
    let mut begun: HashMap<u64, (usize, Option<usize>)> = HashMap::new();
    for (index, event) in trace.events.iter().enumerate() {
        let id = event.payload();
        match event.role() {
            Role::Enter => {
                begun.insert(id, (index, None));
            }
            Role::Iterate => {
                let Some((_, iteration)) = begun.get_mut(&id) else { continue };
                one_way.extend(iteration.replace(index).filter(|_| event.has_one_way()));
            }
            Role::Join => {
                let Some((region, iteration)) = begun.remove(&id) else { continue };
                if event.has_one_way() {
                    one_way.insert(region);
                    one_way.extend(iteration);
                }
            }
            _ => {}
        }
    }
}
