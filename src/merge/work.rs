//! The work of merging, in comparisons of two steps of the tree. Each takes about the time in which the
//! tape records and sweeps an event.

/// Comparing an event with the tree.
pub(super) const COMPARE_EVENT: u64 = 4;
/// Appending an event to the tree.
pub(super) const APPEND_EVENT: u64 = 8;
/// Copying a step from one region instance to another.
pub(super) const COPY_STEP: u64 = 4;
/// Counting the steps of the tree after a path was added, for each basic block and instance of it.
pub(super) const COUNT_ADDED: u64 = 2;
/// Planning path sharing, for each of these.
pub(super) const PLAN_SHARING: u64 = 4;
/// Counting the steps again after path sharing, for each of these.
pub(super) const COUNT_SHARED: u64 = 1;

/// The least work of adding the path of a run of `events` events to a tree of `size` basic blocks and
/// instances.
pub(super) fn to_add(events: usize, size: usize) -> u64 {
    // The walk that finds the path to be new, and the one that appends.
    let for_event = 2 * COMPARE_EVENT + APPEND_EVENT;
    let for_each = COUNT_ADDED + PLAN_SHARING + COUNT_SHARED;
    for_event * events as u64 + for_each * size as u64
}
