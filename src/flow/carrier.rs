//! The carrier: collects the values and static state carried to a join or loop head, and records
//! them.

use core::cell::Cell;
use core::hash::{Hash, Hasher};
use core::panic::Location;

use smallvec::SmallVec;

use super::items::{Memory, Remembered};
use super::state_hash::{StateHash, WordHasher};
use crate::trace::mark::StaticValue;
use crate::trace::{CarriedName, Operand, Site, Var, mark};

/// The largest numbers of traced values and of words of static state that are captured.
const MAX_CAPTURED: usize = 256;
const MAX_WORDS: u64 = 4096;

/// Takes the content of variables where paths join. The methods of [`Carry`](super::Carry) get one;
/// for an example see there.
#[derive(Debug)]
pub struct Carrier {
    site: Site,
    /// The current variable, and its declaration.
    name: &'static str,
    declared: Site,
    /// True if the variable itself was assigned, not only something behind it.
    assigned: bool,
    /// The variables of the region that are mutable references, by their bits.
    mutators: u64,
    /// State that is not recorded yet.
    state: StateHash,
    /// True if state was recorded.
    has_state: bool,
    /// True if some of it identifies inputs.
    names_input: bool,
    /// The state of the items of a loop.
    items: Remembered,
    is_item: bool,
    /// The addresses of the elements that were handed over.
    elements: SmallVec<[usize; 4]>,
    /// The opaque variables so far; they are recorded last.
    opaque: SmallVec<[&'static str; 4]>,
    /// The operands captured so far, by a carrier that captures.
    captured: Vec<Operand>,
    is_capturing: bool,
    /// True if not all captured operands are known.
    is_incomplete: bool,
}

impl Carrier {
    pub(super) fn new(site: Site, mutators: u64) -> Self {
        Carrier {
            site,
            name: "",
            declared: site,
            assigned: false,
            mutators,
            state: StateHash::default(),
            has_state: false,
            names_input: false,
            items: Remembered::default(),
            is_item: false,
            elements: SmallVec::new(),
            opaque: SmallVec::new(),
            captured: Vec::new(),
            is_capturing: false,
            is_incomplete: false,
        }
    }

    /// A carrier that captures: it records nothing and replaces nothing.
    pub(super) fn capturing(site: Site) -> Self {
        Carrier { captured: mark::operands(), is_capturing: true, ..Carrier::new(site, 0) }
    }

    /// Hands over the identity of the code of a region. `T` is the type of a closure in it: it
    /// differs between functions, between the regions of one function, and between the instances of
    /// a generic function; type names are not unique. Lifetimes have no influence on code.
    #[doc(hidden)]
    pub fn code<T>(&mut self, _: &T) {
        let mut hasher = WordHasher::default();
        typeid::of::<T>().hash(&mut hasher);
        self.state(hasher.finish());
    }

    /// Marks the capture as incomplete.
    #[doc(hidden)]
    pub fn incomplete(&mut self) {
        self.is_incomplete = true;
    }

    /// Tests whether the capture is incomplete already, so that the rest is not needed.
    pub(super) fn is_done(&self) -> bool {
        self.is_capturing && self.is_incomplete
    }

    /// Stores the capture, if it is complete.
    pub(super) fn keep(&mut self) {
        if !self.is_incomplete {
            mark::capture(self.state.finish(), core::mem::take(&mut self.captured));
        }
    }

    /// Stores the capture for jumps to the ends of these regions, if it is complete.
    pub(super) fn keep_for(&mut self, targets: &[u32]) {
        if !self.is_incomplete {
            let captured = core::mem::take(&mut self.captured);
            mark::capture_for_jumps(self.state.finish(), targets, captured);
        }
    }

    /// Captures `var`.
    #[cold]
    fn capture(&mut self, var: Var) {
        match mark::operand(var) {
            Some(operand) if self.captured.len() < MAX_CAPTURED => self.captured.push(operand),
            _ => self.is_incomplete = true,
        }
        self.state.add_traced();
        self.limit_captured_state();
    }

    /// Begins the variable `name`, whose declaration is the caller's place.
    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn variable(&mut self, name: &'static str, assigned: bool) {
        self.begin(name, assigned, Location::caller());
    }

