//! Forward mode on the tape: the derivatives of all events along a direction, and the reverse sweep
//! with them, which gives the Hessian times the direction.

use super::event::{Rule, Step};
use super::{Events, Operand, Role, Trace};
use crate::op::{
    Algebra, ConstantOp, MAX_ARITY, Numbers, Op, OpVisitor, contribution, eval, with_constant_op,
};

/// The buffers of [`push_forward`] and [`sweep_tangents`].
#[derive(Debug, Default)]
pub struct Tangents {
    tangents: Vec<f64>,
    adjoints: Vec<Dual>,
}

/// A number with its derivative along the direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dual {
    /// The number.
    pub value: f64,
    /// Its derivative.
    pub tangent: f64,
}

impl Tangents {
    /// The derivative of `operand` along the direction of the latest [`push_forward`].
    pub fn of(&self, operand: Operand) -> f64 {
        match operand {
            Operand::Event(event) => self.tangents.get(event as usize).copied().unwrap_or(0.0),
            Operand::Constant(_) => 0.0,
        }
    }
}

/// The derivatives of all events of `trace` along `direction`, which has a number for each active
/// input.
///
/// As an adjoint of zero, a tangent of zero is not propagated.
///
/// # Examples
///
/// ```
/// use std::panic::Location;
///
/// use phigrad::internals::trace::{Inputs, Tangents, Tracer, push_forward, sweep_tangents};
///
/// // x²·y at (3, 5) has the gradient (30, 9) and the Hessian (10, 6; 6, 0).
/// let mut tracer = Tracer::default();
/// let inputs = Inputs { active: &[3.0, 5.0], inactive: &[] };
/// let trace = tracer.run(|x, _| x[0] * x[0] * x[1], inputs, 100, Location::caller())?;
/// let mut tangents = Tangents::default();
/// push_forward(&trace, &[1.0, 0.0], &mut tangents);
/// assert_eq!(tangents.of(trace.output), 30.0);
/// let gradient = sweep_tangents(&trace, &mut tangents);
/// assert_eq!(gradient.iter().map(|partial| partial.value).collect::<Vec<_>>(), [30.0, 9.0]);
/// assert_eq!(gradient.iter().map(|partial| partial.tangent).collect::<Vec<_>>(), [10.0, 6.0]);
/// # Ok::<(), phigrad::internals::trace::TraceError>(())
/// ```
pub fn push_forward(trace: &Trace<'_>, direction: &[f64], tangents: &mut Tangents) {
    let tangents = &mut tangents.tangents;
    tangents.clear();
    tangents.extend_from_slice(direction);
    tangents.resize(trace.active + trace.inactive, 0.0);
    let Events { values, steps, .. } = trace.events;
    let mut calls = trace.calls.iter();
    while tangents.len() < steps.len() {
        let step = &steps[tangents.len()];
        if step.kind.role != Role::Output {
            let tangent = tangent_of_step(step, values, tangents);
            tangents.push(tangent);
            continue;
        }
        // Of all outputs.
        match calls.next() {
            Some(call) => call.push_forward(values, tangents),
            None => tangents.push(0.0),
        }
    }
}

/// The derivative of the next event, which has this step.
#[inline]
fn tangent_of_step(step: &Step, values: &[f64], tangents: &[f64]) -> f64 {
    let (of, y) = (|event: u32| tangents[event as usize], values[tangents.len()]);
    match step.kind.rule {
        Rule::Same => of(step.first),
        Rule::Sum => of(step.first) + of(step.second()),
        Rule::Difference => of(step.first) - of(step.second()),
        _ => {
            let args = step.padded_operands().map(|operand| dual(operand, values, tangents));
            tangent(step.kind.op, args, y)
        }
    }
}

/// The derivatives of the output of `trace` by its active inputs, each with its derivative along
/// the direction of the [`push_forward`] before. For an example see there.
pub fn sweep_tangents<'a>(trace: &Trace<'_>, tangents: &'a mut Tangents) -> &'a [Dual] {
    let Tangents { tangents, adjoints } = tangents;
    adjoints.clear();
    adjoints.resize(trace.events.len().max(trace.active), Dual::default());
    if let Operand::Event(output) = trace.output {
        adjoints[output as usize].value = 1.0;
        let mut calls = trace.calls.iter().rev().peekable();
        let Events { values, steps, .. } = trace.events;
        for index in (trace.active + trace.inactive..=output as usize).rev() {
            while let Some(call) = calls.next_if(|call| call.outputs().start >= index) {
                if call.outputs().start == index {
                    call.sweep_tangents(values, tangents, adjoints);
                }
            }
            let (before, after) = adjoints.split_at_mut(index);
            let g = after[0];
            // Not propagated.
            if g != Dual::default() {
                let y = Dual { value: values[index], tangent: tangents[index] };
                sweep_step(&steps[index], (values, tangents), y, g, before);
            }
        }
    }
    &adjoints[..trace.active]
}

