//! Control slice: the nodes that conditions and singular primitives depend on.

use hashbrown::HashSet;

use super::Flow;
use crate::entity::PrimaryMap;
use crate::op::{Op, is_singular};
use crate::ssa::graph::{Def, End, Graph, Item, Node};

/// The nodes that a condition or a singular primitive depends on.
pub(crate) fn control_slice(graph: &Graph, flow: &Flow<'_>) -> PrimaryMap<Node, bool> {
    let is_root = |op, operand, args: &[Node]| {
        let has_pole = op == Op::Powi && graph.constant(args[1]) < Some(0.0);
        is_singular(op, operand) || has_pole
    };
    let slice = backward_slice(graph, flow, is_root);
    graph.nodes.keys().map(|node| slice.contains(&node)).collect()
}

/// The nodes that a condition depends on, or an operand for which `is_root` holds.
fn backward_slice(
    graph: &Graph,
    flow: &Flow<'_>,
    is_root: impl Fn(Op, usize, &[Node]) -> bool,
) -> HashSet<Node> {
    let mut pending: Vec<Node> = Vec::new();
    for data in graph.blocks.values() {
        for item in &data.items {
            match *item {
                Item::Guard { condition, .. } => pending.push(condition),
                Item::Node(node) => {
                    let Def::Apply(op, _) = graph.nodes[node].def else { continue };
                    let args = graph.nodes[node].args();
                    let operands = args.iter().enumerate();
                    pending
                        .extend(operands.filter(|&(at, _)| is_root(op, at, args)).map(|of| of.1));
                }
                Item::Region(_) | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => {}
            }
        }
        if let End::Branch { condition, .. } = data.end {
            pending.push(condition);
        }
    }
    for region in graph.regions.keys() {
        let (conditions, _) = graph.passed_before_phis(region);
        if conditions > 0 {
            pending.extend(flow.passed(region, 0));
        }
    }
    let mut slice = HashSet::new();
    // Each array is visited once, however many elements are read.
    let mut seen = HashSet::new();
    while let Some(node) = pending.pop() {
        if !slice.insert(node) {
            continue;
        }
        match graph.nodes[node].def {
            Def::Element(access) => {
                let array = graph.accesses[access].array;
                if seen.insert(array) {
                    pending.extend(flow.elements(array));
                }
            }
            _ => pending.extend(flow.sources(node)),
        }
    }
    slice
}

#[cfg(test)]
mod tests {
    use super::control_slice;
    use crate::entity::Entity;
    use crate::ssa::{Flow, ParseError, parse};

    #[test]
    fn the_slice_passes_through_phis_and_arrays() -> Result<(), ParseError> {
        let choice = |end: &str| {
            format!(
                "b0:\n  v5 = region r0 b1\n{end}b1:\n  branch v2 b2 b3\nb2:\n  v3 = mul v0 v1\n  \
                 v4 = add v3 v2\n  return v4\nb3:\n  return v0\n"
            )
        };
        // v4 + v0·v0 + …, while v4 is less than 3.
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
            let slice = control_slice(&graph, &Flow::of(&graph));
            let found = slice.iter().filter(|&(_, &is_in_slice)| is_in_slice);
            let found: Vec<usize> = found.map(|(node, _)| node.index()).collect();
            assert_eq!(found, expected, "{graph}");
        }
        Ok(())
    }
}
