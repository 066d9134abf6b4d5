//! Regions: the calls that generated code makes at its keywords.

use core::panic::Location;

use super::Carrier;
use crate::trace::mark::Ending;
use crate::trace::{Site, mark};

/// A region that was entered. It may be forgotten: a region that is never
/// joined, because control left it, ends with the one around it.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// The id in this run; 0 if nothing is recorded.
    id: u32,
    site: Site,
    /// Differs from what it is later if there was a guard meanwhile.
    guards: u64,
    /// The number of guards before it whose ways have not met.
    parted: u32,
    /// Whether a jump may leave what is inside.
    jumps: bool,
    /// A bit for each variable that turned out to be a mutable reference that
    /// the code inside may have lent out.
    suspects: u64,
}

/// Enters a region at the caller's place.
#[inline]
#[track_caller]
pub fn enter() -> Region {
    let site = Location::caller();
    let (id, (guards, _)) = (mark::enter(site), mark::progress());
    Region { id, site, guards, parted: mark::parted(), jumps: true, suspects: 0 }
}

/// Ends `region`, and all that are open inside, with `value` as its result and
/// what `carry` hands over.
#[inline]
pub fn join<T>(region: Region, value: T, carry: impl FnOnce(&mut T, &mut Carrier)) -> T {
    let mut value = value;
    region.end(Ending::Region, |carrier| carry(&mut value, carrier));
    value
}

impl Region {
    /// Notes which of the variables that may be lent are mutable references.
    #[inline]
    pub fn suspecting(self, suspects: u64) -> Region {
        Region { suspects, ..self }
    }

    /// Says that no jump leaves what is inside: its regions are all joined.
    #[inline]
    pub fn without_jumps(self) -> Region {
        Region { jumps: false, ..self }
    }

    /// Captures what the region is given, if that is asked for; nothing may have
    /// been recorded since it was entered.
    #[inline]
    pub fn capture(self, note: impl FnOnce(&mut Carrier)) -> Region {
        if self.is_open() && mark::captures() {
            let mut carrier = Carrier::capturing(self.site);
            note(&mut carrier);
            carrier.keep();
        }
        self
    }

    /// Captures what the region is given and what of it is carried to the ends of
    /// these regions, to which jumps lead from inside.
    #[inline]
    pub fn capture_for_jumps<const N: usize>(
        self,
        goals: [Region; N],
        note: impl FnOnce(&mut Carrier),
    ) -> Region {
        if self.is_open() && mark::captures() {
            let mut carrier = Carrier::capturing(self.site);
            note(&mut carrier);
            carrier.keep_for(&goals.map(|goal| goal.id));
        }
        self
    }

    /// Passes the head of a loop through items, with what `carry` hands over.
    #[inline]
    pub fn iterate(self, carry: impl FnOnce(&mut Carrier)) {
        self.end(Ending::Item, carry);
    }

    /// Passes the head of another loop, with what `carry` hands over: all that
    /// decides how the loop goes on.
    #[inline]
    pub fn again(self, carry: impl FnOnce(&mut Carrier)) {
        self.end(Ending::Iteration, carry);
    }

    /// Ends the region or an iteration. Where there is only one way, nothing
    /// needs to be carried: what comes next is told by what came before.
    #[inline]
    fn end(self, ending: Ending, carry: impl FnOnce(&mut Carrier)) {
        let one_way = !self.jumps && mark::parted() == self.parted;
        if mark::end(self.id, ending, one_way, self.site) {
            let mut carrier = Carrier::new(self.site, self.suspects);
            carry(&mut carrier);
            match carrier.finish() {
                true => mark::meet(self.parted),
                false => stay_apart(self.guards, self.parted),
            }
        }
    }

    /// Adds what `carry` hands over to the loop head that was just passed.
    #[inline]
    pub fn also(self, carry: impl FnOnce(&mut Carrier)) {
        if self.is_open() && mark::carries() {
            let mut carrier = Carrier::new(self.site, self.suspects);
            carry(&mut carrier);
            carrier.finish();
        }
    }

    /// Whether anything is recorded.
    #[inline]
    pub(super) fn is_open(self) -> bool {
        self.id != 0
    }

    /// Whether a guard was passed since it was entered.
    #[inline]
    pub(super) fn has_decided(self) -> bool {
        mark::progress().0 != self.guards
    }
}

/// The ways of a region, entered after these guards, do not meet, if there were any in it: those
/// that come here from elsewhere may differ in state, on whichever this is.
// Not inlined, and not given the region: that would be in memory then, on all ways.
#[cold]
#[inline(never)]
fn stay_apart(guards: u64, parted: u32) {
    if mark::progress().0 != guards {
        mark::part(parted);
    }
}
