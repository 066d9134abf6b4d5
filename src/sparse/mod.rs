//! Sparse derivatives: patterns, colourings, compressed evaluation, and the matrices of results.
//!
//! | file | content |
//! | --- | --- |
//! | `dependences` | values, the inputs that they depend on, and the inputs that interact |
//! | `tape`, `graph` | the dependences of a run, and of all paths of a graph |
//! | `kind` | the matrices of derivatives whose pattern is asked for |
//! | `pattern` | the entries that may be other than zero |
//! | `colouring` | columns that share a product |
//! | `compression` | the products for a pattern, and the entries that each one gives |
//! | `matrix` | the public matrix |

mod colouring;
mod compression;
mod dependences;
mod graph;
mod kind;
mod matrix;
mod pattern;
mod tape;

pub(crate) use compression::{Compression, Products};
pub use dependences::TooDense;
pub(crate) use graph::MAX_STEPS;
pub use graph::pattern_of_graph;
pub use kind::MatrixKind;
pub use matrix::SparseMatrix;
pub use pattern::Pattern;
pub use tape::pattern_of_trace;
pub(crate) use tape::structure_hash;
