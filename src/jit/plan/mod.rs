//! Register planning: which values are in registers when, and how the code is
//! cut into chunks and native functions.
//!
//! The register allocator below us is quadratic in the length of the code and
//! weak where many long live ranges cross. So the plan keeps the number of live
//! values below the number of registers itself, by Belady's rule: when there is
//! no room, the value whose next use is farthest goes to the scratch buffer.
//!
//! A chunk is straight-line code. Chunks that follow one another make up a function,
//! in which they jump to one another. Where one function ends and the next begins
//! is told from outside (`soi` decides it, by what is used where). Every value that
//! crosses from one function to another is in the scratch buffer. What the
//! allocator sees is short and easy, compile time is linear, and the code is better
//! than what it makes of long functions.
//!
//! A region without a cut is in one function with the code around it. Registers
//! keep what they hold across it, and its φs come in registers.
//!
//! Slots (see `slots`) are planned along the schedule; on the other side of a
//! branch, and where the ends of a region meet, the changes are taken back to
//! where the branch or the region began. Where ends meet, slots are held by
//!
//! - what was there when the region began, if it is used afterwards: it was
//!   stored then, so that each way through the region leaves it there;
//! - φs: they were given their slots when the region began;
//! - values of the region that are used afterwards, by a region that replays it.
//!   A slot may have two such values, of two ways.
//!
//! Loops are in `loops`. The code before a loop goes on to the chunk where its
//! iterations begin, and so does the end of an iteration. What is computed before
//! the loop is not given up in it: at its end, the loop uses all that once more.

mod loops;
mod planner;
mod regions;

use crate::jit::schedule::Test;
use crate::ssa::{Access, Node, Region};

pub(super) use planner::plan;

/// How many values are kept in registers of this host: two or four less than there are, for
/// operands beyond the limit and temporaries of the lowering. With one less on x86-64 the code of
/// coupled recurrences is 1 % longer, with one more it is as fast.
pub(super) const REGISTERS: usize = if cfg!(target_arch = "aarch64") { 28 } else { 14 };

/// One step of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Brings a value into a register: an input, a constant, or from the slot.
    Load(Node, Source),
    /// Copies a value from its register into a slot of the scratch buffer.
    Store(Node, u32),
    /// Computes a node from values in registers.
    Compute(Node),
    /// Notes a failure unless the condition is as expected.
    Guard(Node, bool),
    /// Writes an output.
    Output(u32, Node),
    /// Copies a value from its register to this word before the slots.
    Write(Node, u32),
    /// Sets this many words, from this one on, to zero.
    Zero(u32, u32),
    /// Sets this many outputs, from this one on, to zero.
    ZeroOutputs(u32, u32),
    /// Copies the first value from its register to the home of the second.
    Save(Node, Node),
    /// Adds a value to an element of sums.
    Accumulate(Access, Node),
    /// Sets the iteration number of a loop to that of its first iteration.
    Begin(Region),
    /// Keeps the iteration number of a loop that has ended.
    SaveLast(Region),
}

/// Where a value is found that is not in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Active(u32),
    Inactive(u32),
    Const(u32),
    Slot(u32),
    /// The home of the node.
    Saved,
    /// The iteration number of a loop.
    Iteration(Region),
}

/// Where to go after a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// To a chunk, with these values for its parameters.
    Jump(usize, Vec<Node>),
    Branch {
        test: Test,
        then: usize,
        otherwise: usize,
    },
    /// To the next iteration of a loop, which begins in this chunk, with these
    /// values for its parameters.
    BackEdge(Region, usize, Vec<Node>),
    Done,
}

/// A basic block of straight-line code.
#[derive(Debug)]
pub(super) struct BasicBlock {
    /// The chunk of the same function after which registers hold what this one
    /// expects there; `None` if it expects nothing.
    pub(super) after: Option<usize>,
    /// The φs and entry φs that it is given in registers.
    pub(super) parameters: Vec<Node>,
    pub(super) steps: Vec<Step>,
    pub(super) next: Next,
    /// Whether it is hardly ever reached.
    pub(super) is_cold: bool,
}

/// The whole plan.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) blocks: Vec<BasicBlock>,
    /// The first chunk of each function.
    pub(super) functions: Vec<usize>,
    pub(super) constants: Vec<f64>,
    pub(super) slots: usize,
}
