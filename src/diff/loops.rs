//! The reverse sweep of a loop.
//!
//! The gradient graph has a loop that replays it, with the last iteration first. Each
//! iteration is the sweep of one iteration, as of a region. The new loop has entry φs
//!
//! - for the adjoint of each entry φ of the loop, which becomes the adjoint of its operand in
//!   the iteration before;
//! - for the adjoint of each φ of the loop, which belongs to its operand in the last iteration
//!   and is 0 in the others. If an end that may go on gives an entry φ and a φ the same
//!   operand, they share one adjoint, whose first value is the adjoint of the φ instead of 0;
//! - for the adjoint of each outer node with contributions; if there are many of these, they
//!   are in an array of sums instead.
//!
//! Entry φs are no events of the tape; `entry_phis` derives the order of additions from that.

use super::entry_phis::EntryOrder;
use super::regions::{Frame, Sweep, Task};
use super::reverse::Reverse;
use crate::ssa::{Block, Node, Region, phi_operands};

/// The largest number of outer nodes whose adjoints are entry φs; more are in an array of sums.
const MAX_ACCUMULATORS: usize = 32;

/// The loop-carried adjoints of the sweep of a loop.
#[derive(Default)]
pub(super) struct Carried {
    /// For each entry φ that gets an adjoint, in order: its number, and the adjoint that the
    /// following iteration has computed.
    pub(super) entries: Vec<(usize, Node)>,
    /// For each of these the number of the φ that shares its adjoint.
    pub(super) shared_phis: Vec<Option<usize>>,
    /// The number of φs whose adjoints are not shared.
    unshared: usize,
    /// The outer nodes that get contributions.
    outer: Vec<Node>,
    /// The aliases of the entry φs, for additions in the order of the tape.
    pub(super) entry_order: EntryOrder,
}

