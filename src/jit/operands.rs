//! Operands and uses of nodes, as the schedule sees them.

use super::layout::inputs_in_progression;
use crate::op::Op;
use crate::ssa::{AccessData, ArrayData, Block, Def, End, Graph, Item, Node, Region};

/// The nodes that must be computed before `node`, elements of the arrays that it reads included.
pub(super) fn operands(graph: &Graph, node: Node) -> &[Node] {
    let Def::Element(access) = graph.nodes[node].def else { return graph.operands(node) };
    let access = &graph.accesses[access];
    match &graph.arrays[access.array] {
        ArrayData::Constants(_)
        | ArrayData::Inputs { .. }
        | ArrayData::Sums(_)
        | ArrayData::Outputs { .. }
        | ArrayData::Cells(_) => &[],
        ArrayData::Nodes(nodes) if access.is_fixed() => {
            let index = access.base as usize;
            nodes.get(index..=index).unwrap_or(&[])
        }
        ArrayData::Nodes(nodes) if inputs_in_progression(graph, nodes).is_some() => &[],
        ArrayData::Nodes(nodes) => nodes,
        ArrayData::Saved(past) => core::slice::from_ref(past),
    }
}

/// The operands that must be in registers. Those of a call are in the scratch buffer, as its
/// results are.
pub(super) fn in_registers(graph: &Graph, node: Node) -> &[Node] {
    match graph.nodes[node].def {
        Def::Apply(..) if counter_test(graph, node).is_some() => &[],
        Def::Apply(..) => graph.nodes[node].args(),
        _ => &[],
    }
}

/// The loop and the number that `node` compares its iteration number with: whether that is less.
pub(super) fn counter_test(graph: &Graph, node: Node) -> Option<(Region, u32)> {
    let Def::Apply(Op::Lt, [number, most, _]) = graph.nodes[node].def else { return None };
    let Def::Iteration(region) = graph.nodes[number].def else { return None };
    let most = graph.constant(most)?;
    (most == f64::from(most as u32)).then_some((region, most as u32))
}

/// The node that the element `node` is, if its index is constant.
pub(super) fn known_element(graph: &Graph, node: Node) -> Option<Node> {
    let Def::Element(access) = graph.nodes[node].def else { return None };
    let access = &graph.accesses[access];
    match &graph.arrays[access.array] {
        ArrayData::Nodes(nodes) if access.is_fixed() => nodes.get(access.base as usize).copied(),
        _ => None,
    }
}

/// True if the nodes of the array must be copied to memory for this access.
pub(super) fn is_copied(graph: &Graph, access: &AccessData) -> bool {
    let ArrayData::Nodes(nodes) = &graph.arrays[access.array] else { return false };
    !access.is_fixed() && inputs_in_progression(graph, nodes).is_none()
}

/// Calls `visit` with each use of a node and its block; first values of a loop are used in its
/// root block.
pub(super) fn for_each_use(graph: &Graph, mut visit: impl FnMut(Node, Block)) {
    for (block, data) in graph.blocks.iter() {
        for item in &data.items {
            match *item {
                Item::Node(node) => {
                    operands(graph, node).iter().for_each(|&operand| visit(operand, block));
                }
                Item::Guard { condition, .. } => visit(condition, block),
                Item::Region(region) => {
                    let root = graph.regions[region].root;
                    graph.entries(region).iter().for_each(|entry| visit(entry.first, root));
                }
                Item::Fill(array) => {
                    if let ArrayData::Sums(firsts) = &graph.arrays[array] {
                        firsts.iter().flatten().for_each(|&first| visit(first, block));
                    }
                }
                Item::Accumulate(_, node) | Item::Store(_, node) => visit(node, block),
            }
        }
        match &data.end {
            End::Return(values) => values.iter().for_each(|&value| visit(value, block)),
            End::Branch { condition, .. } => visit(*condition, block),
            End::Open => {}
        }
    }
}
