//! The work of merging, in comparisons of two steps of the tree. Each takes about the time in which
//! the tape records and sweeps an event.

/// Comparing an event with the tree.
pub(super) const COMPARE_EVENT: u64 = 4;
/// Appending an event to the tree.
pub(super) const APPEND_EVENT: u64 = 8;
/// Copying a step from one region instance to another.
pub(super) const COPY_STEP: u64 = 4;
/// Counting the steps of the tree, for each basic block and instance of it.
pub(super) const COUNT_STEPS: u64 = 1;
/// Planning path sharing, for each instance that was extended.
pub(super) const PLAN_SHARING: u64 = 4;

/// The least work of adding the path of a run of `events` events.
pub(super) fn to_add(events: usize) -> u64 {
    // The walk that appends the path, and the one before path sharing.
    let for_event = 2 * COMPARE_EVENT + APPEND_EVENT;
    for_event * events as u64
}
