//! From a recorded graph to a kernel: the order of the passes (`passes`), the cost model that
//! decides between forms of loops (`cost`), and what users choose (`options`).

pub(crate) mod cost;
mod options;
mod passes;
mod purpose;
mod refusal;

pub(crate) use options::Options;
pub use options::{Limits, LoopForm, Numerics, Tuning};
pub(crate) use passes::{Coarsened, Primal, Recording, branched, coarsen, primal};
pub use purpose::Purpose;
pub use refusal::Refusal;
