//! What a sweep of a region will reach, found before it begins.
//!
//! A loop that replays another needs an entry φ for each adjoint that one of its
//! iterations passes on to the next, so these must be known when it begins. The
//! search follows the ways of adjoints from the ends of the region until it
//! leaves it; ways along back edges, too, so it covers all iterations.

use super::activity::passed;
use super::order::Direct;
use super::reverse::Reverse;
use crate::ssa::{Def, Node, Region, Series, SeriesData};

/// What the sweep of a region reaches.
#[derive(Default)]
pub(super) struct Reach {
    /// The numbers of the entry φs that get adjoints, if it is a loop.
    pub(super) entries: Vec<usize>,
    /// The nodes of outside that get contributions, other than to sums, by id.
    pub(super) outer: Vec<Node>,
    /// The series of nodes of outside whose elements get contributions, and that
    /// have no sums yet.
    pub(super) series: Vec<Series>,
    /// Whether anything gets an adjoint at all.
    pub(super) any: bool,
}

impl Reverse<'_> {
    /// What the sweep of `region` with the present adjoints of its φs will reach.
    pub(super) fn reach(&mut self, region: Region) -> Reach {
        let graph = self.graph;
        let mut search = Search { region, pending: Vec::new(), found: Reach::default() };
        self.searches += 1;
        let phis = &graph.regions[region].phis;
        for leaf in 0..self.activity.leaves[region].len() {
            let values = passed(graph, region, self.activity.leaves[region][leaf]).values;
            for (&phi, &value) in phis.iter().zip(values) {
                if self.adjoints.get(phi).is_some() {
                    self.visit(value, &mut search);
                }
            }
        }
        for index in 0..self.activity.pasts[region].len() {
            let past = self.activity.pasts[region][index];
            if self.past_sums(past).is_some() {
                self.visit(past, &mut search);
            }
        }
        while let Some(node) = search.pending.pop() {
            match graph.nodes[node].def {
                Def::Entry(of, number) if of == region => {
                    search.found.entries.push(number as usize);
                    let nexts: Vec<Node> = self.activity.nexts(region, number as usize).collect();
                    nexts.into_iter().for_each(|next| self.visit(next, &mut search));
                }
                Def::Element(access) => {
                    let series = graph.accesses[access].series;
                    match &graph.series[series] {
                        // The sums of the history have been filled before.
                        SeriesData::History(past) if !self.activity.is_inside(*past, region) => {}
                        SeriesData::Nodes(nodes) if self.activity.fixed(access).is_none() => {
                            let inside = |&node: &Node| {
                                self.activity.active[node] && self.activity.is_inside(node, region)
                            };
                            if nodes.iter().any(inside) {
                                nodes.iter().for_each(|&node| self.visit_part(node, &mut search));
                            } else if !self.is_open(series)
                                && !search.found.series.contains(&series)
                            {
                                search.found.series.push(series);
                            }
                        }
                        _ => self.visit_targets(node, &mut search),
                    }
                }
                _ => self.visit_targets(node, &mut search),
            }
        }
        let mut found = search.found;
        found.entries.sort_unstable();
        found.outer.sort_unstable();
        found.outer.dedup();
        found.series.sort_unstable();
        found
    }

    fn visit_targets(&mut self, node: Node, search: &mut Search) {
        for target in self.activity.targets(node) {
            self.visit(target, search);
        }
    }

    /// Visits a node whose adjoint is in sums for a moment, and so has to be a node
    /// before and after that. If it is a name as well and has two places in the sums,
    /// one of them is added to what it stands for.
    fn visit_part(&mut self, node: Node, search: &mut Search) {
        let is_inside = self.activity.is_inside(node, search.region);
        if self.activity.active[node] && !is_inside && !self.has_sum(node) {
            search.found.any = true;
            search.found.outer.push(node);
        }
        self.visit(node, search);
    }

    fn visit(&mut self, node: Node, search: &mut Search) {
        if !self.activity.active[node] || self.searched[node] == self.searches {
            return;
        }
        self.searched[node] = self.searches;
        search.found.any = true;
        if self.activity.is_inside(node, search.region) {
            search.pending.push(node);
            return;
        }
        for first in self.firsts_of(node) {
            self.visit(first, search);
        }
        if self.has_sum(node) {
            return;
        }
        match self.direct(node) {
            Some(Direct::Node(target)) => self.visit(target, search),
            Some(_) => {}
            None => search.found.outer.push(node),
        }
    }
}

struct Search {
    region: Region,
    pending: Vec<Node>,
    found: Reach,
}
