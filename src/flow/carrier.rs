//! The carrier: takes over what is carried to one point, and records it.

use core::cell::Cell;
use core::hash::{Hash, Hasher};
use std::hash::DefaultHasher;

use smallvec::SmallVec;

use super::items::{Memory, Remembered};
use crate::trace::{Operand, Site, Var, mark};

/// More than this many traced numbers or words are not captured.
const MAX_CAPTURED: usize = 256;
const MAX_WORDS: u64 = 4096;

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
    /// Whether some of it stands for inputs.
    has_fixed: bool,
    /// What belongs to an item of a loop.
    items: Remembered,
    is_item: bool,
    /// The addresses of elements that were handed over.
    elements: SmallVec<[usize; 4]>,
    /// The opaque variables so far; they come last.
    opaque: SmallVec<[&'static str; 4]>,
    /// Of a carrier that only captures: the numbers so far; `None` if not all is
    /// known.
    captured: Option<Vec<Operand>>,
    is_capturing: bool,
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
            has_fixed: false,
            items: Remembered::default(),
            is_item: false,
            elements: SmallVec::new(),
            opaque: SmallVec::new(),
            captured: None,
            is_capturing: false,
        }
    }

    /// A carrier that captures: it records nothing and changes nothing.
    pub(super) fn capturing(site: Site) -> Self {
        Carrier { captured: Some(Vec::new()), is_capturing: true, ..Carrier::new(site, 0) }
    }

    /// The code that is about to run: a region of a function. `T` is the type of a
    /// closure in it, and so tells functions apart, regions of one function, and
    /// what generic parameters stand for; names do not, since there are types of
    /// one name. Lifetimes change nothing about what code does.
    #[doc(hidden)]
    pub fn code<T>(&mut self, _: &T) {
        let mut hasher = DefaultHasher::new();
        typeid::of::<T>().hash(&mut hasher);
        self.state(hasher.finish());
    }

    /// Not all that is mentioned in the region is captured.
    #[doc(hidden)]
    pub fn incomplete(&mut self) {
        self.captured = None;
    }

    /// Whether nothing more is wanted: too much was captured, or something that
    /// is not known.
    pub(super) fn is_done(&self) -> bool {
        self.is_capturing && self.captured.is_none()
    }

    /// Keeps what was captured, if that is all.
    pub(super) fn keep(self) {
        if let Some(captured) = self.captured {
            mark::capture(mix(self.words, self.state), &captured);
        }
    }

    /// Keeps what was captured for jumps to the ends of these regions, if that is all.
    pub(super) fn keep_for(self, goals: &[u32]) {
        if let Some(captured) = self.captured {
            mark::capture_for_jumps(mix(self.words, self.state), goals, &captured);
        }
    }

    /// Captures `var`.
    #[cold]
    fn capture(&mut self, var: Var) {
        let operand = mark::operand(var);
        self.captured = self.captured.take().filter(|all| all.len() < MAX_CAPTURED);
        match (&mut self.captured, operand) {
            (Some(captured), Some(operand)) => captured.push(operand),
            _ => self.captured = None,
        }
        // Where it stands between other content.
        self.state(u64::MAX);
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

    /// Whether the element at this address is not yet handed over.
    pub(super) fn is_new(&mut self, address: usize) -> bool {
        let is_new = !self.elements.contains(&address);
        if is_new {
            self.elements.push(address);
        }
        is_new
    }

    /// Hands over a traced number. It becomes a number of its own, so that it is
    /// told apart from others that came from the same operation.
    pub fn var(&mut self, var: &mut Var) {
        if self.is_capturing {
            return self.capture(*var);
        }
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
        if self.is_capturing && self.words > MAX_WORDS {
            self.captured = None;
        }
    }

    /// Tells of a traced number that cannot be replaced, because it is shared.
    pub fn seen(&mut self, var: &Var) {
        if self.is_capturing {
            return self.capture(*var);
        }
        match mark::fixed(*var) {
            Some(words) => {
                words.into_iter().for_each(|word| self.state(word));
                self.has_fixed |= words[0] != 0;
            }
            None => self.opaque(),
        }
    }

    /// Says that the variable at hand holds something that is not known. Ways
    /// are then not merged at this point.
    pub fn opaque(&mut self) {
        if self.is_capturing {
            return self.incomplete();
        }
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
        if self.has_fixed {
            mark::state(mark::FIXED, self.site);
        }
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
