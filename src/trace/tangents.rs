//! Forward mode on the tape: the derivatives of all events along a direction, and the reverse sweep
//! with them, which gives the Hessian times the direction.

use super::{Operand, Role, Trace};
use crate::op::{Algebra, MAX_ARITY, Numbers, Op, contribution, eval};

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

    fn dual(&self, trace: &Trace<'_>, operand: Operand) -> Dual {
        let value = match operand {
            Operand::Event(event) => trace.events.values[event as usize],
            Operand::Constant(value) => value,
        };
        Dual { value, tangent: self.of(operand) }
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
    tangents.tangents.clear();
    tangents.tangents.extend_from_slice(direction);
    let mut calls = trace.calls.iter();
    for event in trace.events.iter().skip(direction.len()) {
        if event.index() < tangents.tangents.len() {
            // An output after the first one.
            continue;
        }
        let mut operands = event.operands();
        let tangent = match event.role() {
            Role::Apply => {
                let mut args = [Dual::default(); MAX_ARITY];
                args.iter_mut().zip(operands).for_each(|(arg, x)| *arg = tangents.dual(trace, x));
                tangent(event.op(), args, event.value())
            }
            Role::Phi | Role::Argument => {
                operands.next().map_or(0.0, |operand| tangents.of(operand))
            }
            Role::Output => {
                if let Some(call) = calls.next() {
                    call.push_forward(&trace.events.values, &mut tangents.tangents);
                }
                continue;
            }
            _ => 0.0,
        };
        tangents.tangents.push(tangent);
    }
}

/// The derivatives of the output of `trace` by its active inputs, each with its derivative along
/// the direction of the [`push_forward`] before. For an example see there.
pub fn sweep_tangents<'a>(trace: &Trace<'_>, tangents: &'a mut Tangents) -> &'a [Dual] {
    let mut adjoints = core::mem::take(&mut tangents.adjoints);
    adjoints.clear();
    adjoints.resize(trace.events.len().max(trace.active), Dual::default());
    if let Operand::Event(output) = trace.output {
        adjoints[output as usize].value = 1.0;
        let mut calls = trace.calls.iter().rev().peekable();
        for index in (trace.active + trace.inactive..=output as usize).rev() {
            while let Some(call) = calls.next_if(|call| call.outputs().start >= index) {
                if call.outputs().start == index {
                    call.sweep_tangents(&trace.events.values, &tangents.tangents, &mut adjoints);
                }
            }
            let (g, event) = (adjoints[index], trace.events.at(index));
            if g == Dual::default() {
                continue;
            }
            let y = Dual { value: event.value(), tangent: tangents.tangents[index] };
            let mut args = [Dual::default(); MAX_ARITY];
            let operands = || event.operands();
            args.iter_mut().zip(operands()).for_each(|(arg, x)| *arg = tangents.dual(trace, x));
            let count = if event.role() == Role::Argument { 1 } else { args.len() };
            for (number, operand) in operands().take(count).enumerate() {
                let Operand::Event(operand) = operand else { continue };
                let part = match event.role() {
                    Role::Apply => contribution(&mut Duals, event.op(), number, args, y, g),
                    Role::Phi | Role::Argument => Some(g),
                    _ => None,
                };
                if let Some(part) = part {
                    let sum = &mut adjoints[operand as usize];
                    sum.value += part.value;
                    sum.tangent += part.tangent;
                }
            }
        }
    }
    tangents.adjoints = adjoints;
    &tangents.adjoints[..trace.active]
}

/// The derivative of `op`, whose value at `args` is `y`, along the tangents of `args`.
fn tangent(op: Op, args: [Dual; MAX_ARITY], y: f64) -> f64 {
    let x = args.map(|arg| arg.value);
    let part = |operand: usize| {
        let tangent = args[operand].tangent;
        if tangent == 0.0 { None } else { contribution(&mut Numbers, op, operand, x, y, tangent) }
    };
    // The sum of no numbers would be -0.0.
    (0..op.arity()).filter_map(part).fold(0.0, |sum, part| sum + part)
}

/// The algebra of numbers with derivatives.
struct Duals;

impl Algebra for Duals {
    type Value = Dual;

    fn constant(&mut self, value: f64) -> Dual {
        Dual { value, tangent: 0.0 }
    }

    fn apply<const N: usize>(&mut self, op: Op, args: [Dual; N]) -> Dual {
        let mut padded = [Dual::default(); MAX_ARITY];
        padded[..N].copy_from_slice(&args);
        let value = eval(op, padded.map(|arg| arg.value));
        Dual { value, tangent: tangent(op, padded, value) }
    }
}
