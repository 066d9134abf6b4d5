//! Where a line may stand for rounded numbers next to it, as those of `i as f64 / 12.0`.
//!
//! The rounding of one number is as small as that of the tape's product with it, and the
//! roundings of a line's numbers do not add up (`line`). It stays so if powers of single
//! numbers multiply them, or sums of such powers, whose size turns at most a few times.
//! Several numbers that depend on each other,
//! as those of a rotation, may pick those out that are rounded one way. And an exponential is
//! as wrong as its exponent is large: those of a sum that begins at zero are largest where
//! exponents are small, unless the sum is damped.

use std::collections::BTreeSet;

use super::binomials::{Rounded, differences};
use super::form::{Base, Coefficient, Forms, Rows};
use super::solve::components;

/// Why rounded numbers stay as they are.
pub(super) const ADD_UP: &str = "the rounding errors of its numbers in even steps may add up";

impl Forms<'_, '_> {
    /// The states of `rows` with rounded numbers that no line may stand for.
    pub(super) fn unfit_for_lines(&self, rows: &Rows) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        // Known numbers stay as they are.
        if !self.has_unknown(rows) {
            return found;
        }
        for states in components(rows) {
            let are_powers = states.iter().all(|&state| is_power(state, rows));
            let is_lost = |&state: &usize| {
                let row = &rows[&state];
                let is_sum = match row.get(&Base::State(state)) {
                    Some(Coefficient::Fixed(pair)) => self.number(*pair) == Some(1.0.into()),
                    _ => false,
                };
                row.iter().any(|(&base, coefficient)| match base {
                    Base::State(of) if of != state && self.is_rounded_exponential(of) => {
                        !is_sum || !are_powers
                    }
                    _ => !are_powers && is_rounded(coefficient),
                })
            };
            found.extend(states.iter().copied().filter(is_lost));
        }
        found
    }
}

fn is_rounded(coefficient: &Coefficient) -> bool {
    match coefficient {
        Coefficient::Fixed(_) => false,
        Coefficient::Polynomial(polynomial) => polynomial.rounded != Rounded::Not,
        Coefficient::Table(table) => {
            differences(table).is_some_and(|(_, rounded)| rounded != Rounded::Not)
        }
    }
}

/// Whether what a state was counts by the power of one number, and by nothing that follows
/// from it.
fn is_power(state: usize, rows: &Rows) -> bool {
    let others = |of: usize| {
        let bases = rows[&of].keys();
        bases.filter_map(move |&base| match base {
            Base::State(other) => (other != of).then_some(other),
            Base::Node(_) => None,
        })
    };
    let mut seen: BTreeSet<usize> = others(state).collect();
    let mut pending: Vec<usize> = seen.iter().copied().collect();
    while let Some(next) = pending.pop() {
        pending.extend(others(next).filter(|&other| seen.insert(other)));
    }
    let own = rows[&state].get(&Base::State(state));
    matches!(own, None | Some(Coefficient::Fixed(_))) && !seen.contains(&state)
}
