//! The reverse sweep of a loop.
//!
//! The gradient graph has a loop that replays it: one iteration for each that
//! there was, the last one first, each the sweep of one iteration as if it were a
//! region. What one iteration passes on to the next, so to the one before it, is
//! in entry φs:
//!
//! - for each entry φ of the loop its adjoint, which becomes that of the value
//!   passed on for it;
//! - for each φ of the loop its adjoint, which is that of the value passed on in
//!   the last iteration, and 0 in the others. If where the loop may end or go on
//!   an entry φ gets the same value, the adjoint of that one does for both: it
//!   begins with the adjoint of the φ instead of 0;
//! - for each node of outside that gets contributions the sum so far; if there
//!   are many, in an array of sums instead.
//!
//! To the tape entry φs are no events; for what follows from that see `running`.

use super::activity::{bound, passed};
use super::regions::{Frame, Sweep, Task};
use super::reverse::Reverse;
use super::running::Running;
use crate::ssa::{Block, Node, Region};

/// More adjoints of outer nodes than this are in sums, not in entry φs.
const MOST_ACCUMULATORS: usize = 32;

/// What the sweep of a loop carries.
#[derive(Default)]
pub(super) struct Carried {
    /// For each entry φ that gets an adjoint, in order: its number, and what the
    /// iteration after passes on for it.
    pub(super) entries: Vec<(usize, Node)>,
    /// The number of the φ that shares the adjoint of each of these.
    pub(super) pairs: Vec<Option<usize>>,
    /// How many φs have an adjoint of their own.
    alone: usize,
    /// The nodes of outside that get contributions.
    outer: Vec<Node>,
    /// What entry φs begin with in each iteration.
    pub(super) running: Running,
}

