//! Renumbers the nodes of an edited graph in the order of its steps.

use super::arrays::ArrayData;
use super::graph::{Block, Def, End, Graph, Item, Node, NodeData, Region};
use crate::entity::{Entity, PrimaryMap};

/// The graph with its nodes in the order of a depth-first walk: inputs, constants, then the steps
/// of the blocks; unreachable nodes are dropped. A pass may insert nodes in blocks without regard
/// to their ids and call this at the end.
///
/// `None` if a step uses a node that is not in the graph.
///
/// # Examples
///
/// ```
/// use phigrad::internals::op::Op;
/// use phigrad::internals::ssa::{End, Graph, Item, in_order, verify};
///
/// let mut graph = Graph::new(1, 0);
/// let (root, x) = (graph.root(), graph.input(0));
/// let sine = graph.push_apply(root, Op::Sin, &[x], None);
/// // The sine of 2x instead: the new step comes first but has a larger id.
/// let two = graph.push_const(2.0f64.to_bits());
/// let double = graph.push_apply(root, Op::Mul, &[two, x], None);
/// graph.nodes[sine].def = phigrad::internals::ssa::Def::Apply(Op::Sin, [double; 3]);
/// graph.blocks[root].items = vec![Item::Node(double), Item::Node(sine)];
/// graph.blocks[root].end = End::Return([sine].into_iter().collect());
/// assert!(verify(&graph).is_err());
/// let ordered = in_order(&graph).expect("each node is there");
/// assert_eq!(verify(&ordered), Ok(()));
/// ```
pub fn in_order(graph: &Graph) -> Option<Graph> {
    ordered(graph, &visited(graph))
}

/// The graph with the used inputs as its first nodes, ordered by number, and all other nodes in
/// their order.
pub(crate) fn inputs_first(graph: Graph) -> Graph {
    let mut used = PrimaryMap::filled(false, graph.nodes.len());
    let mut use_node = |node: Node| used[node] = true;
    for node in graph.nodes.keys() {
        graph.operands(node).iter().copied().for_each(&mut use_node);
    }
    for data in graph.blocks.values() {
        for item in &data.items {
            match *item {
                Item::Guard { condition: node, .. } | Item::Accumulate(_, node) => use_node(node),
                Item::Node(_) | Item::Region(_) | Item::Fill(_) => {}
            }
        }
        match &data.end {
            End::Open => {}
            End::Return(values) => values.iter().copied().for_each(&mut use_node),
            End::Branch { condition, .. } => use_node(*condition),
        }
    }
    for region in graph.regions.keys() {
        graph.entries(region).iter().for_each(|entry| use_node(entry.first));
    }
    graph.arrays.values().flat_map(ArrayData::nodes).for_each(use_node);
    let is_input = |node: Node| matches!(graph.nodes[node].def, Def::Input(_));
    let mut inputs: Vec<(u32, Node)> = graph
        .input_nodes()
        .filter(|&(node, _)| used[node])
        .map(|(node, number)| (number, node))
        .collect();
    inputs.sort_unstable();
    let others = graph.nodes.keys().filter(|&node| !is_input(node));
    let order: Vec<Node> = inputs.into_iter().map(|(_, node)| node).chain(others).collect();
    if order.iter().copied().eq(graph.nodes.keys()) {
        return graph;
    }
    ordered(&graph, &order).unwrap_or(graph)
}

/// The graph with exactly these nodes, in this order.
fn ordered(graph: &Graph, order: &[Node]) -> Option<Graph> {
    let mut ids: PrimaryMap<Node, Option<Node>> = PrimaryMap::filled(None, graph.nodes.len());
    for (index, &node) in order.iter().enumerate() {
        ids[node] = Some(Node::from_index(index));
    }
    let mut new = graph.clone();
    let id = |node: &mut Node| {
        *node = ids.get(*node).copied().flatten()?;
        Some(())
    };
    let mut nodes: Vec<NodeData> = order.iter().map(|&node| graph.nodes[node]).collect();
    for data in &mut nodes {
        if let Def::Apply(op, args) = &mut data.def {
            let first = args[0];
            args[op.arity()..].fill(first);
            args.iter_mut().try_for_each(id)?;
        }
        if let Def::Result(call, _) = &mut data.def {
            id(call)?;
        }
    }
    for call in graph.calls.keys() {
        // The operands of a removed call may be missing.
        new.calls[call].args.iter_mut().for_each(|arg| _ = id(arg));
    }
    new.nodes = nodes.into_iter().collect();
    for block in graph.blocks.keys() {
        let data = &mut new.blocks[block];
        for item in &mut data.items {
            match item {
                Item::Node(node)
                | Item::Guard { condition: node, .. }
                | Item::Accumulate(_, node) => id(node)?,
                Item::Region(_) | Item::Fill(_) => {}
            }
        }
        match &mut data.end {
            End::Open => {}
            End::Return(values) => values.iter_mut().try_for_each(id)?,
            End::Branch { condition, .. } => id(condition)?,
        }
    }
    for region in graph.regions.keys() {
        let data = &mut new.regions[region];
        data.phis.iter_mut().try_for_each(id)?;
        for entry in data.cycle.iter_mut().flat_map(|cycle| &mut cycle.entries) {
            id(&mut entry.phi)?;
            id(&mut entry.first)?;
        }
    }
    for array in graph.arrays.keys() {
        new.arrays[array].nodes_mut().try_for_each(id)?;
    }
    Some(new)
}

/// The reachable nodes in the order of a depth-first walk.
fn visited(graph: &Graph) -> Vec<Node> {
    let mut order: Vec<Node> = graph.input_nodes().map(|(node, _)| node).collect();
    order.sort_by_key(|&node| match graph.nodes[node].def {
        Def::Input(number) => number,
        _ => u32::MAX,
    });
    let mut numbers: PrimaryMap<Region, Option<Node>> =
        PrimaryMap::filled(None, graph.regions.len());
    for (node, data) in graph.nodes.iter() {
        match data.def {
            Def::Const(_) => order.push(node),
            Def::Iteration(region) => numbers[region] = Some(node),
            _ => {}
        }
    }
    /// The walk's work stack, the next task last.
    enum Task {
        Items(Block, usize),
        Phis(Region),
    }
    let mut tasks = vec![Task::Items(graph.root(), 0)];
    while let Some(task) = tasks.pop() {
        let (block, next) = match task {
            Task::Phis(region) => {
                order.extend(&graph.regions[region].phis);
                continue;
            }
            Task::Items(block, next) => (block, next),
        };
        let Some(item) = graph.blocks[block].items.get(next) else {
            if let End::Branch { then, otherwise, .. } = graph.blocks[block].end {
                tasks.extend([Task::Items(otherwise, 0), Task::Items(then, 0)]);
            }
            continue;
        };
        tasks.push(Task::Items(block, next + 1));
        match *item {
            Item::Node(node) => order.push(node),
            Item::Region(region) => {
                order.extend(graph.entries(region).iter().map(|entry| entry.phi));
                order.extend(numbers[region]);
                tasks.extend([Task::Phis(region), Task::Items(graph.regions[region].root, 0)]);
            }
            Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) => {}
        }
    }
    order
}
