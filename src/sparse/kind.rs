//! The matrices of derivatives whose pattern is asked for.

use core::ops::Range;

use super::dependences::{Dependences, Ranges, TooDense, Value};
use super::pattern::Pattern;

/// A matrix of derivatives whose pattern is asked for. For an example see
/// [`pattern_of_graph`](super::pattern_of_graph).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixKind {
    /// The second derivatives by the active inputs.
    Hessian,
    /// The derivatives of the output by the active inputs: one row.
    Gradient,
    /// The derivatives of several outputs by the active inputs. The function is the sum of these
    /// outputs, each times a weight: so many inactive inputs, the last ones.
    Jacobian {
        /// The number of outputs.
        outputs: usize,
    },
}

impl MatrixKind {
    /// The inputs that second derivatives are asked for. Each row of a Jacobian is that of the
    /// output's weight; a single output gets a weight after all inputs.
    pub(super) fn ranges(self, active: usize, inputs: usize) -> Ranges {
        let (columns, inputs) = (0..active as u32, inputs as u32);
        let rows: Range<u32> = match self {
            MatrixKind::Hessian => columns.clone(),
            MatrixKind::Gradient => inputs..inputs + 1,
            MatrixKind::Jacobian { outputs } => inputs - outputs as u32..inputs,
        };
        Ranges { rows, columns }
    }

    /// The pattern, where `output` is that of a function of `inputs` inputs.
    pub(super) fn pattern(
        self,
        mut dependences: Dependences,
        output: Value,
        inputs: usize,
    ) -> Result<Pattern, TooDense> {
        let output = match self {
            MatrixKind::Gradient => {
                let weight = dependences.input(inputs as u32);
                dependences.product(output, weight)
            }
            MatrixKind::Hessian | MatrixKind::Jacobian { .. } => output,
        };
        dependences.pattern(output)
    }
}
