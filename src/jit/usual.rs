//! Which side of a branch is taken as a rule, so that the other one may stand apart.

use crate::entity::PrimaryMap;
use crate::ssa::{Block, Graph, Node, is_acceptance};

/// How `condition` comes out as a rule, where `sides` are those of a branch on it: as in the
/// runs that are known, if only one was taken.
pub(super) fn usual(
    graph: &Graph,
    condition: Node,
    sides: [Block; 2],
    reached: Option<&PrimaryMap<Block, bool>>,
) -> Option<bool> {
    match reached.map(|reached| sides.map(|side| reached[side])) {
        Some([true, false]) => Some(true),
        Some([false, true]) => Some(false),
        // A call accepts its operands as a rule.
        _ => is_acceptance(graph, condition).then_some(true),
    }
}
