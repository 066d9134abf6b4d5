//! Register planning: the values in registers at each step, and the division of the code into
//! basic blocks and native functions.
//!
//! Cranelift's register allocator is quadratic in the length of a function and spills too much
//! where many long live ranges overlap. So the plan keeps the number of values in registers below
//! the number of registers, by Belady's rule: if there is no room, the value whose next use is
//! farthest is spilled to the scratch buffer (Belady, "A Study of Replacement Algorithms for a
//! Virtual-Storage Computer", 1966).
//!
//! Blocks that follow one another make up a function, in which they jump to one another. Cuts
//! between functions are given (`soi` chooses them by the number of live values). Every value
//! that is live across a cut is in the scratch buffer. So Cranelift's allocator sees short code
//! with few live values, compile time is linear, and the code is better than its code for long
//! functions.
//!
//! A region without a cut is in one function with the code around it. Registers keep their
//! values across it, and its φs are block parameters.
//!
//! Spill slots (see `slots`) are assigned along the schedule. For the second arm of a branch, and
//! where the paths of a region join, the changes since the start of the branch or region are
//! undone. At a join slots hold
//!
//! - values from before the region that are used after it: they were stored before it, so each
//!   path through the region has them in the same slot;
//! - φs, whose slots were assigned before the region;
//! - values of the region that are used after it, by a region that replays it. A slot may have
//!   two such values, of two paths.
//!
//! Loops are in `loops`. The code before a loop jumps to the header, and so does the end of an
//! iteration. Values from before the loop are not released in it, because its end counts as a use
//! of each of them.

mod loops;
mod planner;
mod regions;

use crate::jit::schedule::Test;
use crate::ssa::{Access, Node, Region};

pub(super) use planner::plan;

/// The number of values in registers on this host: two or four less than there are, for operands
/// beyond the limit and temporaries of the lowering. With one less on x86-64 the code of coupled
/// recurrences is 1 % longer, with one more it is as fast.
pub(super) const REGISTERS: usize = if cfg!(target_arch = "aarch64") { 28 } else { 14 };

/// A step of a basic block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Loads a value into a register.
    Load(Node, Source),
    /// Stores a value from its register to a spill slot.
    Spill(Node, u32),
    /// Computes a node from values in registers.
    Compute(Node),
    /// Records a failure unless the condition is as expected.
    Guard(Node, bool),
    /// Writes an output.
    Output(u32, Node),
    /// Stores a value from its register to this word before the spill slots.
    Write(Node, u32),
    /// Sets words to zero: the first one, and their number.
    Zero(u32, u32),
    /// Sets outputs to zero: the first one, and their number.
    ZeroOutputs(u32, u32),
    /// Stores the first value from its register to the trajectory of the second.
    Save(Node, Node),
    /// Adds a value to an element of sums.
    Accumulate(Access, Node),
    /// Stores a value in a cell.
    Store(Access, Node),
    /// Sets the iteration number of a loop to that of its first iteration.
    Begin(Region),
    /// Saves the last iteration number of a loop that has ended.
    SaveLast(Region),
}

/// The source of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Active(u32),
    Inactive(u32),
    Const(u32),
    Slot(u32),
    /// The trajectory of the node.
    Saved,
    /// The iteration number of a loop.
    Iteration(Region),
}

/// The terminator of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A jump to a block, with these arguments.
    Jump(usize, Vec<Node>),
    Branch {
        test: Test,
        then: usize,
        otherwise: usize,
    },
    /// A jump to the header of a loop, with these arguments.
    BackEdge(Region, usize, Vec<Node>),
    Done,
}

/// A basic block of straight-line code.
#[derive(Debug)]
pub(super) struct BasicBlock {
    /// The block of the same function whose registers this one starts from; `None` if it
    /// starts from none.
    pub(super) after: Option<usize>,
    /// The φs and entry φs that are block parameters.
    pub(super) parameters: Vec<Node>,
    pub(super) steps: Vec<Step>,
    pub(super) next: Next,
    /// True if profiled runs do not reach it.
    pub(super) is_cold: bool,
}

/// The whole plan.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) blocks: Vec<BasicBlock>,
    /// The first block of each function.
    pub(super) functions: Vec<usize>,
    pub(super) constants: Vec<f64>,
    pub(super) slots: usize,
}
