//! A guide of short pages.
//!
//! 1. [A first gradient](first_gradient)
//! 2. [Data that change](data)
//! 3. [Outputs and derivatives](derivatives)
//! 4. [Control flow](control_flow)
//! 5. [Escapes](escapes)
//! 6. [Reading a report](reports)
//! 7. [Accuracy](accuracy)

#[doc = include_str!("../docs/guide/accuracy.md")]
pub mod accuracy {}
#[doc = include_str!("../docs/guide/control_flow.md")]
pub mod control_flow {}
#[doc = include_str!("../docs/guide/data.md")]
pub mod data {}
#[doc = include_str!("../docs/guide/derivatives.md")]
pub mod derivatives {}
#[doc = include_str!("../docs/guide/escapes.md")]
pub mod escapes {}
#[doc = include_str!("../docs/guide/first_gradient.md")]
pub mod first_gradient {}
#[doc = include_str!("../docs/guide/reports.md")]
pub mod reports {}
