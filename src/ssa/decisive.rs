//! What decides: the nodes that conditions and singular primitives depend on.

use smallvec::SmallVec;

use super::flow::Flow;
use super::graph::{Def, End, Graph, Item, Node};
use crate::entity::Array;
use crate::op::{MAX_ARITY, Op, hides_infinity, is_singular};

/// Which nodes a condition or a singular primitive depends on.
pub(crate) fn decisive_nodes(graph: &Graph, flow: &Flow<'_>) -> Array<Node, bool> {
    decisive_nodes_but(graph, flow, |_, _| false)
}

/// The same, where some operands of singular primitives are known not to come near a
/// singularity, or that is of no matter.
pub(crate) fn decisive_nodes_but(
    graph: &Graph,
    flow: &Flow<'_>,
    is_regular: impl Fn(Op, Node) -> bool,
) -> Array<Node, bool> {
    let matters = |op, operand, args: &[Node]| {
        let has_pole = op == Op::Powi && graph.constant(args[1]) < Some(0.0);
        (is_singular(op, operand) || has_pole) && !is_regular(op, args[operand])
    };
    needed(graph, flow, matters, |_, _, _| true)
}

/// Which nodes something is computed from, or decided, that may be finite, and not always the
/// same, where they are not finite.
pub(crate) fn hidden_nodes(graph: &Graph, flow: &Flow<'_>) -> Array<Node, bool> {
    let matters = |op, operand, args: &[Node]| hides(graph, op, args, operand);
    let is_followed =
        |op: Op, operand, args: &[Node]| !op.is_comparison() || hides(graph, op, args, operand);
    needed(graph, flow, matters, is_followed)
}

/// Whether a primitive of `args` may be finite where this operand is not; and, if that is a
/// decision, not always the same one.
pub(super) fn hides(graph: &Graph, op: Op, args: &[Node], operand: usize) -> bool {
    let is_finite = |node| graph.constant(node).is_some_and(f64::is_finite);
    match (op, operand) {
        (Op::Powi, 0) if graph.constant(args[1]) > Some(0.0) => false,
        // A size that is NaN or infinite is not less than anything.
        (Op::Lt, 0) | (Op::Gt, 1) => !is_size(graph, args[operand], DEPTH),
        (Op::Le, 0) | (Op::Ge, 1) => {
            !(is_size(graph, args[operand], DEPTH) && is_finite(args[1 - operand]))
        }
        _ => hides_infinity(op, operand),
    }
}

/// From how far a size is seen to be one, in steps.
const DEPTH: usize = 8;

/// Whether `node` is +∞ or NaN if it is not finite.
fn is_size(graph: &Graph, node: Node, depth: usize) -> bool {
    let is_positive = |node| graph.constant(node) > Some(0.0);
    let is_size = |node| depth > 0 && is_size(graph, node, depth - 1);
    match graph.nodes[node].def {
        Def::Apply(Op::Abs | Op::Sqrt | Op::Hypot, _) => true,
        Def::Apply(Op::Mul, [a, b, _]) if a == b => true,
        Def::Apply(Op::Mul, [a, b, _]) if is_positive(a) => is_size(b),
        Def::Apply(Op::Mul | Op::Div, [a, b, _]) if is_positive(b) => is_size(a),
        Def::Apply(Op::Add, [a, b, _]) => is_size(a) && is_size(b),
        _ => false,
    }
}

/// Which nodes a condition depends on, or an operand of a primitive that `matters`, as far as
/// the way back is `followed`.
fn needed(
    graph: &Graph,
    flow: &Flow<'_>,
    matters: impl Fn(Op, usize, &[Node]) -> bool,
    is_followed: impl Fn(Op, usize, &[Node]) -> bool,
) -> Array<Node, bool> {
    let operands = |node: Node, is_wanted: &dyn Fn(Op, usize, &[Node]) -> bool| {
        let data = graph.nodes[node];
        let Def::Apply(op, _) = data.def else { return SmallVec::new() };
        let args = data.args().iter().enumerate();
        let args = args.filter(|&(at, _)| is_wanted(op, at, data.args()));
        args.map(|(_, &arg)| arg).collect::<SmallVec<[Node; MAX_ARITY]>>()
    };
    let mut pending: Vec<Node> = Vec::new();
    for block in graph.blocks.values() {
        for item in &block.items {
            if let Item::Guard { condition, .. } = *item {
                pending.push(condition);
            }
        }
        if let End::Branch { condition, .. } = block.end {
            pending.push(condition);
        }
    }
    for region in graph.regions.keys() {
        let (decides, _) = graph.passed_before_phis(region);
        if decides > 0 {
            pending.extend(flow.passed(region, 0));
        }
    }
    graph.nodes.keys().for_each(|node| pending.extend(operands(node, &matters)));
    let mut decisive = Array::filled(false, graph.nodes.len());
    // A long series has as many elements.
    let mut seen = Array::filled(false, graph.series.len());
    while let Some(node) = pending.pop() {
        if core::mem::replace(&mut decisive[node], true) {
            continue;
        }
        match graph.nodes[node].def {
            Def::Apply(..) => pending.extend(operands(node, &is_followed)),
            Def::Element(access) => {
                let series = graph.accesses[access].series;
                if !core::mem::replace(&mut seen[series], true) {
                    pending.extend(flow.elements(series));
                }
            }
            _ => pending.extend(flow.sources(node)),
        }
    }
    decisive
}

