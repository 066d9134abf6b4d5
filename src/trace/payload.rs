//! The payload of a step: 8 bytes whose layout only this file knows.
//!
//! The role and form of the step tell what they hold: a constant operand, the ids of further
//! operands, the region that a mark refers to, or static state.

use super::recorder::ID;

/// The payload of a [`Step`](super::event::Step).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Payload(u64);

/// Bit in the payload of an end mark: the code that ends has a single path.
const SINGLE_PATH: u64 = 1 << 63;
/// Bit in the payload of a loop head: the carried values and state determine how the loop
/// continues.
const COMPLETE_STATE: u64 = 1 << 62;

impl Payload {
    /// The payload of leaves and of steps with one operand.
    pub(super) const NONE: Payload = Payload(0);

    /// A constant operand.
    #[inline(always)]
    pub(super) const fn constant(value: f64) -> Self {
        Payload(value.to_bits())
    }

    /// The second operand, by its tag.
    #[inline(always)]
    pub(super) const fn second_operand(tag: u64) -> Self {
        Payload(tag & ID)
    }

    /// The second and third operands, by their tags.
    #[inline(always)]
    pub(super) const fn operands(second: u64, third: u64) -> Self {
        Payload(second & ID | third << 32)
    }

    /// The region that begins.
    #[inline]
    pub(super) const fn enter(region: u32) -> Self {
        Payload(region as u64)
    }

    /// The region or loop whose code ends, whether that code has a single path, and whether the
    /// values and state carried to the mark are complete.
    #[inline]
    pub(super) const fn end(region: u32, single_path: bool, complete_state: bool) -> Self {
        let single_path = if single_path { SINGLE_PATH } else { 0 };
        let complete_state = if complete_state { COMPLETE_STATE } else { 0 };
        Payload(region as u64 | single_path | complete_state)
    }

    /// Static state.
    #[inline]
    pub(super) const fn state(bits: u64) -> Self {
        Payload(bits)
    }

    /// All bits, to compare or hash them.
    #[inline(always)]
    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    /// The constant of [`Payload::constant`].
    #[inline(always)]
    pub(super) const fn as_constant(self) -> f64 {
        f64::from_bits(self.0)
    }

    /// The index of the second operand.
    #[inline(always)]
    pub(super) const fn second(self) -> u32 {
        self.0 as u32
    }

    /// The index of the third operand.
    #[inline(always)]
    pub(super) const fn third(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The region of [`Payload::enter`] or [`Payload::end`].
    pub(super) const fn region(self) -> u32 {
        self.0 as u32
    }

    /// Tests whether the code that ends has a single path.
    pub(super) const fn has_single_path(self) -> bool {
        self.0 & SINGLE_PATH != 0
    }

    /// Tests whether the values and state carried to a loop head are complete.
    pub(super) const fn has_complete_state(self) -> bool {
        self.0 & COMPLETE_STATE != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_keeps_its_region_and_its_facts_apart() {
        for region in [0, 1, u32::MAX] {
            for (single, complete) in [(false, false), (false, true), (true, false), (true, true)] {
                let end = Payload::end(region, single, complete);
                assert_eq!(end.region(), region);
                assert_eq!((end.has_single_path(), end.has_complete_state()), (single, complete));
            }
        }
    }

    #[test]
    fn operands_are_their_indices_without_stamps() {
        let (second, third) = (7 << 32 | 5, 7 << 32 | 9);
        let payload = Payload::operands(second, third);
        assert_eq!((payload.second(), payload.third()), (5, 9));
        assert_eq!(Payload::second_operand(second).second(), 5);
    }
}
