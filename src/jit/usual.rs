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
    // A call accepts its operands as a rule.
    if matches!(graph.nodes[condition].def, Def::Call(_)) {
        return Some(true);
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::Entity;
    use crate::ssa::parse;

    #[test]
    fn comparisons_with_the_ends_of_the_range_come_out_as_for_usual_numbers() {
        let cases = [
            ("lt v0 v1", Some(true)),
            ("gt v0 v1", Some(false)),
            ("ge v1 v0", Some(true)),
            ("eq v0 v2", Some(false)),
            ("gt v0 v2", Some(true)),
            ("lt v0 v3", None),
            ("lt v1 v2", None),
            ("add v0 v1", None),
        ];
        for (step, expected) in cases {
            let text = format!(
                "graph active 1 inactive 0\nv1 = const 1e200\nv2 = const 1e-200\nv3 = const 7\n\
                 b0:\n  v4 = {step}\n  branch v4 b1 b2\nb1:\n  return v0\nb2:\n  return v3\n"
            );
            let graph = parse(&text).unwrap();
            let sides = [Block::from_index(1), Block::from_index(2)];
            let found = |reached: Option<[bool; 3]>| {
                let reached = reached.map(|reached| reached.into_iter().collect());
                usual(&graph, Node::from_index(4), sides, reached.as_ref())
            };
            assert_eq!(found(None), expected, "{step}");
            assert_eq!(found(Some([true, true, true])), expected, "{step}");
            // What was seen counts more.
            assert_eq!(found(Some([true, true, false])), Some(true));
            assert_eq!(found(Some([true, false, true])), Some(false));
        }
    }
}
