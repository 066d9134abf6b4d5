//! The front of the Jacobian tape: the latest entries, in thread-local storage, and what operators
//! are inlined with.

use core::cell::Cell;

use super::{Entry, JacobianTape};
use crate::op::Op;
use crate::trace::differential::{Differential, Partial, are_kept, is_sum};
use crate::trace::recorder::{FOREIGN, ID, with_back};

/// The number of entries in the ring.
const RING: usize = 256;

/// The latest entries; that of variable number `i` is in cell `i % RING`.
type Ring = [Cell<Entry>; RING];

thread_local! {
    // None has a destructor, so that an access is one address computation. Several variables, so
    // that the compiler knows that stores into the ring do not alias the others.
    /// The tag of the next variable; that of no recording unless a Jacobian tape is recorded.
    static NEXT: Cell<u64> = const { Cell::new(FOREIGN) };
    /// The tag at which the ring is full.
    static FULL: Cell<u64> = const { Cell::new(FOREIGN) };
    static LATEST: Ring = const { [const { Cell::new(Entry::ZERO) }; RING] };
}

/// The differential of `op` with the value `y` at `x`, for operands with these differentials. Its
/// entry, if it needs one, is recorded. `None` if it takes more than that.
#[inline(always)]
pub(in crate::trace) fn differential(
    op: Op,
    x: f64,
    a: Differential,
    z: f64,
    b: Differential,
    y: f64,
) -> Option<Differential> {
    // Others take longer than a call.
    if !matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Min | Op::Max) {
        return None;
    }
    let x = [x, z, 0.0];
    let next = NEXT.get();
    // The high half of `different | different - 1` is 0 if the low halves alone differ.
    let different = a.tag ^ b.tag;
    if (different | different.wrapping_sub(1) | a.tag ^ next) >> 32 != 0 {
        return Differential::combined([a, b], op, x, y);
    }
    let to_a = Partial::of(op, 0, x, y)?.times(a.coefficient);
    let to_b = Partial::of(op, 1, x, y)?.times(b.coefficient);
    if !(is_sum(op) || are_kept(to_a, to_b)) || next == FULL.get() {
        return None;
    }
    let (operands, partials) = ([a.tag as u32, b.tag as u32], [to_a.value, to_b.value]);
    set(next, Entry { operands, partials });
    NEXT.set(next + 1);
    Some(Differential::of_variable(next))
}

#[inline(always)]
fn set(tag: u64, entry: Entry) {
    LATEST.with(|ring| ring[tag as usize % RING].set(entry));
}

/// The tag of the next variable; that of no recording unless a Jacobian tape is recorded.
#[inline(always)]
pub(in crate::trace) fn next_variable() -> u64 {
    NEXT.get()
}

/// Empties the ring if it is full. `false` if it was not, or beyond the limit.
pub(in crate::trace) fn has_made_room() -> bool {
    is_recording() && NEXT.get() == FULL.get() && with_back(|back| back.jacobian.makes_room())
}

/// Tests whether a Jacobian tape is recorded.
pub(in crate::trace) fn is_recording() -> bool {
    NEXT.get() != FOREIGN
}

/// Continues with the tag `next` and an empty ring; returns the former tag.
pub(in crate::trace) fn restart(next: u64) -> u64 {
    FULL.set(next);
    NEXT.replace(next)
}

impl JacobianTape {
    /// Moves the entries out of the ring.
    pub(in crate::trace) fn flush(&mut self) {
        if !is_recording() {
            return;
        }
        let first = self.len() % RING;
        let waiting = first..first + (NEXT.get() & ID) as usize - self.len();
        LATEST.with(|ring| self.entries.extend(ring[waiting].iter().map(Cell::get)));
    }

    /// Appends an entry. `None` beyond the limit: the recording ends.
    pub(super) fn push(&mut self, entry: Entry) -> Option<u64> {
        if !is_recording() {
            return None;
        }
        let next = NEXT.get();
        if next == FULL.get() && !self.makes_room() {
            return None;
        }
        set(next, entry);
        NEXT.set(next + 1);
        Some(next)
    }

    /// Empties the ring. `false` beyond the limit: the recording ends.
    fn makes_room(&mut self) -> bool {
        self.flush();
        let room = self.limit.saturating_sub(self.entries.len());
        if room == 0 {
            self.is_exceeded = true;
            restart(FOREIGN);
            return false;
        }
        // Up to the end of the ring at most, so that its entries are contiguous.
        FULL.set(NEXT.get() + room.min(RING - self.len() % RING) as u64);
        true
    }
}
