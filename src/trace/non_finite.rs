//! The origin of a NaN or an infinity: the operation that made it of finite numbers.

use smallvec::SmallVec;

use super::{CustomCall, Operand, Role, Trace};
use crate::op::{MAX_ARITY, Numbers, contribution};

/// The origin of a value or a derivative that is not finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Origin {
    /// The output is a constant.
    Constant,
    /// The input or operation with this index has such a value, and no operand from which it is.
    Value(usize),
    /// The contribution of the operation with this index to the adjoint of one of its operands,
    /// whereas its own adjoint is finite.
    Partial {
        event: usize,
        /// The number of the operand.
        operand: usize,
        adjoint: f64,
        /// The partial derivative; of a custom operation the contribution.
        partial: f64,
    },
    /// The sum of finite contributions to the adjoint of the event with this index.
    Sum(usize),
}

/// The origin of the value of `output`: the earliest event that made it. `None` if it is finite.
pub(crate) fn origin_of_value(trace: &Trace<'_>, output: Operand) -> Option<Origin> {
    let output = match output {
        Operand::Event(output) => output as usize,
        Operand::Constant(value) => return (!value.is_finite()).then_some(Origin::Constant),
    };
    let mut reached = vec![false; output + 1];
    reached[output] = !trace.events.at(output).value().is_finite();
    let mut origin = None;
    for index in (0..=output).rev() {
        if !reached[index] {
            continue;
        }
        let mut is_passed_on = false;
        for operand in operands(trace, index) {
            let Operand::Event(operand) = operand else { continue };
            let event = trace.events.at(operand as usize);
            if !event.value().is_finite() && event.role() != Role::Constant {
                reached[operand as usize] = true;
                is_passed_on = true;
            }
        }
        if !is_passed_on {
            origin = Some(Origin::Value(index));
        }
    }
    origin
}

/// The origin of the derivatives of `output`: the first one in the reverse sweep that reaches the
/// first active input with such a derivative, whose index is returned with it. `None` if all are
/// finite.
pub(crate) fn origin_of_derivative(trace: &Trace<'_>, output: Operand) -> Option<(Origin, usize)> {
    let Operand::Event(output) = output else { return None };
    let inputs = trace.active + trace.inactive;
    // An output of a custom operation comes with the others.
    let length = custom_call(trace, output as usize).map_or(0, |call| call.outputs().end);
    let length = inputs.max(output as usize + 1).max(length);
    let mut adjoints = vec![0.0; length];
    // True for the adjoints with a contribution that is not finite.
    let mut is_passed_on = vec![false; length];
    adjoints[output as usize] = 1.0;
    for index in (inputs..length).rev() {
        for (_, to, contribution) in contributions(trace, index, &adjoints) {
            adjoints[to] += contribution;
            is_passed_on[to] |= !contribution.is_finite();
        }
    }
    let input = adjoints[..trace.active].iter().position(|adjoint| !adjoint.is_finite())?;
    // True for the adjoints whose infinity or NaN reaches that of the input.
    let mut reaches_input = vec![false; length];
    reaches_input[input] = true;
    let mut origin = (!is_passed_on[input]).then_some(Origin::Sum(input));
    for index in inputs..length {
        let all = custom_call(trace, index).map_or(index..index + 1, CustomCall::outputs);
        let is_finite = adjoints[all.clone()].iter().all(|adjoint| adjoint.is_finite());
        for (operand, to, contribution) in contributions(trace, index, &adjoints) {
            if contribution.is_finite() || !reaches_input[to] {
                continue;
            }
            if is_finite {
                let adjoint = adjoints[index];
                let partial = partial(trace, index, operand).unwrap_or(contribution);
                origin = Some(Origin::Partial { event: index, operand, adjoint, partial });
            } else {
                reaches_input[all.clone()].fill(true);
            }
        }
        if reaches_input[index] && !is_passed_on[index] && !adjoints[index].is_finite() {
            origin = Some(Origin::Sum(index));
        }
    }
    origin.map(|origin| (origin, input))
}

