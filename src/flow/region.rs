//! Regions: the calls that generated code makes at control-flow keywords.

use core::panic::Location;

use super::Carrier;
use crate::trace::mark::Ending;
use crate::trace::{Site, mark};

/// A region that was entered. It need not be joined: if a jump leaves it, it ends with the region
/// around it.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// The id in this run; 0 if nothing is recorded.
    id: u32,
    site: Site,
    /// A hash of the guards passed before it.
    guards: u64,
    /// The number of guards before it since which paths have not joined.
    unjoined: u32,
    /// True if a jump may leave a region inside.
    jumps: bool,
    /// A bit for each variable that is a mutable reference that the code inside may have lent.
    mutators: u64,
}

/// Enters a region at the caller's place.
#[inline]
#[track_caller]
pub fn enter() -> Region {
    let site = Location::caller();
    let id = mark::enter(site);
    let (guards, unjoined) = match id {
        0 => (0, 0),
        _ => (mark::progress().0, mark::unjoined()),
    };
    Region { id, site, guards, unjoined, jumps: true, mutators: 0 }
}

/// Enters a region at the caller's place if `is_needed`; otherwise nothing is recorded.
#[inline]
#[track_caller]
pub fn enter_if(is_needed: bool) -> Region {
    match is_needed {
        true => enter(),
        false => Region {
            id: 0,
            site: Location::caller(),
            guards: 0,
            unjoined: 0,
            jumps: true,
            mutators: 0,
        },
    }
}

/// Ends `region`, and all that are open inside, with the result `value`; `carry` hands over the
/// carried variables.
#[inline]
pub fn join<T>(region: Region, value: T, carry: impl FnOnce(&mut T, &mut Carrier)) -> T {
    let mut value = value;
    region.end(Ending::Region, |carrier| carry(&mut value, carrier));
    value
}

impl Region {
    /// Sets the bits of the variables that are mutable references.
    #[inline]
    pub fn with_mutators(self, mutators: u64) -> Region {
        Region { mutators, ..self }
    }

    /// States that no jump leaves a region inside: they are all joined.
    #[inline]
    pub fn without_jumps(self) -> Region {
        Region { jumps: false, ..self }
    }

    /// Captures the live-in values of the region, if that is asked for; nothing may have been
    /// recorded since it was entered.
    #[inline]
    pub fn capture(self, note: impl FnOnce(&mut Carrier)) -> Region {
        if self.is_open() && mark::captures() {
            let mut carrier = Carrier::capturing(self.site);
            note(&mut carrier);
            carrier.keep();
        }
        self
    }

    /// Captures the live-in values together with the values carried to the ends of `targets`, to
    /// which jumps lead from inside.
    #[inline]
    pub fn capture_for_jumps<const N: usize>(
        self,
        targets: [Region; N],
        note: impl FnOnce(&mut Carrier),
    ) -> Region {
        if self.is_open() && mark::captures() {
            let mut carrier = Carrier::capturing(self.site);
            note(&mut carrier);
            carrier.keep_for(&targets.map(|target| target.id));
        }
        self
    }

    /// Passes the head of a `for` loop.
    #[inline]
    pub fn item_head(self, carry: impl FnOnce(&mut Carrier)) {
        self.end(Ending::Item, carry);
    }

    /// Passes the head of another loop; `carry` hands over all that determines how the loop
    /// continues.
    #[inline]
    pub fn loop_head(self, carry: impl FnOnce(&mut Carrier)) {
        self.end(Ending::Iteration, carry);
    }

    /// Ends the region or an iteration. On a single path nothing has to be carried: the
    /// continuation follows from the path before.
    #[inline]
    fn end(self, ending: Ending, carry: impl FnOnce(&mut Carrier)) {
        if !self.is_open() {
            return;
        }
        let single_path = !self.jumps && mark::unjoined() == self.unjoined;
        if mark::end(self.id, ending, single_path, self.site) {
            let mut carrier = Carrier::new(self.site, self.mutators);
            carry(&mut carrier);
            match carrier.finish() {
                true => mark::paths_join(self.unjoined),
                false => note_unjoined(self.guards, self.unjoined),
            }
        }
    }

    /// Adds variables to the loop head that was just passed.
    #[inline]
    pub fn extend_head(self, carry: impl FnOnce(&mut Carrier)) {
        if self.is_open() && mark::carries() {
            let mut carrier = Carrier::new(self.site, self.mutators);
            carry(&mut carrier);
            carrier.finish();
        }
    }

    /// Tests whether anything is recorded.
    #[inline]
    pub(super) fn is_open(self) -> bool {
        self.id != 0
    }

    /// Tests whether a guard was passed since the region was entered.
    #[inline]
    pub(super) fn has_decided(self) -> bool {
        mark::progress().0 != self.guards
    }
}

/// Notes that the paths of a region, entered after these guards, do not join here, if it passed any
/// guard: on paths from elsewhere the static state may differ.
// Not inlined, and without the region as argument: that would force it into memory on all paths.
#[cold]
#[inline(never)]
fn note_unjoined(guards: u64, unjoined: u32) {
    if mark::progress().0 != guards {
        mark::paths_stay_apart(unjoined);
    }
}
