//! Renumbers the nodes of an edited graph in the order of its steps.

use super::arrays::{Array, ArrayData};
use super::graph::{Block, Call, Def, End, Graph, Item, Node, Region};
use crate::entity::{Entity, PrimaryMap};

/// The graph with its nodes in the order of a depth-first walk: inputs, constants, then the steps
/// of the blocks; unreachable nodes are dropped. `None` if a step uses a node that is not in the
/// graph.
pub(super) fn in_order(graph: &Graph) -> Option<Graph> {
    ordered(graph, &visited(graph))
}

impl Graph {
    /// Visits all uses of nodes: operands, conditions, terminators, initial values, arrays.
    pub(super) fn visit_uses(&mut self, mut visit: impl FnMut(&mut Node)) {
        let nodes: Vec<Node> = self.nodes.keys().collect();
        for node in nodes {
            match &mut self.nodes[node].def {
                Def::Apply(op, args) => {
                    args[..op.arity()].iter_mut().for_each(&mut visit);
                    let first = args[0];
                    args[op.arity()..].fill(first);
                }
                Def::Result(call, _) => visit(call),
                _ => {}
            }
        }
        let calls: Vec<Call> = self.calls.keys().collect();
        for call in calls {
            self.calls[call].args.iter_mut().for_each(&mut visit);
        }
        let blocks: Vec<Block> = self.blocks.keys().collect();
        for block in blocks {
            let data = &mut self.blocks[block];
            for item in &mut data.items {
                if let Item::Guard { condition: node, .. }
                | Item::Accumulate(_, node)
                | Item::Store(_, node) = item
                {
                    visit(node);
                }
            }
            match &mut data.end {
                End::Open => {}
                End::Return(values) => values.iter_mut().for_each(&mut visit),
                End::Branch { condition, .. } => visit(condition),
            }
        }
        let regions: Vec<Region> = self.regions.keys().collect();
        for region in regions {
            let cycle = self.regions[region].cycle.iter_mut();
            cycle.flat_map(|cycle| &mut cycle.entries).for_each(|entry| visit(&mut entry.first));
        }
        let arrays: Vec<Array> = self.arrays.keys().collect();
        for array in arrays {
            self.arrays[array].nodes_mut().for_each(&mut visit);
        }
    }
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
                Item::Guard { condition: node, .. }
                | Item::Accumulate(_, node)
                | Item::Store(_, node) => use_node(node),
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
    let mut new = graph.clone();
    new.nodes = order.iter().map(|&node| graph.nodes[node]).collect();
    for (index, &node) in order.iter().enumerate() {
        ids[node] = Some(Node::from_index(index));
    }
    // A removed call keeps no operands, which may be missing.
    let mut is_called = PrimaryMap::filled(false, graph.calls.len());
    for data in new.nodes.values() {
        if let Def::Call(call) = data.def {
            is_called[call] = true;
        }
    }
    for call in graph.calls.keys().filter(|&call| !is_called[call]) {
        new.calls[call].args.clear();
    }
    let mut is_complete = true;
    let mut renumber = |node: &mut Node| match ids.get(*node).copied().flatten() {
        Some(id) => *node = id,
        None => is_complete = false,
    };
    new.visit_uses(&mut renumber);
    for block in graph.blocks.keys() {
        for item in &mut new.blocks[block].items {
            if let Item::Node(node) = item {
                renumber(node);
            }
        }
    }
    for region in graph.regions.keys() {
        let data = &mut new.regions[region];
        data.phis.iter_mut().for_each(&mut renumber);
        let entries = data.cycle.iter_mut().flat_map(|cycle| &mut cycle.entries);
        entries.for_each(|entry| renumber(&mut entry.phi));
    }
    is_complete.then_some(new)
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
            Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => {}
        }
    }
    order
}
