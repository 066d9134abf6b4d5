//! Stamps: the identity of the recording that a `Var` belongs to.

use core::cell::Cell;

use super::Site;

/// Stamp of no recording: of constants.
const NO_STAMP: u32 = 0;
/// Stamp of values computed outside their recording; never issued.
pub(super) const FOREIGN_STAMP: u32 = u32::MAX;
/// The bit in the stamps of event tapes, and in [`FOREIGN_STAMP`]; those of Jacobian tapes have it
/// not.
const EVENTS: u32 = 1 << 31;

thread_local! {
    static LAST_STAMP: Cell<u32> = const { Cell::new(NO_STAMP) };
    /// The latest recordings of the thread, for the error message about a `Var` that outlived one
    /// of them.
    static RECENT: [Cell<Option<(u32, Site)>>; 16] = const { [const { Cell::new(None) }; 16] };
}

/// A stamp for a new recording of the function recorded at `made`, on an event tape or a Jacobian
/// tape.
pub(super) fn next_stamp(made: Site, has_events: bool) -> u32 {
    let number = match LAST_STAMP.get() + 1 {
        number if number | EVENTS == FOREIGN_STAMP => NO_STAMP + 1,
        number => number,
    };
    LAST_STAMP.set(number);
    let stamp = if has_events { number | EVENTS } else { number };
    RECENT.with(|recent| recent[stamp as usize % recent.len()].set(Some((stamp, made))));
    stamp
}

/// Tests whether the stamp is that of an event tape.
pub(super) fn has_events(stamp: u32) -> bool {
    stamp & EVENTS != 0
}

/// The place where the function was recorded whose run has this stamp.
pub(super) fn maker(stamp: u32) -> Option<Site> {
    RECENT
        .with(|recent| recent[stamp as usize % recent.len()].get())
        .filter(|&(recorded, _)| recorded == stamp)
        .map(|(_, made)| made)
}
