//! Sharing to where less is traced: what a region does with traced numbers, it does
//! with constants.
//!
//! What is computed of constants leaves no trace, so of two instances that were given
//! different constants neither knows what the other would do. But where one of them
//! was given a traced number, all that was done with it is in the trace, and the same
//! is done with a constant: steps whose operands are constants are then computed here,
//! as the tape computes them, and are no steps. A comparison of constants is no guard,
//! and whether a region has one way depends on the guards in it; so sides that lead
//! through such a comparison, or read such a number out, are not copied.

use super::path_sharing::PathSharing;
use super::tree::{Instance, LiveIn, Origin, Tree, Value};
use crate::op::{MAX_ARITY, Op, eval};

/// What a step of the one region is in the other.
pub(super) enum Fold {
    /// A step, too.
    Step,
    /// A constant, which is noted.
    Constant,
    /// A constant that cannot be told.
    Unknown,
}

/// The constants among what was captured, by position.
pub(super) fn constants(tree: &Tree, live_in: &LiveIn) -> Vec<Option<Value>> {
    let is_constant = |&value: &Value| tree.is_constant(value);
    live_in.captured.iter().map(|value| Some(*value).filter(is_constant)).collect()
}

/// Whether `to` was given constants where `from` was given traced values.
pub(super) fn folds(tree: &Tree, from: Instance, to: Instance) -> bool {
    let (Some(from), Some(to)) = (tree.live_in(from), tree.live_in(to)) else { return false };
    let mut pairs = from.captured.iter().zip(&to.captured);
    pairs.any(|(&a, &b)| !tree.is_constant(a) && tree.is_constant(b))
}

/// Those of the constants that are constants by `general`, too; `None` if others
/// would be, or none would be lost.
pub(super) fn generalised(
    special: &[Option<Value>],
    general: &[Option<Value>],
) -> Option<Vec<Option<Value>>> {
    let same_length = special.len() == general.len();
    let mut pairs = special.iter().zip(general);
    let is_general = same_length && pairs.clone().all(|(one, all)| all.is_none() || one.is_some());
    let is_other = pairs.any(|(one, all)| all.is_none() && one.is_some());
    (is_general && is_other)
        .then(|| special.iter().zip(general).map(|(one, all)| all.and(*one)).collect())
}

impl PathSharing<'_> {
    /// What `value`, a step of the region that sides come from, is in the other.
    pub(super) fn fold(&mut self, value: Value) -> Fold {
        if !self.folds {
            return Fold::Step;
        }
        let Origin::Apply(op, args, _) = self.tree.values[value] else { return Fold::Unknown };
        let mut numbers = [0.0; MAX_ARITY];
        for (number, arg) in numbers.iter_mut().zip(&args[..op.arity()]) {
            match self.value(*arg).map(|arg| self.tree.values[arg]) {
                Some(Origin::Const(bits)) => *number = f64::from_bits(bits),
                _ => return Fold::Step,
            }
        }
        let number = eval(op, numbers);
        // Of NaN it is not known which one the tape computes.
        if op == Op::Same || number.is_nan() {
            return Fold::Unknown;
        }
        let constant = self.tree.constant(number.to_bits());
        self.values.insert(value, constant);
        Fold::Constant
    }
}
