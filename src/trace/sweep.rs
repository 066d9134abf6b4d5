//! The reverse sweep over the tape: the baseline gradient, and the fallback where no kernel serves.

use core::{iter, mem};

use super::event::{Kind, Rule, Step};
use super::{CustomCall, Events, Operand, Trace};
use crate::op::{ConstantOp, MAX_ARITY, Numbers, Op, OpVisitor, contribution, with_constant_op};

/// The buffer of [`sweep()`]: an adjoint for each event.
///
/// Between sweeps all adjoints are zero but those of the latest inputs, which are the result: the
/// sweep resets each adjoint that it reads. This saves a pass over memory.
#[derive(Debug, Default)]
pub struct Adjoints {
    values: Vec<f64>,
    /// The number of adjoints, the first ones, that may not be zero.
    nonzero: usize,
}

impl Adjoints {
    /// Begins a sweep over `length` events, the inputs first: all adjoints are zero.
    pub(super) fn begin(&mut self, inputs: usize, length: usize) -> &mut [f64] {
        self.values[..self.nonzero].fill(0.0);
        self.nonzero = inputs;
        if self.values.len() < length {
            self.values.resize(length, 0.0);
        }
        &mut self.values
    }
}

/// The derivatives of the output of `trace` with respect to its active inputs.
///
/// An adjoint of zero is not propagated, whatever the partial derivative: an infinite or undefined
/// partial has no effect where the output does not depend on it. For an example see
/// [`Tracer::run`](super::Tracer::run).
pub fn sweep<'a>(trace: &Trace<'_>, adjoints: &'a mut Adjoints) -> &'a [f64] {
    sweep_from(trace, trace.output, adjoints)
}

/// The derivatives of `output`, an operand of `trace`, with respect to the active inputs: as
/// [`sweep()`].
pub(crate) fn sweep_from<'a>(
    trace: &Trace<'_>,
    output: Operand,
    adjoints: &'a mut Adjoints,
) -> &'a [f64] {
    sweep_from_sum(trace, iter::once(output), adjoints)
}

/// The derivatives of the sum of `outputs`, operands of `trace`, with respect to the active inputs:
/// as [`sweep()`].
pub(crate) fn sweep_from_sum<'a>(
    trace: &Trace<'_>,
    outputs: impl Iterator<Item = Operand>,
    adjoints: &'a mut Adjoints,
) -> &'a [f64] {
    let inputs = trace.active + trace.inactive;
    let adjoints = adjoints.begin(inputs, trace.events.len());
    let mut end = 0;
    for output in outputs {
        if let Operand::Event(output) = output
            && let Some(adjoint) = adjoints.get_mut(output as usize)
        {
            end = end.max(output as usize + 1);
            *adjoint += 1.0;
        }
    }
    if trace.active > 0 && end > 0 {
        let Events { values, steps, .. } = trace.events;
        let steps = &steps[inputs.min(end)..end];
        propagate_through(values, steps, trace.calls, (&mut *adjoints, end));
    }
    &adjoints[..trace.active]
}

/// The reverse sweep in windows: through the steps of one after the other, from the last to the
/// first.
pub(super) struct WindowedSweep<'a> {
    adjoints: &'a mut Adjoints,
    /// The number of events that are not yet swept, the inputs included.
    end: usize,
    inputs: usize,
}

impl<'a> WindowedSweep<'a> {
    /// The sweep from this output of a run of `length` events down to the inputs.
    pub(super) fn new(
        output: Operand,
        (inputs, length): (usize, usize),
        adjoints: &'a mut Adjoints,
    ) -> Self {
        let end = match output {
            Operand::Event(output) => output as usize + 1,
            Operand::Constant(_) => 0,
        };
        // All of them: the output may be followed by others of the same call.
        adjoints.begin(inputs, length);
        // Until the sweep is finished.
        adjoints.nonzero = adjoints.values.len();
        if let Some(output) = end.checked_sub(1) {
            adjoints.values[output] = 1.0;
        }
        WindowedSweep { adjoints, end, inputs }
    }

