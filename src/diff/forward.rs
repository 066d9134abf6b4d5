//! Forward mode: directional derivatives of a graph by interpretation.

use crate::op::{MAX_ARITY, Numbers, Op, contribution, eval};
use crate::ssa::{Folding, Graph, Node, Number, interpret_with, without_versions};

/// A value with its derivative along the direction.
#[derive(Clone, Copy)]
struct Tangent {
    value: f64,
    tangent: f64,
}

impl Number for Tangent {
    fn constant(value: f64) -> Tangent {
        Tangent { value, tangent: 0.0 }
    }

    fn apply(op: Op, args: [Tangent; MAX_ARITY]) -> Tangent {
        let x = args.map(|arg| arg.value);
        let value = eval(op, x);
        let part = |operand: usize| {
            let tangent = args[operand].tangent;
            // As an adjoint of zero, a tangent of zero makes no contribution.
            let part = || contribution(&mut Numbers, op, operand, x, value, tangent);
            if tangent == 0.0 { None } else { part() }
        };
        Tangent { value, tangent: (0..op.arity()).filter_map(part).sum() }
    }

    fn holds(self) -> bool {
        self.value != 0.0
    }

    fn number(self) -> f64 {
        self.value
    }
}

/// The outputs of `graph`, a verified graph, at `inputs`, active before inactive, and their
/// derivatives along `direction`, which has an entry for each active input.
///
/// For the graph of a gradient the derivatives are the Hessian times the direction. Routines
/// have derivatives of the first order only, so fallback versions of loops run in their place.
///
/// # Errors
///
/// The condition at which the graph stopped without a result.
///
/// # Examples
///
/// ```
/// use phigrad::internals::diff::{Wanted, directional, reverse};
/// use phigrad::internals::ssa::{Folding, parse};
///
/// // x²·y has the Hessian (2y, 2x; 2x, 0).
/// let text = "graph active 2 inactive 0\nb0:\n  v2 = mul v0 v0\n  v3 = mul v2 v1\n  return v3\n";
/// let gradient = reverse(&parse(text)?, Wanted::Gradient, Folding::Real);
/// let (partials, products) = directional(&gradient, &[3.0, 5.0], &[1.0, 0.0]).expect("one path");
/// assert_eq!((partials, products), (vec![30.0, 9.0], vec![10.0, 6.0]));
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn directional(
    graph: &Graph,
    inputs: &[f64],
    direction: &[f64],
) -> Result<(Vec<f64>, Vec<f64>), Node> {
    let loops = without_versions(graph, Folding::Exact);
    let tangents = direction.iter().copied().chain(core::iter::repeat(0.0));
    let inputs: Vec<Tangent> =
        inputs.iter().zip(tangents).map(|(&value, tangent)| Tangent { value, tangent }).collect();
    let outputs = interpret_with(&loops, &inputs)?;
    Ok(outputs.into_iter().map(|output| (output.value, output.tangent)).unzip())
}
