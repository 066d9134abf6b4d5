//! What goes into a recorded run, and what comes out of it.

use super::{Event, Operand};

/// The outcome of one recorded run: the tape. For an example see [`Tracer::run`](super::Tracer::run).
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    /// What happened, in order; the inputs come first, active before inactive.
    pub events: &'a [Event],
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
}

impl Trace<'_> {
    /// What the region entered by this event was given, if the run told; no run
    /// tells yet, so nothing is shared between places of one region.
    pub fn captured(&self, _event: usize) -> Option<(u64, &[Operand])> {
        None
    }

    /// The value that the function returned. For an example see [`Tracer::run`](super::Tracer::run).
    pub fn value(&self) -> f64 {
        match self.output {
            Operand::Constant(value) => value,
            Operand::Event(event) => self.events.get(event as usize).map_or(f64::NAN, Event::value),
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