    /// The end of the next window.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Propagates through the last ones of the remaining events, which have these steps and are no
    /// inputs. `calls` are those of the run.
    pub(super) fn pass(&mut self, values: &[f64], steps: &[Step], calls: &[CustomCall]) {
        propagate_through(values, steps, calls, (&mut self.adjoints.values, self.end));
        self.end -= steps.len();
    }

    /// The adjoints of the active inputs.
    pub(super) fn finish(self, active: usize) -> &'a [f64] {
        self.adjoints.nonzero = self.inputs;
        &self.adjoints.values[..active]
    }
}

/// Propagates the adjoints of the events before `end`, the last of which have these steps, through
/// them. `calls` are those of the run.
fn propagate_through(
    values: &[f64],
    steps: &[Step],
    calls: &[CustomCall],
    (adjoints, mut end): (&mut [f64], usize),
) {
    let start = end - steps.len();
    let calls = &calls[..calls.partition_point(|call| call.outputs().start < end)];
    for call in calls.iter().rev() {
        let outputs = call.outputs();
        if outputs.end <= start {
            break;
        }
        if outputs.end < end {
            propagate_steps(values, &steps[outputs.end - start..end - start], adjoints, end);
        }
        // The adjoints of outputs stay until all are known.
        end = outputs.start.max(start);
        if outputs.start >= start {
            call.sweep(values, adjoints);
        }
    }
    propagate_steps(values, &steps[..end - start], adjoints, end);
}

/// Propagates the adjoints of the events before `end`, the last of which have these steps.
#[inline]
fn propagate_steps(values: &[f64], steps: &[Step], adjoints: &mut [f64], end: usize) {
    let adjoints = &mut adjoints[..end];
    let adjoint = adjoints.last_mut().map_or(0.0, mem::take);
    if let Some((next, adjoint)) = propagate(values, steps, adjoints, adjoint) {
        adjoints[next] = adjoint;
    }
}

/// Propagates `adjoint`, that of the last of `steps`, down to the event before the first one.
/// `adjoints` ends with that of the last step. Returns index and adjoint of the event before, which
/// are not stored.
#[inline(always)]
fn propagate(
    values: &[f64],
    mut steps: &[Step],
    mut adjoints: &mut [f64],
    mut adjoint: f64,
) -> Option<(usize, f64)> {
    // The adjoint of the current event is in a register, and that of the event before it, the most
    // frequent operand, is accumulated in one: through memory, each step would wait for the store
    // of the one before.
    while let Some((step, before)) = steps.split_last() {
        (_, adjoints) = adjoints.split_last_mut()?;
        let y = *values.get(adjoints.len())?;
        let (last, rest) = adjoints.split_last_mut()?;
        let previous = mem::take(last);
        adjoint = StepAdjoints { values, adjoints: rest, previous }.pass(step, y, adjoint);
        steps = before;
    }
    Some((adjoints.len().checked_sub(1)?, adjoint))
}

/// The adjoints that one step of the sweep adds to.
struct StepAdjoints<'a> {
    values: &'a [f64],
    /// The adjoints of the events before the previous one.
    adjoints: &'a mut [f64],
    /// The adjoint of the previous event.
    previous: f64,
}

