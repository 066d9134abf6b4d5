//! Fast gradients of ordinary Rust code.

pub mod check;
pub mod diff;
pub mod entity;
pub mod jit;
pub mod op;
mod runtime;
pub mod ssa;
pub mod trace;

pub use runtime::{
    Error, KernelReport, Limits, Numerics, Purpose, Recorded, RecordedWith, Refusal, Report, Tape,
    TapeBuilder,
};
pub use trace::Var;