/// The numbers that an operation computes its value from, or that an event passes on.
pub(crate) fn operands(trace: &Trace<'_>, index: usize) -> SmallVec<[Operand; MAX_ARITY]> {
    let (event, call) = (trace.events.at(index), custom_call(trace, index));
    match (event.role(), call) {
        (Role::Output, Some(call)) => {
            call.arguments().map(|argument| Operand::Event(argument as u32)).collect()
        }
        // The second operand is a link.
        (Role::Argument, _) => event.operands().take(1).collect(),
        _ => event.operands().collect(),
    }
}

/// The name of the operation of an event.
pub(crate) fn operation<'a>(trace: &Trace<'a>, index: usize) -> &'a str {
    match custom_call(trace, index) {
        Some(call) => call.custom.name(),
        None => trace.events.at(index).op().name(),
    }
}

/// The value of an operand.
pub(crate) fn number(trace: &Trace<'_>, operand: Operand) -> f64 {
    match operand {
        Operand::Event(operand) => trace.events.at(operand as usize).value(),
        Operand::Constant(constant) => constant,
    }
}

/// The partial derivative of a primitive by one of its operands; `None` for other events.
fn partial(trace: &Trace<'_>, index: usize, operand: usize) -> Option<f64> {
    let event = trace.events.at(index);
    let (x, y) = (numbers(trace, index), event.value());
    let partial = || contribution(&mut Numbers, event.op(), operand, x, y, 1.0).unwrap_or(0.0);
    (event.role() == Role::Apply).then(partial)
}

/// The operands of a primitive, as numbers.
fn numbers(trace: &Trace<'_>, index: usize) -> [f64; MAX_ARITY] {
    let mut numbers = [0.0; MAX_ARITY];
    let operands = trace.events.at(index).operands();
    numbers.iter_mut().zip(operands).for_each(|(to, operand)| *to = number(trace, operand));
    numbers
}

/// The call of a custom operation of which an event is an output.
fn custom_call<'a>(trace: &Trace<'a>, index: usize) -> Option<&'a CustomCall> {
    let before = trace.calls.partition_point(|call| call.outputs().start <= index);
    let call = trace.calls.get(before.checked_sub(1)?)?;
    call.outputs().contains(&index).then_some(call)
}

/// The number, the index and the contribution for each operand to whose adjoint an event
/// contributes; as the sweep, which passes no adjoint of zero on. The first output of a custom
/// operation contributes for all of them.
fn contributions(
    trace: &Trace<'_>,
    index: usize,
    adjoints: &[f64],
) -> SmallVec<[(usize, usize, f64); MAX_ARITY]> {
    let (event, adjoint) = (trace.events.at(index), adjoints[index]);
    if let Some(call) = custom_call(trace, index) {
        let weights = &adjoints[call.outputs()];
        if index != call.outputs().start || weights.iter().all(|&weight| weight == 0.0) {
            return SmallVec::new();
        }
        let product = call.contributions(trace.events, weights);
        let arguments = call.arguments().zip(product).enumerate();
        return arguments.map(|(number, (to, contribution))| (number, to, contribution)).collect();
    }
    if adjoint == 0.0 || !matches!(event.role(), Role::Apply | Role::Phi | Role::Argument) {
        return SmallVec::new();
    }
    let (x, y) = (numbers(trace, index), event.value());
    let of_operand = |(number, operand)| {
        let Operand::Event(operand) = operand else { return None };
        let contribution = match event.role() {
            Role::Apply => contribution(&mut Numbers, event.op(), number, x, y, adjoint),
            _ => Some(adjoint),
        };
        Some((number, operand as usize, contribution?))
    };
    operands(trace, index).into_iter().enumerate().filter_map(of_operand).collect()
}
