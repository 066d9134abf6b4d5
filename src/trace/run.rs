//! The inputs and the outcome of a recorded run.

use super::captures::Captures;
use super::custom_call::CustomCall;
use super::{Events, Operand, Site};

/// The work of recording the site of an event, and of capturing a live-in value, in events.
const DETAIL_WORK: usize = 2;
const CAPTURE_WORK: usize = 4;

/// The tape of one recorded run. For an example see [`Tracer::run`](super::Tracer::run).
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    /// The events, in order; the inputs come first, active before inactive.
    pub events: &'a Events,
    /// The number of active inputs.
    pub active: usize,
    /// The number of inactive inputs.
    pub inactive: usize,
    /// The returned value.
    pub output: Operand,
    /// The names of opaque variables, with the indices of their
    /// [`Role::Opaque`](super::Role::Opaque) events.
    pub opaque: &'a [(u32, &'static str)],
    /// A hash of the path: equal for runs of one function along the same path.
    pub signature: u64,
    /// The variables of static state, with the indices of its events, in order.
    pub(super) states: &'a [(u32, CarriedName)],
    pub(super) captures: &'a Captures,
    /// The calls of custom operations, in order.
    pub(crate) calls: &'a [CustomCall],
    /// A custom operation has returned an error, which the function has handled. Its inputs decide
    /// that without a guard, so the path is not merged.
    pub(crate) has_failed_call: bool,
}

/// A carried variable: its name, and the place where it is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CarriedName {
    pub(crate) name: &'static str,
    pub(crate) at: Site,
}

impl Trace<'_> {
    /// The live-in values of the region that event number `event` enters: a hash of the static
    /// state of all variables that its code names, and their traced values, in a fixed order.
    /// `None` if live-in values were not recorded ([`Detail`](super::Detail)), or not all are
    /// known.
    ///
    /// ```
    /// use std::panic::Location;
    ///
    /// use phigrad::internals::trace::{Detail, Inputs, Operand, Role, Tracer};
    /// use phigrad::{Var, traced};
    ///
    /// #[traced]
    /// fn clipped(x: &[Var]) -> Var {
    ///     let y = x[0] * x[1];
    ///     if y > 0.0 { y } else { 0.0.into() }
    /// }
    ///
    /// let mut tracer = Tracer::default();
    /// tracer.detail(Detail::Captures);
    /// let inputs = Inputs { active: &[2.0, 3.0], inactive: &[] };
    /// let trace = tracer.run(|x, _| clipped(x), inputs, 100, Location::caller())?;
    /// let branch = trace.events.iter().rposition(|event| event.role() == Role::Enter);
    /// let (_, numbers) = branch.and_then(|event| trace.captured(event)).expect("all is known");
    /// // The product, which comes after the inputs and the function's own mark.
    /// assert_eq!(numbers, [Operand::Event(3)]);
    /// # Ok::<(), phigrad::internals::trace::TraceError>(())
    /// ```
    pub fn captured(&self, event: usize) -> Option<(u64, &[Operand])> {
        self.captures.get(event)
    }

    /// The variable whose static state event number `event` records.
    pub(crate) fn variable_of_state(&self, event: usize) -> Option<CarriedName> {
        let found = self.states.binary_search_by_key(&event, |(index, _)| *index as usize);
        found.ok().map(|number| self.states[number].1)
    }

    /// The place of `call`.
    pub(crate) fn site_of(&self, call: &CustomCall) -> Site {
        self.events.at(call.outputs().start).site()
    }

    /// Tests whether marks and sites were not recorded; see
    /// [`Detail::Untracked`](super::Detail::Untracked).
    pub fn is_untracked(&self) -> bool {
        self.events.is_untracked()
    }

    /// The additional work of recording marks, sites and captures, in events.
    pub(crate) fn detail_work(&self) -> u64 {
        let (events, captured) = (self.events.len(), self.captures.size());
        (DETAIL_WORK * events + CAPTURE_WORK * captured) as u64
    }

    /// The value that the function returned. For an example see
    /// [`Tracer::run`](super::Tracer::run).
    pub fn value(&self) -> f64 {
        match self.output {
            Operand::Constant(value) => value,
            Operand::Event(event) => {
                self.events.get(event as usize).map_or(f64::NAN, |event| event.value())
            }
        }
    }
}

/// The inputs of one recorded run.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// Inputs with a gradient.
    pub active: &'a [f64],
    /// Inputs without a gradient.
    pub inactive: &'a [f64],
}
