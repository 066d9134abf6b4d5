//! Native code: a graph to a [`Kernel`].
//!
//! | step | files | result |
//! | --- | --- | --- |
//! | layout | `layout`, `single_additions` | addresses of iteration numbers, arrays and trajectories |
//! | schedule | `schedule`, `order`, `operands`, `hot` | `Inst`s in the order of execution |
//! | cuts | (by the caller, from `sequence`) | positions where a new function begins |
//! | plan | `plan`, `uses`, `slots` | basic blocks of `Step`s with registers and spill slots |
//! | lowering | `flow`, `vector`, `pairs`, `lower`, `lanes`, `memory`, `math`, `generate` | Cranelift functions |
//! | code | `native`, `code`, `kernel` | executable memory and its safe interface |

// The files that know Cranelift; without the feature `jit`, `native` has no code to run.
#[cfg(feature = "jit")]
mod code;
#[cfg(feature = "jit")]
mod flow;
#[cfg(feature = "jit")]
mod generate;
#[cfg(feature = "jit")]
mod lanes;
#[cfg(feature = "jit")]
mod lower;
#[cfg(feature = "jit")]
mod memory;
#[cfg(feature = "jit")]
mod native;
#[cfg(not(feature = "jit"))]
#[path = "no_native.rs"]
mod native;
#[cfg(feature = "jit")]
mod pairs;
#[cfg(feature = "jit")]
mod vector;

mod hot;
mod kernel;
mod layout;
mod math;
mod operands;
mod order;
mod plan;
mod schedule;
mod sequence;
mod single_additions;
mod slots;
mod uses;

#[cfg(test)]
mod tests;

use crate::entity::PrimaryMap;
use crate::ssa::{Block, Graph, Sequence, VerifyError, verify};

use layout::Layout;
use schedule::Inst;
use uses::Uses;

pub use kernel::{Kernel, RunError};
pub(crate) use layout::MAX_WORDS;
pub use layout::saved_words;
pub(crate) use native::require_host;

/// The reason why a graph was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// Cranelift has no native back end for this host.
    #[error("this host has no native compiler, so the tape serves: {reason}")]
    Host {
        /// The message of Cranelift.
        reason: String,
    },
    /// The verifier rejects the graph.
    #[error("the verifier rejects the graph: {0}")]
    Graph(#[from] VerifyError),
    /// The graph has more nodes, or outputs, than code can address.
    #[error("the graph has {size} nodes or outputs, more than code can address")]
    TooLarge {
        /// The larger of the two numbers.
        size: usize,
    },
    /// The saved values of loops do not fit into a scratch buffer.
    #[error(
        "the loops save {words} numbers for the reverse sweep, more than a scratch buffer holds; lower \
         Limits::saved_values"
    )]
    Scratch {
        /// The least number of words that they take.
        words: u64,
    },
    /// The code generator failed.
    #[error("the code generator failed, please report this: {reason}")]
    Generator {
        /// The message of the code generator.
        reason: String,
    },
}

/// Compiles `graph`, a verified graph, for this host, with cuts at equal distances.
///
/// The kernel's outputs are the bits that the interpreter computes from the
/// same graph. Compile time is linear in the size of the graph.
///
/// # Errors
///
/// See [`CompileError`].
///
/// # Examples
///
/// ```
/// let graph =
///     phigrad::internals::ssa::parse("graph active 2 inactive 0\nb0:\n  v2 = mul v0 v1\n  return v2\n")?;
/// let kernel = phigrad::internals::jit::compile(&graph)?;
/// let mut output = [0.0];
/// kernel.run(&[2.0, 3.0], &[], &mut Vec::new(), &mut output)?;
/// assert_eq!(output, [6.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn compile(graph: &Graph) -> Result<Kernel, CompileError> {
    const DISTANCE: usize = 400;
    let schedule = schedule(graph)?;
    let cuts: Vec<u32> = (0..schedule.insts.len() as u32).step_by(DISTANCE).skip(1).collect();
    schedule.compile(&cuts)
}

/// A register allocator of Cranelift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allocator {
    /// Fast code.
    Backtracking,
    /// Code in half the time, which spills more.
    SinglePass,
}

/// The number of elements that a kernel computes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lanes {
    One,
    Two,
}

impl Lanes {
    fn count(self) -> usize {
        match self {
            Lanes::One => 1,
            Lanes::Two => 2,
        }
    }
}

/// A graph in the order of execution, with the layout of its memory.
pub struct Schedule<'a> {
    graph: &'a Graph,
    layout: Layout,
    insts: Vec<Inst>,
    uses: Uses,
}

/// Schedules `graph`, a verified graph.
///
/// # Errors
///
/// See [`CompileError`].
///
/// # Examples
///
/// See [`Schedule::compile`].
pub fn schedule(graph: &Graph) -> Result<Schedule<'_>, CompileError> {
    schedule_with_profile(graph, None)
}

