//! Programs of about a thousand inputs, for `run --extra`: what they cost where
//! nothing is made for them.

mod gaussian_process;
mod heat;
mod pairs;
mod recurrent_network;

use super::Program;
use crate::commands::extra::{ExtraRow, measure};
use crate::error::Error;
use crate::timing::Plan;

/// A program that is compared with its gradient by hand.
pub trait Extra: Program {
    /// The point where it is measured.
    fn point(&self) -> Vec<f64>;
}

/// A program with its type erased.
pub struct ExtraEntry {
    /// Name of the program.
    pub name: &'static str,
    /// Number of its configurations.
    pub configs: usize,
    /// Checks, then measures a configuration.
    pub measure: fn(usize, &Plan) -> Result<ExtraRow, Error>,
}

impl ExtraEntry {
    const fn of<P: Extra>() -> ExtraEntry {
        ExtraEntry { name: P::NAME, configs: P::CONFIGS.len(), measure: measure::<P> }
    }
}

/// All extra programs, in the order of the table.
pub static EXTRA: &[ExtraEntry] = &[
    ExtraEntry::of::<pairs::Pairs>(),
    ExtraEntry::of::<heat::Heat>(),
    ExtraEntry::of::<gaussian_process::GaussianProcess>(),
    ExtraEntry::of::<recurrent_network::RecurrentNetwork>(),
];

#[cfg(test)]
mod tests {
    use super::super::tests::require_gradient_of_tape;
    use super::*;
    use crate::accuracy::deviation;

    /// Compares value and gradient by hand with those of the objective.
    fn require_hand_written<P: Extra>(config: P::Config) {
        let program = P::new(config);
        let x = program.point();
        let mut work = require_gradient_of_tape::<P>(config, &x);
        let (by_hand, value) = (program.primal(&x, &mut work), program.objective(&x));
        assert!(deviation(&[by_hand], &[value]) < 1e-12, "{} {by_hand} {value}", P::NAME);
    }

    #[test]
    fn values_and_gradients_by_hand_are_right() {
        require_hand_written::<pairs::Pairs>(12);
        require_hand_written::<heat::Heat>(10);
        require_hand_written::<gaussian_process::GaussianProcess>(9);
        require_hand_written::<recurrent_network::RecurrentNetwork>(5);
    }
}
