//! A run with a Jacobian tape.

use super::JacobianTape;
use crate::trace::recorder::{Back, ID, mix};
use crate::trace::{Adjoints, Var};

/// A recorded run with a Jacobian tape. For an example see
/// [`Tracer::run_jacobian`](crate::trace::Tracer::run_jacobian).
#[derive(Clone, Copy, Debug)]
pub struct JacobianRun<'a> {
    tape: &'a JacobianTape,
    active: usize,
    output: Var,
    /// A hash of the guards, the number of entries, and the output.
    pub(crate) signature: u64,
    /// A custom operation has returned an error, which the function has handled.
    pub(crate) has_failed_call: bool,
}

impl<'a> JacobianRun<'a> {
    /// The run that has left its entries in `back`, with so many active inputs and this output.
    pub(in crate::trace) fn new(back: &'a Back, active: usize, output: Var, guards: u64) -> Self {
        let (tape, has_failed_call) = (&back.jacobian, back.has_failed_call);
        let signature = mix(mix(guards, tape.len() as u64), output.tag() & ID);
        JacobianRun { tape, active, output, signature, has_failed_call }
    }

    /// The number of entries.
    pub fn entries(&self) -> usize {
        self.tape.entries.len()
    }

    /// The value that the function returned.
    pub fn value(&self) -> f64 {
        self.output.value
    }

    /// The derivatives of the output with respect to the active inputs.
    pub fn sweep<'b>(&self, adjoints: &'b mut Adjoints) -> &'b [f64] {
        self.tape.sweep(self.output.differential, self.active, adjoints)
    }
}
