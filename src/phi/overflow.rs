//! Overflow: a closed form may be NaN where the loop is infinite, infinite where it is NaN, or
//! finite where it overflows on the way. What is not finite where it comes out of the program
//! is computed on the tape; but where something is decided by it, or is finite all the same,
//! the graph stops.

use std::collections::{BTreeMap, BTreeSet};

use super::close::inside_out;
use super::given::{self, Given, given};
use super::replacement::Replacement;
use crate::op::Op;
use crate::ssa::{
    Block, Def, End, Flow, Graph, Item, Nest, Node, Origins, Region, Scope, SeriesData,
    eliminate_dead_code, evident_nodes, hidden_nodes,
};

/// So many guards are looked at whether they may be dropped.
const MOST_GUARDS: usize = 16;

/// Makes `new`, which takes the place of `before`, stop where what a loop came to is not
/// finite, or what it is made of is so large that it may not have been, if that could be hidden.
/// Whether outputs have to be finite, too.
pub(super) fn require_what_is_hidden(before: &Graph, new: &mut Replacement) -> bool {
    let (flow, nest_before) = (Flow::of(before), Nest::of(before));
    let results = new.nodes.keys().copied().filter(|&node| is_result(before, node)).collect();
    let (evident, nest) = (evident_nodes(&new.graph, true), Nest::of(&new.graph));
    // Nothing is, where it is not known.
    let is_evident = |node: Node| evident.as_ref().is_some_and(|evident| evident[node]);
    let hidden = hidden(before, results);
    let mut limits: BTreeMap<Node, f64> = BTreeMap::new();
    let mut is_shown = false;
    let mut loops: BTreeMap<Region, Vec<Node>> = BTreeMap::new();
    for node in hidden {
        let result = new.resolved(node);
        match is_evident(result) {
            true => is_shown = true,
            false => _ = limits.insert(result, f64::INFINITY),
        }
        // In a loop each guard costs much, and such numbers mostly overflow there later.
        let is_often = nest.node_loop(result).is_some() && is_evident(result);
        let region = match before.nodes[node].def {
            Def::Phi(region, _) => Some(region),
            _ => flow.sources(node).first().and_then(|&past| nest_before.node_loop(past)),
        };
        if let Some(region) = region.filter(|_| new.nodes.contains_key(&node) && !is_often) {
            loops.entry(region).or_default().push(node);
        }
    }
    for (region, results) in loops {
        let Given { nodes, limit } = given(&flow, region, &results);
        let (scope, block) = (Scope::of(before, region), nest_before.region_block(region));
        for node in nodes {
            // What is computed in the loop may not be there any more.
            if let Some(block) = block.filter(|_| scope.contains(node)) {
                let copy = given::before(&mut new.graph, &scope, block, node);
                require_below(&mut new.graph, block, copy, limit);
                continue;
            }
            let known = limits.entry(new.resolved(node)).or_insert(limit);
            *known = known.min(limit);
        }
    }
    let graph = &mut new.graph;
    limits.retain(|&node, _| graph.constant(node).is_none());
    for (node, limit) in limits {
        // Inputs are in no block.
        let block = nest.node_block(node).unwrap_or(graph.root());
        require_below(graph, block, node, limit);
    }
    is_shown
}

/// Whether `node` is what comes out of a loop, or is read of its iterations.
pub(super) fn is_result(graph: &Graph, node: Node) -> bool {
    match graph.nodes[node].def {
        Def::Phi(..) => true,
        Def::Element(access) => {
            let series = graph.accesses[access].series;
            matches!(graph.series[series], SeriesData::History(_))
        }
        _ => false,
    }
}

/// Stops `graph` where an output is not finite.
pub(super) fn require_outputs(graph: &mut Graph) {
    for leaf in graph.leaves(graph.root()) {
        let End::Return(outputs) = &graph.blocks[leaf].end else { continue };
        for output in outputs.clone() {
            require_below(graph, leaf, output, f64::INFINITY);
        }
    }
}

/// Stops the graph at the end of `block` where `node` is not less than `limit` in size.
fn require_below(graph: &mut Graph, block: Block, node: Node, limit: f64) {
    let limit = graph.push_const(limit.to_bits());
    let size = graph.push_apply(block, Op::Abs, &[node], None);
    let condition = graph.push_apply(block, Op::Lt, &[size, limit], None);
    graph.blocks[block].items.push(Item::Guard { condition, expect: true });
}

/// `graph` without guards that a node is finite where it would stop without them.
pub(super) fn without_evident_guards(graph: &Graph) -> Graph {
    let (mut graph, mut left) = (graph.clone(), MOST_GUARDS);
    for block in graph.blocks.keys() {
        for at in (0..graph.blocks[block].items.len()).rev() {
            let item = graph.blocks[block].items[at];
            let Some(node) = required_finite(&graph, item).filter(|_| left > 0) else { continue };
            graph.blocks[block].items.remove(at);
            let evident = evident_nodes(&graph, false);
            if !evident.as_ref().is_some_and(|evident| evident[node]) {
                graph.blocks[block].items.insert(at, item);
            }
            // What takes too long once does for the others, too.
            left = if evident.is_some() { left - 1 } else { 0 };
        }
    }
    eliminate_dead_code(&graph)
}

