//! The weighted sum of the outputs of a function, which stands for all of them.

use super::{Operand, Site, Var};
use crate::op::Op;

/// The sum of `numbers`, each times its weight, recorded at `at`.
pub(crate) fn weighted_sum(numbers: &[Var], weights: &[Var], at: Site) -> Var {
    let mut terms = numbers.iter().zip(weights).map(|(y, w)| y.apply2_at(Op::Mul, *w, at));
    let first = terms.next().unwrap_or(Var::constant(0.0));
    terms.fold(first, |sum, term| sum.apply2_at(Op::Add, term, at))
}

impl Var {
    /// The number, without a guard: for results of a call, not for code that is recorded.
    pub(crate) fn number(self) -> f64 {
        self.value
    }

    /// The operand for this output of the run that has just ended.
    pub(crate) fn into_operand(self) -> Operand {
        match self.is_constant() {
            true => Operand::Constant(self.value),
            false => Operand::Event(self.tag() as u32),
        }
    }
}
