//! What serves calls whose numbers are beyond the range that a kernel is for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use crate::jit::RunError;
use crate::op::{MAX_ARITY, Op, eval};
use crate::phi::scale_lengths;
use crate::ssa::{Graph, Number, interpret_with, verify};
use crate::trace::Inputs;

/// The graph of a kernel that leaves where lengths overflow. Hardly any program has such numbers,
/// so that nothing is compiled for them: it is interpreted, with lengths that do not overflow.
pub(super) struct Beyond {
    /// Made when it is needed; none if it is not sound.
    scaled: LazyLock<Option<Graph>, Box<dyn FnOnce() -> Option<Graph> + Send>>,
}

impl Beyond {
    pub(super) fn new(graph: Graph) -> Self {
        let scaled = move || Some(scale_lengths(&graph)).filter(|graph| verify(graph).is_ok());
        Beyond { scaled: LazyLock::new(Box::new(scaled)) }
    }

    /// Writes what the graph comes to, unless something else in it overflows, too, or the inputs
    /// take a path that it does not know.
    pub(super) fn run(&self, inputs: Inputs<'_>, outputs: &mut [f64]) -> Result<(), RunError> {
        // This runs in the user's call, which a bug must not take along.
        let run = || {
            let graph = self.scaled.as_ref().ok_or(RunError::OutOfRange)?;
            let inputs = [inputs.active, inputs.inactive].concat();
            let inputs: Vec<Watched> = inputs.into_iter().map(Watched::constant).collect();
            interpret_with(graph, &inputs).map_err(|_| RunError::Unseen)
        };
        let ran = catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(RunError::OutOfRange))?;
        if ran.len() != outputs.len() || ran.iter().any(|number| number.has_overflowed) {
            return Err(RunError::OutOfRange);
        }
        outputs.iter_mut().zip(ran).for_each(|(output, number)| *output = number.value);
        Ok(())
    }
}

/// A number, and whether it is computed from one that is not finite: then it may be finite and
/// nothing that it should be, as 0 is that comes of a quotient by a square that overflows.
#[derive(Clone, Copy)]
struct Watched {
    value: f64,
    has_overflowed: bool,
}

impl Number for Watched {
    fn constant(value: f64) -> Self {
        Watched { value, has_overflowed: !value.is_finite() }
    }

    fn apply(op: Op, args: [Self; MAX_ARITY]) -> Self {
        let value = eval(op, args.map(|arg| arg.value));
        let has_overflowed = match op {
            // What is decided is decided as on the tape.
            _ if op.is_comparison() => false,
            Op::Select if args[0].holds() => args[1].has_overflowed,
            Op::Select => args[2].has_overflowed,
            _ => !value.is_finite() || args[..op.arity()].iter().any(|arg| arg.has_overflowed),
        };
        Watched { value, has_overflowed }
    }

    fn holds(self) -> bool {
        self.value != 0.0
    }

    fn number(self) -> f64 {
        self.value
    }
}
