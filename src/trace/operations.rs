//! The calls that the operators of `Var` make where what is inlined does not suffice: all operations
//! on an event tape, and the rare ones on a Jacobian tape.

use super::differential::Differential;
use super::event::{Form, Kind, Step};
use super::payload::Payload;
use super::recorder::{
    Back, CONSTANT, FOREIGN, Front, ID, append_operation, mix, with_back, with_front,
};
use super::{Role, Site, jacobian};
use crate::op::{MAX_ARITY, Op};

// The functions that operators call. Each tests for the frequent case, a step of an event tape, and
// leaves others to a function with the same arguments: so it needs no stack frame.

/// Records an operation on one number `x`; see [`record`].
#[cold]
#[inline]
pub(super) fn record1(kind: Kind, x: f64, of: Differential, y: f64, at: Site) -> Differential {
    match append_operation(y, Payload::NONE, of.tag, of.tag, kind, at) {
        Some(tag) => Differential::of_variable(tag),
        None => record1_slowly(kind, x, of, y, at),
    }
}

#[inline(never)]
fn record1_slowly(kind: Kind, x: f64, of: Differential, y: f64, at: Site) -> Differential {
    let none = Differential::CONSTANT;
    record(kind.op, [x, 0.0, 0.0], [of, none, none], y, at)
}

/// Records an operation on two numbers `x` and `z`; see [`record`].
#[cold]
#[inline]
pub(super) fn record2(
    kind: Kind,
    x: f64,
    of_x: Differential,
    z: f64,
    of_z: Differential,
    y: f64,
    at: Site,
) -> Differential {
    let second = Payload::second_operand(of_z.tag);
    match append_operation(y, second, of_x.tag, of_z.tag, kind, at) {
        Some(tag) => Differential::of_variable(tag),
        None => record2_slowly(kind, x, of_x, z, of_z, y, at),
    }
}

#[inline(never)]
fn record2_slowly(
    kind: Kind,
    x: f64,
    of_x: Differential,
    z: f64,
    of_z: Differential,
    y: f64,
    at: Site,
) -> Differential {
    if jacobian::has_made_room()
        && let Some(differential) = jacobian::differential(kind.op, x, of_x, z, of_z, y)
    {
        return differential;
    }
    if of_z.is_constant() {
        let kind = Kind::apply(kind.op, Form::ConstantSecond);
        return record_with(kind, x, of_x, z, y, at);
    }
    if of_x.is_constant() {
        let kind = Kind::apply(kind.op, Form::ConstantFirst);
        return record_after(kind, x, z, of_z, y, at);
    }
    record(kind.op, [x, z, 0.0], [of_x, of_z, Differential::CONSTANT], y, at)
}

/// Records an operation on a number `x` and a constant; see [`record`].
#[cold]
#[inline]
pub(super) fn record_with(
    kind: Kind,
    x: f64,
    of: Differential,
    constant: f64,
    y: f64,
    at: Site,
) -> Differential {
    match append_operation(y, Payload::constant(constant), of.tag, of.tag, kind, at) {
        Some(tag) => Differential::of_variable(tag),
        None => record_with_slowly(kind, x, of, constant, y, at),
    }
}

#[inline(never)]
fn record_with_slowly(
    kind: Kind,
    x: f64,
    of: Differential,
    constant: f64,
    y: f64,
    at: Site,
) -> Differential {
    let none = Differential::CONSTANT;
    record(kind.op, [x, constant, 0.0], [of, none, none], y, at)
}

/// Records an operation on a constant and a number `x`; see [`record`].
#[cold]
#[inline]
pub(super) fn record_after(
    kind: Kind,
    constant: f64,
    x: f64,
    of: Differential,
    y: f64,
    at: Site,
) -> Differential {
    match append_operation(y, Payload::constant(constant), of.tag, of.tag, kind, at) {
        Some(tag) => Differential::of_variable(tag),
        None => record_after_slowly(kind, constant, x, of, y, at),
    }
}

#[inline(never)]
fn record_after_slowly(
    kind: Kind,
    constant: f64,
    x: f64,
    of: Differential,
    y: f64,
    at: Site,
) -> Differential {
    let none = Differential::CONSTANT;
    record(kind.op, [constant, x, 0.0], [none, of, none], y, at)
}

