//! Events: the steps of a recorded run, and their encoding in 16 bytes.

use core::fmt;
use core::panic::Location;

use super::payload::Payload;
use super::sites::Sites;
use crate::op::{MAX_ARITY, Op};

/// A place in the user's source.
pub type Site = &'static Location<'static>;

/// The role of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An input with a gradient.
    ActiveInput,
    /// An input without a gradient, which may change from call to call.
    InactiveInput,
    /// A constant operand of an operation with three operands.
    Constant,
    /// A primitive applied to operands.
    Apply,
    /// An argument of a custom operation. Its operands are the number that is passed, and the
    /// argument before; the first argument has the number itself as the second operand.
    Argument,
    /// An output of a custom operation. Its operands are the last argument, and a constant that
    /// tells the operation and the number of the output.
    Output,
    /// A comparison that decided the control flow of the user's code.
    Guard,
    /// A mark: a region begins. The payload is its id, counted from 1 in each run.
    Enter,
    /// A mark: the loop with the id in the payload passes its head. The carried values follow,
    /// unless the previous iteration has a single path ([`Event::has_single_path`]).
    Iterate,
    /// A mark: the region with the id in the payload ends, and with it all open regions inside. The
    /// carried values follow, unless the region has a single path ([`Event::has_single_path`]).
    Join,
    /// A φ: a carried traced value or constant, which is a value of its own from here on. It has
    /// one operand.
    Phi,
    /// Carried static state: its bits, or a hash of them, are the payload.
    State,
    /// The carried static state names inputs by index.
    NamesInput,
    /// A carried variable with unknown content; its name is in
    /// [`Trace::opaque`](super::Trace::opaque).
    Opaque,
}

impl Role {
    /// Tests whether it is that of something carried to the mark before it.
    pub fn is_carried(self) -> bool {
        matches!(self, Role::Phi | Role::State | Role::NamesInput | Role::Opaque)
    }
}

/// A word of the static state carried to a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StateWord {
    /// The state, or a hash of it.
    Bits(u64),
    /// The rest of the state names inputs by index.
    NamesInput,
}

/// The encoding of the operands of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// All operands are events.
    Events,
    /// The second operand is the constant in the payload.
    ConstantSecond,
    /// The first operand is the constant in the payload.
    ConstantFirst,
}

/// The adjoint rules: one for each frequent form of a primitive, and general ones. In the order in
/// which the sweep tests for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Rule {
    /// The first operand gets the adjoint.
    Same,
    /// Both operands get it.
    Sum,
    /// The first gets it, the second its negative.
    Difference,
    /// The first gets it times the constant.
    Scaled,
    /// Each gets it times the value of the other.
    Product,
    /// The first or only operand gets its partial derivative times the adjoint; the second is a
    /// constant.
    First,
    /// The same for the second operand; the first is a constant.
    Second,
    /// Both operands get their partial derivatives times the adjoint.
    Both,
    /// All three operands do.
    All,
}

/// The kind of a step. It is a compile-time constant wherever an operator is used, and one word to
/// store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) op: Op,
    pub(super) form: Form,
    pub(super) role: Role,
    pub(super) rule: Rule,
}

impl Kind {
    /// `op` applied to operands of this form.
    #[inline(always)]
    pub(super) const fn apply(op: Op, form: Form) -> Self {
        let rule = match (op, form) {
            (Op::Add, Form::Events) => Rule::Sum,
            (Op::Add, _) | (Op::Sub, Form::ConstantSecond) => Rule::Same,
            (Op::Sub, Form::Events) => Rule::Difference,
            (Op::Mul, Form::Events) => Rule::Product,
            (Op::Mul, _) => Rule::Scaled,
            _ => match (op.arity(), form) {
                (1, _) | (2, Form::ConstantSecond) => Rule::First,
                (2, Form::ConstantFirst) => Rule::Second,
                (2, Form::Events) => Rule::Both,
                _ => Rule::All,
            },
        };
        Kind { op, form, role: Role::Apply, rule }
    }

    /// An argument of a custom operation, which passes its adjoint on to the first operand.
    pub(super) const ARGUMENT: Kind =
        Kind { role: Role::Argument, rule: Rule::Same, ..Kind::none(Role::Argument) };

    /// An output of a custom operation.
    pub(super) const OUTPUT: Kind = Kind { form: Form::ConstantSecond, ..Kind::none(Role::Output) };

    /// No primitive. `op` is one without a derivative, so that the sweep passes no adjoint on.
    #[inline]
    const fn none(role: Role) -> Self {
        Kind { op: Op::Signum, form: Form::Events, role, rule: Rule::First }
    }
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
/// The index of an event is its id. Constant operands are encoded in the event that uses them; only
/// those of primitives with three operands are events ([`Role::Constant`]).
///
/// Marks record the control flow of annotated functions ([`Role::Enter`] and those after it). They
/// count towards the limit of a run. All but [`Role::Phi`] have the value 0 and are no operands.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    /// The result; for a guard, the outcome as 1 or 0.
    pub(super) value: f64,
    pub(super) step: Step,
    pub(super) index: usize,
    pub(super) sites: &'a Sites,
}

/// A step in 16 bytes: the kind and the operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The operands two and three, the constant operand, or the content of a mark.
    pub(super) payload: Payload,
    pub(super) first: u32,
    pub(super) kind: Kind,
}

