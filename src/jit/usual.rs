//! Which side of a branch is taken as a rule, so that the other one may stand apart.

use crate::entity::Array;
use crate::op::{Op, eval};
use crate::ssa::{Block, Def, Graph, Node};

/// How `condition` comes out as a rule, where `sides` are those of a branch on it: as in the
/// runs that are known, if only one was taken, or else as the condition tells.
pub(super) fn usual(
    graph: &Graph,
    condition: Node,
    sides: [Block; 2],
    reached: Option<&Array<Block, bool>>,
) -> Option<bool> {
    match reached.map(|reached| sides.map(|side| reached[side])) {
        Some([true, false]) => Some(true),
        Some([false, true]) => Some(false),
        _ => usual_truth(graph, condition),
    }
}

/// How a comparison comes out for numbers of a usual size, if it is one with an end of the
/// range of numbers: a constant so large or so small that few numbers are beyond it.
fn usual_truth(graph: &Graph, condition: Node) -> Option<bool> {
    /// Numbers from this on, and up to its reciprocal, are at the ends.
    const HUGE: f64 = 1e150;
    let Def::Apply(op, [a, b, _]) = graph.nodes[condition].def else { return None };
    if !matches!(op, Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne) {
        return None;
    }
    let end = |node: Node| {
        let constant = graph.constant(node)?;
        let size = constant.abs();
        (size >= HUGE || (size > 0.0 && size <= HUGE.recip())).then_some(constant)
    };
    let usual = |end: f64| 1f64.copysign(end);
    let args = match (end(a), end(b)) {
        (Some(end), None) => [end, usual(end), 0.0],
        (None, Some(end)) => [usual(end), end, 0.0],
        _ => return None,
    };
    Some(eval(op, args) != 0.0)
}
