//! Loops that are gone through more or less often than they are, and what the same rules
//! make of them.

use super::cut::{Wanted, cut};
use super::ends::of_length;
use super::facts::Facts;
use super::whole::without_guards;
use super::{MOST_STEPS_AT_ONCE, Rules, Seen, TRIPS, needed_points, points_of_cuts};
use crate::ssa::{
    Def, End, Graph, Node, Region, has_alternatives, interpret_with, most_steps, verify,
};

/// A length of more steps is gone through only if there is budget for it, or nothing has
/// been seen at shorter ones.
const MOST_STEPS_OF_LENGTH: u64 = 1 << 16;

/// So often a loop goes on together with so many times of the loops in it: where all are
/// long, what is added in one may be nothing next to what others multiply by.
const SHORT: [(u32, u32); 2] = [(3, 2), (1, 4)];

/// `graph` with loops besides `region` that go on `trips` times at most; `None` if there are none.
fn with_short_loops(graph: &Graph, region: Region, trips: u32) -> Option<Graph> {
    let is_longer = |other: &Region| {
        let cycle = graph.regions[*other].cycle.as_ref();
        *other != region && cycle.is_some_and(|cycle| cycle.bound > trips + 1)
    };
    let mut short: Option<Graph> = None;
    for other in graph.regions.keys().filter(is_longer) {
        short = of_length(short.as_ref().unwrap_or(graph), other, trips).or(short);
    }
    short
}

/// Applies `rules` to `region` at other lengths, and compares what they make of it; `None`
/// if that is wrong somewhere. Where they make nothing of it, nothing is wrong.
pub(super) fn right_at_lengths(
    facts: &Facts<'_>,
    region: Region,
    rules: Rules<'_>,
    budget: &mut u64,
) -> Option<Seen> {
    let before = facts.claim.before;
    let mut seen = Seen::of(facts.outputs(region).len());
    let Some(own) = before.regions[region].cycle.as_ref().map(|cycle| cycle.bound - 1) else {
        return Some(seen);
    };
    let lengths = TRIPS.into_iter().map(|trips| (trips, None)).filter(|&(trips, _)| trips != own);
    for (trips, inner) in lengths.chain(SHORT.map(|(trips, inner)| (trips, Some(inner)))) {
        // What is read of iterations that there are not is no output.
        let is_there = |&(_, node): &(usize, Node)| match before.nodes[node].def {
            Def::Element(access) => before.accesses[access].base <= trips,
            _ => true,
        };
        let (numbers, outputs): (Vec<usize>, Vec<Node>) =
            facts.outputs(region).iter().copied().enumerate().filter(is_there).unzip();
        let wanted = Wanted { region, outputs: &outputs, stays: false, forms: false, around: 0 };
        let Some(cut) = cut(facts, wanted).filter(|_| !outputs.is_empty()) else { continue };
        let Some(short) = of_length(&cut.graph, cut.region, trips) else { continue };
        let short = match inner.map(|trips| with_short_loops(&short, cut.region, trips)) {
            None => short,
            Some(Some(short)) => short,
            Some(None) => continue,
        };
        let steps = most_steps(&short, |_| 1);
        let most = if seen.is_enough() { MOST_STEPS_OF_LENGTH.max(*budget) } else { u64::MAX };
        if steps > most.min(MOST_STEPS_AT_ONCE) || verify(&short).is_err() {
            continue;
        }
        let Some(forms) = rules(&short) else { continue };
        let forms = without_guards(&forms);
        let has_form = have_forms(&short, &forms, cut.region);
        if !has_form.contains(&true) {
            continue;
        }
        let steps = steps + most_steps(&forms, |_| 1);
        if steps > MOST_STEPS_AT_ONCE {
            continue;
        }
        let mut here = Seen::of(outputs.len());
        let needed = needed_points(&short, cut.region, has_alternatives(&forms));
        for point in points_of_cuts(&short, cut.region, trips + 1) {
            if point.number >= needed && steps > *budget {
                break;
            }
            *budget = budget.saturating_sub(steps);
            let inputs = cut.inputs.duals(point);
            let both = [&short, &forms].map(|graph| interpret_with(graph, &inputs));
            let [Ok(loops), Ok(forms)] = both else { continue };
            here.duals(&loops, &forms).then_some(())?;
        }
        for (place, number) in numbers.into_iter().enumerate().filter(|&(at, _)| has_form[at]) {
            seen.values[number] |= here.values[place];
            seen.slopes[number] |= here.slopes[place];
            seen.missed[number] |= here.missed[place];
        }
    }
    Some(seen)
}

/// Whether each output is something else in `after` than what comes out of `region`.
fn have_forms(before: &Graph, after: &Graph, region: Region) -> Vec<bool> {
    let returned = |graph: &Graph| match &graph.blocks[graph.root()].end {
        End::Return(values) => values.iter().map(|&value| graph.nodes[value].def).collect(),
        End::Branch { .. } | End::Open => Vec::new(),
    };
    let (before, after): (Vec<Def>, Vec<Def>) = (returned(before), returned(after));
    let is_form = |(before, after): (&Def, &Def)| match after {
        Def::Phi(of, _) => *of != region,
        Def::Element(_) => before != after,
        _ => true,
    };
    before.iter().zip(&after).map(is_form).collect()
}
