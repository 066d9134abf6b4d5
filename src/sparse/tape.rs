//! Patterns from the tape: of one run, in time linear in its events.

use super::dependences::{Dependences, NONE, TooDense, Value, mixed};
use super::kind::MatrixKind;
use super::pattern::Pattern;
use crate::op::MAX_ARITY;
use crate::trace::{Operand, Role, Trace};

/// The pattern of the matrix of this kind for the function that `trace` is a run of.
///
/// # Errors
///
/// When the pattern is too large.
///
/// # Examples
///
/// ```
/// use std::panic::Location;
///
/// use phigrad::internals::sparse::{MatrixKind, pattern_of_trace};
/// use phigrad::internals::trace::{Inputs, Tracer};
///
/// let mut tracer = Tracer::default();
/// let inputs = Inputs { active: &[1.0, 2.0, 3.0], inactive: &[] };
/// let trace = tracer.run(|x, _| x[0] + x[1] * x[2], inputs, 100, Location::caller())?;
/// let pattern = pattern_of_trace(&trace, MatrixKind::Gradient)?;
/// assert_eq!((pattern.rows(), pattern.row(0)), (1, &[0, 1, 2][..]));
/// let pattern = pattern_of_trace(&trace, MatrixKind::Hessian)?;
/// assert_eq!([0, 1, 2].map(|row| pattern.row(row)), [&[][..], &[2], &[1]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn pattern_of_trace(trace: &Trace<'_>, kind: MatrixKind) -> Result<Pattern, TooDense> {
    let inputs = trace.active + trace.inactive;
    let mut dependences = Dependences::new(kind.ranges(trace.active, inputs));
    let mut values: Vec<Value> = Vec::with_capacity(trace.events.len());
    for (event, number) in trace.events.iter().zip(0..) {
        let mut args = [NONE; MAX_ARITY];
        for (arg, operand) in args.iter_mut().zip(event.operands()) {
            *arg = value_of(operand, &values);
        }
        values.push(match event.role() {
            Role::ActiveInput | Role::InactiveInput => dependences.input(number),
            Role::Apply => dependences.apply(event.op(), args),
            Role::Phi => args[0],
            // All arguments so far; those of the last one are the operand of an output.
            Role::Argument => dependences.union(args[0], args[1]),
            Role::Output => dependences.any_function(args[0]),
            Role::Constant | Role::Guard | Role::Enter | Role::Iterate | Role::Join => NONE,
            Role::State | Role::NamesInput | Role::Opaque => NONE,
        });
    }
    let output = value_of(trace.output, &values);
    kind.pattern(dependences, output, inputs)
}

fn value_of(operand: Operand, values: &[Value]) -> Value {
    match operand {
        Operand::Event(event) => values.get(event as usize).copied().unwrap_or(NONE),
        Operand::Constant(_) => NONE,
    }
}

/// A hash of the operations of `trace` and their operands, which decide the pattern.
pub(crate) fn structure_hash(trace: &Trace<'_>) -> u64 {
    let word = |operand| match operand {
        Operand::Event(event) => u64::from(event),
        Operand::Constant(_) => u64::MAX,
    };
    let mut hash = mixed(trace.active as u64, trace.inactive as u64);
    for event in trace.events.iter().skip(trace.active + trace.inactive) {
        let role = event.role();
        if matches!(role, Role::Apply | Role::Phi | Role::Argument | Role::Output) {
            let step = (event.index() as u64) << 16 | (event.op() as u64) << 8;
            hash = mixed(hash, step | role as u64);
            hash = event.operands().fold(hash, |hash, operand| mixed(hash, word(operand)));
        }
    }
    mixed(hash, word(trace.output))
}
