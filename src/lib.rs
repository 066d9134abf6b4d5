//! tmp
pub mod entity;
pub mod op;
pub mod trace;
pub mod ssa;
pub mod diff;
pub use trace::Var;
