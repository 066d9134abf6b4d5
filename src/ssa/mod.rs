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
//! Analyses (`analysis/`): region nest, value flow, activity, control slice, block profile.
//! `dead` computes liveness, `version` finds loop versions.
//!
//! Four ways to make a graph of another one, by what may change:
//!
//! - `build`: new code, appended block by block with folding (`fold`) and value numbering (`diff`,
//!   `phi`, `simplify`).
//! - `rebuild`: the same graph with a rewrite for single nodes, copied through the builder, so that
//!   all of it is folded again. `simplify` is a rebuild without rewrites and dead-code elimination.
//! - `retain` and `renumber`: nodes stay as they are, so values keep their bits. `retain` drops dead
//!   ones; `renumber` orders the ids of a graph that a pass has edited in place, inserting nodes
//!   anywhere (`loops::hoist`, `phi::branches`).
//! - `copy`: a second copy of a region or step in the same graph, for loop versions; then
//!   `renumber`.
//!
//! Passes that change blocks as they copy, such as `loops::expand`, append to an emptied graph
//! (`Graph::emptied`) with the `push_` methods of [`Graph`].

mod analysis;
mod arrays;
mod build;
mod build_loops;
mod copy;
mod dead;
mod fold;
mod graph;
mod interpret;
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
    Activity, adjoint_targets, block_profile, control_slice, known_element, passes_on,
    phi_operands, uses,
};
pub use analysis::{Flow, Nest, activity, most_steps};
pub use arrays::{Access, AccessData, Array, ArrayData, Entry, Loop};
pub use build::Builder;
pub(crate) use copy::{Copies, blocks_inside};
pub use dead::{eliminate_dead_code, live_nodes};
pub use fold::Folding;
pub use graph::{
    Block, BlockData, Call, CallData, Def, End, Graph, Item, Node, NodeData, Place, PlaceId,
    Region, RegionData,
};
pub(crate) use interpret::{Number, interpret_with};
pub use interpret::{Outcome, interpret};
pub use parse::{ParseError, parse};
pub(crate) use print::{access_line, array_line, node_line, region_line};
pub(crate) use rebuild::{Rebuild, rebuild};
pub use renumber::in_order;
pub(crate) use renumber::inputs_first;
pub use segment::{Segment, Segments};
pub use sequence::{Lifetime, Sequence};
pub use simplify::simplify;
pub use table::Table;
pub use verify::{VerifyError, verify};
pub use version::accepts_calls;
pub(crate) use version::{fallback_loops, is_acceptance, without_attached, without_versions};
