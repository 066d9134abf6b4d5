//! The reverse sweep over the events of one run: the baseline gradient, and
//! the fallback whenever no kernel applies.

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
/// infinite or undefined partial does no harm where nothing depends on it.
/// Inactive events pass nothing on. For an example see
/// [`Tracer::run`](super::Tracer::run).
pub fn sweep<'a>(trace: &Trace<'_>, adjoints: &'a mut Adjoints) -> &'a [f64] {
    let Adjoints { values: adjoints, inputs: used } = adjoints;
    adjoints[..*used].fill(0.0);
    let inputs = trace.active + trace.inactive;
    *used = inputs;
    if adjoints.len() < trace.events.len() {
        adjoints.resize(trace.events.len(), 0.0);
    }
    if let Operand::Event(output) = trace.output {
        // Slices of one length, so that one check of an index serves both.
        let length = trace.events.len().min(output as usize + 1);
        let (mut events, mut adjoints) = (&trace.events[..length], &mut adjoints[..length]);
        if let Some(last) = adjoints.last_mut() {
            *last = 1.0;
        }
        while events.len() > inputs
            && let (Some((event, earlier)), Some((last, left))) =
                (events.split_last(), adjoints.split_last_mut())
        {
            (events, adjoints) = (earlier, left);
            let adjoint = *last;
            // Whether it is zero, of either sign.
            if adjoint.to_bits() << 1 != 0 {
                *last = 0.0;
                if event.passes_adjoint() {
                    with_constant_op(event.op, Step { events, adjoints, event, adjoint });
                }
            }
        }
    }
    &adjoints[..trace.active]
}

/// What one event passes on to its operands.
struct Step<'a> {
    events: &'a [Event],
    adjoints: &'a mut [f64],
    event: &'a Event,
    adjoint: f64,
}

impl OpVisitor for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn visit(self, op: Op) {
        let Step { events, event, .. } = self;
        let value = |event: u32| events[event as usize].value;
        let first = value(event.first());
        match (op.arity(), event.form) {
            (1, _) => self.pass(op, [Some(event.first()), None, None], [first, 0.0, 0.0]),
            (2, Form::Events) => {
                let x = [first, value(event.second()), 0.0];
                self.pass(op, [Some(event.first()), Some(event.second()), None], x);
            }
            (2, Form::ConstantSecond) => {
                let x = [first, f64::from_bits(event.payload), 0.0];
                self.pass(op, [Some(event.first()), None, None], x);
            }
            (2, Form::ConstantFirst) => {
                let x = [f64::from_bits(event.payload), first, 0.0];
                self.pass(op, [None, Some(event.first()), None], x);
            }
            _ => {
                let x = [first, value(event.second()), value(event.third())];
                let to = [Some(event.first()), Some(event.second()), Some(event.third())];
                self.pass(op, to, x);
            }
        }
    }
}

impl Step<'_> {
    /// Adds to the adjoint of each operand in `to` what it gets.
    #[inline(always)]
    fn pass(self, op: Op, to: [Option<u32>; MAX_ARITY], x: [f64; MAX_ARITY]) {
        let Step { adjoints, event, adjoint, .. } = self;
        // Not a loop: each rule must be compiled for its own operand.
        if let Some(to) = to[0] {
            add(adjoints, to, contribution(&mut Numbers, op, 0, x, event.value, adjoint));
        }
        if let Some(to) = to[1] {
            add(adjoints, to, contribution(&mut Numbers, op, 1, x, event.value, adjoint));
        }
        if let Some(to) = to[2] {
            add(adjoints, to, contribution(&mut Numbers, op, 2, x, event.value, adjoint));
        }
    }
}

#[inline(always)]
fn add(adjoints: &mut [f64], to: u32, contribution: Option<f64>) {
    if let Some(contribution) = contribution {
        adjoints[to as usize] += contribution;
    }
}
