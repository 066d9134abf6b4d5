//! What serves calls whose numbers are beyond the range that a kernel is for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use crate::phi::scale_lengths;
use crate::ssa::{Graph, Outcome, interpret, verify};
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

    /// Writes what the graph comes to; `false` if the inputs take a path that it does not know.
    pub(super) fn run(&self, inputs: Inputs<'_>, outputs: &mut [f64]) -> bool {
        // This runs in the user's call, which a bug must not take along.
        let run = || {
            let graph = self.scaled.as_ref()?;
            match interpret(graph, &[inputs.active, inputs.inactive].concat()) {
                Outcome::Values(values) => Some(values),
                Outcome::Unseen(_) => None,
            }
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Some(values)) if values.len() == outputs.len() => {
                outputs.copy_from_slice(&values);
                true
            }
            _ => false,
        }
    }
}
