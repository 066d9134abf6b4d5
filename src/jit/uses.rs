//! The uses of each node in the schedule, and the next use on a path from the current position.

use super::layout::Layout;
use super::operands::{in_registers, known_element};
use super::schedule::{Inst, Test};
use crate::entity::{Entity, PrimaryMap};
use crate::ssa::{Def, Graph, Node};

/// The positions at which each node is used, in order.
#[derive(Clone)]
pub(super) struct Uses {
    /// For each node the range of its remaining uses in `positions`.
    ranges: PrimaryMap<Node, (u32, u32)>,
    positions: Vec<u32>,
    /// For each loop the nodes used in it and computed before it, by the position of its end.
    around: Vec<(u32, Vec<Node>)>,
}

/// The reachable positions from the current one: to the end of this arm of a branch, and then
/// from the end of the innermost region. Positions between belong to other arms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    /// The end of this arm of the innermost branch, or of the region if no branch is in it.
    pub(super) arm_end: u32,
    /// The end of the innermost region; `horizon` outside regions.
    pub(super) region_end: u32,
    /// The end of this arm of the innermost branch outside all regions; no path goes beyond.
    pub(super) horizon: u32,
}

impl Scope {
    /// The scope of code that runs to `end`, in no region.
    pub(super) fn up_to(end: u32) -> Self {
        Scope { arm_end: end, region_end: end, horizon: end }
    }

    /// The scope of a region that ends at `end`.
    pub(super) fn region(self, end: u32) -> Self {
        Scope { arm_end: end, region_end: end, ..self }
    }

    /// The scope of an arm that ends at `end`, of a branch in a region or not.
    pub(super) fn arm(self, end: u32, in_region: bool) -> Self {
        if in_region { Scope { arm_end: end, ..self } } else { Scope::up_to(end) }
    }
}

impl Uses {
    /// The uses in `insts`. The end of a loop counts as a use of all nodes that it uses from
    /// outside, since they are live across its back edge.
    pub(super) fn of(graph: &Graph, layout: &Layout, insts: &[Inst]) -> Uses {
        let around = used_from_outside(graph, layout, insts);
        // A counting sort by node keeps positions in order.
        let mut counts = vec![0u32; graph.nodes.len() + 1];
        let mut total = 0;
        for_each_use(graph, insts, &around, |node, _| {
            counts[node.index() + 1] += 1;
            total += 1;
        });
        for i in 1..counts.len() {
            counts[i] += counts[i - 1];
        }
        let ranges = graph.nodes.keys().map(|n| (counts[n.index()], counts[n.index() + 1]));
        let ranges = ranges.collect();
        let mut positions = vec![0; total];
        for_each_use(graph, insts, &around, |node, position| {
            let place = &mut counts[node.index()];
            positions[*place as usize] = position;
            *place += 1;
        });
        Uses { ranges, positions, around }
    }

    /// The nodes that the loop that ends at `position` uses from outside.
    pub(super) fn around(&self, position: u32) -> &[Node] {
        match self.around.binary_search_by_key(&position, |&(end, _)| end) {
            Ok(index) => &self.around[index].1,
            Err(_) => &[],
        }
    }

    /// The remaining uses of `node`.
    pub(super) fn of_node(&self, node: Node) -> &[u32] {
        let (start, end) = self.ranges[node];
        &self.positions[start as usize..end as usize]
    }

    /// The next use of `node` in the list, reachable or not.
    pub(super) fn next(&self, node: Node) -> Option<u32> {
        let (start, end) = self.ranges[node];
        (start < end).then(|| self.positions[start as usize])
    }

    /// The first use of `node` at `position` or after it.
    pub(super) fn at_or_after(&self, node: Node, position: u32) -> Option<u32> {
        let positions = self.of_node(node);
        positions.get(positions.partition_point(|&use_| use_ < position)).copied()
    }

    /// The next use of `node` that is reachable in `scope`. Uses after the region count even if
    /// they are in another arm of a branch around it.
    pub(super) fn next_in(&self, node: Node, scope: Scope) -> Option<u32> {
        let next = self.next(node)?;
        if next < scope.arm_end {
            return Some(next);
        }
        let next =
            if next < scope.region_end { self.at_or_after(node, scope.region_end)? } else { next };
        (next < scope.horizon).then_some(next)
    }

