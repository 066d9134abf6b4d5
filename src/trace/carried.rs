//! Counts the values that a loop carries, for each rotation of its body.
//!
//! If a program starts with constants, its first iteration may have fewer steps than the others:
//! 0.9·m with m = 0 is no step. Repetition is then found from the middle of an iteration on, where
//! more values may be live than at the loop's head. Rotating the loop, so that it begins some steps
//! later, can restore the program's own head.

use core::hash::Hash;

use hashbrown::HashMap;

/// The live ranges of values computed in an iteration and used in the same or a later one.
pub(crate) struct CarriedValues<T> {
    period: usize,
    /// For each value the step that computes it, and its last use, as the number of steps from the
    /// beginning of the iteration that computes it.
    spans: HashMap<T, (usize, usize)>,
}

impl<T: Eq + Hash> CarriedValues<T> {
    /// No values, for iterations of `period` steps.
    pub(crate) fn new(period: usize) -> Self {
        CarriedValues { period, spans: HashMap::new() }
    }

    /// Adds a use: step `from` computes `number`, step `at` uses it `distance` iterations later.
    pub(crate) fn add(&mut self, number: T, from: usize, distance: usize, at: usize) {
        let used = distance * self.period + at;
        let (_, last) = self.spans.entry(number).or_insert((from, used));
        *last = used.max(*last);
    }

    /// Tests whether fewer values are carried if iterations begin `later` steps later.
    pub(crate) fn is_smaller_rotated(&self, later: usize) -> bool {
        (1..self.period).contains(&later) && self.carried_at(later) < self.carried_at(0)
    }

    /// The number of values live where step `first` begins an iteration; a value used several
    /// iterations later counts once for each.
    fn carried_at(&self, first: usize) -> usize {
        // The number of iterations begun when `step` is done.
        let begun = |step: usize| (step + self.period - first) / self.period;
        self.spans.values().map(|&(from, last)| begun(last) - begun(from)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_used_across_the_loop_head_are_carried() {
        // b = 0.9·m, c = x·g, m = b - c, w = w + m, g = f(w)
        let mut carried = CarriedValues::new(5);
        let uses = [
            ("m", 2, 1, 0),
            ("g", 4, 1, 1),
            ("b", 0, 0, 2),
            ("c", 1, 0, 2),
            ("w", 3, 1, 3),
            ("m", 2, 0, 3),
            ("w", 3, 0, 4),
        ];
        uses.into_iter()
            .for_each(|(number, from, distance, at)| carried.add(number, from, distance, at));
        let all = [0, 1, 2, 3, 4].map(|first| carried.carried_at(first));
        // m, g, w; b, g, w; b, c, w; m, w; m, w
        assert_eq!(all, [3, 3, 3, 2, 2]);
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 8].map(|later| carried.is_smaller_rotated(later)),
            [false, false, false, true, true, false, false]
        );
    }

    #[test]
    fn a_value_used_later_is_carried_by_each_iteration_between() {
        let mut carried = CarriedValues::new(2);
        carried.add(0, 0, 3, 1);
        assert_eq!([carried.carried_at(0), carried.carried_at(1)], [3, 4]);
        carried.add(0, 0, 1, 0);
        carried.add(1, 1, 0, 1);
        assert_eq!([carried.carried_at(0), carried.carried_at(1)], [3, 4]);
    }
}
