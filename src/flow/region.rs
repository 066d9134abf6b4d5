//! Regions: the calls that generated code makes at its keywords.

use core::panic::Location;

use super::Carrier;
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
    Region { id, site, guards, suspects: 0 }
}

/// Ends `region`, and all that are open inside, with `value` as its result and
/// what `carry` hands over.
#[inline]
pub fn join<T>(region: Region, value: T, carry: impl FnOnce(&mut T, &mut Carrier)) -> T {
    let mut value = value;
    if mark::join(region.id, region.site) {
        let mut carrier = Carrier::new(region.site, region.suspects);
        carry(&mut value, &mut carrier);
        carrier.finish();
    }
    value
}

impl Region {
    /// Notes which of the variables that may be lent are mutable references.
    #[inline]
    pub fn suspecting(self, suspects: u64) -> Region {
        Region { suspects, ..self }
    }

    /// Passes the head of the loop, with what `carry` hands over.
    #[inline]
    pub fn iterate(self, carry: impl FnOnce(&mut Carrier)) {
        if mark::iterate(self.id, self.site) {
            let mut carrier = Carrier::new(self.site, self.suspects);
            carry(&mut carrier);
            carrier.finish();
        }
    }

    /// Adds what `carry` hands over to the loop head that was just passed.
    #[inline]
    pub fn also(self, carry: impl FnOnce(&mut Carrier)) {
        if self.is_open() {
            let mut carrier = Carrier::new(self.site, self.suspects);
            carry(&mut carrier);
            carrier.finish();
        }
    }

    /// Whether anything is recorded.
    pub(super) fn is_open(self) -> bool {
        self.id != 0
    }

    /// Whether a guard was passed since it was entered.
    pub(super) fn has_decided(self) -> bool {
        mark::progress().0 != self.guards
    }
}
