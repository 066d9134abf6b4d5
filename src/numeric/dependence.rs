//! The sparsity pattern of the powers of a map: which states depend on which.
//!
//! Sets of states are bit masks. Structural zeros of powers, entries that are zero for all values
//! of the coefficients, are neither computed nor differentiated, and are exact.

use super::program::{MAX_STATES, Slot};

/// The dependence of states on one another and on the offset, after any number of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// Bit j of entry i: state i depends on state j.
    on: [u8; MAX_STATES],
    /// The states that depend on the offset.
    driven: u8,
}

impl Dependence {
    /// The transitive closure of the entries of a map.
    pub fn new(matrix: &[Option<Slot>], offset: &[Option<Slot>]) -> Dependence {
        let states = offset.len();
        let mut on = [0; MAX_STATES];
        for (i, row) in matrix.chunks(states).enumerate() {
            on[i] = mask(row, Option::is_some);
        }
        for middle in 0..states {
            for i in 0..states {
                if contains(on[i], middle) {
                    on[i] |= on[middle];
                }
            }
        }
        let mut dependence = Dependence { on, driven: 0 };
        dependence.driven = dependence.dependent(mask(offset, Option::is_some));
        dependence
    }

    /// True if state i depends on state j: entry (i, j) of some power is not a structural zero.
    #[inline(always)]
    pub fn depends(&self, i: usize, j: usize) -> bool {
        contains(self.on[i], j)
    }

    /// True if state i depends on the offset after some number of steps.
    #[inline(always)]
    pub fn is_driven(&self, i: usize) -> bool {
        contains(self.driven, i)
    }

    /// These states, and those that depend on one of them.
    #[inline(always)]
    pub fn dependent(&self, states: u8) -> u8 {
        let mut all = states;
        for (i, on) in self.on.iter().enumerate() {
            all |= u8::from(on & states != 0) << i;
        }
        all
    }

    /// These states, and those that one of them depends on.
    #[inline(always)]
    pub fn influencing(&self, states: u8) -> u8 {
        let mut all = states;
        for (i, on) in self.on.iter().enumerate() {
            all |= if contains(states, i) { *on } else { 0 };
        }
        all
    }
}

/// True if `set` contains `state`.
#[inline(always)]
pub fn contains(set: u8, state: usize) -> bool {
    set >> state & 1 == 1
}

/// The set of the indices whose items satisfy `condition`.
#[inline(always)]
pub fn mask<T>(items: &[T], condition: impl Fn(&T) -> bool) -> u8 {
    items.iter().enumerate().fold(0, |set, (i, item)| set | u8::from(condition(item)) << i)
}