impl StepAdjoints<'_> {
    /// Propagates the adjoint `g` of the event with this step and the value `y`. Returns the
    /// adjoint of the previous event.
    #[inline(always)]
    fn pass(mut self, event: &Step, y: f64, g: f64) -> f64 {
        let (a, Kind { op, rule, .. }) = (event.first as usize, event.kind);
        // Not a match: the branches are predictable, and an indirect jump for each event costs a
        // third more. The comparisons by order keep the compiler from making a jump table.
        if rule < Rule::Scaled {
            // Adding an adjoint of zero changes nothing, so it is not tested for.
            self.add(a, g);
            if rule == Rule::Sum {
                self.add(event.second() as usize, g);
            } else if rule == Rule::Difference {
                self.add(event.second() as usize, -g);
            }
        } else if rule == Rule::Scaled {
            if g != 0.0 {
                // Multiplication commutes, so the position of the constant does not matter.
                let x = [f64::NAN, event.constant()];
                self.add(a, Primitive::<true, false> { x, y, g }.passed(Op::Mul).0);
            }
        } else if g == 0.0 {
            // Not propagated, not even to an infinite partial.
        } else if rule < Rule::First {
            let b = event.second() as usize;
            let x = [self.value(a), self.value(b)];
            self.add_both([a, b], Primitive::<true, true> { x, y, g }.passed(Op::Mul));
        } else if rule < Rule::Both {
            let (x, constant) = (self.value(a), event.constant());
            let passed = if rule == Rule::First {
                first(op, [x, constant], y, g)
            } else {
                second(op, [constant, x], y, g)
            };
            self.add(a, passed);
        } else if rule == Rule::Both {
            let b = event.second() as usize;
            let x = [self.value(a), self.value(b)];
            self.add_both([a, b], both(op, x, y, g));
        } else {
            let c = event.third() as usize;
            let operands = [a, event.second() as usize, c];
            let x = operands.map(|operand| self.value(operand));
            let [to_a, to_b, to_c] = all(op, x, y, g);
            self.add_both([a, operands[1]], (to_a, to_b));
            self.add(c, to_c);
        }
        self.previous
    }

    #[inline(always)]
    fn value(&self, event: usize) -> f64 {
        self.values.get(event).copied().unwrap_or(f64::NAN)
    }

    #[inline(always)]
    fn add(&mut self, to: usize, contribution: f64) {
        match self.adjoints.get_mut(to) {
            Some(adjoint) => *adjoint += contribution,
            None => self.previous += contribution,
        }
    }

    #[inline(always)]
    fn add_both(&mut self, to: [usize; 2], contributions: (f64, f64)) {
        self.add(to[0], contributions.0);
        self.add(to[1], contributions.1);
    }
}

/// The adjoint contributions of a primitive with operands `x`, result `y` and adjoint `g`. Zero
/// where there is no derivative.
struct Primitive<const FIRST: bool, const SECOND: bool> {
    x: [f64; 2],
    y: f64,
    g: f64,
}

impl<const FIRST: bool, const SECOND: bool> Primitive<FIRST, SECOND> {
    /// The contributions of `op`.
    #[inline(always)]
    fn passed(self, op: Op) -> (f64, f64) {
        let Primitive { x: [a, b], y, g } = self;
        let x = [a, b, 0.0];
        let to_a = if FIRST { contribution(&mut Numbers, op, 0, x, y, g) } else { None };
        let to_b = if SECOND { contribution(&mut Numbers, op, 1, x, y, g) } else { None };
        (to_a.unwrap_or(0.0), to_b.unwrap_or(0.0))
    }
}

impl<const FIRST: bool, const SECOND: bool> OpVisitor for Primitive<FIRST, SECOND> {
    // A pair is returned in registers.
    type Output = (f64, f64);

    #[inline(always)]
    fn visit<P: ConstantOp>(self) -> (f64, f64) {
        self.passed(P::OP)
    }
}

/// The contribution to the first operand of `op`.
#[inline(always)]
fn first(op: Op, x: [f64; 2], y: f64, g: f64) -> f64 {
    let primitive = Primitive::<true, false> { x, y, g };
    // Frequent enough to be inlined.
    if op == Op::Div {
        primitive.passed(Op::Div).0
    } else if op == Op::Sqrt {
        primitive.passed(Op::Sqrt).0
    } else if op == Op::Exp {
        primitive.passed(Op::Exp).0
    } else if op == Op::Ln {
        primitive.passed(Op::Ln).0
    } else {
        any_first(op, x[0], x[1], y, g)
    }
}

