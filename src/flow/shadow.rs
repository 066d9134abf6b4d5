//! Shadows: a `Var` beside each plain variable that traced decisions may change.
//!
//! The shadow is the number of the variable's value. While it is a constant, the value is known on
//! this path. Where paths join the shadow is carried in place of the value and becomes a φ. From
//! then on the variable is a copy of what the shadow decodes to: each read is pinned by guards on
//! the shadow, and a comparison of the variable is one comparison of the shadow.
//!
//! [`Track`] is a probe: a method call finds [`Tracked`] for [`Plain`] types, and [`Untracked`] one
//! reference further for all others, where it does nothing.

use core::cell::Cell;

use super::Carrier;
use super::plain::{Increment, Numbering, Plain, add, pin};
use crate::trace::{Var, mark};

/// The `Var` that stands for a plain variable.
#[derive(Debug, Default)]
pub struct Shadow {
    var: Cell<Var>,
    /// The shadow of a value that is about to be assigned, if it is not a constant.
    pending: Cell<Option<Var>>,
}

impl Shadow {
    /// The shadow of a variable without a value.
    #[inline]
    pub fn new() -> Self {
        Shadow::default()
    }

    /// Begins the computation of a value that will be assigned.
    #[inline]
    pub fn begin(&self) {
        self.pending.set(None);
    }

    /// Notes that the variables of both have exchanged their values.
    #[inline]
    pub fn swap(&self, other: &Shadow) {
        self.var.swap(&other.var);
    }

    /// Tests whether the variable is a traced value.
    #[inline]
    pub fn is_traced(&self) -> bool {
        !self.var.get().is_constant()
    }
}

/// A comparison of two integers.
#[derive(Clone, Copy, Debug)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `==`
    Equal,
    /// `!=`
    Differs,
}

impl Comparison {
    /// Records the comparison as a guard.
    #[cold]
    #[track_caller]
    fn guard(self, left: Var, right: Var) {
        let _ = match self {
            Comparison::Less => left < right,
            Comparison::AtMost => left <= right,
            Comparison::Greater => left > right,
            Comparison::AtLeast => left >= right,
            Comparison::Equal => left == right,
            Comparison::Differs => left != right,
        };
    }
}

/// A variable, or a value, and its shadow.
#[derive(Debug)]
pub struct Track<'a, T: ?Sized>(pub &'a T, pub &'a Shadow);

/// Variables of [`Plain`] types.
pub trait Tracked<'a> {
    /// The type of the variable.
    type Value;

    /// Pins a read by value.
    fn pin(&self);

    /// Pins a read by reference.
    fn pinned(&self) -> &'a Self::Value;

    /// Records a comparison with a value that is known on this path.
    fn compare(&self, comparison: Comparison, other: &Self::Value);

    /// Records a comparison with another variable.
    fn compare_with(&self, comparison: Comparison, other: &Self::Value, shadow: &Shadow);

    /// Notes that a value was assigned that is known on this path.
    fn assigned(&self);

    /// Notes that a value was assigned whose shadow may be pending.
    fn assigned_pending(&self);

    /// Notes that something known was added, or subtracted. `counts` tells that the variable
    /// begins with a small number and changes by small ones.
    fn added(&self, subtracts: bool, counts: bool);

    /// Notes that the value was changed by another operator.
    fn changed(&self);

    /// Makes the shadow pending for an assignment to another variable.
    fn copy_to(&self, target: &Shadow);

    /// Makes the shadow of the negation pending for an assignment.
    fn negate_to(&self, target: &Shadow);

    /// Makes the shadow of this value, the sum of a variable with something known, pending.
    fn sum_to(&self, target: &Shadow, subtracts: bool);

    /// Hands over the variable, which is number `index`. If its value is known on this path and
    /// `keeps` says so, it is static state.
    fn carry(&self, to: &mut Carrier, index: u64, keeps: bool) -> bool;

    /// Hands over the value of a region, whose shadow is or becomes pending.
    fn carry_value(&self, to: &mut Carrier) -> bool;

    /// Captures the variable.
    fn capture(&self, to: &mut Carrier) -> bool;
}

/// Other variables: nothing is done, unless a method says more.
pub trait Untracked<'a> {
    /// The type of the variable.
    type Value: ?Sized;

    /// The variable.
    fn pinned(&self) -> &'a Self::Value;

    /// Does nothing.
    #[inline]
    fn pin(&self) {}

    /// Does nothing.
    #[inline]
    fn compare<U: ?Sized>(&self, _: Comparison, _: &U) {}

    /// Does nothing.
    #[inline]
    fn compare_with<U: ?Sized>(&self, _: Comparison, _: &U, _: &Shadow) {}

    /// Does nothing.
    #[inline]
    fn assigned(&self) {}

    /// Does nothing.
    #[inline]
    fn assigned_pending(&self) {}

    /// Does nothing.
    #[inline]
    fn added(&self, _: bool, _: bool) {}

    /// Does nothing.
    #[inline]
    fn changed(&self) {}

    /// Does nothing.
    #[inline]
    fn copy_to(&self, _: &Shadow) {}

    /// Does nothing.
    #[inline]
    fn negate_to(&self, _: &Shadow) {}

    /// Does nothing.
    #[inline]
    fn sum_to(&self, _: &Shadow, _: bool) {}

    /// `false`: it is not a plain variable.
    #[inline]
    fn carry(&self, _: &mut Carrier, _: u64, _: bool) -> bool {
        false
    }

    /// `false`: it is not a plain variable.
    #[inline]
    fn carry_value(&self, _: &mut Carrier) -> bool {
        false
    }

    /// `false`: it is not a plain variable.
    #[inline]
    fn capture(&self, _: &mut Carrier) -> bool {
        false
    }
}

