//! Ordinary Rust, as users write it, on `Var` itself: it compiles with the
//! attribute without a warning, and computes the same.

mod borrows;
mod conditions;
mod deferred;
mod functions;
mod generics;
mod loops;
mod machines;
mod macros;
mod numerics;
mod signatures;
mod state;
mod types;
mod unusual;
mod values;
