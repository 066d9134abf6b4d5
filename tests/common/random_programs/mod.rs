//! Random programs that run on numbers and on `Var` alike: tests compare the results of all
//! executors.
//!
//! - `scalar`: the operations of programs, on numbers and on `Var`
//! - `program`: statements, and an interpreter for them
//! - `generate`: programs and inputs from a recipe

mod generate;
mod program;
mod scalar;

pub use generate::Recipe;
pub use program::Program;
pub use scalar::Scalar;
