//! The interpreter: the meaning of a graph, slow and obvious. It is the oracle
//! of every other executor.
//!
//! Each node is computed at most once in a run and keeps its value, so a region
//! that replays another finds there what the other computed.

use super::graph::{Block, Def, End, Graph, Item, Node, Region};
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

/// Runs `graph`, a verified graph, on `inputs`, active before inactive; missing ones are NaN.
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
    let mut at = Position { block: graph.root(), next: 0 };
    // Where to go on after the regions around, with the regions.
    let mut around: Vec<(Position, Region)> = Vec::new();
    loop {
        let data = &graph.blocks[at.block];
        if let Some(&item) = data.items.get(at.next) {
            at.next += 1;
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
                Item::Region(region) => {
                    around.push((at, region));
                    at = Position { block: graph.regions[region].root, next: 0 };
                }
            }
            continue;
        }
        match &data.end {
            End::Return(passed) => {
                let Some((after, region)) = around.pop() else {
                    return Outcome::Values(passed.iter().map(|&node| values[node]).collect());
                };
                for (&phi, &value) in graph.regions[region].phis.iter().zip(passed) {
                    values[phi] = values[value];
                }
                at = after;
            }
            End::Branch { condition, then, otherwise } => {
                let block = if values[*condition] != 0.0 { *then } else { *otherwise };
                at = Position { block, next: 0 };
            }
            // The verifier refuses open ends; nothing is known about this path.
            End::Open => return Outcome::Unseen(Node::from_index(0)),
        }
    }
}

/// A block and the number of its next item.
#[derive(Clone, Copy)]
struct Position {
    block: Block,
    next: usize,
}
