//! What has become of the φs of a program, in words.

use crate::phi::{Phis, Rule};

/// What has become of the φs of one kind in one place.
pub(super) struct Fate {
    kind: &'static str,
    seen: usize,
    left: usize,
    /// Whether those that are left have lost their derivative.
    moved: bool,
    /// The formulas that did it.
    by: Vec<Rule>,
}

impl Fate {
    pub(super) fn words(&self) -> String {
        let Fate { kind, seen, left, .. } = self;
        let rules: Vec<String> = self.by.iter().map(Rule::to_string).collect();
        let by = if rules.is_empty() { String::new() } else { format!(" by {}", rules.join(", ")) };
        let number = if *seen == 1 { String::new() } else { format!("{seen} ") };
        match *left {
            0 => format!("{number}{kind}: gone{by}"),
            _ if self.moved => format!(
                "{number}{kind}: moved{by} out of what is differentiated: the loop only finds out \
                 when it ends"
            ),
            left if left == *seen => format!("{number}{kind}: as before"),
            left => format!("{number}{kind}: now {left}{by}"),
        }
    }
}

/// What has become of the φs that were seen in one place, where these rules were applied.
pub(super) fn fates(seen: &Phis, left: &Phis, rules: &[Rule]) -> Vec<Fate> {
    let moved = left.steady == left.count() && seen.steady < seen.count();
    let by = |fits: fn(&Rule) -> bool| rules.iter().copied().filter(fits).collect::<Vec<Rule>>();
    let (forms, exits) = (by(|rule| *rule >= Rule::C5), by(|rule| *rule == Rule::F5));
    // The number of the iteration goes with what is carried.
    let counted = if left.numbers == 0 || moved { forms.clone() } else { Vec::new() };
    let carried = (seen.entries - seen.numbers, left.entries - left.numbers);
    let fate = |kind, (seen, left), by| Fate { kind, seen, left, moved, by };
    let all = [
        fate("φ_L of what is carried", carried, forms),
        fate("φ_L of the number of the iteration", (seen.numbers, left.numbers), counted),
        fate("φ_L' of what comes out", (seen.exits, left.exits), exits),
        fate(
            "φ where ways meet",
            (seen.joins, left.joins),
            by(|rule| *rule <= Rule::C4 && !matches!(rule, Rule::F5 | Rule::C2)),
        ),
    ];
    all.into_iter().filter(|fate| fate.seen > 0).collect()
}

/// How many φs there are for each fate.
pub(super) fn summary(fates: &[(&Phis, Vec<Fate>)]) -> String {
    let all = || fates.iter().flat_map(|(_, fates)| fates);
    let seen: usize = all().map(|fate| fate.seen).sum();
    let gone: usize = all().map(|fate| fate.seen.saturating_sub(fate.left)).sum();
    // Sums that are done in a loop's place may bring some of their own.
    let of_those_seen = |fate: &Fate| fate.left.min(fate.seen);
    let moved: usize = all().filter(|fate| fate.moved).map(of_those_seen).sum();
    let left = all().filter(|fate| !fate.moved).map(of_those_seen).sum();
    let is = |count: usize| if count == 1 { "is" } else { "are" };
    let has = |count: usize| if count == 1 { "has" } else { "have" };
    let mut parts = vec![format!("{seen} {} seen", if seen == 1 { "was" } else { "were" })];
    let kinds = [
        (gone, format!("{gone} {} gone", is(gone))),
        (moved, format!("{moved} {} moved", has(moved))),
        (left, format!("{left} {} left", is(left))),
    ];
    parts.extend(kinds.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words));
    parts.join(", ")
}

/// Words with φs, in the language of LaTeX.
pub(super) fn latex_phis(words: &str) -> String {
    let loops = words.replace("φ_L'", "$\\varphi_{L'}$").replace("φ_L", "$\\varphi_L$");
    loops.replace('φ', "$\\varphi$")
}