    /// Removes the uses of `node` before `position`.
    pub(super) fn advance(&mut self, node: Node, position: u32) {
        let (start, end) = &mut self.ranges[node];
        while *start < *end && self.positions[*start as usize] < position {
            *start += 1;
        }
    }
}

/// The position at which each node is computed; `None` for inputs and constants.
pub(super) fn computed(graph: &Graph, insts: &[Inst]) -> PrimaryMap<Node, Option<u32>> {
    let mut computed = PrimaryMap::filled(None, graph.nodes.len());
    for (inst, position) in insts.iter().zip(0..) {
        match *inst {
            Inst::Node(node) => computed[node] = Some(position),
            Inst::Enter { region, end } => {
                graph.regions[region].phis.iter().for_each(|&phi| computed[phi] = Some(end));
                graph.entries(region).iter().for_each(|entry| computed[entry.phi] = Some(position));
            }
            _ => {}
        }
    }
    computed
}

/// For each loop, by the position of its end, the nodes that it uses, that are computed before it
/// and that have no trajectory.
fn used_from_outside(graph: &Graph, layout: &Layout, insts: &[Inst]) -> Vec<(u32, Vec<Node>)> {
    let is_loop = |inst: &Inst| match *inst {
        Inst::Enter { region, .. } => graph.regions[region].cycle.is_some(),
        _ => false,
    };
    if !insts.iter().any(is_loop) {
        return Vec::new();
    }
    let computed = computed(graph, insts);
    struct Open {
        begin: u32,
        end: u32,
        nodes: Vec<Node>,
    }
    let mut open: Vec<Open> = Vec::new();
    let mut found: Vec<(u32, Vec<Node>)> = Vec::new();
    // For each node the start of the innermost loop that has it in its list.
    let mut noted = PrimaryMap::filled(None, graph.nodes.len());
    let mut note = |open: &mut Vec<Open>, node: Node| {
        if let Some(open) = open.last_mut()
            && computed[node].is_some_and(|position| position < open.begin)
            && noted[node] != Some(open.begin)
            && layout.trajectory(node).is_none()
        {
            noted[node] = Some(open.begin);
            open.nodes.push(node);
        }
    };
    for (inst, position) in insts.iter().zip(0..) {
        // First values are used before the loop.
        for_each_use_in(graph, inst, |node| note(&mut open, node));
        match *inst {
            Inst::Enter { end, .. } if is_loop(inst) => {
                open.push(Open { begin: position, end, nodes: Vec::new() });
            }
            Inst::Join if open.last().is_some_and(|open| open.end == position) => {
                if let Some(closed) = open.pop() {
                    closed.nodes.iter().for_each(|&node| note(&mut open, node));
                    found.push((position, closed.nodes));
                }
            }
            _ => {}
        }
    }
    found
}

fn for_each_use(
    graph: &Graph,
    insts: &[Inst],
    around: &[(u32, Vec<Node>)],
    mut visit: impl FnMut(Node, u32),
) {
    let mut around = around.iter().peekable();
    for (inst, position) in insts.iter().zip(0..) {
        for_each_use_in(graph, inst, |node| visit(node, position));
        if let Some((_, nodes)) = around.next_if(|&&(end, _)| end == position) {
            nodes.iter().for_each(|&node| visit(node, position));
        }
    }
}

fn for_each_use_in(graph: &Graph, inst: &Inst, mut visit: impl FnMut(Node)) {
    match *inst {
        Inst::Node(node) => {
            in_registers(graph, node).iter().for_each(|&arg| visit(arg));
            if let (Def::Element(_), Some(source)) =
                (graph.nodes[node].def, known_element(graph, node))
            {
                visit(source);
            }
        }
        Inst::Guard(node, _)
        | Inst::Branch { test: Test::Node(node), .. }
        | Inst::Return(_, node)
        | Inst::Write { node, .. }
        | Inst::Accumulate(_, node)
        | Inst::Store(_, node)
        | Inst::Hold(_, node)
        | Inst::Next(_, node) => visit(node),
        Inst::Enter { region, .. } => {
            graph.entries(region).iter().for_each(|entry| visit(entry.first));
        }
        Inst::Branch { test: Test::More(_), .. }
        | Inst::Join
        | Inst::Otherwise
        | Inst::Close
        | Inst::Zero { .. }
        | Inst::ZeroOutputs { .. }
        | Inst::BackEdge
        | Inst::End => {}
    }
}
