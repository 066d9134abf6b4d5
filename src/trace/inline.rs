//! Gradients inside a recording, as operations of it: the reverse sweep over the events of the
//! function, whose contributions are recorded instead of computed.
//!
//! So they have derivatives of every order. The sweep takes the steps of the tape's `sweep`, and
//! its numbers are the same.

use super::apply::Recording;
use super::event::Step;
use super::payload::Payload;
use super::{Operand, Role, Site, Var, recorder};
use crate::op::{Algebra, MAX_ARITY, Numbers, Op, contribution};

/// The treatment of recorded functions that a run calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Inlining {
    /// A call is one node.
    #[default]
    None,
    /// A gradient is recorded as its operations; a call for the outputs is one node.
    Gradients,
    /// Inside such a gradient: each call is recorded as its operations.
    All,
}

/// The gradient of `f` at `x`, recorded as operations at `at`, or the error of `f`. `None` if the
/// run does not inline gradients, has failed, is too long, or if the output depends on a call of a
/// custom operation.
pub(crate) fn record_gradient<E>(
    f: impl FnOnce(&[Var]) -> Result<Var, E>,
    x: &[Var],
    at: Site,
) -> Option<Result<Vec<Var>, E>> {
    if recorder::inlining() == Inlining::None {
        return None;
    }
    let first = recorder::progress().1;
    let arguments: Option<Vec<Var>> = x.iter().map(|&x| argument(x, at)).collect();
    let arguments = arguments?;
    let output = match recorder::inlined(|| f(&arguments)) {
        Ok(output) if output.is_constant() => {
            return Some(Ok(vec![Var::constant(0.0); x.len()]));
        }
        Ok(output) => output,
        Err(error) => return Some(Err(error)),
    };
    // The output of a function that uses a `Var` of another call.
    recorder::is_own(output.tag()).then_some(())?;
    let events = recorder::events_from(first)?;
    let mut sweep = SymbolicSweep::new(first, x.len(), &events, at);
    let gradient = sweep.run(output, x.len())?;
    if !sweep.is_singular {
        return Some(Ok(gradient));
    }
    let mut sweep = SymbolicSweep::new(first, x.len(), &events, at);
    sweep.skips_unselected = true;
    sweep.run(output, x.len()).map(Ok)
}

/// Tests whether calls of recorded functions for their outputs are recorded as their operations.
pub(crate) fn inlines_calls() -> bool {
    recorder::inlining() == Inlining::All
}

/// A new event with the value of `x`, so that a repeated argument and a constant one have partial
/// derivatives of their own.
fn argument(x: Var, at: Site) -> Option<Var> {
    let tag = match x.is_constant() {
        true => recorder::append(x.value, Step::none(Role::Constant, Payload::NONE), at)?,
        // Keeps all bits.
        false => Recording::at(at).apply(Op::Add, [x, Var::constant(-0.0)]).tag(),
    };
    recorder::is_own(tag).then_some(Var::traced(x.value, tag))
}

/// A reverse sweep over `events`, the latest ones, that records the adjoints. The first events are
/// the arguments.
struct SymbolicSweep<'a> {
    /// The tag of the first event.
    first: u64,
    events: &'a [(f64, Step)],
    /// The events that depend on the arguments.
    varied: Vec<bool>,
    adjoints: Vec<Option<Var>>,
    /// The adjoints that are zero because a choice did not select any of their terms.
    unselected: Vec<bool>,
    /// True if these are not propagated at all.
    skips_unselected: bool,
    /// True if a contribution of one of them is not finite.
    is_singular: bool,
    recording: Recording,
}

impl<'a> SymbolicSweep<'a> {
    fn new(first: u64, arguments: usize, events: &'a [(f64, Step)], at: Site) -> Self {
        let mut sweep = SymbolicSweep {
            first,
            events,
            varied: Vec::with_capacity(events.len()),
            adjoints: vec![None; events.len()],
            unselected: vec![true; events.len()],
            skips_unselected: false,
            is_singular: false,
            recording: Recording::at(at),
        };
        for (index, (_, step)) in events.iter().enumerate() {
            let mut operands = step.operands().filter_map(|operand| sweep.position(operand));
            let varied = index < arguments || operands.any(|operand| sweep.varied[operand]);
            sweep.varied.push(varied);
        }
        sweep
    }

