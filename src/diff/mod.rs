//! Differentiation: a graph to the graph of its gradient.
//!
//! | file | content |
//! | --- | --- |
//! | `reverse` | the pass: copies each path, then appends its reverse sweep |
//! | `regions`, `loops` | reverse sweeps of regions and loops, which replay these |
//! | `primal` | the primal graph as the pass sees it: activity, region nest, reads of arrays |
//! | `adjoint_flow` | the nodes that the sweep of a region adds contributions to |
//! | `adjoints` | the adjoint of each node, with scopes for the arms of branches |
//! | `sums`, `input_adjoints` | adjoints of array elements |
//! | `rematerialise` | saved values, and values that are computed again |
//! | `tape_order`, `entry_phis` | additions in the order of the tape, for exact numerics |
//! | `custom_calls` | calls of custom operations |
//! | `checkpoint`, `split` | recomputed loops and strip mining: less memory, more time |
//! | `jacobian` | Jacobians of straight-line code |
//! | `tangent` | forward mode: derivatives along directions as a graph |
//! | `forward` | the same by interpretation |
//!
//! The method is reverse accumulation (Griewank and Walther, "Evaluating Derivatives", 2008,
//! chapters 3 and 12).

mod adjoint_flow;
mod adjoints;
mod checkpoint;
mod custom_calls;
mod entry_phis;
mod forward;
mod input_adjoints;
mod jacobian;
mod loops;
mod primal;
mod regions;
mod rematerialise;
mod reverse;
mod split;
mod sums;
mod tangent;
mod tape_order;

pub use checkpoint::{Checkpointed, checkpoint};
pub use custom_calls::custom_without_derivative;
pub use forward::directional;
pub use jacobian::jacobian;
pub use reverse::{Wanted, reverse};
pub use tangent::{Directions, tangent, tangents};
pub use tape_order::reordered;
