//! Splits a graph for many runs with some invariant inputs, which are the same in all runs: what
//! depends on these alone is computed once.

use smallvec::SmallVec;

use super::dead::eliminate_dead_code;
use super::graph::{Def, End, Graph, Item, Node};
use super::renumber::inputs_first;
use crate::entity::PrimaryMap;

/// The two parts of a graph.
#[derive(Debug)]
pub(crate) struct InvariantSplit {
    /// Computes the values that the rest uses: its outputs. It has the inputs of the whole.
    pub(crate) invariant: Graph,
    /// The rest. The outputs of the other part are further inactive inputs, the last ones.
    pub(crate) rest: Graph,
}

/// The parts of `graph` if `is_invariant` tells the inputs that are the same in all runs. `None` if
/// no step before the first branch depends on these alone. Steps in regions stay in the rest, and
/// so do custom operations.
pub(crate) fn split_invariant(
    graph: &Graph,
    is_invariant: impl Fn(u32) -> bool,
) -> Option<InvariantSplit> {
    let (inputs, root) = (graph.active + graph.inactive, graph.root());
    let mut invariant = Graph::new(graph.active, graph.inactive);
    let mut copies: PrimaryMap<Node, Option<Node>> = PrimaryMap::filled(None, graph.nodes.len());
    for (node, data) in graph.nodes.iter() {
        copies[node] = match data.def {
            Def::Input(number) if is_invariant(number) => Some(invariant.input(number as usize)),
            Def::Const(bits) => Some(invariant.push_const(bits)),
            _ => None,
        };
    }
    for &item in &graph.blocks[root].items {
        let Item::Node(node) = item else { continue };
        let args = graph.operands(node).iter().map(|&arg| copies[arg]);
        let Some(args) = args.collect::<Option<SmallVec<[Node; 4]>>>() else { continue };
        copies[node] = match graph.nodes[node].def {
            Def::Apply(op, _) => Some(invariant.push_apply(root, op, &args, None)),
            // Custom operations are called behind the guards, which are in the rest.
            Def::Call(call) if !graph.is_custom_call(node) => {
                let routine = graph.calls[call].routine.clone();
                Some(invariant.push_call(root, routine, args.to_vec(), None))
            }
            Def::Result(_, number) => Some(invariant.push_result(root, args[0], number)),
            _ => None,
        };
    }
    let is_leaf = |node: Node| matches!(graph.nodes[node].def, Def::Input(_) | Def::Const(_));
    let is_used = used_by_rest(graph, |node| copies[node].is_some() && !is_leaf(node));
    let crossing: Vec<(Node, Node)> = is_used
        .iter()
        .filter_map(|(node, &is_used)| Some((node, copies[node]?, is_used)))
        .filter(|&(node, _, is_used)| is_used && !is_leaf(node))
        .map(|(node, copy, _)| (node, copy))
        .collect();
    if crossing.is_empty() {
        return None;
    }
    invariant.blocks[root].end = End::Return(crossing.iter().map(|&(_, copy)| copy).collect());
    let mut rest = graph.clone();
    for (number, &(node, _)) in crossing.iter().enumerate() {
        rest.nodes[node].def = Def::Input((inputs + number) as u32);
    }
    let is_step = |item: &Item| match *item {
        Item::Node(node) => copies[node].is_none(),
        _ => true,
    };
    rest.blocks[root].items.retain(is_step);
    rest.inactive += crossing.len();
    Some(InvariantSplit {
        invariant: eliminate_dead_code(&invariant),
        rest: eliminate_dead_code(&inputs_first(rest)),
    })
}

/// The nodes that a step outside of the invariant part, an end or an array uses.
fn used_by_rest(
    graph: &Graph,
    is_in_invariant_part: impl Fn(Node) -> bool,
) -> PrimaryMap<Node, bool> {
    let mut is_used = PrimaryMap::filled(false, graph.nodes.len());
    for node in graph.nodes.keys().filter(|&node| !is_in_invariant_part(node)) {
        graph.operands(node).iter().for_each(|&operand| is_used[operand] = true);
    }
    for data in graph.blocks.values() {
        for item in &data.items {
            if let Item::Guard { condition: node, .. }
            | Item::Accumulate(_, node)
            | Item::Store(_, node) = *item
            {
                is_used[node] = true;
            }
        }
        match &data.end {
            End::Return(values) => values.iter().for_each(|&value| is_used[value] = true),
            End::Branch { condition, .. } => is_used[*condition] = true,
            End::Open => {}
        }
    }
    for data in graph.regions.values() {
        let entries = data.cycle.iter().flat_map(|cycle| &cycle.entries);
        entries.for_each(|entry| is_used[entry.first] = true);
    }
    for data in graph.arrays.values() {
        data.nodes().for_each(|node| is_used[node] = true);
    }
    is_used
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::{Outcome, interpret, parse, verify};

    #[test]
    fn the_parts_compute_the_whole() {
        let text = "graph active 1 inactive 2\nv3 = const 2\nb0:\n  v4 = mul v1 v2\n  \
                    v5 = sin v4\n  v6 = add v5 v3\n  v7 = mul v0 v6\n  v8 = gt v5 v3\n  \
                    branch v8 b1 b2\nb1:\n  return v7\nb2:\n  v9 = mul v7 v4\n  return v9\n";
        let graph = parse(text).unwrap();
        let InvariantSplit { invariant, rest } =
            split_invariant(&graph, |input| input > 0).unwrap();
        assert_eq!((verify(&invariant), verify(&rest)), (Ok(()), Ok(())));
        assert_eq!((rest.active, rest.inactive), (1, 5));
        for point in [[0.5, 1.0, 2.0], [-3.0, 0.25, 9.0]] {
            let Outcome::Values(values) = interpret(&invariant, &point) else { panic!("no guard") };
            let inputs = [&point[..], &values].concat();
            assert_eq!(interpret(&rest, &inputs), interpret(&graph, &point));
        }
        assert!(split_invariant(&graph, |_| false).is_none());
    }
}
