//! The event: one step of a recorded run, in 32 bytes.

use core::panic::Location;

use crate::op::{MAX_ARITY, Op};

/// A place in the user's source.
pub type Site = &'static Location<'static>;

/// What an event stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An input whose gradient is asked for.
    ActiveInput,
    /// An input that may change from call to call but needs no gradient.
    InactiveInput,
    /// A constant operand of an operation with three operands.
    Constant,
    /// A primitive applied to operands.
    Apply,
    /// A comparison whose outcome decided what the user's code did next.
    Guard,
    /// A region begins.
    Enter,
    /// An iteration of a loop begins.
    Iterate,
    /// A region ends.
    Join,
    /// A variable carried to a join or a loop's head.
    Phi,
    /// Static state at a join or a loop's head.
    State,
    /// A variable that cannot be carried.
    Opaque,
}

/// Where the operands of an event are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// All operands are events.
    Events,
    /// The second operand is the constant in the payload.
    ConstantSecond,
    /// The first operand is the constant in the payload.
    ConstantFirst,
}

/// An operand: an earlier event of the same recording, or a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// The index of an earlier event.
    Event(u32),
    /// A constant.
    Constant(f64),
}

/// One step of a recorded run.
///
/// The index of an event is its id. Constants are kept in the event that uses
/// them, so constant operands record nothing of their own, except below
/// primitives with three operands.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The result; for a guard, the outcome as 1 or 0.
    pub(super) value: f64,
    /// Operands two (low half) and three (high half), or the bits of the
    /// constant operand.
    pub(super) payload: u64,
    pub(super) site: Site,
    pub(super) first: u32,
    pub(super) op: Op,
    pub(super) form: Form,
    pub(super) role: Role,
    /// Makes the constant part of an event one word to write.
    #[expect(dead_code)]
    pub(super) pad: u8,
}

impl Event {
    /// A leaf: an input or a constant.
    #[track_caller]
    pub(super) const fn leaf(role: Role, value: f64) -> Self {
        let site = Location::caller();
        // A primitive without a derivative, so that it passes no adjoint on.
        let op = Op::Signum;
        Event { value, payload: 0, site, first: 0, op, form: Form::Events, role, pad: 0 }
    }

    /// The result of the step; for a guard, the outcome as 1 or 0.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// What the event stands for.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The primitive that was applied or compared; meaningless for leaves.
    pub fn op(&self) -> Op {
        self.op
    }

    /// Where in the user's source it happened.
    pub fn site(&self) -> Site {
        self.site
    }

    /// The operands, as many as the primitive has; none for leaves.
    pub fn operands(&self) -> impl ExactSizeIterator<Item = Operand> + use<> {
        let count = match self.role {
            Role::Apply | Role::Guard => self.op.arity(),
            Role::Phi => 1,
            _ => 0,
        };
        let constant = Operand::Constant(f64::from_bits(self.payload));
        let first = Operand::Event(self.first);
        let all: [Operand; MAX_ARITY] = match self.form {
            Form::Events => [first, Operand::Event(self.second()), Operand::Event(self.third())],
            Form::ConstantSecond => [first, constant, constant],
            Form::ConstantFirst => [constant, first, constant],
        };
        all.into_iter().take(count)
    }

    /// The number of the region in this run, or the bits of the state.
    pub fn mark(&self) -> u64 {
        self.payload
    }

    #[inline]
    pub(super) fn second(&self) -> u32 {
        self.payload as u32
    }

    #[inline]
    pub(super) fn third(&self) -> u32 {
        (self.payload >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_fills_half_a_cache_line() {
        assert_eq!(size_of::<Event>(), 32);
    }
}
