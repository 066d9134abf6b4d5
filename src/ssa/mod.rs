//! The SSA graph: the one representation between recording and native code.
//!
//! `merge` makes it of traces; `loops`, `phi` and `simplify` map it to itself, `diff`
//! to its gradient, `jit` to a kernel. It has a text form that round-trips
//! (`print`, `parse`), a verifier, and an interpreter that is its meaning.

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

pub use analysis::{Flow, Nest, activity, most_steps};
pub(crate) use analysis::{block_profile, control_slice, passes_on, uses, varied_and_active};
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
