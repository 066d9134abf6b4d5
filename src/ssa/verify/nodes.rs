//! Invariants of single nodes and regions: all references are valid.

use super::{VerifyError, at_header, at_node, at_region};
use crate::entity::PrimaryMap;
use crate::op::{Domain, Op};
use crate::ssa::graph::{Def, Graph, Node, NodeData, Region, RegionData};

/// Checks the parts of invariants 1 to 3, 7 and 9 that concern single nodes and regions.
pub(super) fn check(graph: &Graph) -> Result<(), VerifyError> {
    if graph.blocks.is_empty() {
        return Err(at_header(graph, "there is no block".into()));
    }
    graph.nodes.iter().try_for_each(|(node, data)| check_node(graph, node, data))?;
    check_inputs(graph)?;
    let mut counted = PrimaryMap::filled(false, graph.regions.len());
    for (node, data) in graph.nodes.iter() {
        if let Def::Iteration(region) = data.def
            && core::mem::replace(&mut counted[region], true)
        {
            return Err(at_node(graph, node, "is a second iteration number of its loop"));
        }
    }
    check_regions(graph)
}

/// Tests whether `region` is a loop that replays no other.
pub(super) fn is_forward_loop(graph: &Graph, region: Region) -> bool {
    let data = graph.regions.get(region);
    data.is_some_and(|data| data.cycle.is_some() && data.replays.is_none())
}

fn check_inputs(graph: &Graph) -> Result<(), VerifyError> {
    let inputs = graph.active.saturating_add(graph.inactive);
    let mut known: Vec<(u32, Node)> =
        graph.input_nodes().map(|(node, number)| (number, node)).collect();
    known.sort_unstable();
    if let Some(&(_, node)) = known.iter().find(|&&(number, _)| number as usize >= inputs) {
        return Err(at_node(graph, node, "has an input number that the graph does not have"));
    }
    match known.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(at_node(graph, pair[1].1, "has the input number of another node")),
        None => Ok(()),
    }
}

fn check_node(graph: &Graph, node: Node, data: &NodeData) -> Result<(), VerifyError> {
    match data.def {
        Def::Input(_) | Def::Const(_) => {}
        Def::Apply(op, args) => {
            // Operands beyond the arity as well, because passes copy them.
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
        Def::Entry(region, number) => {
            let cycle = graph.regions.get(region).and_then(|data| data.cycle.as_ref());
            let entry = cycle.and_then(|cycle| cycle.entries.get(number as usize));
            let Some(entry) = entry.filter(|entry| entry.phi == node) else {
                let what = "is not in its place among the entry φs of its loop";
                return Err(at_node(graph, node, what));
            };
            if entry.first >= node {
                return Err(at_node(graph, node, "has no larger id than its first value"));
            }
        }
        Def::Iteration(region) => {
            if !is_forward_loop(graph, region) {
                return Err(at_node(graph, node, "counts no loop, or one that replays another"));
            }
        }
        Def::Element(access) => {
            if graph.accesses.get(access).is_none() {
                return Err(at_node(graph, node, "reads at an access that does not exist"));
            }
        }
        Def::Call(call) => {
            let Some(data) = graph.calls.get(call) else {
                return Err(at_node(graph, node, "refers to a call that does not exist"));
            };
            if data.args.len() != data.routine.inputs() {
                return Err(at_node(
                    graph,
                    node,
                    "has another number of operands than its routine has inputs",
                ));
            }
            if data.args.iter().any(|&arg| arg >= node) {
                return Err(at_node(graph, node, "uses an operand with a larger id"));
            }
        }
        Def::Result(call, number) => {
            let called = match graph.nodes.get(call).filter(|_| call < node).map(|data| data.def) {
                Some(Def::Call(called)) => graph.calls.get(called),
                _ => None,
            };
            let results = called.map_or(0, |data| data.routine.results());
            if number == 0 || number as usize >= results {
                return Err(at_node(graph, node, "is no result of a call"));
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
            return Err(at_region(graph, region, "has a root that is no block"));
        }
        if data.place.is_some_and(|place| graph.places.get(place).is_none()) {
            return Err(at_region(graph, region, "comes from an unknown place"));
        }
        if data.replays.is_some_and(|replayed| graph.regions.get(replayed).is_none()) {
            return Err(at_region(graph, region, "replays a region that does not exist"));
        }
        check_loop(graph, region, data)?;
        for (number, &phi) in data.phis.iter().enumerate() {
            let def = Def::Phi(region, number as u32);
            let Some(node) = graph.nodes.get(phi).filter(|node| node.def == def) else {
                return Err(at_region(
                    graph,
                    region,
                    &format!("has {phi} as φ, which is not defined as that"),
                ));
            };
            if node.place != data.place {
                return Err(at_node(graph, phi, "comes from another place than its region"));
            }
        }
    }
    Ok(())
}

fn check_loop(graph: &Graph, region: Region, data: &RegionData) -> Result<(), VerifyError> {
    let wrong = |what: &str| Err(at_region(graph, region, what));
    if let Some(replayed) = data.replays {
        let replayed = &graph.regions[replayed];
        match (&data.cycle, &replayed.cycle) {
            (None, None) => {}
            (None, Some(_)) => return wrong("replays a loop but is no loop"),
            (Some(_), None) => return wrong("is a loop but replays a region that is none"),
            (Some(_), Some(_)) if replayed.replays.is_some() => {
                return wrong("replays a loop that replays another");
            }
            (Some(cycle), Some(other)) if cycle.bound != other.bound => {
                return wrong("has another bound than the loop that it replays");
            }
            (Some(_), Some(_)) => {}
        }
    }
    if data.cycle.as_ref().is_some_and(|cycle| cycle.bound == 0) {
        return wrong("has bound 0");
    }
    for (number, entry) in graph.entries(region).iter().enumerate() {
        let def = Def::Entry(region, number as u32);
        let Some(node) = graph.nodes.get(entry.phi).filter(|node| node.def == def) else {
            return wrong(&format!("has {} as entry φ, which is not defined as that", entry.phi));
        };
        if node.place != data.place {
            return Err(at_node(graph, entry.phi, "comes from another place than its loop"));
        }
    }
    Ok(())
}