/// Records `op`, whose value at `x` is `y`, for operands with these differentials: on the tape of
/// the running recording. Returns the differential of the result, that of no recording if the
/// recording fails or there is none.
#[inline(never)]
pub(super) fn record(
    op: Op,
    x: [f64; MAX_ARITY],
    of: [Differential; MAX_ARITY],
    y: f64,
    at: Site,
) -> Differential {
    if of.iter().all(|of| of.is_constant()) {
        return Differential::CONSTANT;
    }
    let recorded = with_front(|front| {
        with_back(|back| {
            let tags = of.map(|of| of.tag);
            if !front.check_all(back, &tags, at) {
                return None;
            }
            if jacobian::is_recording() {
                return back.jacobian.record(op, x, of, y);
            }
            front.push_operation(back, op, (x, tags), y, at).map(Differential::of_variable)
        })
    });
    recorded.unwrap_or(Differential::of_variable(FOREIGN))
}

/// Records a comparison of numbers `x` with these differentials that decides the control flow.
#[inline(always)]
pub(super) fn guard(op: Op, x: [f64; 2], of: [Differential; 2], outcome: bool, at: Site) {
    let next = jacobian::next_variable();
    let [a, b] = of.map(|of| of.tag);
    let is_own = |tag: u64| (tag ^ next) >> 32 == 0;
    let is_known = |tag| tag == CONSTANT || is_own(tag);
    if is_known(a) && is_known(b) && (a | b) != CONSTANT {
        let operand = match (a, b) {
            (CONSTANT, _) => x[0].to_bits(),
            (_, CONSTANT) => x[1].to_bits(),
            _ => b,
        };
        let decision = (next & ID) << 1 | u64::from(outcome);
        with_front(|front| {
            let signature = &front.cursor.signature;
            signature.set(mix(signature.get(), decision ^ operand));
        });
    } else {
        guard_slowly(op, x, of, outcome, at);
    }
}

#[cold]
#[inline]
fn guard_slowly(op: Op, x: [f64; 2], of: [Differential; 2], outcome: bool, at: Site) {
    let value = f64::from(u8::from(outcome));
    let comparison = match of[1].is_constant() {
        true => {
            let kind = Kind::apply(op, Form::ConstantSecond);
            record_with(kind, x[0], of[0], x[1], value, at)
        }
        false => {
            let kind = Kind::apply(op, Form::Events);
            record2(kind, x[0], of[0], x[1], of[1], value, at)
        }
    };
    with_front(|front| {
        let cursor = front.cursor;
        let next = front.next();
        // Nothing was recorded if there is no recording, or it has failed.
        if comparison.is_constant() || comparison.tag == FOREIGN {
            return;
        }
        let mut operand = 0;
        if front.records_events() {
            let cell = &front.ring.steps[front.latest_cell()];
            let step = cell.get();
            cell.set(Step { kind: Kind { role: Role::Guard, ..step.kind }, ..step });
            operand = step.payload.bits();
        }
        let decision = (next & ID) << 1 | u64::from(outcome);
        cursor.signature.set(mix(mix(cursor.signature.get(), decision), operand));
        cursor.unjoined.set(cursor.unjoined.get() + 1);
    });
}

impl Front<'_> {
    /// Appends an operation on numbers `x`, not all of which are constants. `None` if no event tape
    /// is recorded.
    fn push_operation(
        self,
        back: &mut Back,
        op: Op,
        (x, tags): ([f64; MAX_ARITY], [u64; MAX_ARITY]),
        y: f64,
        at: Site,
    ) -> Option<u64> {
        let [a, b, _] = tags;
        let (form, first, payload) = match op.arity() {
            1 => (Form::Events, a, Payload::NONE),
            2 if b == CONSTANT => (Form::ConstantSecond, a, Payload::constant(x[1])),
            2 if a == CONSTANT => (Form::ConstantFirst, b, Payload::constant(x[0])),
            2 => (Form::Events, a, Payload::second_operand(b)),
            _ => {
                let leaf = Step::none(Role::Constant, Payload::NONE);
                let [a, b, c] = [0, 1, 2].map(|operand| match tags[operand] {
                    CONSTANT => self.push(back, x[operand], leaf, at),
                    tag => tag,
                });
                (Form::Events, a, Payload::operands(b, c))
            }
        };
        let step = Step { payload, first: first as u32, kind: Kind::apply(op, form) };
        Some(self.push(back, y, step, at)).filter(|&tag| tag != FOREIGN)
    }
}
