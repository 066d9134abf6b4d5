//! Where the schedule uses each node, and which of these places can be reached
//! from where we are.

use super::schedule::Line;
use crate::entity::{Array, Entity};
use crate::ssa::{Graph, Node};

/// The positions at which nodes are used, in the order of the schedule.
pub(super) struct Uses {
    /// For each node, the range of its uses in `positions`; the start moves on.
    ranges: Array<Node, (u32, u32)>,
    positions: Vec<u32>,
}

/// How far the code goes on from the current position: to the end of this side
/// of a branch, and then after the innermost region. What lies between belongs
/// to other sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    /// Where this side of the innermost branch ends, or the region if there is
    /// no branch in it.
    pub(super) side_end: u32,
    /// Where the innermost region ends; as `horizon` outside of regions.
    pub(super) region_end: u32,
    /// Where this side of the innermost branch ends that is in no region. No
    /// path from here goes beyond.
    pub(super) horizon: u32,
}

impl Scope {
    /// A stretch that runs to `end`, in no region.
    pub(super) fn up_to(end: u32) -> Self {
        Scope { side_end: end, region_end: end, horizon: end }
    }

    /// A region in this scope.
    pub(super) fn region(self, end: u32) -> Self {
        Scope { side_end: end, region_end: end, ..self }
    }

    /// A side of a branch in this scope, which is that of a region or not.
    pub(super) fn side(self, end: u32, in_region: bool) -> Self {
        if in_region { Scope { side_end: end, ..self } } else { Scope::up_to(end) }
    }
}

impl Uses {
    pub(super) fn of(graph: &Graph, lines: &[Line]) -> Uses {
        // A counting sort by node; positions stay in order.
        let mut counts = vec![0u32; graph.nodes.len() + 1];
        let mut total = 0;
        for_each_use(graph, lines, |node, _| {
            counts[node.index() + 1] += 1;
            total += 1;
        });
        for i in 1..counts.len() {
            counts[i] += counts[i - 1];
        }
        let ranges = graph.nodes.keys().map(|n| (counts[n.index()], counts[n.index() + 1]));
        let ranges = ranges.collect();
        let mut positions = vec![0; total];
        for_each_use(graph, lines, |node, position| {
            let place = &mut counts[node.index()];
            positions[*place as usize] = position;
            *place += 1;
        });
        Uses { ranges, positions }
    }

    /// The next use of `node` in the list, reachable or not.
    pub(super) fn next(&self, node: Node) -> Option<u32> {
        let (start, end) = self.ranges[node];
        (start < end).then(|| self.positions[start as usize])
    }

    /// The first use of `node` at `position` or after it.
    pub(super) fn at_or_after(&self, node: Node, position: u32) -> Option<u32> {
        let (start, end) = self.ranges[node];
        let positions = &self.positions[start as usize..end as usize];
        positions.get(positions.partition_point(|&use_| use_ < position)).copied()
    }

    /// The next use of `node` that can be reached in `scope`. Uses after the
    /// region count even if another side of a branch around it has them.
    pub(super) fn next_in(&self, node: Node, scope: Scope) -> Option<u32> {
        let next = self.next(node)?;
        if next < scope.side_end {
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

fn for_each_use(graph: &Graph, lines: &[Line], mut visit: impl FnMut(Node, u32)) {
    for (line, position) in lines.iter().zip(0..) {
        match *line {
            Line::Node(node) => {
                graph.nodes[node].args().iter().for_each(|&arg| visit(arg, position));
            }
            Line::Guard(condition, _) | Line::Branch { condition, .. } => {
                visit(condition, position);
            }
            Line::Pass(_, value) => visit(value, position),
            Line::Enter { .. } | Line::Leave | Line::Otherwise | Line::Close | Line::End => {}
        }
    }
}
