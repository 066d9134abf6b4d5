//! Which side of a branch is taken as a rule, so that the other one may stand apart.

use crate::entity::PrimaryMap;
use crate::ssa::{Block, Graph, Node, is_acceptance};

/// How `condition` comes out as a rule, where `arms` are those of a branch on it: as in the
/// runs that are known, if only one was taken.
pub(super) fn hot_arm(
    graph: &Graph,
    condition: Node,
    arms: [Block; 2],
    profile: Option<&PrimaryMap<Block, bool>>,
) -> Option<bool> {
    match profile.map(|profile| arms.map(|arm| profile[arm])) {
        Some([true, false]) => Some(true),
        Some([false, true]) => Some(false),
        // A call accepts its operands as a rule.
        _ => is_acceptance(graph, condition).then_some(true),
    }
}
