//! The tiers of compilation: how much work a kernel is worth.

/// The tier of a kernel. In the background, a function that has become hot gets a kernel of the
/// first tier, which the optimised one replaces; `compile` makes only that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Loops, reverse sweep and native code by a single-pass register allocator.
    First,
    /// All passes, and the backtracking allocator.
    Optimised,
}
