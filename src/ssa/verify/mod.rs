//! The verifier: the invariants of a graph, checked between all passes in
//! tests and debug builds.
//!
//! 1. The first nodes are the inputs, in order; there is a block.
//! 2. Operands have smaller ids than the nodes that use them, and the φs of a
//!    region have larger ids than all that its blocks, at any depth, compute
//!    and pass on.
//! 3. Each applied node is computed by exactly one block, inputs and constants
//!    by none. Each φ stands at its number in the list of its region, which
//!    holds nothing else, and comes from the place of the region.
//! 4. Operands, conditions, outputs and values passed on are visible: inputs,
//!    constants, or computed earlier in the block or in a block above (φs are
//!    computed where their region ends), or by the forward block, see below.
//! 5. Blocks form a tree below the root: each other block is the target of
//!    exactly one branch, or begins exactly one region, which is a step of
//!    exactly one block; and is reached from the root.
//! 6. No block is open; all paths of the graph return the same number of
//!    outputs, and all ends of a region pass on as many values as it has φs.
//! 7. The exponent of `powi` is a constant integer in the range of `i32`.
//! 8. A region that replays another stands where that one is visible: after it
//!    in the block, below that, or where the forward block has it as a step. What
//!    is replayed has no forward block: its nodes may stand for others that are
//!    visible by that one, and would not be where it is replayed.
//!
//! A block may have a forward block, which has run before it in the same call:
//! that of the root of a region that replays another is the root of the other.
//! The root of another region has that of the block where the region stands.
//! Where a block and its forward block branch on the same condition, both sides
//! have those of the forward block as theirs; otherwise they have the same as
//! the block above. What a forward block computes, φs included, is visible.

mod nodes;
mod tree;
mod visibility;

use super::graph::{Block, Graph, Node, Region};
use super::print::{end_line, header_line, node_line, region_line};

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
    // In this order: each check relies on those before it.
    nodes::check(graph)?;
    tree::check(graph)?;
    visibility::check(graph)
}

fn at_header(graph: &Graph, what: String) -> VerifyError {
    VerifyError { what, excerpt: caret(&header_line(graph)) }
}

fn at_node(graph: &Graph, node: Node, what: &str) -> VerifyError {
    let line = node_line(graph, node);
    VerifyError { what: format!("node {node} {what}"), excerpt: caret(&line) }
}

fn at_block(graph: &Graph, block: Block, what: &str) -> VerifyError {
    let line = format!("{block}: … {}", end_line(graph, block));
    VerifyError { what: format!("block {block} {what}"), excerpt: caret(&line) }
}

fn at_region(graph: &Graph, region: Region, what: &str) -> VerifyError {
    let line = format!("{region}: {}", region_line(graph, region));
    VerifyError { what: format!("region {region} {what}"), excerpt: caret(&line) }
}

fn caret(line: &str) -> String {
    format!("  {line}\n  ^")
}
