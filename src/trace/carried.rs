//! How many numbers a loop carries, by where in it an iteration is said to begin.
//!
//! Where a program begins with constants its first iteration may have fewer steps than the others,
//! as 0.9·m with m = 0 is no step: then what repeats begins in the middle of an iteration, and what
//! is known there is carried, which may be more than what the program carries. As it ends where the
//! last iteration of the program does, it may as well begin so much later.

use core::hash::Hash;

use hashbrown::HashMap;

/// Numbers that are computed in an iteration, and used in that or in later ones.
pub(crate) struct Carried<T> {
    period: usize,
    /// The step that each is computed in, and how many steps after the first of that iteration it
    /// is used last.
    spans: HashMap<T, (usize, usize)>,
}

impl<T: Eq + Hash> Carried<T> {
    /// None yet, of iterations with so many steps.
    pub(crate) fn new(period: usize) -> Self {
        Carried { period, spans: HashMap::new() }
    }

    /// Notes that `number`, which the step `from` computes, is used so many iterations later, by the
    /// step `at`.
    pub(crate) fn add(&mut self, number: T, from: usize, distance: usize, at: usize) {
        let used = distance * self.period + at;
        let (_, last) = self.spans.entry(number).or_insert((from, used));
        *last = used.max(*last);
    }

    /// Whether fewer are carried if an iteration begins so many steps later, within the first one.
    pub(crate) fn is_less_from(&self, later: usize) -> bool {
        (1..self.period).contains(&later) && self.across(later) < self.across(0)
    }

    /// How many are carried if an iteration begins with the step `first`; what is used several
    /// iterations later counts as many.
    fn across(&self, first: usize) -> usize {
        // How many iterations have begun when this step is done, that before the first one included.
        let begun = |step: usize| (step + self.period - first) / self.period;
        self.spans.values().map(|&(from, last)| begun(last) - begun(from)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_across_the_beginning_of_an_iteration_is_carried() {
        // b = 0.9·m, c = x·g, m = b - c, w = w + m, g = f(w)
        let mut carried = Carried::new(5);
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
        let all = [0, 1, 2, 3, 4].map(|first| carried.across(first));
        // m, g, w; b, g, w; b, c, w; m, w; m, w
        assert_eq!(all, [3, 3, 3, 2, 2]);
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 8].map(|later| carried.is_less_from(later)),
            [false, false, false, true, true, false, false]
        );
    }

    #[test]
    fn what_is_used_later_is_carried_through_all_iterations_between() {
        let mut carried = Carried::new(2);
        carried.add(0, 0, 3, 1);
        assert_eq!([carried.across(0), carried.across(1)], [3, 4]);
        carried.add(0, 0, 1, 0);
        carried.add(1, 1, 0, 1);
        assert_eq!([carried.across(0), carried.across(1)], [3, 4]);
    }
}