    /// Records the adjoints of all events, from that of `output`, which is 1, to those of the
    /// arguments, which are returned. `None` if one of a custom operation is needed.
    fn run(&mut self, output: Var, arguments: usize) -> Option<Vec<Var>> {
        let last = self.position(output.into_operand())?;
        (self.adjoints[last], self.unselected[last]) = (Some(Var::constant(1.0)), false);
        for index in (arguments..=last).rev() {
            let is_skipped = !self.varied[index] || self.skips_unselected && self.unselected[index];
            let Some(g) = self.adjoints[index].filter(|_| !is_skipped) else { continue };
            let step = self.events[index].1;
            match step.kind.role {
                Role::Apply => self.propagate(index, step, g)?,
                Role::Phi | Role::Argument => {
                    self.add(step.operands().next()?, g, self.unselected[index]);
                }
                Role::Output => return None,
                _ => {}
            }
        }
        let gradient = self.adjoints.iter().take(arguments);
        Some(gradient.map(|adjoint| adjoint.unwrap_or(Var::constant(0.0))).collect())
    }

    /// Adds the contributions of event number `index`, an operation with the adjoint `g`.
    fn propagate(&mut self, index: usize, step: Step, g: Var) -> Option<()> {
        let (mut x, y) = ([Var::constant(0.0); MAX_ARITY], self.var(index));
        for (x, operand) in x.iter_mut().zip(step.operands()) {
            *x = match operand {
                Operand::Constant(value) => Var::constant(value),
                operand => self.var(self.position(operand)?),
            };
        }
        for (number, operand) in step.operands().enumerate() {
            let is_varied = self.position(operand).is_some_and(|operand| self.varied[operand]);
            let op = step.kind.op;
            let Some(part) =
                is_varied.then(|| contribution(&mut self.recording, op, number, x, y, g)).flatten()
            else {
                continue;
            };
            let is_unselected = self.unselected[index] || !selects(op, number, x, y);
            if g.value != 0.0 || part.value.is_finite() {
                self.add(operand, part, is_unselected);
                continue;
            }
            // An adjoint of zero is not propagated. That the numbers decide here is not guarded.
            recorder::note_failed_call();
            self.is_singular |= is_unselected;
            if !is_unselected {
                // It is zero by chance: zero, whose derivatives are not finite where `g` changes.
                let part = self.recording.apply(Op::Cbrt, [g]);
                self.add(operand, part, false);
            }
        }
        Some(())
    }

    /// Adds `part` to the adjoint of `to`.
    fn add(&mut self, to: Operand, part: Var, is_unselected: bool) {
        let Some(to) = self.position(to) else { return };
        if part.is_constant() && part.value == 0.0 {
            return;
        }
        self.unselected[to] &= is_unselected;
        self.adjoints[to] = Some(match self.adjoints[to] {
            Some(sum) => self.recording.apply(Op::Add, [sum, part]),
            None => part,
        });
    }

    /// The place of `operand` among the events.
    fn position(&self, operand: Operand) -> Option<usize> {
        let Operand::Event(event) = operand else { return None };
        let position = u64::from(event).checked_sub(self.first & recorder::ID)? as usize;
        (position < self.events.len()).then_some(position)
    }

    /// Event number `position` of the events.
    fn var(&self, position: usize) -> Var {
        Var::traced(self.events[position].0, self.first + position as u64)
    }
}

/// False if `op` is a choice and does not select operand `number`.
fn selects(op: Op, number: usize, x: [Var; MAX_ARITY], y: Var) -> bool {
    let partial = || contribution(&mut Numbers, op, number, x.map(|x| x.value), y.value, 1.0);
    !matches!(op, Op::Select | Op::Min | Op::Max) || partial() != Some(0.0)
}