impl Reverse<'_> {
    /// Begins the loop that replays `region`: opens sums, determines the loop-carried
    /// adjoints and their first values, and schedules the sweep of the body.
    pub(super) fn enter_loop(&mut self, region: Region, copy: Region, sweep: &mut Sweep) {
        let graph = self.graph;
        let phis = &graph.regions[region].phis;
        self.set_region_place(region);
        let flow = self.adjoint_flow(region);
        if flow.nodes.is_empty() {
            return;
        }
        let many = flow.outer.len() > MAX_ACCUMULATORS;
        let opened = self.open_sums(&flow.arrays, if many { &flow.outer } else { &[] });
        let entry_order = self.entry_order(region, &flow.entries, &flow.outer, &opened);
        let mut outer: Vec<Node> =
            flow.outer.into_iter().filter(|&node| !self.has_sum(node)).collect();
        outer.extend(self.forwarding_targets(region, &entry_order));
        outer.sort_unstable();
        outer.dedup();

        let has_adjoint = |&number: &usize| self.adjoints.get(phis[number]).is_some();
        let seeded: Vec<usize> = (0..phis.len()).filter(has_adjoint).collect();
        let shared_phis = self.shared_phis(region, &flow.entries, &seeded);
        let zero = self.builder.constant(0.0);
        let mut firsts: Vec<Node> = Vec::with_capacity(shared_phis.len());
        for (&number, shared_phi) in flow.entries.iter().zip(&shared_phis) {
            let first = shared_phi.and_then(|phi| self.adjoints.get(phis[phi]));
            let first = first.or_else(|| self.seed_of_last_iteration(region, number, &entry_order));
            firsts.push(first.unwrap_or(zero));
        }
        let unshared = seeded.into_iter().filter(|&number| !shared_phis.contains(&Some(number)));
        let mut others: Vec<Node> = unshared.map(|number| phis[number]).collect();
        let unshared = others.len();
        others.extend(&outer);
        firsts.extend(others.iter().map(|&node| self.adjoints.get(node).unwrap_or(zero)));

        let (new, copies) = self.builder.begin_loop(graph.bound(region), &firsts, Some(copy));
        self.adjoints.open();
        let (shared, own) = copies.split_at(shared_phis.len());
        for (shared_phi, &adjoint) in shared_phis.iter().zip(shared) {
            shared_phi.iter().for_each(|&number| self.adjoints.set(phis[number], adjoint));
        }
        others.iter().zip(own).for_each(|(&node, &adjoint)| self.adjoints.set(node, adjoint));
        let entries = flow.entries.into_iter().zip(shared.iter().copied()).collect();
        let carried = Carried { entries, shared_phis, unshared, outer, entry_order };
        self.seed_from_trajectories(region, &carried.entry_order);
        self.begin_aliases(region, &carried.entry_order);
        let active_blocks = self.active_blocks(region, &carried);
        sweep.frames.push(Frame { region, active_blocks, opened, carried });
        sweep.tasks.extend([Task::Exit(new), Task::Block(graph.regions[region].root)]);
    }

    /// Ends the loop `new`: gives its φs their operands and adds the results to the adjoints
    /// outside.
    pub(super) fn exit_loop(&mut self, new: Region, Frame { region, opened, carried, .. }: Frame) {
        let graph = self.graph;
        self.set_region_place(region);
        let zero = self.builder.constant(0.0);
        let entries = graph.entries(region);
        self.end_aliases(&carried.entry_order);
        // The adjoints of entry φs and of outer nodes are loop-carried and results; those of
        // φs are 0 in all iterations but the last.
        let mut collected: Vec<Node> = Vec::new();
        for &(number, _) in &carried.entries {
            collected.push(self.adjoints.take(entries[number].phi).unwrap_or(zero));
        }
        let outer = carried.outer.iter().map(|&node| self.adjoints.get(node).unwrap_or(zero));
        let outer: Vec<Node> = outer.collect();
        let mut operands = collected.clone();
        operands.extend(core::iter::repeat_n(zero, carried.unshared));
        operands.extend(&outer);
        operands.extend(&collected);
        operands.extend(&outer);
        self.builder.finish_block(&operands);
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
            if self.primal.varied[first] && !carried.entry_order.is_forwarding(number) {
                self.add(first, adjoint);
            }
        }
    }

    /// Adds the adjoints of φs and entry φs to those of their operands at the end `leaf`.
    pub(super) fn sweep_phi_operands(&mut self, leaf: Block, frame: &Frame) {
        self.check_phi_operands(leaf, frame);
        let graph = self.graph;
        let operands = phi_operands(graph, frame.region, leaf);
        let carried = &frame.carried;
        let phis = graph.regions[frame.region].phis.iter().zip(operands.values).enumerate();
        for (number, (&phi, &value)) in phis.rev() {
            let Some(adjoint) = self.adjoints.get(phi) else { continue };
            if !self.primal.varied[value] {
                continue;
            }
            // The share of the following iteration has been added to first values already.
            if operands.is_open && carried.shared_phis.contains(&Some(number)) {
                self.add_to_one(value, adjoint);
            } else {
                self.add(value, adjoint);
            }
        }
        for (&(number, adjoint), shared_phi) in
            carried.entries.iter().zip(&carried.shared_phis).rev()
        {
            if let Some(&next) = operands.nexts.get(number)
                && self.primal.varied[next]
                && (shared_phi.is_none() || !operands.is_open)
            {
                self.add_to_one(next, adjoint);
            }
        }
    }

    /// True if a φ or entry φ with an adjoint has an active operand at the end `leaf`.
    pub(super) fn is_seeded(&self, region: Region, leaf: Block, carried: &Carried) -> bool {
        let operands = phi_operands(self.graph, region, leaf);
        let mut values = self.graph.regions[region].phis.iter().zip(operands.values);
        let is_varied = |node: Node| self.primal.varied[node];
        values.any(|(&phi, &value)| self.adjoints.get(phi).is_some() && is_varied(value))
            || carried
                .entries
                .iter()
                .any(|&(number, _)| operands.nexts.get(number).is_some_and(|&next| is_varied(next)))
    }

    /// For each of `entries`, numbers of entry φs of `region`, the number of a φ among `seeded`
    /// that can share its adjoint: at each end that may go on both have the same operand.
    fn shared_phis(
        &self,
        region: Region,
        entries: &[usize],
        seeded: &[usize],
    ) -> Vec<Option<usize>> {
        let ends: Vec<_> = self
            .primal
            .leaves(region)
            .iter()
            .map(|&leaf| phi_operands(self.graph, region, leaf))
            .collect();
        let mut shared_phis = vec![None; entries.len()];
        // Several adjoints of one operand must be added in their order.
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
            let is_fit = |&at: &usize| shared_phis[at].is_none() && may_pair(entries[at], phi);
            if let Some(at) = (0..entries.len()).find(is_fit) {
                shared_phis[at] = Some(phi);
            }
        }
        shared_phis
    }
}
