//! Random programs that run on numbers and on [`Var`](crate::Var) alike, and the random numbers
//! for them: tests compare the results of all executors.
//!
//! - `random`: seeded random numbers
//! - `scalar`: the operations of programs, on numbers and on `Var`
//! - `program`: statements, and an interpreter for them
//! - `generate`: programs and inputs from a recipe

mod generate;
mod program;
mod random;
mod scalar;

pub use generate::Recipe;
pub use program::Program;
pub use random::Random;
pub use scalar::Scalar;
