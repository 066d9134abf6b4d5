//! What is hidden: that a node is not finite may not be seen in what comes of it.

use hashbrown::HashSet;

use super::decisive::needed;
use super::flow::Flow;
use super::graph::{Graph, Node};
use super::scope::Scope;
use crate::op::{Op, hides_infinity};

/// Which nodes of `scope` something is computed from there, or decided, that may be finite where
/// they are not.
pub(crate) fn hidden_nodes(graph: &Graph, flow: &Flow<'_>, scope: &Scope) -> HashSet<Node> {
    let matters = |op, operand, args: &[Node]| hides(graph, op, args, operand);
    needed(graph, flow, scope, matters)
}

/// Whether a primitive of `args` may be finite where this operand is not.
pub(super) fn hides(graph: &Graph, op: Op, args: &[Node], operand: usize) -> bool {
    let is_base = op == Op::Powi && operand == 0;
    hides_infinity(op, operand) && !(is_base && graph.constant(args[1]) > Some(0.0))
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::Entity;
    use crate::ssa::{ParseError, parse};

    #[test]
    fn decisions_and_saturating_functions_hide_what_is_not_finite() -> Result<(), ParseError> {
        // The product is compared, or divides.
        let hidden = |step: &str| -> Result<bool, ParseError> {
            let graph = parse(&format!(
                "graph active 2 inactive 0\nv2 = const 3.0\nb0:\n  v3 = mul v0 v1\n  v4 = abs \
                 v3\n  v5 = {step}\n  v6 = mul v5 v4\n  return v6\n"
            ))?;
            let nodes = hidden_nodes(&graph, &Flow::of(&graph), &Scope::whole(&graph));
            Ok(nodes.contains(&Node::from_index(3)))
        };
        for step in ["lt v4 v2", "eq v2 v4", "div v0 v4", "tanh v3"] {
            assert!(hidden(step)?, "{step}");
        }
        for step in ["div v4 v2", "mul v3 v4", "sqrt v4", "powi v4 v2"] {
            assert!(!hidden(step)?, "{step}");
        }
        Ok(())
    }
}
