//! The verifier: the invariants of a graph, checked between all passes in tests and debug builds.
//!
//! 1. There is a block. The node of an input has a valid number, and no other node has the same
//!    number.
//! 2. Operands have smaller ids than the nodes that use them. The φs of a region have larger ids
//!    than all that its blocks, at any depth, compute and pass on.
//! 3. Each application is computed by exactly one block; inputs and constants by none. Each φ is
//!    at its number in the list of its region, which holds nothing else, and has the source place
//!    of the region.
//! 4. Operands, conditions, outputs and values passed on are visible: inputs, constants, or
//!    computed earlier in the block or in a block above (φs are computed at the end of their
//!    region), or by the forward block, see below.
//! 5. Blocks form a tree below the root: each other block is the target of exactly one branch, or
//!    is the root of exactly one region, which is a step of exactly one block; and it is
//!    reachable from the root.
//! 6. No block is open. All paths of the graph return the same number of outputs, at least as
//!    many as there are before those in arrays. All leaves of a region pass on one value for each
//!    φ; in a loop before those one for each entry φ; and before those, unless the loop replays
//!    another, the condition for another iteration.
//! 7. The exponent of `powi` is a constant integer in the range of `i32`.
//! 8. A region that replays another is a step where that one is visible: after it in the block,
//!    below that, or where the forward block has it as a step. A replayed region replays none
//!    itself. All its blocks have the forward block of the block around it, if that has one: its
//!    nodes may have been replaced by nodes that are visible through that forward block, and must
//!    be visible where they are replayed.
//! 9. The bound of a loop is at least 1. A loop replays only loops, and only a loop replays a
//!    loop; both have the same bound, and the replayed loop replays none itself and is not being
//!    replayed already. Each entry φ is at its number in the list of its loop, which holds
//!    nothing else, has the source place of the loop, and has a larger id than its initial value,
//!    which is visible at the loop. A loop has at most one node for its iteration number, a
//!    replaying loop none. Both are visible in the loop, and in loops that replay it.
//! 10. The node of an array of saved values is defined in the root of a loop that replays none,
//!     and is not its iteration number. The nodes of arrays exist. An array of inputs has active
//!     or inactive inputs, not both. No output is in two arrays.
//! 11. The strides of an access are by different loops that replay none, and its index is within
//!     the array for all iteration numbers.
//! 12. At each access the iteration numbers of its loops are visible: it is in the loop, or in
//!     one that replays it. At each read the nodes of the array are visible and have smaller ids,
//!     the loop of saved values could be replayed, or the array that steps write has been filled
//!     in this block or above.
//! 13. Accumulators and cells are filled by one step at most; those that are outputs exactly once
//!     on each path of the graph, outside regions. They are filled before something is written.
//!
//! A block may have a *forward block*, which has run before it in the same call. That of the root
//! of a replaying region is the root of the replayed one. The root of another region has that of
//! the block around the region. If a block and its forward block branch on the same condition,
//! both arms have the arms of the forward block as theirs; otherwise they have the same as the
//! block above. What a forward block computes, φs included, is visible.

mod arrays;
mod filled;
mod nodes;
mod tree;
mod visibility;

use super::analysis::Nest;
use super::arrays::{Access, Array};
use super::graph::{Block, Graph, Node, Region};
use super::print::{access_line, array_line, end_line, header_line, node_line, region_line};

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n{excerpt}")]
pub struct VerifyError {
    /// The violation: the node, block, region, array or access, and what is wrong with it.
    pub what: String,
    /// The offending line of the text form with a caret below it.
    excerpt: String,
}

/// Checks all invariants.
///
/// # Errors
///
/// The first invariant that is violated.
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

/// The excerpt of an error: the line with a caret below it.
fn caret(line: &str) -> String {
    format!("  {line}\n  ^")
}
