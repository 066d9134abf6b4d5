//! The verifier: the invariants of a graph, checked between all passes in
//! tests and debug builds.
//!
//! 1. A node that is an input has the number of one, and no other node has it, too;
//!    there is a block.
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
//!    outputs, which is at least as many as there are before those of arrays, and all ends of a region pass on as many values as it takes: one
//!    for each φ, and in a loop before those one for each entry φ, and before
//!    those, unless the loop replays another, the one that decides whether there
//!    is another iteration.
//! 7. The exponent of `powi` is a constant integer in the range of `i32`.
//! 8. A region that replays another stands where that one is visible: after it
//!    in the block, below that, or where the forward block has it as a step. What
//!    is replayed replays none itself, and all its blocks have the forward block of
//!    the block where it stands, if that has one: its nodes may stand for others that
//!    are visible by that one, and are where it is replayed, but would not be if they
//!    were visible by another one.
//! 9. A loop may have at least one iteration. What is replayed is a loop where
//!    that which replays is one, and then has the same bound, replays none itself
//!    and is not being replayed already. Each entry φ stands at its number in the
//!    list of its loop, which holds nothing else, comes from the place of the
//!    loop, and has a larger id than its first value, which is visible where the
//!    loop stands. There is at most one iteration number of a loop, and none of
//!    one that replays another. Both are visible in the loop, and in those that
//!    replay it.
//! 10. A history is of a node that gets its value in the root of a loop that
//!     replays none, not of the iteration number. What arrays refer to is there. A
//!     row of inputs is of active or of inactive ones. No output is in two arrays.
//! 11. The strides of an access are by different loops that replay none, and its
//!     index is in the array whatever the iteration numbers.
//! 12. Where there is an access, the iteration numbers of its loops are known: it
//!     is in the loop, or in one that replays it. Where an element is read, and by
//!     smaller ids, the nodes of the array are visible, the loop of the history
//!     is as if it were to be replayed, or the sums have been filled in this block
//!     or above.
//! 13. Sums are filled by one step at most, but for those that are outputs: each
//!     path of the graph fills these once, in no region. They are filled where something
//!     is added to them, and nothing is added after an element has been read.
//!
//! A block may have a forward block, which has run before it in the same call:
//! that of the root of a region that replays another is the root of the other.
//! The root of another region has that of the block where the region stands.
//! Where a block and its forward block branch on the same condition, both sides
//! have those of the forward block as theirs; otherwise they have the same as
//! the block above. What a forward block computes, φs included, is visible.

mod arrays;
mod nodes;
mod sums;
mod tree;
mod visibility;

use super::analysis::Nest;
use super::arrays::{Access, Array};
use super::graph::{Block, Graph, Node, Region};
use super::print::{access_line, array_line, end_line, header_line, node_line, region_line};

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
/// use phigrad::internals::ssa::{Graph, verify};
///
/// let error = verify(&Graph::new(1, 0)).unwrap_err();
/// assert_eq!(error.what, "block b0 is open");
/// ```
pub fn verify(graph: &Graph) -> Result<(), VerifyError> {
    // In this order: each check relies on those before it.
    nodes::check(graph)?;
    tree::check(graph)?;
    let nest = Nest::of(graph);
    arrays::check(graph, &nest)?;
    visibility::check(graph, &nest)
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

fn at_array(graph: &Graph, array: Array, what: &str) -> VerifyError {
    let line = array_line(graph, array);
    VerifyError { what: format!("array {array} {what}"), excerpt: caret(&line) }
}

fn at_access(graph: &Graph, access: Access, what: &str) -> VerifyError {
    let line = access_line(graph, access);
    VerifyError { what: format!("access {access} {what}"), excerpt: caret(&line) }
}

fn caret(line: &str) -> String {
    format!("  {line}\n  ^")
}
