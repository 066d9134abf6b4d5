//! Stamps: the identity of the recording that a `Var` belongs to.

use core::cell::Cell;

use super::Site;

/// Stamp of no recording: of constants.
const NO_STAMP: u32 = 0;
/// Stamp of values computed outside their recording; never issued.
pub(super) const FOREIGN_STAMP: u32 = u32::MAX;

thread_local! {
    static LAST_STAMP: Cell<u32> = const { Cell::new(NO_STAMP) };
    /// The latest recordings of the thread, for the error message about a `Var` that outlived one
    /// of them.
    static RECENT: [Cell<Option<(u32, Site)>>; 16] = const { [const { Cell::new(None) }; 16] };
}

/// A stamp for a new recording of the function recorded at `made`.
pub(super) fn next_stamp(made: Site) -> u32 {
    let stamp = match LAST_STAMP.get().wrapping_add(1) {
        NO_STAMP | FOREIGN_STAMP => 1,
        stamp => stamp,
    };
    LAST_STAMP.set(stamp);
    RECENT.with(|recent| recent[stamp as usize % recent.len()].set(Some((stamp, made))));
    stamp
}

/// The place where the function was recorded whose run has this stamp.
pub(super) fn maker(stamp: u32) -> Option<Site> {
    RECENT
        .with(|recent| recent[stamp as usize % recent.len()].get())
        .filter(|&(recorded, _)| recorded == stamp)
        .map(|(_, made)| made)
}
