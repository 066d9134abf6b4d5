//! Adjoint flow: the nodes that the sweep of a region adds contributions to.
//!
//! A loop that replays another one has an entry φ for each adjoint that is live across its
//! iterations, so these adjoints must be known before the loop is built. A depth-first search
//! propagates from the φs of the region to its operands, along back edges as well, until it
//! arrives at nodes outside.

use hashbrown::HashSet;

use super::reverse::Reverse;
use super::tape_order::AliasTarget;
use crate::ssa::{Array, ArrayData, Def, Node, Region, phi_operands};

/// The contributions of the sweep of a region.
#[derive(Default)]
pub(super) struct AdjointFlow {
    /// The nodes that get contributions.
    pub(super) nodes: HashSet<Node>,
    /// The numbers of the entry φs that get contributions, if it is a loop.
    pub(super) entries: Vec<usize>,
    /// The nodes outside whose adjoints are nodes, by id.
    pub(super) outer: Vec<Node>,
    /// The arrays of nodes outside whose elements get contributions and have no sums yet.
    pub(super) arrays: Vec<Array>,
    /// The worklist: nodes of the region whose operands have not been visited.
    pending: Vec<Node>,
}

impl Reverse<'_> {
    /// The contributions of the sweep of `region`, given the current adjoints of its φs.
    pub(super) fn adjoint_flow(&self, region: Region) -> AdjointFlow {
        let (graph, primal) = (self.graph, self.primal);
        let mut flow = AdjointFlow::default();
        for &leaf in primal.leaves(region) {
            let values = phi_operands(graph, region, leaf).values;
            for (&phi, &value) in graph.regions[region].phis.iter().zip(values) {
                if self.adjoints.get(phi).is_some() {
                    self.visit(value, region, &mut flow);
                }
            }
        }
        for &saved in &primal.trajectories[region] {
            if self.trajectory_adjoints(saved).is_some() {
                self.visit(saved, region, &mut flow);
            }
        }
        for &node in &primal.stored[region] {
            self.visit(node, region, &mut flow);
        }
        while let Some(node) = flow.pending.pop() {
            let mut targets = primal.targets(node);
            match graph.nodes[node].def {
                Def::Entry(of, number) if of == region => {
                    flow.entries.push(number as usize);
                    targets = primal.nexts(region, number as usize).collect();
                }
                Def::Element(access) => {
                    let array = graph.accesses[access].array;
                    let is_inside = |node: Node| primal.is_inside(node, region);
                    let has_adjoint = |&&node: &&Node| primal.varied[node];
                    match &graph.arrays[array] {
                        // The adjoints of that trajectory are in sums already.
                        &ArrayData::Saved(saved) if !is_inside(saved) => targets.clear(),
                        // So are those of cells.
                        ArrayData::Cells(_) => targets.clear(),
                        ArrayData::Nodes(nodes) if primal.known_element(access).is_none() => {
                            let (inner, outer): (Vec<Node>, Vec<Node>) =
                                nodes.iter().filter(has_adjoint).partition(|&&n| is_inside(n));
                            if inner.is_empty() {
                                flow.arrays.push(array);
                                targets.clear();
                            } else {
                                // The array is opened for one access only, so these adjoints
                                // are nodes before and after it. A node with two elements in
                                // the sums gets its second one added at the close.
                                flow.outer.extend(outer);
                            }
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
            targets.into_iter().for_each(|target| self.visit(target, region, &mut flow));
        }
        flow.entries.sort_unstable();
        flow.outer.retain(|&node| !self.has_sum(node));
        flow.outer.sort_unstable();
        flow.outer.dedup();
        flow.arrays.retain(|&array| !self.is_open(array));
        flow.arrays.sort_unstable();
        flow.arrays.dedup();
        flow
    }

    fn visit(&self, node: Node, region: Region, flow: &mut AdjointFlow) {
        if !self.primal.varied[node] || !flow.nodes.insert(node) {
            return;
        }
        if self.primal.is_inside(node, region) {
            flow.pending.push(node);
            return;
        }
        for first in self.aliased_firsts(node) {
            self.visit(first, region, flow);
        }
        match self.alias_target(node) {
            _ if self.has_sum(node) => {}
            Some(AliasTarget::Node(target)) => self.visit(target, region, flow),
            Some(_) => {}
            None => flow.outer.push(node),
        }
    }
}
