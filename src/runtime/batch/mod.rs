//! Batches: many calls with inputs of one length, for less than as many single calls.
//!
//! | file | content |
//! | --- | --- |
//! | `calls` | the public methods, on one thread or several |
//! | `inputs` | the inputs and the results of a batch, and of an element |
//! | `error` | which elements have no result, and why |
//! | `elements` | the calls for a range of elements: consecutive ones by a kernel, others singly |
//! | `kernels` | consecutive elements by a kernel: two lanes at once, or the scalar kernel |
//! | `code` | the code of a kernel for batches, made once they use it often |
//!
//! The code itself is compiled by `pipeline::batch`.

mod calls;
mod code;
mod elements;
mod error;
mod inputs;
mod kernels;

pub(super) use code::BatchCodes;
pub use error::{BatchError, ElementCause, ElementError};
pub use inputs::Rows;
pub(super) use kernels::BatchBuffers;
