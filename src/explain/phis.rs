//! The φs of a graph, by where they are: which are differentiated, and what has become of them.

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
    /// Where, if that is known.
    pub at: Option<Place>,
    /// Entry φs: what loops carry, and the number of the iteration.
    pub entries: usize,
    /// How many of these are the number of the iteration.
    pub counters: usize,
    /// Exit φs of loops.
    pub exits: usize,
    /// φs where the paths of branches join.
    pub joins: usize,
    /// How many of all these are in loops that are not differentiated: such a loop only finds
    /// out when it ends.
    pub undifferentiated: usize,
}

impl Phis {
    /// The number of all of them.
    pub fn count(&self) -> usize {
        self.entries + self.exits + self.joins
    }
}

/// The φs of `graph`, by where they are. An exit φ that is what its loop carries at each exit is
/// none by F5, unless `as_seen` says to count it nevertheless.
fn phis(graph: &Graph, as_seen: bool) -> Vec<Phis> {
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
        let is_exit = |number: &usize| as_seen || carried(graph, region, *number).next().is_none();
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

/// The φs of branches whose derivatives are taken, each by C2.
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

/// What has become of the φs of one kind in one place.
pub(super) struct Fate {
    pub(super) words: String,
    seen: usize,
    left: usize,
    /// Whether those that are left are not differentiated any more.
    moved: bool,
}

/// What has become of the φs that were seen in one place, where these rules were applied.
pub(super) fn fates(seen: &Phis, left: &Phis, rules: &[Rule]) -> Vec<Fate> {
    let moved = left.undifferentiated == left.count() && seen.undifferentiated < seen.count();
    let by = |fits: fn(&Rule) -> bool| {
        let rules: Vec<String> = rules.iter().filter(|r| fits(r)).map(Rule::to_string).collect();
        if rules.is_empty() { String::new() } else { format!(" by {}", rules.join(", ")) }
    };
    let (forms, exits) = (by(|rule| *rule >= Rule::C5), by(|rule| *rule == Rule::F5));
    // The number of the iteration goes with what is carried.
    let counted = if left.counters == 0 || moved { forms.clone() } else { String::new() };
    let joins = by(|rule| *rule <= Rule::C4 && !matches!(rule, Rule::F5 | Rule::C2));
    let carried = [seen, left].map(|phis| phis.entries - phis.counters);
    let all = [
        ("φ_L of what is carried", carried, forms),
        ("φ_L of the number of the iteration", [seen.counters, left.counters], counted),
        ("φ_L' of what comes out", [seen.exits, left.exits], exits),
        ("φ where paths join", [seen.joins, left.joins], joins),
    ];
    let fate = |(kind, [seen, left], by): (&str, [usize; 2], String)| {
        let fate = match left {
            0 => format!("gone{by}"),
            _ if moved => format!(
                "moved{by} out of what is differentiated: the loop only finds out when it ends"
            ),
            left if left == seen => "as before".to_owned(),
            left => format!("now {left}{by}"),
        };
        let number = if seen == 1 { String::new() } else { format!("{seen} ") };
        Fate { words: format!("{number}{kind}: {fate}"), seen, left: left.min(seen), moved }
    };
    all.into_iter().map(fate).filter(|fate| fate.seen > 0).collect()
}

/// How many φs there are of each fate. A closed form may have more of its own.
pub(super) fn summary(fates: &[(&Phis, Vec<Fate>)]) -> String {
    let count = |of: fn(&Fate) -> usize| -> usize {
        fates.iter().flat_map(|(_, fates)| fates).map(of).sum()
    };
    let counts = [
        ("seen", count(|fate| fate.seen)),
        ("gone", count(|fate| fate.seen - fate.left)),
        ("moved", count(|fate| if fate.moved { fate.left } else { 0 })),
        ("left", count(|fate| if fate.moved { 0 } else { fate.left })),
    ];
    let shown = counts.iter().filter(|(_, count)| *count > 0);
    shown.map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<String>>().join(", ")
}

/// The φs of `before`, each with those of `after` in the same place.
pub(super) fn seen_and_left(before: &Graph, after: &Graph) -> Vec<(Phis, Phis)> {
    let after = phis(after, false);
    let left = |seen: &Phis| after.iter().find(|left| left.at == seen.at).cloned();
    let seen = phis(before, true).into_iter();
    seen.map(|seen| (seen.clone(), left(&seen).unwrap_or_default())).collect()
}
