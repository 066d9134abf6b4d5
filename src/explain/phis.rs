//! Counts of φs by place, before and after simplification, and the differentiated ones.

use super::Formula;
use crate::explain::notation::{Brief, Notation, carried};
use crate::phi::Rule;
use crate::ssa::{Graph, Place, activity};

/// The φs of the regions of one place in the user's source.
///
/// For an example see [`Explanation`](super::Explanation).
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Phis {
    /// The place, if it is known.
    pub at: Option<Place>,
    /// Entry φs: carried values and iteration numbers.
    pub entries: usize,
    /// The number of entry φs that are iteration numbers.
    pub counters: usize,
    /// Exit φs of loops.
    pub exits: usize,
    /// φs where the paths of branches join.
    pub joins: usize,
    /// The number of φs in loops that are not differentiated: such a loop only computes its trip
    /// count.
    pub undifferentiated: usize,
}

impl Phis {
    /// The number of φs.
    pub fn count(&self) -> usize {
        self.entries + self.exits + self.joins
    }
}

/// The φs of `graph` by place. F5 removes an exit φ that is a carried value at each exit; it
/// counts only if `with_carried_exits` is set.
fn phis(graph: &Graph, with_carried_exits: bool) -> Vec<Phis> {
    let mut all: Vec<Phis> = Vec::new();
    let activity = activity(graph);
    for region in graph.preorder().into_iter().flat_map(|block| graph.regions_of(block)) {
        let data = &graph.regions[region];
        let at = graph.place(data.place).cloned();
        let known = all.iter().position(|phis| phis.at == at).unwrap_or(all.len());
        if known == all.len() {
            all.push(Phis { at, ..Phis::default() });
        }
        let here = &mut all[known];
        let Some(cycle) = &data.cycle else {
            here.joins += data.phis.len();
            continue;
        };
        let is_exit =
            |number: &usize| with_carried_exits || carried(graph, region, *number).next().is_none();
        let exits = (0..data.phis.len()).filter(is_exit).count();
        here.entries += cycle.entries.len() + 1;
        here.counters += 1;
        here.exits += exits;
        if !cycle.entries.iter().any(|entry| activity[entry.phi]) {
            here.undifferentiated += cycle.entries.len() + 1 + exits;
        }
    }
    all.retain(|phis| phis.count() > 0);
    all
}

/// The differentiated φs of branches, each as an application of C2.
pub fn differentiated_phis(graph: &Graph) -> Vec<Formula> {
    let activity = activity(graph);
    let brief = Brief::new(graph);
    let mut formulas: Vec<Formula> = Vec::new();
    for (node, data) in graph.nodes.iter().filter(|&(node, _)| activity[node]) {
        let Some(form) = brief.differentiated(node) else { continue };
        let at = graph.place(data.place).cloned();
        let new = Formula { rule: Rule::C2, at, form: Notation::formula(form) };
        if !formulas.contains(&new) {
            formulas.push(new);
        }
    }
    formulas
}

/// The outcome for the φs of one kind at one place.
pub(super) struct Outcome {
    pub(super) words: String,
    seen: usize,
    remaining: usize,
    /// True if the remaining ones are no longer differentiated.
    undifferentiated: bool,
}

/// The outcomes for the recorded φs of one place, where `rules` were applied.
pub(super) fn outcomes(seen: &Phis, remaining: &Phis, rules: &[Rule]) -> Vec<Outcome> {
    let undifferentiated =
        remaining.undifferentiated == remaining.count() && seen.undifferentiated < seen.count();
    let by = |fits: fn(&Rule) -> bool| {
        let rules: Vec<String> = rules.iter().filter(|r| fits(r)).map(Rule::to_string).collect();
        if rules.is_empty() { String::new() } else { format!(" by {}", rules.join(", ")) }
    };
    let (forms, exits) = (by(|rule| rule.is_about_loops()), by(|rule| *rule == Rule::F5));
    // The iteration number is removed together with the carried values.
    let is_removed = remaining.counters == 0 || undifferentiated;
    let counted = if is_removed { forms.clone() } else { String::new() };
    let joins = by(|rule| *rule <= Rule::C4 && !matches!(rule, Rule::F5 | Rule::C2));
    let carried = [seen, remaining].map(|phis| phis.entries - phis.counters);
    let all = [
        ("φ_L of carried values", carried, forms),
        ("φ_L of the iteration number", [seen.counters, remaining.counters], counted),
        ("φ_L' at exits", [seen.exits, remaining.exits], exits),
        ("φ at joins", [seen.joins, remaining.joins], joins),
    ];
    let outcome = |(kind, [seen, remaining], by): (&str, [usize; 2], String)| {
        let outcome = match remaining {
            0 => format!("removed{by}"),
            _ if undifferentiated => {
                format!("no longer differentiated{by}: the loop only computes its trip count")
            }
            remaining if remaining == seen => "unchanged".to_owned(),
            remaining => format!("now {remaining}{by}"),
        };
        let number = if seen == 1 { String::new() } else { format!("{seen} ") };
        Outcome {
            words: format!("{number}{kind}: {outcome}"),
            seen,
            remaining: remaining.min(seen),
            undifferentiated,
        }
    };
    all.into_iter().map(outcome).filter(|outcome| outcome.seen > 0).collect()
}

/// The number of φs with each outcome. φs that closed forms add are not counted.
pub(super) fn summary(outcomes: &[(&Phis, Vec<Outcome>)]) -> String {
    let count = |of: fn(&Outcome) -> usize| -> usize {
        outcomes.iter().flat_map(|(_, outcomes)| outcomes).map(of).sum()
    };
    let counts = [
        ("recorded", count(|outcome| outcome.seen)),
        ("removed", count(|outcome| outcome.seen - outcome.remaining)),
        (
            "no longer differentiated",
            count(|outcome| if outcome.undifferentiated { outcome.remaining } else { 0 }),
        ),
        (
            "remaining",
            count(|outcome| if outcome.undifferentiated { 0 } else { outcome.remaining }),
        ),
    ];
    let shown = counts.iter().filter(|(_, count)| *count > 0);
    shown.map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<String>>().join(", ")
}

/// The φs of `before` by place, each with those of `after` at the same place.
pub(super) fn before_and_after(before: &Graph, after: &Graph) -> Vec<(Phis, Phis)> {
    let after = phis(after, false);
    let remaining = |seen: &Phis| after.iter().find(|remaining| remaining.at == seen.at).cloned();
    let seen = phis(before, true).into_iter();
    seen.map(|seen| (seen.clone(), remaining(&seen).unwrap_or_default())).collect()
}
