//! Random programs that run on numbers and on [`Var`](crate::Var) alike, and the source of random
//! numbers: tests compare what executors make of them.
//!
//! - `random`: random numbers that a seed determines
//! - `scalar`: the operations of a program, on numbers and on `Var`
//! - `program`: statements, and running them
//! - `generate`: programs and inputs of a kind

mod generate;
mod program;
mod random;
mod scalar;

pub use generate::Recipe;
pub use program::Program;
pub use random::Random;
pub use scalar::Scalar;
