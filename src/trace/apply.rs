//! Applying a primitive to `Var`s: evaluates it, and differentiates or records it.
//!
//! Operations of the Jacobian tape are inlined into the user's code, but for the rare cases and
//! primitives; those of the event tape are calls.

use core::panic::Location;

use super::event::{Form, Kind, Site};
use super::{Var, jacobian, operations};
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
        let (x, of) = ([self.value, 0.0, 0.0], self.differential);
        let y = eval(op, x);
        let differential = match of.times(op, 0, x, y) {
            Some(differential) => differential,
            None => operations::record1(Kind::apply(op, Form::Events), self.value, of, y, at),
        };
        Var::new(y, differential)
    }

    #[inline(always)]
    #[track_caller]
    pub(super) fn apply2(self, op: Op, other: Var) -> Var {
        self.apply2_at(op, other, Location::caller())
    }

    /// Applies `op` where the user's place is not the caller's.
    #[inline(always)]
    pub(super) fn apply2_at(self, op: Op, other: Var, at: Site) -> Var {
        let (a, b) = (self.differential, other.differential);
        let y = eval(op, [self.value, other.value, 0.0]);
        let differential = match jacobian::differential(op, self.value, a, other.value, b, y) {
            Some(differential) => differential,
            None => operations::record2(
                Kind::apply(op, Form::Events),
                self.value,
                a,
                other.value,
                b,
                y,
                at,
            ),
        };
        Var::new(y, differential)
    }

    /// Applies `op` to `self` and a constant.
    #[inline(always)]
    #[track_caller]
    pub(super) fn apply2_with(self, op: Op, constant: f64) -> Var {
        let (x, of, at) = ([self.value, constant, 0.0], self.differential, Location::caller());
        let y = eval(op, x);
        let differential = match of.times(op, 0, x, y) {
            Some(differential) => differential,
            None => operations::record_with(
                Kind::apply(op, Form::ConstantSecond),
                self.value,
                of,
                constant,
                y,
                at,
            ),
        };
        Var::new(y, differential)
    }

    /// Applies `op` to a constant and `self`.
    #[inline(always)]
    #[track_caller]
    pub(super) fn apply2_after(self, op: Op, constant: f64) -> Var {
        let (x, of, at) = ([constant, self.value, 0.0], self.differential, Location::caller());
        let y = eval(op, x);
        let differential = match of.times(op, 1, x, y) {
            Some(differential) => differential,
            None => operations::record_after(
                Kind::apply(op, Form::ConstantFirst),
                constant,
                self.value,
                of,
                y,
                at,
            ),
        };
        Var::new(y, differential)
    }

    #[inline]
    #[track_caller]
    pub(super) fn apply3(self, op: Op, b: Var, c: Var) -> Var {
        self.apply3_at(op, b, c, Location::caller())
    }

    #[inline]
    fn apply3_at(self, op: Op, b: Var, c: Var, at: Site) -> Var {
        let x = [self.value, b.value, c.value];
        let y = eval(op, x);
        let differentials = [self, b, c].map(|var| var.differential);
        Var::new(y, operations::record(op, x, differentials, y, at))
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
