//! Hot and cold arms of branches, from a block profile.

use crate::entity::PrimaryMap;
use crate::ssa::{Block, Graph, Node, is_acceptance};

/// The arm of a branch on `condition` that is hot: the only one that profiled runs took (true
/// for the first). `None` if both are or neither is.
pub(super) fn hot_arm(
    graph: &Graph,
    condition: Node,
    arms: [Block; 2],
    profile: Option<&PrimaryMap<Block, bool>>,
) -> Option<bool> {
    match profile.map(|profile| arms.map(|arm| profile[arm])) {
        Some([true, false]) => Some(true),
        Some([false, true]) => Some(false),
        // Without a profile, calls accept their operands, and the fallback version is cold.
        _ => is_acceptance(graph, condition).then_some(true),
    }
}
