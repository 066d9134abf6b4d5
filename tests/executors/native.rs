//! Calls of kernels, compared with the interpreter.

use phigrad::check::same;
use phigrad::internals::jit::{Kernel, RunError};
use phigrad::internals::ssa::{Graph, Outcome, interpret};

pub fn call(graph: &Graph, kernel: &Kernel, inputs: &[f64]) -> Result<Vec<f64>, RunError> {
    let (active, inactive) = inputs.split_at(graph.active);
    let mut outputs = vec![f64::NAN; kernel.outputs()];
    // The content of the buffer from earlier calls does not matter.
    let mut scratch = vec![1e300; kernel.scratch_len()];
    kernel.run(active, inactive, &mut scratch, &mut outputs).map(|()| outputs)
}

/// Asserts that `kernel`, of `graph`, has the outcome of the interpreter. True if that is values.
pub fn assert_as_interpreted(graph: &Graph, kernel: &Kernel, inputs: &[f64]) -> bool {
    let found = call(graph, kernel, inputs);
    match interpret(graph, inputs) {
        Outcome::Unseen(_) => {
            assert_eq!(found, Err(RunError::SideExit), "at {inputs:?}\n{graph}");
            false
        }
        Outcome::Values(expected) => {
            let found = found.unwrap_or_else(|error| panic!("{error} at {inputs:?}\n{graph}"));
            let equal = found.iter().zip(&expected).all(|(&a, &b)| same(a, b));
            assert!(equal, "{found:?} for {expected:?} at {inputs:?}\n{graph}");
            true
        }
    }
}
