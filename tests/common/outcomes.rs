//! Outcomes of graphs: values by the interpreter and by kernels, and their comparison.

use phigrad::check::same;
use phigrad::internals::jit::{Kernel, RunError};
use phigrad::internals::ssa::{Graph, Outcome, interpret, verify};

use super::programs::all_same;

/// The interpreter's outputs; `None` where a guard fails.
pub fn outputs(graph: &Graph, inputs: &[f64]) -> Option<Vec<f64>> {
    match interpret(graph, inputs) {
        Outcome::Values(values) => Some(values),
        Outcome::Unseen(_) => None,
    }
}

/// The interpreter's outputs at inputs for which no guard fails.
pub fn values(graph: &Graph, inputs: &[f64]) -> Vec<f64> {
    match interpret(graph, inputs) {
        Outcome::Values(values) => values,
        Outcome::Unseen(node) => panic!("stopped at {node}, at {inputs:?}\n{graph}"),
    }
}

/// Asserts that `after` has the outcome of `before`; true if that is values.
pub fn agree(
    before: &Graph,
    after: &Graph,
    inputs: &[f64],
    is_equal: impl Fn(f64, f64) -> bool,
) -> bool {
    match (interpret(before, inputs), interpret(after, inputs)) {
        (Outcome::Values(a), Outcome::Values(b)) => {
            let all = a.len() == b.len() && a.iter().zip(&b).all(|(&a, &b)| is_equal(a, b));
            assert!(all, "{inputs:?}: {a:?} {b:?}\n{before}\n{after}");
            true
        }
        (Outcome::Unseen(_), Outcome::Unseen(_)) => false,
        (a, b) => panic!("{inputs:?}: {a:?} {b:?}\n{before}\n{after}"),
    }
}

/// Asserts that `after` is valid and has the outcomes of `before`.
pub fn assert_agree(
    before: &Graph,
    after: &Graph,
    inputs: &[Vec<f64>],
    is_equal: impl Fn(f64, f64) -> bool,
) {
    assert_eq!(verify(after), Ok(()), "{before}\n{after}");
    for inputs in inputs {
        agree(before, after, inputs, &is_equal);
    }
}

/// The outputs of `kernel`, of `graph`.
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
            assert!(
                all_same(&found, &expected),
                "{found:?} for {expected:?} at {inputs:?}\n{graph}"
            );
            true
        }
    }
}
