//! Where the schedule uses each node, and which of these places can be reached
//! from where we are.

use super::layout::Layout;
use super::operands::{in_registers, known_element};
use super::schedule::{Inst, Test};
use crate::entity::{Entity, PrimaryMap};
use crate::ssa::{Def, Graph, Node};

/// The positions at which nodes are used, in the order of the schedule.
#[derive(Clone)]
pub(super) struct Uses {
    /// For each node, the range of its uses in `positions`; the start moves on.
    ranges: PrimaryMap<Node, (u32, u32)>,
    positions: Vec<u32>,
    /// What each loop uses that is computed before it, by the position of its end.
    around: Vec<(u32, Vec<Node>)>,
}

/// How far the code goes on from the current position: to the end of this side
/// of a branch, and then after the innermost region. What lies between belongs
/// to other sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    /// Where this side of the innermost branch ends, or the region if there is
    /// no branch in it.
    pub(super) arm_end: u32,
    /// Where the innermost region ends; as `horizon` outside of regions.
    pub(super) region_end: u32,
    /// Where this side of the innermost branch ends that is in no region. No
    /// path from here goes beyond.
    pub(super) horizon: u32,
}

impl Scope {
    /// A basic block that runs to `end`, in no region.
    pub(super) fn up_to(end: u32) -> Self {
        Scope { arm_end: end, region_end: end, horizon: end }
    }

    /// A region in this scope.
    pub(super) fn region(self, end: u32) -> Self {
        Scope { arm_end: end, region_end: end, ..self }
    }

    /// A side of a branch in this scope, which is that of a region or not.
    pub(super) fn arm(self, end: u32, in_region: bool) -> Self {
        if in_region { Scope { arm_end: end, ..self } } else { Scope::up_to(end) }
    }
}

impl Uses {
    /// The uses in `insts`. At its end a loop uses all that it uses from outside:
    /// before that, another iteration may need it.
    pub(super) fn of(graph: &Graph, layout: &Layout, insts: &[Inst]) -> Uses {
        let around = used_from_outside(graph, layout, insts);
        // A counting sort by node; positions stay in order.
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

    /// What the loop that ends at `position` uses from outside.
    pub(super) fn around(&self, position: u32) -> &[Node] {
        match self.around.binary_search_by_key(&position, |&(end, _)| end) {
            Ok(index) => &self.around[index].1,
            Err(_) => &[],
        }
    }

    /// All uses of `node` from the current position on.
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

    /// The next use of `node` that can be reached in `scope`. Uses after the
    /// region count even if another side of a branch around it has them.
    pub(super) fn next_in(&self, node: Node, scope: Scope) -> Option<u32> {
        let next = self.next(node)?;
        if next < scope.arm_end {
            return Some(next);
        }
        let next =
            if next < scope.region_end { self.at_or_after(node, scope.region_end)? } else { next };
        (next < scope.horizon).then_some(next)
    }

    /// Drops the uses of `node` before `position`.
    pub(super) fn advance(&mut self, node: Node, position: u32) {
        let (start, end) = &mut self.ranges[node];
        while *start < *end && self.positions[*start as usize] < position {
            *start += 1;
        }
    }
}

/// The position at which each node is computed; for inputs and constants, which are
/// not, the largest number.
pub(super) fn computed(graph: &Graph, insts: &[Inst]) -> PrimaryMap<Node, u32> {
    let mut computed = PrimaryMap::filled(u32::MAX, graph.nodes.len());
    for (inst, position) in insts.iter().zip(0..) {
        match *inst {
            Inst::Node(node) => computed[node] = position,
            Inst::Enter { region, end } => {
                graph.regions[region].phis.iter().for_each(|&phi| computed[phi] = end);
                graph.entries(region).iter().for_each(|entry| computed[entry.phi] = position);
            }
            _ => {}
        }
    }
    computed
}

/// The nodes that each loop uses and that are computed before it, but for those
/// that have homes, by the position of the loop's end.
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
    // The innermost loop, by where it begins, that has been noted for the node.
    let mut noted = PrimaryMap::filled(u32::MAX, graph.nodes.len());
    let mut note = |open: &mut Vec<Open>, node: Node| {
        if let Some(open) = open.last_mut()
            && computed[node] < open.begin
            && noted[node] != open.begin
            && layout.trajectory(node).is_none()
        {
            noted[node] = open.begin;
            open.nodes.push(node);
        }
    };
    for (inst, position) in insts.iter().zip(0..) {
        // The first values are used before the loop.
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
            in_registers(&graph.nodes[node]).iter().for_each(|&arg| visit(arg));
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
