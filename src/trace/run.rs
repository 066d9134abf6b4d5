//! What goes into a recorded run, and what comes out of it.

use super::captures::Captures;
use super::{Events, Operand};

/// The outcome of one recorded run: the tape. For an example see [`Tracer::run`](super::Tracer::run).
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    /// What happened, in order; the inputs come first, active before inactive.
    pub events: &'a Events,
    /// How many active inputs there are.
    pub active: usize,
    /// How many inactive inputs there are.
    pub inactive: usize,
    /// What the function returned.
    pub output: Operand,
    /// The names of the variables behind the events with [`Role::Opaque`](super::Role::Opaque),
    /// with the indices of these.
    pub opaque: &'a [(u32, &'static str)],
    /// Equal for runs of one function along the same path.
    pub signature: u64,
    pub(super) captures: &'a Captures,
}

impl Trace<'_> {
    /// What the region that the event with this index enters was given: a hash of
    /// the static content of all variables that its code mentions, and the traced
    /// numbers in them, in an order that is always the same. `None` if that was not
    /// asked for, or is not completely known.
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

    /// Whether the run left out marks and places; see [`Detail::Untracked`](super::Detail::Untracked).
    pub fn is_untracked(&self) -> bool {
        self.events.is_untracked()
    }

    /// The value that the function returned. For an example see [`Tracer::run`](super::Tracer::run).
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
    /// Inputs whose gradient may be asked for.
    pub active: &'a [f64],
    /// Inputs that need no gradient.
    pub inactive: &'a [f64],
}
