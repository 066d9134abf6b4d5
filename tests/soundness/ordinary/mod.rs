//! Ordinary Rust, as users write it, on `Var` itself: it compiles with the
//! attribute without a warning, and computes the same.

mod conditions;
mod functions;
mod loops;
mod signatures;
mod types;
mod values;