/// Propagates the adjoint `g` of an event with this step and the value `y`.
#[inline]
fn sweep_step(
    step: &Step,
    (values, tangents): (&[f64], &[f64]),
    y: Dual,
    g: Dual,
    adjoints: &mut [Dual],
) {
    let mut add = |event: u32, part: Dual| {
        let sum = &mut adjoints[event as usize];
        sum.value += part.value;
        sum.tangent += part.tangent;
    };
    match step.kind.rule {
        Rule::Same => add(step.first, g),
        Rule::Sum => {
            add(step.first, g);
            add(step.second(), g);
        }
        Rule::Difference => {
            add(step.first, g);
            add(step.second(), Dual { value: -g.value, tangent: -g.tangent });
        }
        _ => {
            let operands = step.padded_operands();
            let x = operands.map(|operand| dual(operand, values, tangents));
            let parts = contributions(step.kind.op, x, y, g);
            for (operand, part) in operands.into_iter().zip(parts).take(step.kind.op.arity()) {
                if let (Operand::Event(event), Some(part)) = (operand, part) {
                    add(event, part);
                }
            }
        }
    }
}

/// The value of `operand` with its derivative.
#[inline]
fn dual(operand: Operand, values: &[f64], tangents: &[f64]) -> Dual {
    match operand {
        Operand::Event(event) => {
            let of = |numbers: &[f64]| numbers.get(event as usize).copied().unwrap_or(0.0);
            Dual { value: of(values), tangent: of(tangents) }
        }
        Operand::Constant(value) => Dual { value, tangent: 0.0 },
    }
}

/// The derivative of `op`, whose value at `args` is `y`, along the tangents of `args`.
#[inline]
fn tangent(op: Op, args: [Dual; MAX_ARITY], y: f64) -> f64 {
    with_constant_op(op, TangentOf { args, y })
}

/// The derivative of a primitive along the tangents of its operands.
struct TangentOf {
    args: [Dual; MAX_ARITY],
    y: f64,
}

impl OpVisitor for TangentOf {
    type Output = f64;

    #[inline(always)]
    fn visit<P: ConstantOp>(self) -> f64 {
        let TangentOf { args, y } = self;
        let x = args.map(|arg| arg.value);
        let mut sum = 0.0;
        for (operand, Dual { tangent, .. }) in args.into_iter().enumerate().take(P::OP.arity()) {
            if tangent != 0.0
                && let Some(part) = contribution(&mut Numbers, P::OP, operand, x, y, tangent)
            {
                sum += part;
            }
        }
        sum
    }
}

/// The contributions of `op`, whose value at `x` is `y`, with the adjoint `g`, to its operands.
fn contributions(op: Op, x: [Dual; MAX_ARITY], y: Dual, g: Dual) -> [Option<Dual>; MAX_ARITY] {
    with_constant_op(op, Contributions { x, y, g })
}

/// The contributions of a primitive to the adjoints of its operands.
struct Contributions {
    x: [Dual; MAX_ARITY],
    y: Dual,
    g: Dual,
}

impl OpVisitor for Contributions {
    type Output = [Option<Dual>; MAX_ARITY];

    #[inline(always)]
    fn visit<P: ConstantOp>(self) -> [Option<Dual>; MAX_ARITY] {
        let Contributions { x, y, g } = self;
        [0, 1, 2].map(|operand| contribution(&mut Duals, P::OP, operand, x, y, g))
    }
}

/// The algebra of numbers with derivatives.
struct Duals;

impl Algebra for Duals {
    type Value = Dual;

    #[inline(always)]
    fn constant(&mut self, value: f64) -> Dual {
        Dual { value, tangent: 0.0 }
    }

    #[inline(always)]
    fn apply<const N: usize>(&mut self, op: Op, args: [Dual; N]) -> Dual {
        let mut padded = [Dual::default(); MAX_ARITY];
        padded[..N].copy_from_slice(&args);
        apply(op, padded)
    }
}

/// The value of `op` at `args` with its derivative.
#[inline(never)]
fn apply(op: Op, args: [Dual; MAX_ARITY]) -> Dual {
    with_constant_op(op, Applied(args))
}

/// A primitive applied to numbers with derivatives.
struct Applied([Dual; MAX_ARITY]);

impl OpVisitor for Applied {
    type Output = Dual;

    #[inline(always)]
    fn visit<P: ConstantOp>(self) -> Dual {
        let value = eval(P::OP, self.0.map(|arg| arg.value));
        let tangent = TangentOf { args: self.0, y: value }.visit::<P>();
        Dual { value, tangent }
    }
}
