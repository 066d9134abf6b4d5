//! Invariants of arrays and accesses.

use super::nodes::is_forward_loop;
use super::{VerifyError, at_access, at_array};
use crate::ssa::analysis::{AffineIndex, Nest};
use crate::ssa::arrays::{AccessData, ArrayData};
use crate::ssa::graph::{Def, Graph, Node};

/// Checks invariants 10 and 11.
pub(super) fn check(graph: &Graph, nest: &Nest) -> Result<(), VerifyError> {
    for (array, data) in graph.arrays.iter() {
        if let Some(node) = data.nodes().find(|&node| graph.nodes.get(node).is_none()) {
            return Err(at_array(graph, array, &format!("refers to {node}, which is no node")));
        }
        if let &ArrayData::Inputs { first, count } = data
            && !are_inputs(graph, first, count)
        {
            return Err(at_array(
                graph,
                array,
                "has inputs out of range, or both active and inactive ones",
            ));
        }
        if let ArrayData::Saved(node) = data
            && !is_saved(graph, nest, *node)
        {
            let what = format!("is of {node}, not computed in the root of a loop");
            return Err(at_array(graph, array, &what));
        }
    }
    check_outputs(graph)?;
    for (access, data) in graph.accesses.iter() {
        check_access(graph, nest, data).map_err(|what| at_access(graph, access, &what))?;
    }
    Ok(())
}

/// Tests whether these inputs exist and are all active or all inactive.
fn are_inputs(graph: &Graph, first: u32, count: u32) -> bool {
    let first = first as usize;
    let end = match first < graph.active {
        true => graph.active,
        false => graph.active.saturating_add(graph.inactive),
    };
    first.checked_add(count as usize).is_some_and(|last| last <= end)
}

fn check_outputs(graph: &Graph) -> Result<(), VerifyError> {
    let arrays = graph.output_arrays();
    let end = |&(_, first, count): &(_, u32, u32)| u64::from(first) + u64::from(count);
    if let Some(pair) = arrays.windows(2).find(|pair| u64::from(pair[1].1) < end(&pair[0])) {
        return Err(at_array(graph, pair[1].0, "has outputs of another array"));
    }
    let (outputs, last) = (graph.outputs() as u64, arrays.last());
    match last.filter(|last| end(last) > outputs) {
        Some(&(array, ..)) => {
            Err(at_array(graph, array, "begins after outputs that no path returns"))
        }
        None => Ok(()),
    }
}

/// Tests whether `node` may be saved: it is defined in the root of a loop that replays none.
fn is_saved(graph: &Graph, nest: &Nest, node: Node) -> bool {
    let root = |region| graph.regions[region].root;
    let is_number = matches!(graph.nodes[node].def, Def::Iteration(_));
    let region = nest.node_loop(node).filter(|&region| is_forward_loop(graph, region));
    !is_number && region.is_some_and(|region| nest.node_block(node) == Some(root(region)))
}

fn check_access(graph: &Graph, nest: &Nest, data: &AccessData) -> Result<(), String> {
    if graph.arrays.get(data.array).is_none() {
        return Err("is to an array that does not exist".into());
    }
    if !data.changes.is_empty()
        && matches!(graph.arrays[data.array], ArrayData::Nodes(_) | ArrayData::Saved(_))
    {
        return Err("has a changing stride in an array of nodes or saved values".into());
    }
    for parts in [&data.strides[..], &data.changes[..]] {
        for (index, &(region, _)) in parts.iter().enumerate() {
            if !is_forward_loop(graph, region) {
                return Err(format!(
                    "has a stride by {region}, which is no loop with an iteration number"
                ));
            }
            if parts[..index].iter().any(|&(before, _)| before == region) {
                return Err(format!("has two strides by {region}"));
            }
        }
    }
    let (least, most) = AffineIndex::of(data).range(graph);
    if least < 0 || most >= graph.array_len(data.array, nest) as i128 {
        return Err("may be outside of its array".into());
    }
    Ok(())
}
