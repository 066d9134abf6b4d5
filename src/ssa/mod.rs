//! The SSA graph: the one representation between recording and native code.
//!
//! `merge` makes it of traces; `loops`, `phi` and `simplify` map it to itself, `diff`
//! to its gradient, `jit` to a kernel. It has a text form that round-trips
//! (`print`, `parse`), a verifier, and an interpreter that is its meaning.

mod build;
mod build_loops;
mod copy;
mod dead;
mod decisive;
mod dot;
mod flow;
mod fold;
mod graph;
mod interpret;
mod nest;
mod parse;
mod print;
mod reached;
mod rebuild;
mod rebuild_loops;
mod renumber;
mod retain;
mod segment;
mod sequence;
mod series;
mod signature;
mod simplify;
mod swept;
mod table;
mod tree;
mod verify;
mod version;

pub use build::Builder;
pub(crate) use copy::{Copies, blocks_inside};
pub use dead::{eliminate_dead_code, live_nodes};
pub(crate) use decisive::decisive_nodes;
pub use dot::dot;
pub use flow::Flow;
pub(crate) use flow::uses;
pub use fold::Folding;
pub use graph::{
    Block, BlockData, Call, CallData, Def, End, Graph, Item, Node, NodeData, Place, PlaceId,
    Region, RegionData,
};
pub(crate) use interpret::{Number, interpret_with};
pub use interpret::{Outcome, interpret};
pub use nest::{Nest, most_steps};
pub use parse::{ParseError, parse};
pub(crate) use reached::reached;
pub(crate) use rebuild::{Rebuild, rebuild};
pub use renumber::in_order;
pub(crate) use renumber::inputs_first;
pub use segment::{Segment, Segments};
pub use sequence::{Lifetime, Sequence};
pub use series::{Access, AccessData, Entry, Loop, Series, SeriesData};
pub use simplify::simplify;
pub use swept::swept;
pub(crate) use swept::{active_and_swept, passes_on};
pub use table::Table;
pub use verify::{VerifyError, verify};
pub use version::accepts_calls;
pub(crate) use version::{fallback_loops, is_acceptance, without_attached, without_versions};
