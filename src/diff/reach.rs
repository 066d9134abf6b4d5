//! What a sweep of a region will reach, found before it begins.
//!
//! A loop that replays another needs an entry φ for each adjoint that one of its
//! iterations passes on to the next, so these must be known when it begins. The
//! search follows the ways of adjoints from the ends of the region until it
//! leaves it; ways along back edges, too, so it covers all iterations.

use hashbrown::HashSet;

use super::activity::passed;
use super::order::Direct;
use super::reverse::Reverse;
use crate::ssa::{Array, ArrayData, Def, Node, Region};

/// What the sweep of a region reaches.
#[derive(Default)]
pub(super) struct Reach {
    /// The nodes that get adjoints.
    pub(super) nodes: HashSet<Node>,
    /// The numbers of the entry φs that get adjoints, if it is a loop.
    pub(super) entries: Vec<usize>,
    /// The nodes of outside that get contributions, other than to sums, by id.
    pub(super) outer: Vec<Node>,
    /// The array of nodes of outside whose elements get contributions, and that
    /// have no sums yet.
    pub(super) arrays: Vec<Array>,
    /// Nodes of the region, of which it is not known yet what they pass on to.
    pending: Vec<Node>,
}

impl Reverse<'_> {
    /// What the sweep of `region` with the present adjoints of its φs will reach.
    pub(super) fn reach(&self, region: Region) -> Reach {
        let (graph, activity) = (self.graph, self.activity);
        let mut reach = Reach::default();
        for &leaf in &activity.leaves[region] {
            let values = passed(graph, region, leaf).values;
            for (&phi, &value) in graph.regions[region].phis.iter().zip(values) {
                if self.adjoints.get(phi).is_some() {
                    self.visit(value, region, &mut reach);
                }
            }
        }
        for &past in &activity.pasts[region] {
            if self.past_sums(past).is_some() {
                self.visit(past, region, &mut reach);
            }
        }
        while let Some(node) = reach.pending.pop() {
            let mut targets = activity.targets(node);
            match graph.nodes[node].def {
                Def::Entry(of, number) if of == region => {
                    reach.entries.push(number as usize);
                    targets = activity.nexts(region, number as usize).collect();
                }
                Def::Element(access) => {
                    let array = graph.accesses[access].array;
                    let is_inside = |node: Node| activity.is_inside(node, region);
                    let has_adjoint = |&&node: &&Node| activity.active[node];
                    match &graph.arrays[array] {
                        // The sums of the history have been filled before.
                        &ArrayData::Saved(past) if !is_inside(past) => targets.clear(),
                        ArrayData::Nodes(nodes) if activity.fixed(access).is_none() => {
                            let (inner, outer): (Vec<Node>, Vec<Node>) =
                                nodes.iter().filter(has_adjoint).partition(|&&n| is_inside(n));
                            if inner.is_empty() {
                                reach.arrays.push(array);
                                targets.clear();
                            } else {
                                // Their adjoints are in sums for a moment, and so have to be
                                // nodes before and after that. If one is a name as well and has
                                // two places in the sums, one of them is added to what it
                                // stands for.
                                reach.outer.extend(outer);
                            }
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
            targets.into_iter().for_each(|target| self.visit(target, region, &mut reach));
        }
        reach.entries.sort_unstable();
        reach.outer.retain(|&node| !self.has_sum(node));
        reach.outer.sort_unstable();
        reach.outer.dedup();
        reach.arrays.retain(|&array| !self.is_open(array));
        reach.arrays.sort_unstable();
        reach.arrays.dedup();
        reach
    }

    fn visit(&self, node: Node, region: Region, reach: &mut Reach) {
        if !self.activity.active[node] || !reach.nodes.insert(node) {
            return;
        }
        if self.activity.is_inside(node, region) {
            reach.pending.push(node);
            return;
        }
        for first in self.firsts_of(node) {
            self.visit(first, region, reach);
        }
        match self.direct(node) {
            _ if self.has_sum(node) => {}
            Some(Direct::Node(target)) => self.visit(target, region, reach),
            Some(_) => {}
            None => reach.outer.push(node),
        }
    }
}
