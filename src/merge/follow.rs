//! Compares a loop in the tree with a trace, event by event.

use super::repeat::{Part, Repeat, RepeatId, Slot};
use super::tree::{Origin, Value};
use super::walk::Walk;
use crate::op::Op;
use crate::trace::{Event, Operand, Role, Trace};

/// The extent to which a trace agrees with a loop.
pub(super) struct Followed {
    /// The number of iterations that agree.
    pub(super) iterations: usize,
    /// The event at which the trace then takes the other branch of a guard, if it does.
    pub(super) other_side: Option<usize>,
}

/// The tree's counterpart of an operand.
#[derive(Clone, Copy)]
enum Found {
    Constant(u64),
    Value(Value),
}

impl Walk<'_> {
    /// The extent to which `trace`, from the next event on, agrees with loop `id`.
    pub(super) fn follows(&self, trace: &Trace<'_>, id: RepeatId) -> Followed {
        let (repeat, start) = (&self.tree.repeats[id], self.known.len());
        let period = repeat.body.len();
        for iterations in 0..repeat.times {
            for (at, part) in repeat.body.iter().enumerate() {
                let event = trace.events.get(start + iterations * period + at);
                let event = event.as_ref();
                if !event.is_some_and(|event| self.is_part(trace, repeat, part, event, iterations))
                {
                    let other = event
                        .filter(|event| self.is_other_side(trace, repeat, part, event, iterations));
                    return Followed { iterations, other_side: other.map(Event::index) };
                }
            }
        }
        Followed { iterations: repeat.times, other_side: None }
    }

    /// Tests whether `event` is this step of the loop in an iteration.
    fn is_part(
        &self,
        trace: &Trace<'_>,
        repeat: &Repeat,
        part: &Part,
        event: &Event<'_>,
        iteration: usize,
    ) -> bool {
        match (part, event.role()) {
            (Part::Nothing, Role::Constant) => true,
            (Part::Nothing, _) => self.is_nothing(trace, event.index()),
            (Part::Apply { op, slots, outcome, .. }, role) => {
                let is_alike = match role {
                    Role::Apply => outcome.is_none(),
                    Role::Guard => *outcome == Some(event.value() != 0.0),
                    _ => false,
                };
                is_alike
                    && *op == event.op()
                    && slots.iter().zip(event.operands()).all(|(slot, operand)| {
                        self.is_operand(trace, repeat, slot, operand, iteration)
                    })
            }
        }
    }

    /// Tests whether `event` is this guard of the loop with the other outcome, or escapes another
    /// number.
    fn is_other_side(
        &self,
        trace: &Trace<'_>,
        repeat: &Repeat,
        part: &Part,
        event: &Event<'_>,
        iteration: usize,
    ) -> bool {
        let Part::Apply { op, slots, outcome: Some(_), .. } = part else { return false };
        // The second operand of an escape is the number that escaped.
        let compared = if *op == Op::Same { 1 } else { slots.len() };
        event.role() == Role::Guard
            && *op == event.op()
            && slots
                .iter()
                .zip(event.operands())
                .take(compared)
                .all(|(slot, operand)| self.is_operand(trace, repeat, slot, operand, iteration))
    }

    /// Tests whether `operand` follows `rule` in an iteration.
    fn is_operand(
        &self,
        trace: &Trace<'_>,
        repeat: &Repeat,
        slot: &Slot,
        operand: Operand,
        iteration: usize,
    ) -> bool {
        let Some(found) = self.found(trace, repeat, operand) else { return false };
        let expected = match slot {
            Slot::Table(numbers) => Found::Constant(numbers[iteration]),
            _ => Found::Value(repeat.operand(slot, iteration)),
        };
        match (found, expected) {
            (Found::Value(found), Found::Value(expected)) if found == expected => true,
            _ => self.bits(found).is_some_and(|bits| self.bits(expected) == Some(bits)),
        }
    }

    /// The counterpart of `operand` of an event in the loop, which begins with the next event.
    fn found(&self, trace: &Trace<'_>, repeat: &Repeat, operand: Operand) -> Option<Found> {
        let event = match operand {
            Operand::Constant(value) => return Some(Found::Constant(value.to_bits())),
            Operand::Event(event) => event as usize,
        };
        let Some(inside) = event.checked_sub(self.known.len()) else {
            return self.visible(event).map(Found::Value);
        };
        let (iteration, at) = (inside / repeat.body.len(), inside % repeat.body.len());
        match repeat.body[at] {
            Part::Apply { .. } => Some(Found::Value(repeat.value(at, iteration))),
            Part::Nothing => {
                let event = trace.events.get(event)?;
                let is_constant = event.role() == Role::Constant;
                is_constant.then(|| Found::Constant(event.value().to_bits()))
            }
        }
    }

    fn bits(&self, found: Found) -> Option<u64> {
        match found {
            Found::Constant(bits) => Some(bits),
            Found::Value(value) => match self.tree.values[value] {
                Origin::Const(bits) => Some(bits),
                _ => None,
            },
        }
    }
}
