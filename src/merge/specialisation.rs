//! Path sharing with specialisation: a path of traced values is also one of constants.
//!
//! Operations on constants are not in the trace, so of two instances with different constants
//! neither has the other's path. But if one of them has a traced value where the other has a
//! constant, its trace has all operations on it. They are copied with constant folding, as the tape
//! computes them, and are no steps of the copy. A comparison of constants is no guard, and the
//! guards decide whether a region has a single path; so paths that lead through such a comparison
//! or escape are not copied.

use super::path_sharing::PathSharing;
use super::tree::{Applied, Instance, LiveIn, Origin, Tree, Value};
use crate::op::{MAX_ARITY, Op, eval};

/// The counterpart of a step.
pub(super) enum Fold {
    /// A step.
    Step,
    /// A constant, which was noted.
    Constant,
    /// An unknown constant.
    Unknown,
}

/// The constants among the captured values, by position.
pub(super) fn constants(tree: &Tree, live_in: &LiveIn) -> Vec<Option<Value>> {
    let is_constant = |&value: &Value| tree.is_constant(value);
    live_in.captured.iter().map(|value| Some(*value).filter(is_constant)).collect()
}

/// Tests whether `to` has constants in the place of traced values of `from`.
pub(super) fn folds(tree: &Tree, from: Instance, to: Instance) -> bool {
    let (Some(from), Some(to)) = (tree.live_in(from), tree.live_in(to)) else { return false };
    let mut pairs = from.captured.iter().zip(&to.captured);
    pairs.any(|(&a, &b)| !tree.is_constant(a) && tree.is_constant(b))
}

/// The constants of `specialisation` at the positions that are constants in `general`; `None` if
/// `general` has others, or as many.
pub(super) fn generalised(
    specialisation: &[Option<Value>],
    general: &[Option<Value>],
) -> Option<Vec<Option<Value>>> {
    let same_length = specialisation.len() == general.len();
    let mut pairs = specialisation.iter().zip(general);
    let is_general = same_length && pairs.clone().all(|(one, all)| all.is_none() || one.is_some());
    let is_other = pairs.any(|(one, all)| all.is_none() && one.is_some());
    (is_general && is_other)
        .then(|| specialisation.iter().zip(general).map(|(one, all)| all.and(*one)).collect())
}

impl PathSharing<'_> {
    /// The counterpart of `value`, a step of the instance that paths are copied from.
    pub(super) fn fold(&mut self, value: Value) -> Fold {
        if !self.folds {
            return Fold::Step;
        }
        let Origin::Apply(applied, args, _) = self.tree.values[value] else { return Fold::Unknown };
        // A call of a custom operation stays one.
        let Applied::Primitive(op) = applied else { return Fold::Step };
        let mut numbers = [0.0; MAX_ARITY];
        for (number, arg) in numbers.iter_mut().zip(&args[..op.arity()]) {
            match self.value(*arg).map(|arg| self.tree.values[arg]) {
                Some(Origin::Const(bits)) => *number = f64::from_bits(bits),
                _ => return Fold::Step,
            }
        }
        let number = eval(op, numbers);
        // The bits of a computed NaN are not specified.
        if op == Op::Same || number.is_nan() {
            return Fold::Unknown;
        }
        let constant = self.tree.constant(number.to_bits());
        self.values.insert(value, constant);
        Fold::Constant
    }
}
