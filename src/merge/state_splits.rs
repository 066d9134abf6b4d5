//! State splits: variables whose values keep the paths out of a region apart.
//!
//! The first exit of a trace that differs by static state alone from the known ones is counted for
//! the variable that differs: later ones follow from it. Bounded state has few such exits. State
//! that each iteration of a loop may change has a new one on each new path.

use hashbrown::HashMap;

use super::tree::{Exit, Instance, State, Target};
use super::walk::Walk;
use super::{UnmergedReason, UnmergedRegion, place};
use crate::trace::{CarriedName, Site, StateWord, Trace};

/// The number of such exits from which on a variable is reported.
const REPORTED_SPLITS: usize = 32;

/// The exits of regions that differ by static state alone.
#[derive(Clone, Debug, Default)]
pub(super) struct StateSplits {
    /// Their number, by region and variable.
    counts: HashMap<(Site, CarriedName), usize>,
    /// True if the current walk has made one.
    is_split: bool,
    /// The regions and variables with many, in the order of their discovery.
    pub(super) reported: Vec<UnmergedRegion>,
}

impl StateSplits {
    /// Begins a walk.
    pub(super) fn begin(&mut self) {
        self.is_split = false;
    }

    fn count(&mut self, region: Site, variable: CarriedName) {
        self.is_split = true;
        let count = self.counts.entry((region, variable)).or_insert(0);
        *count += 1;
        if *count == REPORTED_SPLITS {
            let (name, declared) = (variable.name, place(variable.at));
            let reason = UnmergedReason::State { name, declared };
            self.reported.push(UnmergedRegion { at: place(region), reason });
        }
    }
}

impl Walk<'_> {
    /// Counts a new exit of `instance`, an instance of `region`, if only the carried state tells it
    /// from another one.
    pub(super) fn note_state_split(
        &mut self,
        (instance, region): (Instance, Site),
        to: Target,
        trace: &Trace<'_>,
    ) {
        if self.splits.is_split {
            return;
        }
        let exits = self.tree.instances[instance].exits.iter();
        let Some(word) = differing_word(exits, to, &self.carried.state) else { return };
        let events = self.known.len()..self.carried.end;
        let mut words = events.filter(|&event| trace.events.at(event).state_word().is_some());
        if let Some(variable) = words.nth(word).and_then(|event| trace.variable_of_state(event))
            && !variable.name.is_empty()
        {
            self.splits.count(region, variable);
        }
    }
}

/// The first word of `state` that differs from that of the most similar exit to `to`.
fn differing_word<'a>(
    exits: impl Iterator<Item = &'a Exit>,
    to: Target,
    state: &[StateWord],
) -> Option<usize> {
    let last = state.len().checked_sub(1)?;
    let differences = |known: &State| {
        let pairs = known.iter().zip(state).enumerate();
        let differing = pairs.filter(|(_, (known, new))| known != new);
        let positions = differing.map(|(position, _)| position);
        let (mut first, mut count) = (None, known.len().abs_diff(state.len()));
        for position in positions {
            first = first.or(Some(position));
            count += 1;
        }
        (count, first.unwrap_or(known.len()).min(last))
    };
    let same_target = exits.filter(|exit| exit.key.to == to && exit.key.state[..] != *state);
    let nearest = same_target.map(|exit| differences(&exit.key.state)).min();
    nearest.map(|(_, position)| position)
}
