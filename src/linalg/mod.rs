//! Linear algebra on slices of `Var`, with derivatives of the first and second order.
//!
//! Matrices are slices in row-major order with their shape: `[rows, columns]`, or `n` for a square
//! one. No function makes a guard: there is one path whatever the numbers are, also for every order
//! of pivots.
//!
//! | function | result | recorded as |
//! | --- | --- | --- |
//! | [`dot`], [`axpy`], [`matvec`] | products | primitives |
//! | [`norm`], [`log_sum_exp`], [`softmax`] | without overflow | primitives |
//! | [`matmul`] | A·B | primitives if small, otherwise one operation |
//! | [`cholesky`], [`cholesky_solve`] | the factor of a positive definite matrix | one operation |
#![cfg_attr(
    feature = "linalg",
    doc = "| [`solve`] | A⁻¹B by a pivoted LU factorisation | one operation |
| [`log_det`] | the logarithm of the determinant, with its sign | one operation |
| [`inverse`] | A⁻¹ | one operation |
| [`symmetric_eigenvalues`] | in ascending order | one operation |"
)]
#![cfg_attr(
    not(feature = "linalg"),
    doc = "
The feature `linalg` adds `solve`, `log_det`, `inverse` and `symmetric_eigenvalues`."
)]
//!
//! Functions that are one operation compute on plain numbers, on the tape as in kernels: see
//! [`Operation`](crate::Operation). Derivatives use the saved factor. With the feature `linalg` the
//! factorisations and the large products are those of the crate nalgebra.
//!
//! # Errors
//!
//! A slice of a wrong length fails the recording ([`Error::is_shape`](crate::Error::is_shape)), and
//! the results are NaN, as they are outside of a recorded function. A matrix without a result is an
//! error of the function that is returned to the caller, also if a kernel has called the operation.
//! NaN in the inputs is no error: results are NaN.
//!
//! # Memory
//!
//! The library keeps a description of about 200 bytes of each operation and shape that the process
//! has used, and for each thread a buffer for the largest matrices.

mod buffer;
mod cholesky;
mod cholesky_solve;
#[cfg(feature = "linalg")]
mod eigenvalues;
#[cfg(feature = "linalg")]
mod inverse;
#[cfg(feature = "linalg")]
mod log_det;
#[cfg(feature = "linalg")]
mod lu;
mod matmul;
mod product;
mod shape;
#[cfg(feature = "linalg")]
mod solve;
mod stable;
mod table;
mod triangular;
mod vectors;

pub use cholesky::{NotPositiveDefinite, cholesky};
pub use cholesky_solve::cholesky_solve;
#[cfg(feature = "linalg")]
pub use eigenvalues::symmetric_eigenvalues;
#[cfg(feature = "linalg")]
pub use inverse::inverse;
#[cfg(feature = "linalg")]
pub use log_det::{LogDet, log_det};
#[cfg(feature = "linalg")]
pub use lu::Singular;
pub use matmul::matmul;
#[cfg(feature = "linalg")]
pub use solve::solve;
pub use stable::{log_sum_exp, norm, softmax};
pub use vectors::{axpy, dot, matvec};
