//! The SSA graph: the one intermediate representation between recording and native code.
//!
//! `merge` makes it from traces; `loops`, `phi` and `simplify` transform it, `diff` makes its
//! gradient, `jit` compiles it to a kernel.
//!
//! Data: `graph` (nodes, blocks, regions), `arrays` (loops, arrays, accesses), `table` (shared
//! constants), `tree` (the tree of blocks), `signature` (inputs and outputs), `segment` and
//! `sequence` (code divided for `soi`).
//!
//! Meaning: `print` and `parse` (a text form that round-trips), `verify` (the invariants),
//! `interpret` (the reference semantics).
//!
//! Analyses (`analysis/`): region nest, value flow, activity, control slice, block profile, value
//! ranges.
//! `dead` computes liveness, `version` finds loop versions.
//!
//! Three ways to make a graph:
//!
//! - `append`: new steps as they are (`merge`, `loops`). `build` adds folding (`fold`) and value
//!   numbering (`diff`, `phi`, `simplify`); `rebuild` copies a graph through it with a rewrite for
//!   single nodes, and `simplify` without one.
//! - `edit`: steps of a graph are inserted, moved, cloned (`copy`) and replaced (`phi`, `diff`,
//!   `validate`, `loops::hoist`); all others keep their operands, so their values keep their bits.
//!   `renumber` then orders the ids.
//! - `retain`: drops dead steps.

mod analysis;
mod append;
mod arrays;
mod build;
mod build_loops;
mod copy;
mod dead;
mod edit;
mod fold;
mod graph;
mod interpret;
mod invariant;
mod join;
mod parse;
mod print;
mod rebuild;
mod rebuild_loops;
mod renumber;
mod retain;
mod segment;
mod sequence;
mod signature;
mod simplify;
mod table;
mod tree;
mod verify;
mod version;

pub(crate) use analysis::{
    Activity, AffineIndex, BlockRanges, KnownRanges, Range, adjoint_targets, block_profile,
    control_slice, known_element, last_iteration, passes_on, phi_operands, range_of, uses,
    varied_by,
};
pub use analysis::{Flow, Nest, activity, most_steps};
pub(crate) use append::Appender;
pub(crate) use arrays::Passed;
pub use arrays::{Access, AccessData, Array, ArrayData, Entry, Loop};
pub use build::Builder;
pub(crate) use copy::Copies;
pub use dead::{eliminate_dead_code, live_nodes};
pub(crate) use edit::Editor;
pub use fold::Folding;
pub(crate) use graph::padded;
pub use graph::{
    Block, BlockData, Call, CallData, Def, End, Graph, Item, Node, NodeData, Place, PlaceId,
    Region, RegionData,
};
pub(crate) use interpret::{Number, interpret_with};
pub use interpret::{Outcome, interpret};
pub(crate) use invariant::{InvariantSplit, split_invariant};
pub(crate) use join::join_leaves;
pub use parse::{ParseError, parse};
pub(crate) use print::{access_line, array_line, node_line, region_line};
pub(crate) use rebuild::{Rebuild, rebuild};
pub(crate) use renumber::inputs_first;
pub use segment::{Segment, Segments};
pub use sequence::{Lifetime, Sequence};
pub use simplify::simplify;
pub(crate) use simplify::without_invariant_entries;
pub use table::Table;
pub use verify::{VerifyError, verify};
pub use version::accepts_calls;
pub(crate) use version::{fallback_loops, is_acceptance, without_attached, without_versions};