/// The node that this guard asks to be finite.
fn required_finite(graph: &Graph, item: Item) -> Option<Node> {
    let Item::Guard { condition, expect: true } = item else { return None };
    let Def::Apply(Op::Lt, [size, limit, _]) = graph.nodes[condition].def else { return None };
    let Def::Apply(Op::Abs, [node, ..]) = graph.nodes[size].def else { return None };
    (graph.constant(limit) == Some(f64::INFINITY)).then_some(node)
}

/// The nodes that must be finite so that it is not hidden that one of `results` is not. As long
/// as nothing in a loop hides that, it goes on as if they were, and it is enough to look at what
/// comes out of it.
fn hidden(graph: &Graph, results: Vec<Node>) -> BTreeSet<Node> {
    let (flow, nest) = (Flow::of(graph), Nest::of(graph));
    let origins = Origins::of(Flow::of(graph));
    let mut open: BTreeMap<Option<Region>, BTreeSet<Node>> = BTreeMap::new();
    for node in results {
        open.entry(nest.node_loop(node)).or_default().insert(node);
    }
    let mut found = BTreeSet::new();
    for region in inside_out(graph).into_iter().map(Some).chain([None]) {
        let Some(nodes) = open.remove(&region) else { continue };
        let scope = region.map_or_else(|| Scope::whole(graph), |region| Scope::of(graph, region));
        let hidden = hidden_nodes(graph, &flow, &scope);
        let (hidden, shown): (BTreeSet<Node>, _) =
            nodes.into_iter().partition(|node| hidden.contains(node));
        found.extend(hidden);
        for node in origins.leaving(shown, &scope) {
            open.entry(nest.node_loop(node)).or_default().insert(node);
        }
    }
    // What is read of the iterations of a loop in one that has been looked at before.
    found.extend(open.into_values().flatten());
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::Entity;
    use crate::ssa::{ParseError, parse};

    #[test]
    fn what_hides_in_a_loop_is_looked_at_there_and_else_behind_it() -> Result<(), ParseError> {
        // v10 is what a loop comes to that is in another one, which adds it to v4.
        let loops = |decision: &str, output: &str| {
            parse(&format!(
                "graph active 2 inactive 0\nv2 = const 9.0\nv3 = const 1.0\nv5 = iteration \
                 r0\nv7 = iteration r1\nb0:\n  v15 = region r0 b1 bound 10 entries v4=v0\n  v16 = \
                 {output}\n  return v16\nb1:\n  v10 = region r1 b2 bound 10 entries v6=v0\n  v11 = \
                 add v4 v10\n  v12 = abs v10\n  v13 = lt v5 v2\n  v14 = {decision}\n  return v14 \
                 v11 v11\nb2:\n  v8 = add v6 v1\n  v9 = lt v7 v2\n  return v9 v8 v8\n"
            ))
        };
        let found = |decision: &str, output: &str| -> Result<Vec<usize>, ParseError> {
            let graph = loops(decision, output)?;
            let result = graph.nodes.keys().filter(|node| node.index() == 10).collect();
            Ok(hidden(&graph, result).into_iter().map(Entity::index).collect())
        };
        assert_eq!(found("mul v13 v13", "mul v15 v0")?, []);
        assert_eq!(found("mul v13 v13", "tanh v15")?, [15]);
        assert_eq!(found("lt v12 v3", "mul v15 v0")?, [10]);
        assert_eq!(found("lt v4 v3", "mul v15 v0")?, [10]);
        Ok(())
    }

    #[test]
    fn what_is_finite_where_an_output_is_needs_no_guard_of_its_own() -> Result<(), ParseError> {
        let guarded = |output: &str, guards: &str| {
            parse(&format!(
                "graph active 2 inactive 0\nv2 = const inf\nb0:\n  v3 = mul v0 v1\n  v4 = abs \
                 v3\n  v5 = lt v4 v2\n  v6 = {output}\n  v7 = abs v6\n  v8 = lt v7 v2\n{guards}  \
                 return v6\n"
            ))
        };
        let left = |output: &str, guards: &str| -> Result<usize, ParseError> {
            let graph = without_evident_guards(&guarded(output, guards)?);
            Ok(graph.to_string().matches("guard").count())
        };
        assert_eq!(left("add v3 v0", "  guard v5\n  guard v8\n")?, 1);
        assert_eq!(left("tanh v3", "  guard v5\n")?, 1);
        // The output alone is not looked at in all kernels.
        assert_eq!(left("add v3 v0", "  guard v5\n")?, 1);
        let mut graph = guarded("add v3 v0", "")?;
        require_outputs(&mut graph);
        assert!(graph.to_string().contains("guard"));
        Ok(())
    }
}
