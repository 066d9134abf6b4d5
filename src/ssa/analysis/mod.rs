//! Analyses of a graph: region nest (`nest`), value flow (`value_flow`), activity (`activity`),
//! control slice (`control_slice`), block profile (`block_profile`), value ranges (`range`: the
//! ranges that primitives compute; `known_ranges`: those of nodes, by block), trip counts (`trip_count`).

mod activity;
mod block_profile;
mod control_slice;
mod known_ranges;
mod nest;
mod range;
mod trip_count;
mod value_flow;

pub use activity::activity;
pub(crate) use activity::{Activity, adjoint_targets, known_element, passes_on, varied_by};
pub(crate) use block_profile::block_profile;
pub(crate) use control_slice::control_slice;
pub(crate) use known_ranges::{BlockRanges, KnownRanges};
pub use nest::{Nest, most_steps};
pub(crate) use range::{Range, range_of};
pub(crate) use trip_count::{AffineIndex, last_iteration};
pub use value_flow::Flow;
pub(in crate::ssa) use value_flow::is_value_used;
pub(crate) use value_flow::{phi_operands, uses};
