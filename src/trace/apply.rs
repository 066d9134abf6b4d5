//! How an operation on `Var` computes its value and reaches the recorder.

use core::panic::Location;

use super::Var;
use super::event::{Form, Site};
use super::recorder::{self, ID};
use crate::op::{Op, eval};

impl Var {
    #[inline(always)]
    #[track_caller]
    pub(super) fn apply1(self, op: Op) -> Var {
        let value = eval(op, [self.value, 0.0, 0.0]);
        self.recorded(value, 0, op, Form::Events, Location::caller())
    }

    #[inline(always)]
    #[track_caller]
    pub(super) fn apply2(self, op: Op, other: Var) -> Var {
        let value = eval(op, [self.value, other.value, 0.0]);
        let (a, b, at) = (self.tag, other.tag, Location::caller());
        let tag = match recorder::record(value, b & ID, a, b, op, Form::Events, at) {
            Some(tag) => tag,
            None => self.mixed(op, value, other, at),
        };
        Var::traced(value, tag)
    }

    /// What [`Var::apply2`] does when the operands are not both events of this
    /// recording, or there is no room. Returns the tag of the result.
    #[inline(never)]
    fn mixed(self, op: Op, value: f64, other: Var, at: Site) -> u64 {
        if other.is_constant() {
            self.recorded(value, other.value.to_bits(), op, Form::ConstantSecond, at).tag
        } else if self.is_constant() {
            other.recorded(value, self.value.to_bits(), op, Form::ConstantFirst, at).tag
        } else {
            let (a, b) = (self.tag, other.tag);
            recorder::record_slowly(value, b & ID, a, b, op, Form::Events, at)
        }
    }

    /// `op` on this and a constant.
    #[inline(always)]
    #[track_caller]
    pub(super) fn apply2_with(self, op: Op, constant: f64) -> Var {
        let value = eval(op, [self.value, constant, 0.0]);
        let at = Location::caller();
        self.recorded(value, constant.to_bits(), op, Form::ConstantSecond, at)
    }

    /// `op` on a constant and this.
    #[inline(always)]
    #[track_caller]
    pub(super) fn apply2_after(self, op: Op, constant: f64) -> Var {
        let value = eval(op, [constant, self.value, 0.0]);
        let at = Location::caller();
        self.recorded(value, constant.to_bits(), op, Form::ConstantFirst, at)
    }

    /// The result of an operation of which this is the only operand that may
    /// not be a constant.
    #[inline(always)]
    fn recorded(self, value: f64, payload: u64, op: Op, form: Form, at: Site) -> Var {
        let a = self.tag;
        let tag = match recorder::record(value, payload, a, a, op, form, at) {
            Some(tag) => tag,
            None => recorder::record_slowly(value, payload, a, a, op, form, at),
        };
        Var::traced(value, tag)
    }

    #[inline]
    #[track_caller]
    pub(super) fn apply3(self, op: Op, b: Var, c: Var) -> Var {
        let value = eval(op, [self.value, b.value, c.value]);
        if self.is_constant() && b.is_constant() && c.is_constant() {
            return Var::constant(value);
        }
        Var::traced(value, recorder::record3(op, value, [self, b, c], Location::caller()))
    }
}