/// The number of a value.
#[inline]
fn number<T: Plain>(value: &T) -> f64 {
    T::NUMBERING.number(value.wide())
}

impl<T: Plain> Track<'_, T> {
    #[inline]
    fn constant(&self) -> Var {
        Var::from(number(self.0))
    }

    /// The shadow. A method may have changed the variable: it was pinned before, and so the new
    /// value is known on this path.
    #[inline]
    fn var(&self) -> Var {
        if mark::number(self.1.var.get()) != number(self.0) {
            self.1.var.set(self.constant());
        }
        self.1.var.get()
    }

    /// The shadow if it is traced.
    #[inline]
    fn traced(&self) -> Option<Var> {
        self.1.is_traced().then(|| self.var()).filter(|var| !var.is_constant())
    }

    /// Takes the pending shadow of the value.
    #[inline]
    fn pending(&self) -> Var {
        let pending = self.1.pending.take();
        pending
            .filter(|&pending| mark::number(pending) == number(self.0))
            .unwrap_or(self.constant())
    }

    /// Tests whether the value can become a φ.
    fn is_exact(&self) -> bool {
        T::NUMBERING.is_exact(self.0.wide())
    }

    /// Hands over a value that is known on this path.
    fn state(&self, to: &mut Carrier) {
        to.state(self.0.wide() as u64);
        to.state((self.0.wide() >> 64) as u64);
    }

    #[cold]
    #[track_caller]
    fn compare_traced(&self, comparison: Comparison, shadow: Var) {
        match T::NUMBERING {
            Numbering::Integer { .. } => comparison.guard(self.var(), shadow),
            Numbering::Flag | Numbering::Choices(_) => {
                self.pin();
                if !shadow.is_constant() {
                    pin(T::NUMBERING, shadow);
                }
            }
        }
    }
}

/// The number of the state word that stands for the value of a region.
const VALUE: u64 = u64::MAX;

impl<'a, T: Plain> Tracked<'a> for Track<'a, T> {
    type Value = T;

    #[inline]
    #[track_caller]
    fn pin(&self) {
        if let Some(var) = self.traced() {
            pin(T::NUMBERING, var);
        }
    }

    #[inline]
    #[track_caller]
    fn pinned(&self) -> &'a T {
        self.pin();
        self.0
    }

    #[inline]
    #[track_caller]
    fn compare(&self, comparison: Comparison, other: &T) {
        if self.traced().is_some() {
            self.compare_traced(comparison, Var::from(number(other)));
        }
    }

    #[inline]
    #[track_caller]
    fn compare_with(&self, comparison: Comparison, other: &T, shadow: &Shadow) {
        if self.1.is_traced() || shadow.is_traced() {
            let shadow = Track(other, shadow).var();
            self.compare_traced(comparison, shadow);
        }
    }

    #[inline]
    fn assigned(&self) {
        self.1.var.set(self.constant());
    }

    #[inline]
    fn assigned_pending(&self) {
        self.1.var.set(self.pending());
    }

    #[inline]
    #[track_caller]
    fn added(&self, subtracts: bool, counts: bool) {
        let before = self.1.var.get();
        self.1.var.set(match before.is_constant() {
            true => self.constant(),
            false => {
                let increment = Increment { subtracts, is_counter: counts };
                add(T::NUMBERING, before, mark::number(before), self.0.wide(), increment)
            }
        });
    }

    #[inline]
    #[track_caller]
    fn changed(&self) {
        let before = self.1.var.get();
        if !before.is_constant() {
            pin(T::NUMBERING, before);
        }
        self.assigned();
    }

    #[inline]
    fn copy_to(&self, target: &Shadow) {
        target.pending.set(Some(self.var()));
    }

    #[inline]
    #[track_caller]
    fn negate_to(&self, target: &Shadow) {
        let Some(var) = self.traced() else { return };
        match T::NUMBERING {
            Numbering::Flag => target.pending.set(Some(1.0 - var)),
            _ => pin(T::NUMBERING, var),
        }
    }

    #[inline]
    #[track_caller]
    fn sum_to(&self, target: &Shadow, subtracts: bool) {
        // The variable's own shadow is pending until here.
        let Some(before) = target.pending.take().filter(|before| !before.is_constant()) else {
            return;
        };
        let number = mark::number(before);
        let increment = Increment { subtracts, is_counter: false };
        target.pending.set(Some(add(T::NUMBERING, before, number, self.0.wide(), increment)));
    }

    #[inline]
    fn carry(&self, to: &mut Carrier, index: u64, keeps: bool) -> bool {
        if !T::NUMBERING.is_tracked() {
            return false;
        }
        let mut var = self.var();
        if var.is_constant() && (keeps || !self.is_exact()) {
            to.state(index);
            self.state(to);
        } else {
            to.var(&mut var);
            self.1.var.set(var);
        }
        true
    }

    #[inline]
    fn carry_value(&self, to: &mut Carrier) -> bool {
        if !T::NUMBERING.is_tracked() {
            return false;
        }
        let mut var = self.pending();
        if var.is_constant() && !self.is_exact() {
            to.state(VALUE);
            self.state(to);
        } else {
            to.var(&mut var);
            self.1.pending.set(Some(var));
        }
        true
    }

    /// A value that is known is static state: operations on it are not in the trace.
    fn capture(&self, to: &mut Carrier) -> bool {
        let mut var = self.var();
        if !T::NUMBERING.is_tracked() {
            return false;
        }
        if var.is_constant() {
            self.state(to);
        } else if !to.is_done() {
            to.var(&mut var);
        }
        true
    }
}

impl<'a, T: ?Sized> Untracked<'a> for &Track<'a, T> {
    type Value = T;

    #[inline]
    fn pinned(&self) -> &'a T {
        self.0
    }
}
