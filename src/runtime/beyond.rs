//! What serves calls whose numbers are beyond the range that a kernel is for.

use std::sync::OnceLock;

use crate::phi::scale_lengths;
use crate::ssa::{Graph, Outcome, interpret};
use crate::trace::Inputs;

/// The graph of a kernel that leaves where lengths overflow. Hardly any program has such numbers,
/// so that nothing is compiled for them: it is interpreted.
pub(super) struct Beyond {
    graph: Graph,
    /// The same with lengths that do not overflow, as soon as it is needed.
    scaled: OnceLock<Graph>,
}

impl Beyond {
    pub(super) fn new(graph: Graph) -> Self {
        Beyond { graph, scaled: OnceLock::new() }
    }

    /// Writes what the graph comes to; `false` if the inputs take a path that it does not know.
    pub(super) fn run(&self, inputs: Inputs<'_>, outputs: &mut [f64]) -> bool {
        let graph = self.scaled.get_or_init(|| scale_lengths(&self.graph));
        match interpret(graph, &[inputs.active, inputs.inactive].concat()) {
            Outcome::Values(values) if values.len() == outputs.len() => {
                outputs.copy_from_slice(&values);
                true
            }
            _ => false,
        }
    }
}
