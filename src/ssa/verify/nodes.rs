//! Invariants of single nodes and regions: what they refer to is there.

use super::{VerifyError, at_header, at_node, at_region};
use crate::entity::Entity;
use crate::op::{Domain, Op};
use crate::ssa::graph::{Def, Graph, Node, NodeData};

pub(super) fn check(graph: &Graph) -> Result<(), VerifyError> {
    let inputs = graph.active.saturating_add(graph.inactive);
    if graph.nodes.len() < inputs {
        let what = format!("there are {inputs} inputs but {} nodes", graph.nodes.len());
        return Err(at_header(graph, what));
    }
    if graph.blocks.is_empty() {
        return Err(at_header(graph, "there is no block".into()));
    }
    graph.nodes.iter().try_for_each(|(node, data)| check_node(graph, inputs, node, data))?;
    check_regions(graph)
}

fn check_node(
    graph: &Graph,
    inputs: usize,
    node: Node,
    data: &NodeData,
) -> Result<(), VerifyError> {
    let index = node.index();
    let is_input = index < inputs;
    match data.def {
        Def::Input(i) if is_input && i as usize == index => {}
        Def::Input(_) => return Err(at_node(graph, node, "is an input out of place")),
        _ if is_input => return Err(at_node(graph, node, "stands in the place of an input")),
        Def::Const(_) => {}
        Def::Apply(op, args) => {
            // Also those beyond the arity, which passes copy along.
            if args.iter().any(|&arg| arg >= node) {
                return Err(at_node(graph, node, "uses an operand with a larger id"));
            }
            let is_integer = |n| graph.constant(n).is_some_and(|n| Domain::Integer.contains(n));
            if op == Op::Powi && !is_integer(args[1]) {
                return Err(at_node(graph, node, "has an exponent that is no constant i32"));
            }
        }
        Def::Phi(region, number) => {
            let data = graph.regions.get(region);
            if data.and_then(|data| data.phis.get(number as usize)) != Some(&node) {
                return Err(at_node(graph, node, "is not in its place among the φs of its region"));
            }
        }
    }
    if data.place.is_some_and(|place| graph.places.get(place).is_none()) {
        return Err(at_node(graph, node, "comes from an unknown place"));
    }
    Ok(())
}

fn check_regions(graph: &Graph) -> Result<(), VerifyError> {
    for (region, data) in graph.regions.iter() {
        if graph.blocks.get(data.root).is_none() {
            return Err(at_region(graph, region, "begins in no block"));
        }
        if data.place.is_some_and(|place| graph.places.get(place).is_none()) {
            return Err(at_region(graph, region, "comes from an unknown place"));
        }
        if data.replays.is_some_and(|replayed| graph.regions.get(replayed).is_none()) {
            return Err(at_region(graph, region, "replays no region"));
        }
        for (number, &phi) in data.phis.iter().enumerate() {
            let def = Def::Phi(region, number as u32);
            let Some(node) = graph.nodes.get(phi).filter(|node| node.def == def) else {
                return Err(at_region(graph, region, &format!("has {phi} as φ, which is none")));
            };
            if node.place != data.place {
                return Err(at_node(graph, phi, "comes from another place than its region"));
            }
        }
    }
    Ok(())
}
