//! The meanings of the special functions: published formulas, each with its source and its
//! accuracy.

mod bessel;
mod beta;
mod error_function;
mod fraction;
mod gamma;
mod polygamma;
mod quadrature;

pub(super) use bessel::{bessel_i, bessel_j};
pub(super) use beta::{beta_density, beta_inc};
pub(super) use error_function::{erf_inv, erfc_inv, erfcx};
pub(super) use gamma::{gamma_density, gamma_p, gamma_q, ln_rising};
pub(super) use polygamma::polygamma;