impl Reverse<'_> {
    pub(super) fn enter_loop(&mut self, region: Region, copy: Region, sweep: &mut Sweep) {
        let graph = self.graph;
        let phis = &graph.regions[region].phis;
        self.set_region_place(region);
        let reach = self.reach(region);
        if reach.nodes.is_empty() {
            return;
        }
        let many = reach.outer.len() > MOST_ACCUMULATORS;
        let opened = self.open_sums(&reach.arrays, if many { &reach.outer } else { &[] });
        let running = self.running(region, &reach.entries, &reach.outer, &opened);
        let mut outer: Vec<Node> =
            reach.outer.into_iter().filter(|&node| !self.has_sum(node)).collect();
        outer.extend(self.direct_firsts(region, &running));
        outer.sort_unstable();
        outer.dedup();

        let has_adjoint = |&number: &usize| self.adjoints.get(phis[number]).is_some();
        let seeded: Vec<usize> = (0..phis.len()).filter(has_adjoint).collect();
        let pairs = self.pairs(region, &reach.entries, &seeded);
        let zero = self.builder.constant(0.0);
        let mut firsts: Vec<Node> = Vec::with_capacity(pairs.len());
        for (&number, pair) in reach.entries.iter().zip(&pairs) {
            let first = pair.and_then(|phi| self.adjoints.get(phis[phi]));
            let first = first.or_else(|| self.past_of_last(region, number, &running));
            firsts.push(first.unwrap_or(zero));
        }
        let alone = seeded.into_iter().filter(|&number| !pairs.contains(&Some(number)));
        let mut others: Vec<Node> = alone.map(|number| phis[number]).collect();
        let alone = others.len();
        others.extend(&outer);
        firsts.extend(others.iter().map(|&node| self.adjoints.get(node).unwrap_or(zero)));

        let (new, copies) = self.builder.begin_loop(bound(graph, region), &firsts, Some(copy));
        self.adjoints.open();
        let (shared, own) = copies.split_at(pairs.len());
        for (pair, &adjoint) in pairs.iter().zip(shared) {
            pair.iter().for_each(|&number| self.adjoints.set(phis[number], adjoint));
        }
        others.iter().zip(own).for_each(|(&node, &adjoint)| self.adjoints.set(node, adjoint));
        let entries = reach.entries.into_iter().zip(shared.iter().copied()).collect();
        let carried = Carried { entries, pairs, alone, outer, running };
        self.begin_with_pasts(region, &carried.running);
        self.begin_running(region, &carried.running);
        let reached = self.reached_blocks(region, &carried);
        sweep.frames.push(Frame { region, reached, opened, carried });
        sweep.tasks.extend([Task::Leave(new), Task::Block(graph.regions[region].root)]);
    }

    pub(super) fn leave_loop(&mut self, new: Region, Frame { region, opened, carried, .. }: Frame) {
        let graph = self.graph;
        self.set_region_place(region);
        let zero = self.builder.constant(0.0);
        let entries = graph.entries(region);
        self.end_running(&carried.running);
        let mut collected: Vec<Node> = Vec::new();
        for &(number, _) in &carried.entries {
            collected.push(self.adjoints.take(entries[number].phi).unwrap_or(zero));
        }
        let outer = carried.outer.iter().map(|&node| self.adjoints.get(node).unwrap_or(zero));
        let outer: Vec<Node> = outer.collect();
        let mut passed = collected.clone();
        passed.extend(core::iter::repeat_n(zero, carried.alone));
        passed.extend(&outer);
        passed.extend(&collected);
        passed.extend(&outer);
        self.builder.finish_block(&passed);
        self.adjoints.close();
        let results = self.builder.end_loop(new, collected.len() + outer.len());
        for &phi in &graph.regions[region].phis {
            self.adjoints.take(phi);
        }
        let (collected, outer) = results.split_at(collected.len());
        for (&node, &adjoint) in carried.outer.iter().zip(outer) {
            self.adjoints.set(node, adjoint);
        }
        for &(number, _) in &carried.entries {
            self.check_first(region, number, &carried, &opened);
        }
        self.close_sums(&opened);
        for (&(number, _), &adjoint) in carried.entries.iter().zip(collected).rev() {
            let first = entries[number].first;
            if self.activity.active[first] && !carried.running.is_direct(number) {
                self.add(first, adjoint);
            }
        }
    }

    /// Adds the adjoints of what the end `leaf` of `frame` passes on.
    pub(super) fn sweep_passed(&mut self, leaf: Block, frame: &Frame) {
        self.check_passed(leaf, frame);
        let graph = self.graph;
        let passed = passed(graph, frame.region, leaf);
        let carried = &frame.carried;
        let phis = graph.regions[frame.region].phis.iter().zip(passed.values).enumerate();
        for (number, (&phi, &value)) in phis.rev() {
            let Some(adjoint) = self.adjoints.get(phi) else { continue };
            if !self.activity.active[value] {
                continue;
            }
            // What comes from the iteration behind is in the sums of first values.
            if passed.is_open && carried.pairs.contains(&Some(number)) {
                self.add_to_one(value, adjoint);
            } else {
                self.add(value, adjoint);
            }
        }
        for (&(number, adjoint), pair) in carried.entries.iter().zip(&carried.pairs).rev() {
            if let Some(&next) = passed.nexts.get(number)
                && self.activity.active[next]
                && (pair.is_none() || !passed.is_open)
            {
                self.add_to_one(next, adjoint);
            }
        }
    }

    /// Whether the end `leaf` of `region` passes on what gets an adjoint.
    pub(super) fn is_seeded(&self, region: Region, leaf: Block, carried: &Carried) -> bool {
        let passed = passed(self.graph, region, leaf);
        let mut values = self.graph.regions[region].phis.iter().zip(passed.values);
        let is_active = |node: Node| self.activity.active[node];
        values.any(|(&phi, &value)| self.adjoints.get(phi).is_some() && is_active(value))
            || carried
                .entries
                .iter()
                .any(|&(number, _)| passed.nexts.get(number).is_some_and(|&next| is_active(next)))
    }

    /// For each of `entries`, numbers of entry φs of `region`, the number of a φ
    /// among `seeded` that can share its adjoint: where it is computed if there is
    /// another iteration, both get the same value.
    fn pairs(&self, region: Region, entries: &[usize], seeded: &[usize]) -> Vec<Option<usize>> {
        let ends: Vec<_> = self.activity.leaves[region]
            .iter()
            .map(|&leaf| passed(self.graph, region, leaf))
            .collect();
        let mut pairs = vec![None; entries.len()];
        // Where a node gets several adjoints, they must keep their order.
        let is_alone = |all: &[Node], number: usize, others: &[usize]| {
            let node = all.get(number);
            let same = |&&other: &&usize| all.get(other) == node;
            all.is_empty() || others.iter().filter(same).count() == 1
        };
        let may_pair = |entry: usize, phi: usize| {
            let mut open = ends.iter().filter(|end| end.is_open);
            open.all(|end| end.nexts.get(entry) == end.values.get(phi))
                && ends.iter().all(|end| {
                    is_alone(end.nexts, entry, entries) && is_alone(end.values, phi, seeded)
                })
        };
        for &phi in seeded {
            let is_fit = |&at: &usize| pairs[at].is_none() && may_pair(entries[at], phi);
            if let Some(at) = (0..entries.len()).find(is_fit) {
                pairs[at] = Some(phi);
            }
        }
        pairs
    }
}
