//! The interpreter: the meaning of a graph, slow and obvious. It is the oracle
//! of every other executor.

use super::graph::{Def, End, Graph, Item, Node};
use crate::entity::{Array, Entity};
use crate::op::eval;

/// What running a graph came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It returned these outputs.
    Values(Vec<f64>),
    /// It stopped at a guard on this condition: the path has not been seen.
    Unseen(Node),
}

/// Runs `graph` on `inputs`, active before inactive; missing ones are NaN.
///
/// # Examples
///
/// ```
/// use phigrad::ssa::{Outcome, interpret, parse};
///
/// let text = "graph active 1 inactive 0\nv1 = const 0\nb0:\n  v2 = gt v0 v1\n  guard v2\n  return v0\n";
/// let graph = parse(text)?;
/// assert_eq!(interpret(&graph, &[2.0]), Outcome::Values(vec![2.0]));
/// assert!(matches!(interpret(&graph, &[-2.0]), Outcome::Unseen(_)));
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn interpret(graph: &Graph, inputs: &[f64]) -> Outcome {
    let mut values: Array<Node, f64> = Array::filled(f64::NAN, graph.nodes.len());
    for (node, data) in graph.nodes.iter() {
        match data.def {
            Def::Input(i) => values[node] = inputs.get(i as usize).copied().unwrap_or(f64::NAN),
            Def::Const(bits) => values[node] = f64::from_bits(bits),
            Def::Apply(..) | Def::Phi(..) => {}
        }
    }
    let mut block = graph.root();
    loop {
        for &item in &graph.blocks[block].items {
            match item {
                Item::Node(node) => {
                    if let Def::Apply(op, args) = graph.nodes[node].def {
                        values[node] = eval(op, args.map(|arg| values[arg]));
                    }
                }
                Item::Guard { condition, expect } => {
                    if (values[condition] != 0.0) != expect {
                        return Outcome::Unseen(condition);
                    }
                }
                Item::Region(_) => {}
            }
        }
        match &graph.blocks[block].end {
            End::Return(outputs) => {
                return Outcome::Values(outputs.iter().map(|&node| values[node]).collect());
            }
            End::Branch { condition, then, otherwise } => {
                block = if values[*condition] != 0.0 { *then } else { *otherwise };
            }
            // The verifier refuses open ends; nothing is known about this path.
            End::Open => return Outcome::Unseen(Node::from_index(0)),
        }
    }
}