#[cfg(test)]
mod tests {
    use super::{decisive_nodes, hidden_nodes};
    use crate::entity::Entity;
    use crate::ssa::{Flow, ParseError, parse};

    #[test]
    fn decisions_hide_what_is_not_finite_unless_they_are_always_the_same() -> Result<(), ParseError>
    {
        // The product is compared, or divides.
        let hidden = |step: &str| -> Result<bool, ParseError> {
            let graph = parse(&format!(
                "graph active 2 inactive 0\nv2 = const 3.0\nv3 = const inf\nb0:\n  v4 = mul v0 \
                 v1\n  v5 = abs v4\n  v6 = mul v4 v4\n  v7 = add v5 v6\n  v8 = {step}\n  \
                 guard v8\n  return v5\n"
            ))?;
            let nodes = hidden_nodes(&graph, &Flow::of(&graph));
            Ok(nodes.iter().any(|(node, &hidden)| node.index() == 4 && hidden))
        };
        for step in ["lt v5 v2", "gt v2 v6", "le v7 v2", "ge v2 v5", "lt v5 v0", "lt v7 v3"] {
            assert!(!hidden(step)?, "{step}");
        }
        for step in ["lt v4 v2", "lt v2 v5", "gt v5 v2", "le v5 v0", "le v5 v3", "lt v5 v6"] {
            assert!(hidden(step)?, "{step}");
        }
        assert!(hidden("eq v5 v2")? && hidden("div v0 v5")? && hidden("tanh v4")?);
        Ok(())
    }

    #[test]
    fn what_decides_is_found_through_phis_and_series() -> Result<(), ParseError> {
        let choice = |end: &str| {
            format!(
                "b0:\n  v5 = region r0 b1\n{end}b1:\n  branch v2 b2 b3\nb2:\n  v3 = mul v0 v1\n  \
                 v4 = add v3 v2\n  return v4\nb3:\n  return v0\n"
            )
        };
        // v4 + v0·v0 + .., which goes on as long as v4 is less than 3.
        let sum = "v2 = const 0.0\nv3 = const 3.0\nv5 = iteration r0\na0 = nodes v0 v1 v0 v1\ni0 \
                   = a0 base 0 r0*1\nb0:\n  v11 = region r0 b1 bound 4 entries v4=v2\n  return \
                   v11\nb1:\n  v6 = element i0\n  v7 = mul v6 v6\n  v8 = add v4 v7\n  v9 = add v8 \
                   v1\n  v10 = lt v4 v3\n  return v10 v8 v9\n";
        let cases = [
            (choice("  return v5\n"), vec![2]),
            (choice("  guard v5\n  return v5\n"), vec![0, 1, 2, 3, 4, 5]),
            (choice("  v6 = sqrt v5\n  return v6\n"), vec![0, 1, 2, 3, 4, 5]),
            (sum.to_owned(), vec![0, 1, 2, 3, 4, 6, 7, 8, 10]),
            (sum.replace("lt v4 v3", "lt v5 v3"), vec![3, 5, 10]),
        ];
        for (text, expected) in cases {
            let graph = parse(&format!(
                "graph active {} inactive 0\n{text}",
                if text.starts_with("b0") { 3 } else { 2 }
            ))?;
            let decisive = decisive_nodes(&graph, &Flow::of(&graph));
            let found = decisive.iter().filter(|&(_, &is_decisive)| is_decisive);
            let found: Vec<usize> = found.map(|(node, _)| node.index()).collect();
            assert_eq!(found, expected, "{graph}");
        }
        Ok(())
    }
}
