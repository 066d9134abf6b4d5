//! The SSA graph: the one representation between recording and native code.
//!
//! `lift` feeds it from traces; `simplify`, `fuse` and `hoist` map it to itself, `diff`
//! to its gradient, `jit` to a kernel. It has a text form that round-trips
//! (`print`, `parse`), a verifier, and an interpreter that is its meaning.

mod build;
mod build_loops;
mod copy;
pub(crate) mod cost;
mod dead;
mod decisive;
mod dot;
mod expand;
mod flow;
mod fold;
mod fuse;
mod graph;
mod hoist;
mod interpret;
mod lift;
mod nest;
mod parse;
mod print;
mod reached;
mod rebuild;
mod rebuild_loops;
mod renumber;
mod reroll;
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
pub use expand::expand;
pub(crate) use expand::trip_count;
pub use flow::Flow;
pub(crate) use flow::uses;
pub use fold::Folding;
pub use fuse::fuse;
pub use graph::{
    Block, BlockData, Call, CallData, Def, End, Graph, Item, Node, NodeData, Place, PlaceId,
    Region, RegionData,
};
pub use hoist::hoist;
pub(crate) use interpret::{Number, interpret_with};
pub use interpret::{Outcome, interpret};
pub use lift::{Decision, Departure, LiftError, Lifted, Merged, Paths, Trips, Unmerge, Unmerged};
pub use nest::{Nest, most_steps};
pub use parse::{ParseError, parse};
pub(crate) use reached::reached;
pub(crate) use rebuild::{Rebuild, rebuild};
pub use renumber::in_order;
pub use reroll::{RerollLimits, reroll};
pub use segment::{Segment, Segments};
pub use sequence::{Lifetime, Sequence};
pub use series::{Access, AccessData, Entry, Loop, Series, SeriesData};
pub use simplify::simplify;
pub use swept::swept;
pub(crate) use swept::{active_and_swept, passes_on};
pub use table::Table;
pub use verify::{VerifyError, verify};
pub use version::accepts_calls;
pub(crate) use version::{is_acceptance, without_attached, without_versions};
