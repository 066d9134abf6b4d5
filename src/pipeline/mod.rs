//! From a recorded graph to a kernel: the tables of passes (`passes`), the choice between forms of
//! loops (`loop_forms`) by a cost model (`cost`), kernels of matrices of derivatives (`matrix`),
//! options, tiers, code for batches (`batch`), and reasons why there is no kernel (`refusal`).

mod batch;
pub(crate) mod cost;
mod loop_forms;
mod matrix;
mod options;
mod passes;
mod purpose;
mod refusal;
mod tier;

pub(crate) use batch::{BatchCode, BatchSource, InvariantInputs};
pub(crate) use matrix::{Matrix, Runs, grouped_products, whole_matrix};
pub(crate) use options::{Audit, Hotness, Options};
pub use options::{Limits, LoopForm, Numerics, Tuning};
pub(crate) use passes::{
    Coarsened, Primal, Recording, Rolled, coarsen, primal, rolled, with_simple_branches,
};
pub use purpose::Purpose;
pub use refusal::Refusal;
pub use tier::Tier;
