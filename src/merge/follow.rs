//! Following a repeat of the tree along a trace, event by event, without making
//! anything of it.

use super::repeat::{Part, Repeat, RepeatId, Slot};
use super::tree::{Origin, Value};
use super::walk::Walk;
use crate::op::Op;
use crate::trace::{Event, Operand, Role, Trace};

/// How far a trace does what a repeat stands for.
pub(super) struct Followed {
    /// In so many iterations.
    pub(super) iterations: usize,
    /// The event with which it then takes the other side of a guard, if it does.
    pub(super) other_side: Option<usize>,
}

/// An operand, as known to the tree.
#[derive(Clone, Copy)]
enum Found {
    Constant(u64),
    Value(Value),
}

impl Walk<'_> {
    /// How far `trace` does from the next event on what the repeat `id` stands for.
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

    /// Whether `event` is this part of `repeat` in an iteration.
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

    /// Whether `event`, which is not this part of `repeat`, is its guard with another
    /// outcome, or reads out another number.
    fn is_other_side(
        &self,
        trace: &Trace<'_>,
        repeat: &Repeat,
        part: &Part,
        event: &Event<'_>,
        iteration: usize,
    ) -> bool {
        let Part::Apply { op, slots, outcome: Some(_), .. } = part else { return false };
        // Of numbers that are read out the second operand is which one it was.
        let compared = if *op == Op::Same { 1 } else { slots.len() };
        event.role() == Role::Guard
            && *op == event.op()
            && slots
                .iter()
                .zip(event.operands())
                .take(compared)
                .all(|(slot, operand)| self.is_operand(trace, repeat, slot, operand, iteration))
    }

    /// Whether `operand` is what `repeat` has there in an iteration.
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

    /// What `operand` of an event in `repeat`, which begins with the next event, is.
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
