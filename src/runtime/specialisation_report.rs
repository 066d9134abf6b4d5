//! The part of a report about one specialisation.

use core::sync::atomic::Ordering;

use super::report::{DecisionReport, KernelReport, Report, Waiting};
use super::specialisation::Specialisation;
use crate::pipeline::{Options, Purpose, Refusal};
use crate::ssa::{End, Graph, Item, most_steps};

impl Specialisation {
    /// Adds this specialisation to `report`.
    pub(super) fn report(&self, report: &mut Report, options: &Options) {
        let mut profile = self.lock();
        report.trace_events = report.trace_events.max(profile.longest);
        report.paths += profile.traces.paths();
        report.conditions += conditions(profile.traces.compact());
        report.add_served(self.served_calls());
        report.fallbacks += self.fallbacks.load(Ordering::Relaxed);
        report.non_finite += self.non_finite.load(Ordering::Relaxed);
        report.last_new_path = profile.last_new_path.clone().or(report.last_new_path.take());
        profile.refusals.iter().for_each(|refusal| report.add_refusal(refusal));
        if profile.traces.is_sharing_exhausted() {
            report.add_refusal(&Refusal::TooManyToShare { limit: options.limits.nodes });
        }
        report.last_side_exit = profile.last_side_exit.clone().or(report.last_side_exit.take());
        report.waiting.extend(Purpose::ALL.into_iter().filter_map(|purpose| {
            let wait = profile.wait(purpose, options)?;
            let replaces = profile.attempts[purpose as usize].kernel.is_some();
            let (active, inactive) = (self.active, self.inactive);
            Some(Waiting { active, inactive, purpose, replaces, wait })
        }));
        for decision in profile.traces.decisions() {
            let side_exits = profile.side_exits.get(&(decision.at.clone(), decision.op));
            let side_exits = side_exits.copied().unwrap_or(0);
            report.add_decision(DecisionReport { decision, side_exits });
        }
        profile.traces.loops().into_iter().for_each(|trips| report.add_loop(trips));
        let traces = &profile.traces;
        for unmerged in traces.unmerged().iter().chain(traces.state_splits()) {
            if !report.unmerged.contains(unmerged) {
                report.unmerged.push(unmerged.clone());
            }
        }
        report.closed_forms.extend(profile.closed_forms.closed.iter().cloned());
        for open in &profile.closed_forms.open {
            if !report.open_loops.contains(open) {
                report.open_loops.push(open.clone());
            }
        }
        for purpose in Purpose::ALL {
            let (attempt, installed) = (&profile.attempts[purpose as usize], self.kernel(purpose));
            let is_backing_off = installed.as_ref().is_some_and(|one| one.is_backing_off());
            let kernel = attempt.kernel.clone();
            report.kernels.extend(kernel.map(|one| KernelReport { is_backing_off, ..one }));
            attempt.refusal.iter().for_each(|refusal| report.add_refusal(refusal));
        }
    }
}

/// The number of guards and branches of a recorded graph, in all iterations.
fn conditions(graph: &Graph) -> usize {
    let guards = most_steps(graph, |item| u64::from(matches!(item, Item::Guard { .. })));
    // The loops of a recorded graph have no branches.
    let ends = graph.blocks.values().map(|block| &block.end);
    let branches = ends.filter(|end| matches!(end, End::Branch { .. })).count();
    branches.saturating_add(usize::try_from(guards).unwrap_or(usize::MAX))
}
