//! Checks: what it means that two numbers agree, random programs, and a test
//! of gradients against finite differences.
//!
//! Our own tests are built from these parts; they are public so that code
//! which uses this library can test its gradients in the same way.
//! [`close`] and [`same`] are the only comparisons of numbers that tests use;
//! [`Program`] is a random function that runs on numbers and on
//! [`Var`](crate::Var) alike; [`GradientCheck`] compares a gradient with differences of values.

mod generate;
mod gradient;
mod program;
mod random;
mod scalar;
mod tolerance;

pub use generate::Recipe;
pub use gradient::{GradientCheck, GradientError};
pub use program::Program;
pub use random::Random;
pub use scalar::Scalar;
pub use tolerance::{Tolerance, close, same};
