//! Applying a primitive to `Var`s: evaluates it and records the event.

use core::panic::Location;

use super::Var;
use super::event::{Form, Kind, Site};
use super::payload::Payload;
use super::recorder;
#[cfg(feature = "internals")]
use crate::op::MAX_ARITY;
use crate::op::{Algebra, Op, eval};

impl Var {
    /// Applies `op` by the method or operator of that name, for tests over all primitives.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    #[track_caller]
    pub fn apply(op: Op, [a, b, c]: [Var; MAX_ARITY]) -> Var {
        match (op, op.arity()) {
            (Op::Powi, _) => a.powi(b.value as i32),
            // `Same` compares bits, which user code does only by reading a number out.
            (Op::Same, _) => Var::constant(eval(op, [a.value, b.value, 0.0])),
            // The value operand; for custom derivatives see `Var::with_derivative`.
            (Op::Attach, _) => a,
            (_, 1) => a.apply1(op),
            (_, 2) => a.apply2(op, b),
            _ => a.apply3(op, b, c),
        }
    }

    #[inline(always)]
    #[track_caller]
    pub(super) fn apply1(self, op: Op) -> Var {
        self.apply1_at(op, Location::caller())
    }

    #[inline(always)]
    fn apply1_at(self, op: Op, at: Site) -> Var {
        let value = eval(op, [self.value, 0.0, 0.0]);
        self.recorded(value, Payload::NONE, Kind::apply(op, Form::Events), at)
    }

    #[inline(always)]
    #[track_caller]
    pub(super) fn apply2(self, op: Op, other: Var) -> Var {
        self.apply2_at(op, other, Location::caller())
    }

    /// Applies `op` where the user's place is not the caller's.
    #[inline(always)]
    pub(super) fn apply2_at(self, op: Op, other: Var, at: Site) -> Var {
        let value = eval(op, [self.value, other.value, 0.0]);
        let (a, b) = (self.tag, other.tag);
        // The common case first: operands are tested for being constants only if they are not both
        // events of this recording.
        let kind = Kind::apply(op, Form::Events);
        let tag = match recorder::record(value, Payload::second_operand(b), a, b, kind, at) {
            Some(tag) => tag,
            None => {
                let with = Kind::apply(op, Form::ConstantSecond);
                let after = Kind::apply(op, Form::ConstantFirst);
                self.mixed(value, other, [kind, with, after], at)
            }
        };
        Var::traced(value, tag)
    }

    /// The slow case of [`Var::apply2`]: an operand is a constant or of another recording, or the
    /// ring is full. The kinds are for two events, a constant second operand and a constant first
    /// operand. Returns the tag of the result.
    #[inline(never)]
    fn mixed(self, value: f64, other: Var, kinds: [Kind; 3], at: Site) -> u64 {
        let (a, b, [kind, with, after]) = (self.tag, other.tag, kinds);
        if other.is_constant() {
            self.recorded(value, Payload::constant(other.value), with, at).tag
        } else if self.is_constant() {
            other.recorded(value, Payload::constant(self.value), after, at).tag
        } else {
            recorder::record_slowly(value, Payload::second_operand(b), a, b, kind, at)
        }
    }

    /// Applies `op` to `self` and a constant.
    #[inline(always)]
    #[track_caller]
    pub(super) fn apply2_with(self, op: Op, constant: f64) -> Var {
        let value = eval(op, [self.value, constant, 0.0]);
        let kind = Kind::apply(op, Form::ConstantSecond);
        self.recorded(value, Payload::constant(constant), kind, Location::caller())
    }

    /// Applies `op` to a constant and `self`.
    #[inline(always)]
    #[track_caller]
    pub(super) fn apply2_after(self, op: Op, constant: f64) -> Var {
        let value = eval(op, [constant, self.value, 0.0]);
        let kind = Kind::apply(op, Form::ConstantFirst);
        self.recorded(value, Payload::constant(constant), kind, Location::caller())
    }

    /// Records an operation of which every operand but `self` is a constant.
    #[inline(always)]
    fn recorded(self, value: f64, payload: Payload, kind: Kind, at: Site) -> Var {
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
        self.apply3_at(op, b, c, Location::caller())
    }

    #[inline]
    fn apply3_at(self, op: Op, b: Var, c: Var, at: Site) -> Var {
        let value = eval(op, [self.value, b.value, c.value]);
        if self.is_constant() && b.is_constant() && c.is_constant() {
            return Var::constant(value);
        }
        Var::traced(value, recorder::record3(op, value, [self, b, c], at))
    }
}

/// The [`Algebra`] of recorded numbers: formulas of several primitives, at one place of the user.
pub(super) struct Recording {
    at: Site,
}

impl Recording {
    #[inline(always)]
    #[track_caller]
    pub(super) fn here() -> Recording {
        Recording::at(Location::caller())
    }

    #[inline(always)]
    pub(super) fn at(at: Site) -> Recording {
        Recording { at }
    }
}

impl Algebra for Recording {
    type Value = Var;

    #[inline(always)]
    fn constant(&mut self, value: f64) -> Var {
        Var::constant(value)
    }

    #[inline(always)]
    fn apply<const N: usize>(&mut self, op: Op, args: [Var; N]) -> Var {
        match args[..] {
            [a] => a.apply1_at(op, self.at),
            [a, b] => a.apply2_at(op, b, self.at),
            [a, b, c] => a.apply3_at(op, b, c, self.at),
            // No primitive has another arity.
            _ => Var::constant(f64::NAN),
        }
    }
}
