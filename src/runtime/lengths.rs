//! Lengths of input without a specialisation, and the choice of the specialisation that one of them
//! replaces.

use std::sync::Arc;

use hashbrown::HashMap;

use super::core::SpecialisationKey;
use super::outputs::OutputShape;
use super::specialisation::{ServedCalls, Specialisation};

/// The number of calls without a specialisation after which all counts are halved, so that old
/// calls count less.
const CALLS_PER_AGE: u64 = 1024;
/// The number of calls before which a length replaces none.
const LEAST_CALLS: u64 = 16;
/// The largest number of lengths that are counted; then counting starts again.
const MAX_COUNTED: usize = 1024;

/// The recent calls of lengths without a specialisation.
#[derive(Debug, Default)]
pub(super) struct OtherLengths {
    counts: HashMap<(usize, usize, Option<OutputShape>), u64>,
    /// The number of calls since the counts were halved.
    calls: u64,
    /// The calls with lengths whose specialisation has been replaced.
    pub(super) replaced_calls: ServedCalls,
}

impl OtherLengths {
    /// Counts a call with this key. Returns the position of the specialisation that it replaces:
    /// the least used one, if that has been called half as often.
    pub(super) fn replaced(
        &mut self,
        key: SpecialisationKey<'_>,
        specialisations: &[Arc<Specialisation>],
    ) -> Option<usize> {
        self.calls += 1;
        if self.calls >= CALLS_PER_AGE {
            self.calls = 0;
            specialisations.iter().for_each(|one| one.age());
            self.counts.values_mut().for_each(|count| *count /= 2);
            self.counts.retain(|_, count| *count > 0);
        }
        if self.counts.len() >= MAX_COUNTED {
            self.counts.clear();
        }
        let (active, inactive) = key.lengths();
        let key = (active, inactive, key.outputs.cloned());
        let count = self.counts.entry(key.clone()).or_insert(0);
        *count += 1;
        let recent = specialisations.iter().map(|one| one.recent_calls()).enumerate();
        let (least, calls) = recent.min_by_key(|&(_, calls)| calls)?;
        if *count < LEAST_CALLS || *count < calls.saturating_mul(2) {
            return None;
        }
        self.counts.remove(&key);
        Some(least)
    }
    /// Adds the calls of a specialisation that has been replaced.
    pub(super) fn add_replaced(&mut self, ServedCalls { tape, kernels }: ServedCalls) {
        self.replaced_calls.tape += tape;
        self.replaced_calls.kernels += kernels;
    }
}