impl Event<'_> {
    /// The result of the step; for a guard, the outcome as 1 or 0.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Its index in the run.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The role of the event.
    pub fn role(&self) -> Role {
        self.step.kind.role
    }

    /// The primitive that was applied or compared; meaningless for leaves.
    pub fn op(&self) -> Op {
        self.step.kind.op
    }

    /// The place in the user's source.
    pub fn site(&self) -> Site {
        self.sites.at(self.index)
    }

    /// The payload of a mark: the id of a region, or the bits of static state; 0 for other events.
    pub fn payload(&self) -> u64 {
        match self.step.kind.role {
            Role::Enter | Role::Iterate | Role::Join => u64::from(self.step.payload.region()),
            Role::State => self.step.payload.bits(),
            _ => 0,
        }
    }

    /// The word of static state that the event carries.
    pub(crate) fn state_word(&self) -> Option<StateWord> {
        match self.step.kind.role {
            Role::State => Some(StateWord::Bits(self.step.payload.bits())),
            Role::NamesInput => Some(StateWord::NamesInput),
            _ => None,
        }
    }

    /// Tests whether the region or iteration that ends with this mark has a single path: it has
    /// passed no guard, or only guards whose paths have joined.
    pub fn has_single_path(&self) -> bool {
        matches!(self.step.kind.role, Role::Iterate | Role::Join)
            && self.step.payload.has_single_path()
    }

    /// Tests whether the values and state carried to this loop head determine how the loop
    /// continues. Those of a `for` loop do not, because the iterator's position is not carried.
    pub fn has_complete_state(&self) -> bool {
        self.step.kind.role == Role::Iterate
            && self.step.payload.has_complete_state()
            && !self.step.payload.has_single_path()
    }

    /// The operands: as many as the primitive has, one for a φ, two for arguments and outputs of
    /// custom operations, none for other roles.
    pub fn operands(&self) -> impl ExactSizeIterator<Item = Operand> + use<> {
        self.step.operands()
    }

    /// Operand number `number`, which is less than the number of operands.
    #[inline]
    pub(crate) fn operand(&self, number: usize) -> Operand {
        self.step.operand(number)
    }
}

impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Event");
        fields.field("value", &self.value).field("step", &self.step).field("site", &self.site());
        fields.finish()
    }
}

impl Step {
    /// A step without a primitive: a leaf, or a mark with this payload.
    #[inline]
    pub(super) const fn none(role: Role, payload: Payload) -> Self {
        Step { payload, first: 0, kind: Kind::none(role) }
    }

    /// The φ of a constant.
    pub(super) const fn phi_of_constant(value: f64) -> Self {
        let kind = Kind { form: Form::ConstantFirst, ..Kind::none(Role::Phi) };
        Step { payload: Payload::constant(value), first: 0, kind }
    }

    /// The φ of event `of`: `of + -0.0`, which keeps all bits of `of` and passes its adjoint on.
    pub(super) const fn phi(of: u32) -> Self {
        let kind = Kind { role: Role::Phi, ..Kind::apply(Op::Add, Form::ConstantSecond) };
        Step { payload: Payload::constant(-0.0), first: of, kind }
    }

    #[inline]
    pub(super) fn constant(&self) -> f64 {
        self.payload.as_constant()
    }

    /// The operands, as [`Event::operands`].
    pub(super) fn operands(self) -> impl ExactSizeIterator<Item = Operand> + use<> {
        let count = match self.kind.role {
            Role::Apply | Role::Guard => self.kind.op.arity(),
            Role::Phi => 1,
            Role::Argument | Role::Output => 2,
            Role::ActiveInput | Role::InactiveInput | Role::Constant => 0,
            Role::Enter | Role::Iterate | Role::Join => 0,
            Role::State | Role::NamesInput | Role::Opaque => 0,
        };
        (0..count).map(move |number| self.operand(number))
    }

    #[inline]
    fn operand(&self, number: usize) -> Operand {
        match (self.kind.form, number) {
            (Form::Events | Form::ConstantSecond, 0) | (Form::ConstantFirst, 1) => {
                Operand::Event(self.first)
            }
            (Form::Events, 1) => Operand::Event(self.second()),
            (Form::Events, _) => Operand::Event(self.third()),
            (Form::ConstantFirst | Form::ConstantSecond, _) => Operand::Constant(self.constant()),
        }
    }

    /// The operands of a primitive, padded with zeros; zeros for other steps.
    #[inline]
    pub(super) fn padded_operands(&self) -> [Operand; MAX_ARITY] {
        let count = match self.kind.rule {
            Rule::Same | Rule::Scaled | Rule::First if self.kind.form == Form::Events => 1,
            Rule::All => 3,
            _ => 2,
        };
        core::array::from_fn(|number| match number < count {
            true => self.operand(number),
            false => Operand::Constant(0.0),
        })
    }

    #[inline]
    pub(super) fn second(&self) -> u32 {
        self.payload.second()
    }

    #[inline]
    pub(super) fn third(&self) -> u32 {
        self.payload.third()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_fills_a_quarter_of_a_cache_line() {
        assert_eq!(size_of::<Step>(), 16);
    }
}
