//! Compares a loop in the tree with a trace, event by event.

use super::trace_loop::{LoopStep, OperandRule, TraceLoop, TraceLoopId};
use super::tree::{Origin, Value};
use super::walk::Walk;
use crate::op::Op;
use crate::trace::{Event, Operand, Role, Trace};

/// The extent to which a trace agrees with a loop.
pub(super) struct LoopMatch {
    /// The number of iterations that agree.
    pub(super) iterations: usize,
    /// The event at which the trace then takes the other branch of a guard, if it does.
    pub(super) other_branch: Option<usize>,
}

/// The tree's counterpart of an operand.
#[derive(Clone, Copy)]
enum Counterpart {
    Constant(u64),
    Value(Value),
}

impl Walk<'_> {
    /// The extent to which `trace`, from the next event on, agrees with loop `id`.
    pub(super) fn match_loop(&self, trace: &Trace<'_>, id: TraceLoopId) -> LoopMatch {
        let (trace_loop, start) = (&self.tree.loops[id], self.known.len());
        let period = trace_loop.body.len();
        for iterations in 0..trace_loop.times {
            for (at, step) in trace_loop.body.iter().enumerate() {
                let event = trace.events.get(start + iterations * period + at);
                let event = event.as_ref();
                if !event
                    .is_some_and(|event| self.is_step(trace, trace_loop, step, event, iterations))
                {
                    let other = event.filter(|event| {
                        self.is_other_branch(trace, trace_loop, step, event, iterations)
                    });
                    return LoopMatch { iterations, other_branch: other.map(Event::index) };
                }
            }
        }
        LoopMatch { iterations: trace_loop.times, other_branch: None }
    }

    /// Tests whether `event` is this step of the loop in an iteration.
    fn is_step(
        &self,
        trace: &Trace<'_>,
        trace_loop: &TraceLoop,
        step: &LoopStep,
        event: &Event<'_>,
        iteration: usize,
    ) -> bool {
        match (step, event.role()) {
            (LoopStep::NoStep, Role::Constant) => true,
            (LoopStep::NoStep, _) => self.is_ignored_mark(trace, event.index()),
            (LoopStep::Apply { op, operand_rules, outcome, .. }, role) => {
                let is_alike = match role {
                    Role::Apply => outcome.is_none(),
                    Role::Guard => *outcome == Some(event.value() != 0.0),
                    _ => false,
                };
                is_alike
                    && *op == event.op()
                    && operand_rules.iter().zip(event.operands()).all(|(operand_rule, operand)| {
                        self.is_operand(trace, trace_loop, operand_rule, operand, iteration)
                    })
            }
        }
    }

    /// Tests whether `event` is this guard of the loop with the other outcome, or escapes another
    /// number.
    fn is_other_branch(
        &self,
        trace: &Trace<'_>,
        trace_loop: &TraceLoop,
        step: &LoopStep,
        event: &Event<'_>,
        iteration: usize,
    ) -> bool {
        let LoopStep::Apply { op, operand_rules, outcome: Some(_), .. } = step else {
            return false;
        };
        // The second operand of an escape is the number that escaped.
        let compared = if *op == Op::Same { 1 } else { operand_rules.len() };
        event.role() == Role::Guard
            && *op == event.op()
            && operand_rules.iter().zip(event.operands()).take(compared).all(
                |(operand_rule, operand)| {
                    self.is_operand(trace, trace_loop, operand_rule, operand, iteration)
                },
            )
    }

    /// Tests whether `operand` follows `rule` in an iteration.
    fn is_operand(
        &self,
        trace: &Trace<'_>,
        trace_loop: &TraceLoop,
        operand_rule: &OperandRule,
        operand: Operand,
        iteration: usize,
    ) -> bool {
        let Some(counterpart) = self.counterpart(trace, trace_loop, operand) else { return false };
        let expected = match operand_rule {
            OperandRule::Table(numbers) => Counterpart::Constant(numbers[iteration]),
            _ => Counterpart::Value(trace_loop.operand(operand_rule, iteration)),
        };
        match (counterpart, expected) {
            (Counterpart::Value(counterpart), Counterpart::Value(expected))
                if counterpart == expected =>
            {
                true
            }
            _ => self.bits(counterpart).is_some_and(|bits| self.bits(expected) == Some(bits)),
        }
    }

    /// The counterpart of `operand` of an event in the loop, which begins with the next event.
    fn counterpart(
        &self,
        trace: &Trace<'_>,
        trace_loop: &TraceLoop,
        operand: Operand,
    ) -> Option<Counterpart> {
        let event = match operand {
            Operand::Constant(value) => return Some(Counterpart::Constant(value.to_bits())),
            Operand::Event(event) => event as usize,
        };
        let Some(inside) = event.checked_sub(self.known.len()) else {
            return self.visible(event).map(Counterpart::Value);
        };
        let (iteration, at) = (inside / trace_loop.body.len(), inside % trace_loop.body.len());
        match trace_loop.body[at] {
            LoopStep::Apply { .. } => Some(Counterpart::Value(trace_loop.value(at, iteration))),
            LoopStep::NoStep => {
                let event = trace.events.get(event)?;
                let is_constant = event.role() == Role::Constant;
                is_constant.then(|| Counterpart::Constant(event.value().to_bits()))
            }
        }
    }

    fn bits(&self, counterpart: Counterpart) -> Option<u64> {
        match counterpart {
            Counterpart::Constant(bits) => Some(bits),
            Counterpart::Value(value) => match self.tree.values[value] {
                Origin::Const(bits) => Some(bits),
                _ => None,
            },
        }
    }
}
