//! The verifier: the invariants of a graph, checked between all passes in
//! tests and debug builds.
//!
//! 1. The first nodes are the inputs, in order; there is a block.
//! 2. Operands have smaller ids than the nodes that use them.
//! 3. Each applied node is computed by exactly one block, inputs and constants
//!    by none.
//! 4. Operands, conditions and outputs are visible: inputs, constants, or
//!    computed earlier in the block or in a block above.
//! 5. Blocks form a tree below the root: each other block is the target of
//!    exactly one branch, and is reached from the root.
//! 6. No block is open, and all paths return the same number of outputs.
//! 7. The exponent of `powi` is a constant integer in the range of `i32`.

use super::graph::{Block, Def, End, Graph, Item, Node};
use crate::entity::{Array, Entity};
use crate::op::{Domain, Op};

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n{excerpt}")]
pub struct VerifyError {
    /// What is wrong, in words.
    pub what: String,
    /// The offending line of the text form with a caret below it.
    excerpt: String,
}

/// Checks all invariants.
///
/// # Errors
///
/// The first invariant that does not hold.
///
/// # Examples
///
/// ```
/// use phigrad::ssa::{Graph, verify};
///
/// let error = verify(&Graph::new(1, 0)).unwrap_err();
/// assert_eq!(error.what, "block b0 is open");
/// ```
pub fn verify(graph: &Graph) -> Result<(), VerifyError> {
    check_nodes(graph)?;
    check_tree(graph)?;
    check_blocks(graph)
}

fn check_nodes(graph: &Graph) -> Result<(), VerifyError> {
    let inputs = graph.active.saturating_add(graph.inactive);
    if graph.nodes.len() < inputs {
        let what = format!("there are {inputs} inputs but {} nodes", graph.nodes.len());
        return Err(VerifyError { what, excerpt: caret(&super::print::header_line(graph)) });
    }
    if graph.blocks.is_empty() {
        let what = "there is no block".into();
        return Err(VerifyError { what, excerpt: caret(&super::print::header_line(graph)) });
    }
    for (node, data) in graph.nodes.iter() {
        let index = node.index();
        let is_input = index < inputs;
        match data.def {
            Def::Input(i) if is_input && i as usize == index => {}
            Def::Input(_) => return Err(at_node(graph, node, "is an input out of place")),
            _ if is_input => return Err(at_node(graph, node, "stands in the place of an input")),
            Def::Const(_) | Def::Phi(..) => {}
            Def::Apply(op, args) => {
                // Also those beyond the arity, which passes copy along.
                if args.iter().any(|&arg| arg >= node) {
                    return Err(at_node(graph, node, "uses an operand with a larger id"));
                }
                let is_integer = |n| graph.constant(n).is_some_and(|n| Domain::Integer.contains(n));
                if op == Op::Powi && !is_integer(args[1]) {
                    return Err(at_node(graph, node, "has an exponent that is no constant i32"));
                }
            }
        }
        if data.place.is_some_and(|place| graph.places.get(place).is_none()) {
            return Err(at_node(graph, node, "comes from an unknown place"));
        }
    }
    Ok(())
}

fn check_tree(graph: &Graph) -> Result<(), VerifyError> {
    let mut targets = Array::filled(0usize, graph.blocks.len());
    for (block, data) in graph.blocks.iter() {
        match data.end {
            End::Branch { then, otherwise, .. } => {
                for target in [then, otherwise] {
                    if graph.blocks.get(target).is_none() {
                        return Err(at_block(graph, block, "branches to no block"));
                    }
                    targets[target] += 1;
                }
            }
            End::Open => return Err(at_block(graph, block, "is open")),
            End::Return(_) => {}
        }
    }
    for (block, _) in graph.blocks.iter() {
        if targets[block] != usize::from(block != graph.root()) {
            return Err(at_block(graph, block, "is not the target of exactly one branch"));
        }
    }
    // No block is the target of two branches, so the walk ends.
    let mut reached = Array::filled(false, graph.blocks.len());
    graph.preorder().into_iter().for_each(|block| reached[block] = true);
    let lost = reached.iter().find(|(_, reached)| !**reached);
    lost.map_or(Ok(()), |(block, _)| Err(at_block(graph, block, "is not below the root")))
}

fn check_blocks(graph: &Graph) -> Result<(), VerifyError> {
    let outputs = graph.outputs();
    let mut visible = Array::filled(false, graph.nodes.len());
    let mut computed = Array::filled(false, graph.nodes.len());
    for (node, data) in graph.nodes.iter() {
        visible[node] = !matches!(data.def, Def::Apply(..));
    }
    // `None` closes the block opened last.
    let mut pending = vec![Some(graph.root())];
    let mut opened: Vec<Block> = Vec::new();
    while let Some(step) = pending.pop() {
        let Some(block) = step else {
            for item in opened.pop().map_or(&[][..], |block| &graph.blocks[block].items) {
                if let Item::Node(node) = item {
                    visible[*node] = false;
                }
            }
            continue;
        };
        opened.push(block);
        pending.push(None);
        for item in &graph.blocks[block].items {
            match *item {
                Item::Region(_) => {}
                Item::Node(node) => {
                    let data = graph.nodes.get(node);
                    let Some(data) = data.filter(|data| matches!(data.def, Def::Apply(..))) else {
                        return Err(at_block(graph, block, "computes what is no applied node"));
                    };
                    if computed[node] {
                        return Err(at_node(graph, node, "is computed twice"));
                    }
                    if let Some(arg) = data.args().iter().find(|&&arg| !visible[arg]) {
                        return Err(at_node(graph, node, &format!("uses {arg}, not visible here")));
                    }
                    computed[node] = true;
                    visible[node] = true;
                }
                Item::Guard { condition, .. } => check_visible(graph, &visible, block, condition)?,
            }
        }
        match &graph.blocks[block].end {
            End::Return(nodes) => {
                for &node in nodes {
                    check_visible(graph, &visible, block, node)?;
                }
                if nodes.len() != outputs {
                    return Err(at_block(graph, block, "returns another number of outputs"));
                }
            }
            &End::Branch { condition, then, otherwise } => {
                check_visible(graph, &visible, block, condition)?;
                pending.extend([Some(otherwise), Some(then)]);
            }
            End::Open => {}
        }
    }
    let missing = graph
        .nodes
        .iter()
        .find(|(node, data)| matches!(data.def, Def::Apply(..)) && !computed[*node]);
    missing.map_or(Ok(()), |(node, _)| Err(at_node(graph, node, "is computed by no block")))
}

fn check_visible(
    graph: &Graph,
    visible: &Array<Node, bool>,
    block: Block,
    node: Node,
) -> Result<(), VerifyError> {
    match visible.get(node) {
        Some(true) => Ok(()),
        _ => Err(at_block(graph, block, &format!("uses {node}, not visible here"))),
    }
}

fn at_node(graph: &Graph, node: Node, what: &str) -> VerifyError {
    let line = super::print::node_line(graph, node);
    VerifyError { what: format!("node {node} {what}"), excerpt: caret(&line) }
}

fn at_block(graph: &Graph, block: Block, what: &str) -> VerifyError {
    let line = format!("{block}: … {}", super::print::end_line(graph, block));
    VerifyError { what: format!("block {block} {what}"), excerpt: caret(&line) }
}

fn caret(line: &str) -> String {
    format!("  {line}\n  ^")
}
