//! The carrier: takes over what is carried to one point, and records it.

use core::cell::Cell;

use smallvec::SmallVec;

use super::items::{Memory, Remembered};
use crate::trace::{Site, Var, mark};

/// Takes over the content of variables at a point where ways meet. Given to the
/// methods of [`Carry`](super::Carry); for an example see there.
#[derive(Debug)]
pub struct Carrier {
    site: Site,
    /// The variable at hand.
    name: &'static str,
    /// Whether the variable itself was assigned, not just something behind it.
    assigned: bool,
    /// Variables of the region that are mutable references, by their bits.
    suspects: u64,
    /// State that is not recorded yet: the number of words, and the word or a
    /// hash of them.
    words: u64,
    state: u64,
    /// Whether state was recorded.
    has_state: bool,
    /// What belongs to an item of a loop.
    items: Remembered,
    is_item: bool,
    /// The opaque variables so far; they come last.
    opaque: SmallVec<[&'static str; 4]>,
}

impl Carrier {
    pub(super) fn new(site: Site, suspects: u64) -> Self {
        Carrier {
            site,
            name: "",
            assigned: false,
            suspects,
            words: 0,
            state: 0,
            has_state: false,
            items: Remembered::default(),
            is_item: false,
            opaque: SmallVec::new(),
        }
    }

    /// What follows is the content of the variable `name`.
    #[doc(hidden)]
    pub fn variable(&mut self, name: &'static str, assigned: bool) {
        self.record_state();
        (self.name, self.assigned, self.is_item) = (name, assigned, false);
    }

    /// The variable at hand leads to an item of a `for` loop.
    #[doc(hidden)]
    pub fn item(&mut self) {
        self.is_item = true;
    }

    /// Keeps what was handed over of items for the heads that follow.
    #[doc(hidden)]
    pub fn remember(&mut self, memory: &Memory) {
        self.record_state();
        if self.items != Remembered::default() {
            memory.add(self.items);
        }
    }

    /// The variable `name` is opaque if it is a mutable reference, which is in
    /// this bit of the region's suspects.
    #[doc(hidden)]
    pub fn suspect(&mut self, bit: u32, name: &'static str) {
        if self.suspects >> bit & 1 != 0 {
            self.variable(name, false);
            self.item();
            self.opaque();
        }
    }

    /// The variable `name` is opaque if a method was called on it that may be the
    /// user's, which is in this bit.
    #[doc(hidden)]
    pub fn called(&mut self, methods: &Cell<u64>, bit: u32, name: &'static str) {
        if methods.get() >> bit & 1 != 0 {
            self.variable(name, false);
            self.item();
            self.opaque();
        }
    }

    /// Hands over a traced number. It becomes a number of its own, so that it is
    /// told apart from others that came from the same operation.
    pub fn var(&mut self, var: &mut Var) {
        self.record_state();
        if !mark::phi(var, self.site) {
            self.opaque();
        }
    }

    /// Hands over 64 bits of what is not traced: a number, a length, the index
    /// of a variant. Words that follow each other are recorded as one.
    pub fn state(&mut self, bits: u64) {
        self.state = match self.words {
            0 => bits,
            1 => mix(mix(0, self.state), bits),
            _ => mix(self.state, bits),
        };
        self.words += 1;
    }

    /// Tells of a traced number that cannot be replaced, because it is shared.
    pub fn seen(&mut self, var: &Var) {
        match mark::fixed(*var) {
            Some(words) => words.into_iter().for_each(|word| self.state(word)),
            None => self.opaque(),
        }
    }

    /// Says that the variable at hand holds something that is not known. Ways
    /// are then not merged at this point.
    pub fn opaque(&mut self) {
        self.items.opaque |= self.is_item;
        if self.opaque.last() != Some(&self.name) {
            self.opaque.push(self.name);
        }
    }

    /// Whether the variable at hand was assigned as a whole, so that a reference
    /// may lead to something else than before.
    pub(super) fn is_assigned(&self) -> bool {
        self.assigned
    }

    /// Records what is left. Returns whether all ways meet here: what is carried
    /// is known, and there is no state in which they may differ.
    pub(super) fn finish(mut self) -> bool {
        self.record_state();
        let meets = self.opaque.is_empty() && !self.has_state;
        for name in self.opaque {
            mark::opaque(name, self.site);
        }
        meets
    }

    fn record_state(&mut self) {
        if self.words > 0 {
            mark::state(self.state, self.site);
            self.has_state = true;
            if self.is_item {
                // The number of words keeps this from being 0, which is nothing.
                self.items.state = mix(mix(self.items.state, self.words), self.state);
            }
            (self.words, self.state) = (0, 0);
        }
    }
}

/// A hash that tells lists of words apart: every bit of the result depends on
/// every bit of each word.
pub(super) fn mix(hash: u64, word: u64) -> u64 {
    let mut bits = (hash ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ bits >> 31).wrapping_add(hash.rotate_left(23))
}
