//! Checks of gradients: tolerances, and comparison with differences of values.
//!
//! The library's own tests are built from these parts; they are public so that code which uses it
//! can test its gradients in the same way. [`close`] and [`same`] compare numbers,
//! [`GradientCheck`] compares a gradient, or the derivatives of an operation, with differences of
//! values.

mod gradient;
mod operation;
mod tolerance;

pub use gradient::{GradientCheck, GradientError};
pub use tolerance::{Tolerance, close, same};
