//! Loops that are made to end where and when a certificate wants it.

use crate::op::Op;
use crate::ssa::{AccessData, Block, Def, End, Graph, Item, Nest, Node, Region, in_order};

/// The graph with `region` made to end in the block `end` of iteration number `trips`.
pub(super) fn ended(graph: &Graph, region: Region, end: Block, trips: u32) -> Option<Graph> {
    let mut graph = graph.clone();
    let root = graph.regions[region].root;
    let number = graph.nodes.iter().find(|(_, data)| data.def == Def::Iteration(region));
    let number = number.map(|(node, _)| node);
    let number = number.unwrap_or_else(|| graph.push_iteration(region));
    let [no, yes] = [0.0, 1.0f64].map(|value| graph.push_const(value.to_bits()));
    let trips = graph.push_const(f64::from(trips).to_bits());
    let [goes_on, is_over] = [Op::Lt, Op::Ge].map(|op| {
        let node = graph.push_apply(root, op, &[number, trips], None);
        graph.blocks[root].items.pop();
        node
    });
    graph.blocks[root].items.splice(0..0, [Item::Node(goes_on), Item::Node(is_over)]);
    let again = |graph: &Graph, leaf: Block| match &graph.blocks[leaf].end {
        End::Return(values) => values.first().copied(),
        End::Branch { .. } | End::Open => None,
    };
    let constant = |graph: &Graph, node: Option<Node>| node.and_then(|node| graph.constant(node));
    let leaves = graph.leaves(root);
    let on =
        leaves.iter().copied().find(|&leaf| constant(&graph, again(&graph, leaf)) != Some(0.0))?;
    let (to_end, to_next) = (sides(&graph, end), sides(&graph, on));
    for leaf in leaves {
        if let End::Return(values) = &mut graph.blocks[leaf].end {
            values[0] = if leaf == on { goes_on } else { no };
        }
    }
    for &(block, side) in to_end.iter().chain(&to_next) {
        let side_of = |way: &[(Block, bool)]| {
            way.iter().find(|(other, _)| *other == block).map(|&(_, side)| side)
        };
        let decision = match (side_of(&to_end), side_of(&to_next)) {
            (Some(true), Some(false)) => is_over,
            (Some(false), Some(true)) => goes_on,
            _ if side => yes,
            _ => no,
        };
        if let End::Branch { condition, .. } = &mut graph.blocks[block].end {
            *condition = decision;
        }
    }
    // And all that is around it, so that it is reached.
    let parents = graph.parents();
    let mut below = root;
    while let Some(above) = parents[below] {
        if let End::Branch { condition, then, .. } = &mut graph.blocks[above].end
            && [*then, below].contains(&below)
            && graph.regions.values().all(|region| region.root != below)
        {
            *condition = if *then == below { yes } else { no };
        }
        below = above;
    }
    in_order(&graph)
}

/// The branches above `block` in its tree, each with the side on which it is.
fn sides(graph: &Graph, block: Block) -> Vec<(Block, bool)> {
    let parents = graph.parents();
    let (mut sides, mut below) = (Vec::new(), block);
    while let Some(above) = parents[below] {
        let End::Branch { then, otherwise, .. } = graph.blocks[above].end else { break };
        if ![then, otherwise].contains(&below) {
            break;
        }
        sides.push((above, then == below));
        below = above;
    }
    sides
}

/// The graph with `region`, a loop that is gone through a known number of times, gone
/// through so often that it goes on `trips` times; `None` if it is no such loop, or reads
/// elements that there are not.
pub(super) fn of_length(graph: &Graph, region: Region, trips: u32) -> Option<Graph> {
    let bound = graph.regions[region].cycle.as_ref()?.bound;
    let blocks = graph.leaves(graph.regions[region].root);
    let mut graph = graph.clone();
    if trips >= bound {
        let nest = Nest::of(&graph);
        let is_there = |access: &AccessData| {
            let Some(&(_, stride)) = access.strides.iter().find(|(of, _)| *of == region) else {
                return true;
            };
            let others = access.strides.iter().filter(|(of, _)| *of != region);
            let last = others.fold(i64::from(access.base), |last, &(of, stride)| {
                let cycle = graph.regions[of].cycle.as_ref();
                let most = cycle.map_or(0, |cycle| i64::from(cycle.bound) - 1);
                last + (i64::from(stride) * most).max(0)
            });
            let last = last + i64::from(stride) * i64::from(trips);
            stride >= 0 && last < graph.series_len(access.series, &nest) as i64
        };
        if !graph.accesses.values().all(is_there) {
            return None;
        }
    }
    let number = graph.nodes.iter().find(|(_, data)| data.def == Def::Iteration(region));
    let number = number.map(|(node, _)| node);
    let number = number.unwrap_or_else(|| graph.push_iteration(region));
    for block in blocks {
        let End::Return(passed) = &graph.blocks[block].end else { return None };
        let again = *passed.first()?;
        let is_counted = match graph.nodes[again].def {
            Def::Apply(Op::Lt, [of, last, _]) => {
                of == number && graph.constant(last) == Some(f64::from(bound - 1))
            }
            Def::Const(bits) => bound == 1 && f64::from_bits(bits) == 0.0,
            _ => false,
        };
        if !is_counted {
            return None;
        }
        let last = graph.push_const(f64::from(trips).to_bits());
        let again = graph.push_apply(block, Op::Lt, &[number, last], None);
        if let End::Return(passed) = &mut graph.blocks[block].end {
            passed[0] = again;
        }
    }
    graph.regions[region].cycle.as_mut()?.bound = trips + 1;
    in_order(&graph)
}
