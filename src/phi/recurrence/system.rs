//! Systems: the smallest affine map whose state contains the wanted values.

use hashbrown::HashMap;

use super::coefficients::Coefficients;
use super::form::{Form, Variable};
use crate::numeric::{MAX_STATES, Slot};
use crate::phi::reason::RecurrenceReason;

/// The next value of a state.
pub(super) enum Next {
    Form(Form),
    /// The state itself: one of a loop around.
    Unchanged,
}

/// An affine map of variables.
#[derive(Default)]
pub(super) struct System {
    pub(super) variables: Vec<Variable>,
    /// The matrix by rows; `None` is exactly zero.
    pub(super) matrix: Vec<Option<Slot>>,
    pub(super) offset: Vec<Option<Slot>>,
    /// The row of each wanted value.
    pub(super) outputs: Vec<usize>,
    /// The variables of the loop around that are states here, numbered after those of the loop.
    pub(super) outer: Vec<Variable>,
}

/// The smallest system that computes `outputs`: pairs of the state whose next value the output is,
/// if any, and its form. `nexts` has an entry for each state, `None` if it is not needed.
///
/// The variables of the outputs are closed under dependence: each row may add variables.
pub(super) fn close(
    coefficients: &mut Coefficients,
    nexts: Vec<Option<Next>>,
    outputs: Vec<(Option<u32>, Form)>,
) -> Result<System, RecurrenceReason> {
    let states = nexts.len() as u32;
    let mut system = System::default();
    let mut places: HashMap<Variable, usize> = HashMap::new();
    let mut place = |variables: &mut Vec<Variable>, variable: Variable| {
        *places.entry(variable).or_insert_with(|| {
            variables.push(variable);
            variables.len() - 1
        })
    };
    for ((state, _), number) in outputs.iter().zip(states..) {
        // An output that is the next value of no state is a new state that no row reads.
        let variable = Variable::state(state.unwrap_or(number));
        system.outputs.push(place(&mut system.variables, variable));
    }
    let mut rows: Vec<Form> = Vec::new();
    while let Some(&Variable { state, degree }) = system.variables.get(rows.len()) {
        if system.variables.len() > MAX_STATES {
            return Err(RecurrenceReason::TooManyStates);
        }
        let next = match state {
            None => Form::variable(Variable::ONE, coefficients)?,
            Some(state) if state >= states => outputs[(state - states) as usize].1.clone(),
            Some(state) => match nexts.get(state as usize) {
                Some(Some(Next::Form(form))) => form.clone(),
                Some(Some(Next::Unchanged)) => {
                    Form::variable(Variable::state(state), coefficients)?
                }
                _ => return Err(RecurrenceReason::TooManySteps),
            },
        };
        let row = match degree {
            0 => next,
            _ => {
                let binomial = |degree| Variable { state: None, degree };
                let shifted = Form::variable(binomial(degree), coefficients)?;
                let before = Form::variable(binomial(degree - 1), coefficients)?;
                next.times(&shifted.plus(&before, coefficients)?, coefficients)?
            }
        };
        for &(variable, _) in row.terms() {
            if variable != Variable::ONE {
                place(&mut system.variables, variable);
            }
        }
        rows.push(row);
    }
    let count = system.variables.len();
    system.matrix = vec![None; count * count];
    system.offset = vec![None; count];
    for (row, form) in rows.iter().enumerate() {
        for &(variable, slot) in form.terms() {
            match variable {
                Variable::ONE => system.offset[row] = Some(slot),
                _ => system.matrix[row * count + places[&variable]] = Some(slot),
            }
        }
    }
    Ok(system)
}
