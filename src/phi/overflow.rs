//! Overflow: a closed form may be NaN where the loop is infinite, infinite where it is NaN, or
//! finite where it overflows on the way. What is not finite where it comes out of the program
//! is computed on the tape; but where something is decided by it, or is finite all the same,
//! the graph stops.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::close::inside_out;
use super::replacement::Replacement;
use crate::op::Op;
use crate::ssa::{
    Def, Flow, Graph, Item, Nest, Node, Origins, Region, Scope, SeriesData, evident_nodes,
    hidden_nodes,
};

/// Of what is less than two to this power a loop may add up many before that overflows.
const LARGE: i32 = 900;

/// Products of so many numbers are not told from products of more.
const MOST_MULTIPLIED: u32 = 64;

/// Makes `new`, which takes the place of `before`, stop where what a loop came to is not
/// finite, or what it is made of is so large that it may not have been, if that could be hidden.
pub(super) fn require_what_is_hidden(before: &Graph, new: &mut Replacement) {
    let is_result = |node: &Node| matches!(before.nodes[*node].def, Def::Phi(..));
    let results = new.nodes.keys().copied().filter(is_result).collect();
    let (evident, nest) = (evident_nodes(&new.graph), Nest::of(&new.graph));
    let hidden = hidden(before, results);
    let mut limits: BTreeMap<Node, f64> = BTreeMap::new();
    let mut loops: BTreeMap<Region, Vec<Node>> = BTreeMap::new();
    for node in hidden {
        let result = new.resolved(node);
        if !evident[result] {
            limits.insert(result, f64::INFINITY);
        }
        // In a loop each guard costs much, and such numbers mostly overflow there later.
        let is_often = nest.node_loop(result).is_some() && evident[result];
        if let Def::Phi(region, _) = before.nodes[node].def
            && new.nodes.contains_key(&node)
            && !is_often
        {
            loops.entry(region).or_default().push(node);
        }
    }
    let flow = Flow::of(before);
    for (region, results) in loops {
        let (parts, degree) = parts(&flow, region, &results);
        let large = 2f64.powi(LARGE / degree as i32);
        for part in parts {
            let limit = limits.entry(new.resolved(part)).or_insert(large);
            *limit = limit.min(large);
        }
    }
    let graph = &mut new.graph;
    limits.retain(|&node, _| graph.constant(node).is_none());
    for (node, limit) in limits {
        // Inputs are in no block.
        let block = nest.node_block(node).unwrap_or(graph.root());
        let limit = graph.push_const(limit.to_bits());
        let size = graph.push_apply(block, Op::Abs, &[node], None);
        let condition = graph.push_apply(block, Op::Lt, &[size, limit], None);
        graph.blocks[block].items.push(Item::Guard { condition, expect: true });
    }
}

/// What a loop is given of which its `results` are computed, and how many such numbers an
/// iteration multiplies at most. The forms may not depend on all of them: what an iteration
/// adds may be taken away by another. Of data the forms ask themselves.
fn parts(flow: &Flow<'_>, region: Region, results: &[Node]) -> (BTreeSet<Node>, u32) {
    let graph = flow.graph();
    let scope = Scope::of(graph, region);
    let mut parts = BTreeSet::new();
    // What is open counts as one number: where a loop goes round, what it has come to.
    let mut degrees: HashMap<Node, u32> = HashMap::new();
    let first = results.iter().flat_map(|&result| flow.sources(result));
    let mut pending: Vec<(Node, bool)> = first.map(|node| (node, false)).collect();
    while let Some((node, is_ready)) = pending.pop() {
        let is_open = degrees.contains_key(&node);
        match graph.nodes[node].def {
            Def::Const(_) | Def::Iteration(_) => _ = degrees.insert(node, 0),
            Def::Element(access) => {
                let data = &graph.series[graph.accesses[access].series];
                let is_number = matches!(data, SeriesData::Constants(_));
                degrees.insert(node, u32::from(!is_number));
            }
            _ if !scope.contains(node) => {
                parts.insert(node);
                degrees.insert(node, 1);
            }
            _ if is_ready => {
                let degree = degree(graph, node, &flow.sources(node), &degrees);
                degrees.insert(node, degree);
            }
            _ if !is_open => {
                degrees.insert(node, 1);
                pending.push((node, true));
                pending.extend(flow.sources(node).into_iter().map(|source| (source, false)));
            }
            _ => {}
        }
    }
    (parts, degrees.into_values().max().unwrap_or(0).max(1))
}

/// How many numbers are multiplied in `node`, whose `sources` are products of that many.
fn degree(graph: &Graph, node: Node, sources: &[Node], degrees: &HashMap<Node, u32>) -> u32 {
    let each: Vec<u32> = sources.iter().map(|source| degrees[source]).collect();
    let power = match graph.nodes[node].def {
        Def::Apply(Op::Powi, [_, power, _]) => graph.constant(power),
        _ => None,
    };
    let degree = match (graph.nodes[node].def, power) {
        (_, Some(power)) => each[0].saturating_mul(power.abs() as u32),
        (Def::Apply(Op::Mul | Op::Div | Op::Powi, _), _) => each[0] + each[1],
        (Def::Apply(Op::MulAdd, _), _) => (each[0] + each[1]).max(each[2]),
        _ => each.into_iter().max().unwrap_or(0),
    };
    degree.min(MOST_MULTIPLIED)
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
}