/// As [`schedule`]; `profile` has the blocks that profiled runs reach. Arms that none of them
/// takes are placed behind the rest of their functions, so that hot code is contiguous. The
/// results of the kernel are the same.
pub(crate) fn schedule_with_profile<'a>(
    graph: &'a Graph,
    profile: Option<&PrimaryMap<Block, bool>>,
) -> Result<Schedule<'a>, CompileError> {
    // Native code checks no bounds, so the graph must be verified.
    verify(graph)?;
    let size = graph.nodes.len().max(graph.outputs());
    if size > MAX_SIZE {
        return Err(CompileError::TooLarge { size });
    }
    let layout = Layout::of(graph)?;
    let insts = schedule::insts(graph, &layout, profile);
    let uses = Uses::of(graph, &layout, &insts);
    Ok(Schedule { graph, layout, insts, uses })
}

impl Schedule<'_> {
    /// The steps and lifetimes of the schedule, for the choice of cuts.
    pub fn sequence(&self) -> Sequence {
        sequence::sequence(self)
    }

    /// Compiles for this host. A new native function begins at each of the steps `cuts`, which
    /// ascend, or at the next step that allows it.
    ///
    /// Values that are live across a cut are in the scratch buffer, and a region without a cut
    /// has its φs in registers. But the time to compile a function grows with the square of its
    /// length.
    ///
    /// # Errors
    ///
    /// See [`CompileError`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::jit::schedule;
    ///
    /// let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v2 = mul v1 v1\n  return v2\n";
    /// let graph = phigrad::internals::ssa::parse(text)?;
    /// let (whole, cut) = (schedule(&graph)?.compile(&[])?, schedule(&graph)?.compile(&[1])?);
    /// // v1 crosses the cut.
    /// assert_eq!((whole.scratch_len(), cut.scratch_len()), (0, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compile(&self, cuts: &[u32]) -> Result<Kernel, CompileError> {
        self.compile_by(Allocator::Backtracking, cuts)
    }

    /// As [`Schedule::compile`], with this register allocator.
    pub(crate) fn compile_by(
        &self,
        allocator: Allocator,
        cuts: &[u32],
    ) -> Result<Kernel, CompileError> {
        self.compile_with((allocator, Lanes::One), cuts, plan::REGISTERS)
    }

    /// As [`Schedule::compile`], for two elements at once: each buffer of the kernel has two
    /// numbers for each entry, those of the elements. The kernel has a side exit, too, if the
    /// elements take different paths. `None` if the graph calls routines, which are for one
    /// element.
    ///
    /// # Errors
    ///
    /// See [`CompileError`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::jit::schedule;
    ///
    /// let text = "graph active 1 inactive 0\nb0:\n  v1 = mul v0 v0\n  return v1\n";
    /// let graph = phigrad::internals::ssa::parse(text)?;
    /// let kernel = schedule(&graph)?.compile_two_lanes(&[])?.unwrap();
    /// let mut outputs = [0.0; 2];
    /// kernel.run(&[3.0, 5.0], &[], &mut Vec::new(), &mut outputs)?;
    /// assert_eq!(outputs, [9.0, 25.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compile_two_lanes(&self, cuts: &[u32]) -> Result<Option<Kernel>, CompileError> {
        if !self.graph.calls.is_empty() {
            return Ok(None);
        }
        let how = (Allocator::Backtracking, Lanes::Two);
        self.compile_with(how, cuts, plan::REGISTERS).map(Some)
    }

    /// As [`Schedule::compile_by`], with another number of registers.
    fn compile_with(
        &self,
        (allocator, lanes): (Allocator, Lanes),
        cuts: &[u32],
        registers: usize,
    ) -> Result<Kernel, CompileError> {
        let mut plan = plan::plan(self, cuts, registers);
        let words = self.layout.words as usize + plan.slots;
        if words > MAX_SIZE / lanes.count() {
            return Err(CompileError::Scratch { words: words as u64 });
        }
        let size = self.graph.nodes.len().max(self.graph.outputs()).max(plan.constants.len());
        if size > MAX_SIZE / lanes.count() {
            return Err(CompileError::TooLarge { size });
        }
        let (code, code_bytes) = native::compile(self, &plan, (allocator, lanes))?;
        if lanes == Lanes::Two {
            plan.constants = plan.constants.iter().flat_map(|&constant| [constant; 2]).collect();
        }
        Ok(Kernel { code, constants: plan.constants, code_bytes })
    }
}

/// The largest index whose byte offset in a buffer of `f64` fits 31 bits.
const MAX_SIZE: usize = (i32::MAX / 8) as usize;