/// The contributions to both operands of `op`.
#[inline(always)]
fn both(op: Op, x: [f64; 2], y: f64, g: f64) -> (f64, f64) {
    if op == Op::Div {
        Primitive::<true, true> { x, y, g }.passed(Op::Div)
    } else {
        any_both(op, x[0], x[1], y, g)
    }
}

// The calls take scalars, which are passed in registers.

#[inline(never)]
fn any_first(op: Op, a: f64, b: f64, y: f64, g: f64) -> f64 {
    with_constant_op(op, Primitive::<true, false> { x: [a, b], y, g }).0
}

/// The contribution to the second operand of `op`.
#[inline(never)]
fn second(op: Op, [a, b]: [f64; 2], y: f64, g: f64) -> f64 {
    with_constant_op(op, Primitive::<false, true> { x: [a, b], y, g }).1
}

#[inline(never)]
fn any_both(op: Op, a: f64, b: f64, y: f64, g: f64) -> (f64, f64) {
    with_constant_op(op, Primitive::<true, true> { x: [a, b], y, g })
}

/// The contributions to the three operands of `op`.
#[inline(never)]
fn all(op: Op, x: [f64; MAX_ARITY], y: f64, g: f64) -> [f64; MAX_ARITY] {
    [0, 1, 2].map(|operand| contribution_of(op, operand, x, y, g))
}

/// The contribution of `op` to an operand; zero where there is no derivative.
#[inline(never)]
pub(super) fn contribution_of(op: Op, operand: usize, x: [f64; MAX_ARITY], y: f64, g: f64) -> f64 {
    contribution(&mut Numbers, op, operand, x, y, g).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::event::{Form, Role};
    use crate::trace::payload::Payload;

    /// The adjoint rule of each kind gives the contributions of its primitive.
    #[test]
    fn each_kind_propagates_by_its_derivative() {
        let (constant, x, g) = (0.75f64, [0.375, -1.5, 0.625], 3.0f64);
        for &op in Op::ALL {
            let forms = match op.arity() {
                2 => &[Form::Events, Form::ConstantSecond, Form::ConstantFirst][..],
                _ => &[Form::Events][..],
            };
            for &form in forms {
                let mut values = x.to_vec();
                let mut steps = vec![Step::none(Role::ActiveInput, Payload::NONE); x.len()];
                let (operands, payload) = match form {
                    Form::Events => ([x[0], x[2], x[1]], Payload::operands(2, 1)),
                    Form::ConstantSecond => ([x[0], constant, 0.0], Payload::constant(constant)),
                    Form::ConstantFirst => ([constant, x[0], 0.0], Payload::constant(constant)),
                };
                let y = crate::op::eval(op, operands);
                let kind = Kind::apply(op, form);
                values.push(y);
                steps.push(Step { payload, first: 0, kind });
                // The adjoint of the event.
                let kind = Kind::apply(Op::Mul, Form::ConstantSecond);
                let payload = Payload::constant(g);
                values.push(y * g);
                steps.push(Step { payload, first: 3, kind });

                let mut adjoints = vec![0.0; values.len()];
                let steps = &steps[x.len()..];
                let (last, adjoint) = propagate(&values, steps, &mut adjoints, 1.0).unwrap();
                adjoints[last] = adjoint;
                let mut expected = [0.0; 5];
                for (operand, event) in [0, 2, 1].into_iter().take(op.arity()).enumerate() {
                    let passed = contribution(&mut Numbers, op, operand, operands, y, g);
                    match (form, operand) {
                        (Form::ConstantSecond, 1) | (Form::ConstantFirst, 0) => {}
                        (Form::ConstantFirst, 1) => expected[0] += passed.unwrap_or(0.0),
                        _ => expected[event] += passed.unwrap_or(0.0),
                    }
                }
                let bits =
                    |numbers: &[f64]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&adjoints), bits(&expected), "{} {form:?}", op.name());
            }
        }
    }
}