    /// Begins `name`, which is no variable: its place is that of the region.
    #[doc(hidden)]
    #[inline]
    pub fn temporary(&mut self, name: &'static str) {
        self.begin(name, true, self.site);
    }

    fn begin(&mut self, name: &'static str, assigned: bool, declared: Site) {
        self.record_state();
        (self.name, self.assigned, self.declared) = (name, assigned, declared);
        self.is_item = false;
    }

    /// Marks the current variable as one that leads to an item of a `for` loop.
    #[doc(hidden)]
    pub fn item(&mut self) {
        self.is_item = true;
    }

    /// Keeps the state of the items for the loop heads that follow.
    #[doc(hidden)]
    pub fn remember(&mut self, memory: &Memory) {
        self.record_state();
        if self.items != Remembered::default() {
            memory.add(self.items);
        }
    }

    /// Hands over the variable `name` as opaque if it is a mutable reference, which is this bit of
    /// the region's mutators.
    #[doc(hidden)]
    pub fn mutator(&mut self, bit: u32, name: &'static str) {
        if self.mutators >> bit & 1 != 0 {
            self.begin(name, false, self.site);
            self.item();
            self.opaque();
        }
    }

    /// Hands over the variable `name` as opaque if a method was called on it that may be user code,
    /// which is this bit.
    #[doc(hidden)]
    pub fn called(&mut self, methods: &Cell<u64>, bit: u32, name: &'static str) {
        if methods.get() >> bit & 1 != 0 {
            self.begin(name, false, self.site);
            self.item();
            self.opaque();
        }
    }

    /// Tests whether the element at this address has not been handed over yet.
    pub(super) fn is_new(&mut self, address: usize) -> bool {
        let is_new = !self.elements.contains(&address);
        if is_new {
            self.elements.push(address);
        }
        is_new
    }

    /// Hands over a traced number. It is replaced by a φ, so that it differs from other numbers
    /// with the same origin.
    pub fn var(&mut self, var: &mut Var) {
        if self.is_capturing {
            return self.capture(*var);
        }
        self.record_state();
        if !mark::phi(var, self.site) {
            self.opaque();
        }
    }

    /// Hands over 64 bits of static state: a number, a length, the index of a variant. Consecutive
    /// words are recorded as one.
    pub fn state(&mut self, bits: u64) {
        self.state.add(bits);
        self.limit_captured_state();
    }

    fn limit_captured_state(&mut self) {
        if self.is_capturing && self.state.len() > MAX_WORDS {
            self.is_incomplete = true;
        }
    }

    /// Hands over a traced number behind a shared reference, which cannot be replaced.
    pub fn seen(&mut self, var: &Var) {
        if self.is_capturing {
            return self.capture(*var);
        }
        match mark::static_value(*var) {
            Some(StaticValue::Constant(value)) => {
                self.state(0);
                self.state(value.to_bits());
            }
            Some(StaticValue::Input(index)) => {
                self.state(1);
                self.state(u64::from(index));
                self.names_input = true;
            }
            None => self.opaque(),
        }
    }

    /// Marks the current variable as one with unknown content. Paths are not merged at this point.
    pub fn opaque(&mut self) {
        if self.is_capturing {
            return self.incomplete();
        }
        self.items.opaque |= self.is_item;
        if self.opaque.last() != Some(&self.name) {
            self.opaque.push(self.name);
        }
    }

    /// Tests whether the current variable was assigned as a whole, so that a reference may point to
    /// something else than before.
    pub(super) fn is_assigned(&self) -> bool {
        self.assigned
    }

    /// Records the rest. Returns whether all paths join here: all content is known, and there is no
    /// static state in which they may differ.
    pub(super) fn finish(&mut self) -> bool {
        self.record_state();
        if self.names_input {
            mark::names_input(self.site);
        }
        let joins = self.opaque.is_empty() && !self.has_state;
        for name in core::mem::take(&mut self.opaque) {
            mark::opaque(name, self.site);
        }
        joins
    }

    fn record_state(&mut self) {
        if self.state.len() > 0 {
            let of = CarriedName { name: self.name, at: self.declared };
            mark::state(self.state.word_or_hash(), of, self.site);
            self.has_state = true;
            if self.is_item {
                // The number of words keeps the hash from being 0, the hash of no state.
                self.items.state = self.state.after(self.items.state);
            }
            self.state = StateHash::default();
        }
    }
}
