//! Register planning: which values are in registers when, and how the code is
//! cut into chunks and native functions.
//!
//! The register allocator below us is quadratic in the length of the code and
//! weak where many long live ranges cross. So the plan keeps the number of live
//! values below the number of registers itself, by Belady's rule: when there is
//! no room, the value whose next use is farthest goes to the scratch buffer.
//!
//! A chunk is straight code. Chunks that follow one another make up a function
//! of bounded size, in which they jump to one another. Every value that crosses
//! from one function to another is in the scratch buffer. What the allocator
//! sees is short and easy, compile time is linear, and the code is better than
//! what it makes of long functions.
//!
//! A small region is never cut: it is in one function with the code around it.
//! Registers keep what they hold across it, and its φs come in registers.
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

mod planner;
mod regions;

use crate::ssa::Node;

pub(super) use planner::plan;

/// Numbers that bound the plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How many steps a function holds before it is cut.
    pub(super) steps: usize,
    /// How many lines of the schedule a region has at most that is never cut.
    pub(super) uncut: usize,
    /// How many values are kept in registers.
    pub(super) registers: usize,
}

impl Limits {
    /// The limits for this host.
    pub(super) const HOST: Limits = Limits {
        // Found by experiment: from 300 to 2000 steps, compile time and speed
        // differ by less than a tenth.
        steps: 1000,
        uncut: 250,
        // Three or four less than there are, for operands beyond the limit and
        // temporaries of the lowering.
        registers: if cfg!(target_arch = "aarch64") { 28 } else { 13 },
    };
}

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
}

/// Where a value is found that is not in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Active(u32),
    Inactive(u32),
    Const(u32),
    Slot(u32),
}

/// Where to go after a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// To a chunk, with these values for its parameters.
    Chunk(usize, Vec<Node>),
    Branch {
        condition: Node,
        then: usize,
        otherwise: usize,
    },
    Done,
}

/// A stretch of straight code.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The chunk of the same function after which registers hold what this one
    /// expects there; `None` if it expects nothing.
    pub(super) after: Option<usize>,
    /// The φs that it is given in registers.
    pub(super) parameters: Vec<Node>,
    pub(super) steps: Vec<Step>,
    pub(super) next: Next,
}

/// The whole plan.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) chunks: Vec<Chunk>,
    /// The first chunk of each function.
    pub(super) functions: Vec<usize>,
    pub(super) constants: Vec<f64>,
    pub(super) slots: usize,
}
