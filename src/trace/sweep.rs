//! The reverse sweep over the events of one run: the baseline gradient, and
//! the fallback whenever no kernel applies.

use core::mem;

use super::event::Form;
use super::{Event, Operand, Trace};
use crate::op::{MAX_ARITY, Numbers, Op, OpVisitor, contribution, with_constant_op};

/// The buffer of [`sweep()`]: an adjoint for each event.
///
/// Between sweeps all are zero but those of the latest inputs, which are the
/// result: the sweep puts back each that it has used. To clear the whole buffer
/// for each sweep would be to go through memory once more.
#[derive(Debug, Default)]
pub struct Adjoints {
    values: Vec<f64>,
    /// The number of inputs of the latest trace.
    inputs: usize,
}

/// The derivatives of the output of `trace` by its active inputs, in order.
///
/// An adjoint of zero passes nothing on, whatever the partial derivative: an
/// infinite or undefined partial does no harm where nothing depends on it. For
/// an example see [`Tracer::run`](super::Tracer::run).
pub fn sweep<'a>(trace: &Trace<'_>, adjoints: &'a mut Adjoints) -> &'a [f64] {
    let Adjoints { values: adjoints, inputs: used } = adjoints;
    adjoints[..*used].fill(0.0);
    let inputs = trace.active + trace.inactive;
    *used = inputs;
    if adjoints.len() < trace.events.len() {
        adjoints.resize(trace.events.len(), 0.0);
    }
    if let Operand::Event(output) = trace.output {
        let length = trace.events.len().min(output as usize + 1);
        let (events, adjoints) = (&trace.events[..length], &mut adjoints[..length]);
        // The adjoint of the event at hand is in a register, and that of the event
        // before it, the most frequent operand, is collected in one: through
        // memory, each step would wait for the store of the last.
        let mut adjoint = 1.0f64;
        let mut left = length;
        while left > inputs {
            left -= 1;
            let Some((event, events)) = events[..=left].split_last() else { break };
            let Some((last, adjoints)) = adjoints[..left].split_last_mut() else { break };
            let before = mem::take(last);
            // Zero, of either sign, passes nothing on.
            let passes = adjoint != 0.0;
            adjoint = if passes { step(events, adjoints, before, event, adjoint) } else { before };
        }
        if let Some(last) = adjoints[..length.min(inputs)].last_mut() {
            *last = adjoint;
        }
    }
    &adjoints[..trace.active]
}

/// Passes on to the operands of `event` what they get of its `adjoint`.
///
/// `events` are those before it, `adjoints` are theirs but the last, which is
/// `before`. Returns the latter.
#[inline(always)]
fn step(events: &[Event], adjoints: &mut [f64], before: f64, event: &Event, adjoint: f64) -> f64 {
    let step = Step { events, adjoints, before, event, adjoint };
    // The most frequent primitives by branches that are easy to predict; an
    // indirect jump for each event costs a third more.
    match event.op {
        Op::Add => step.visit(Op::Add),
        Op::Sub => step.visit(Op::Sub),
        Op::Mul => step.visit(Op::Mul),
        _ => any_step(events, step.adjoints, before, event, adjoint),
    }
}

/// [`step`] for all primitives. Not a method, so that the arguments are in
/// registers.
#[inline(never)]
fn any_step(
    events: &[Event],
    adjoints: &mut [f64],
    before: f64,
    event: &Event,
    adjoint: f64,
) -> f64 {
    with_constant_op(event.op, Step { events, adjoints, before, event, adjoint })
}

/// The arguments of [`step`].
struct Step<'a> {
    events: &'a [Event],
    adjoints: &'a mut [f64],
    before: f64,
    event: &'a Event,
    adjoint: f64,
}

impl OpVisitor for Step<'_> {
    type Output = f64;

    #[inline(always)]
    fn visit(self, op: Op) -> f64 {
        let Step { events, event, .. } = self;
        // The operands of an event are before it.
        let value = |event: u32| events.get(event as usize).map_or(f64::NAN, Event::value);
        let constant = f64::from_bits(event.payload);
        let [a, b, c] = [event.first, event.second(), event.third()];
        match (op.arity(), event.form) {
            (1, _) => self.pass(op, [Some(a), None, None], [value(a), 0.0, 0.0]),
            (2, Form::ConstantSecond) => {
                self.pass(op, [Some(a), None, None], [value(a), constant, 0.0])
            }
            (2, Form::ConstantFirst) => {
                self.pass(op, [None, Some(a), None], [constant, value(a), 0.0])
            }
            (2, Form::Events) => self.pass(op, [Some(a), Some(b), None], [value(a), value(b), 0.0]),
            _ => self.pass(op, [Some(a), Some(b), Some(c)], [value(a), value(b), value(c)]),
        }
    }
}

impl Step<'_> {
    /// Adds to the adjoint of each operand in `to` what it gets.
    #[inline(always)]
    fn pass(mut self, op: Op, to: [Option<u32>; MAX_ARITY], x: [f64; MAX_ARITY]) -> f64 {
        let (y, g) = (self.event.value, self.adjoint);
        // Not a loop: each rule must be compiled for its own operand.
        self.add(to[0], contribution(&mut Numbers, op, 0, x, y, g));
        self.add(to[1], contribution(&mut Numbers, op, 1, x, y, g));
        self.add(to[2], contribution(&mut Numbers, op, 2, x, y, g));
        self.before
    }

    #[inline(always)]
    fn add(&mut self, to: Option<u32>, contribution: Option<f64>) {
        if let (Some(to), Some(contribution)) = (to, contribution) {
            match self.adjoints.get_mut(to as usize) {
                Some(adjoint) => *adjoint += contribution,
                None => self.before += contribution,
            }
        }
    }
}
