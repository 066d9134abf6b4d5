//! How an operation on `Var` computes its value and reaches the recorder.

use core::panic::Location;

use super::Var;
use super::event::{Form, Kind, Site};
use super::recorder::{self, ID};
use crate::op::{MAX_ARITY, Op, eval};

impl Var {
    /// `op` as its method or operator applies it.
    #[track_caller]
    pub(crate) fn apply(op: Op, [a, b, c]: [Var; MAX_ARITY]) -> Var {
        match (op, op.arity()) {
            (Op::Powi, _) => a.powi(b.value as i32),
            // User code can compare bits only by reading the numbers out.
            (Op::Same, _) => Var::constant(eval(op, [a.value, b.value, 0.0])),
            // Its value; the tape has no custom derivatives yet.
            (Op::Attach, _) => a,
            (_, 1) => a.apply1(op),
            (_, 2) => a.apply2(op, b),
            _ => a.apply3(op, b, c),
        }
    }

    #[inline(always)]
    #[track_caller]
    pub(super) fn apply1(self, op: Op) -> Var {
        let value = eval(op, [self.value, 0.0, 0.0]);
        self.recorded(value, 0, Kind::apply(op, Form::Events), Location::caller())
    }

    #[inline(always)]
    #[track_caller]
    pub(super) fn apply2(self, op: Op, other: Var) -> Var {
        let value = eval(op, [self.value, other.value, 0.0]);
        let (a, b, at) = (self.tag, other.tag, Location::caller());
        // The common case first: whether an operand is a constant is asked only
        // when they are not both events of this recording.
        let kind = Kind::apply(op, Form::Events);
        let tag = match recorder::record(value, b & ID, a, b, kind, at) {
            Some(tag) => tag,
            None => {
                let with = Kind::apply(op, Form::ConstantSecond);
                let after = Kind::apply(op, Form::ConstantFirst);
                self.mixed(value, other, [kind, with, after], at)
            }
        };
        Var::traced(value, tag)
    }

    /// What [`Var::apply2`] does when the operands are not both events of this
    /// recording, or there is no room. The kinds are for two events, a constant
    /// second and a constant first. Returns the tag of the result.
    #[inline(never)]
    fn mixed(self, value: f64, other: Var, kinds: [Kind; 3], at: Site) -> u64 {
        let (a, b, [kind, with, after]) = (self.tag, other.tag, kinds);
        if other.is_constant() {
            self.recorded(value, other.value.to_bits(), with, at).tag
        } else if self.is_constant() {
            other.recorded(value, self.value.to_bits(), after, at).tag
        } else {
            recorder::record_slowly(value, b & ID, a, b, kind, at)
        }
    }

    /// `op` on this and a constant.
    #[inline(always)]
    #[track_caller]
    pub(super) fn apply2_with(self, op: Op, constant: f64) -> Var {
        let value = eval(op, [self.value, constant, 0.0]);
        let kind = Kind::apply(op, Form::ConstantSecond);
        self.recorded(value, constant.to_bits(), kind, Location::caller())
    }

    /// `op` on a constant and this.
    #[inline(always)]
    #[track_caller]
    pub(super) fn apply2_after(self, op: Op, constant: f64) -> Var {
        let value = eval(op, [constant, self.value, 0.0]);
        let kind = Kind::apply(op, Form::ConstantFirst);
        self.recorded(value, constant.to_bits(), kind, Location::caller())
    }

    /// The result of an operation of which this is the only operand that may
    /// not be a constant.
    #[inline(always)]
    fn recorded(self, value: f64, payload: u64, kind: Kind, at: Site) -> Var {
        let a = self.tag;
        let tag = match recorder::record(value, payload, a, a, kind, at) {
            Some(tag) => tag,
            None => recorder::record_slowly(value, payload, a, a, kind, at),
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
