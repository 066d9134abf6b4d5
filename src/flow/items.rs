//! The iterator of a `for` loop, whose position is hidden state.
//!
//! The position of an iterator cannot be handed over. For most iterators it is determined by the
//! number of items so far, and with it the items. Others are recognised by what they record: an
//! iterator that compares or computes traced numbers, and is not [`Counted`], is opaque.

use core::cell::Cell;
use core::iter::{
    Chain, Cloned, Copied, Cycle, Empty, Enumerate, Fuse, Inspect, Map, Once, Repeat, RepeatN, Rev,
    Skip, StepBy, Take, Zip,
};
use core::ops::{Range, RangeFrom, RangeInclusive};
use core::{array, option, slice, str};
use std::vec;

use super::state_hash::mix;
use super::{Carrier, Region};
use crate::trace::mark;

/// Iterators whose position is the number of items so far, and which hold no computed values.
pub trait Counted {}

macro_rules! counted {
    ($([$($parameters:tt)*] $type:ty $(where $($inner:ident)*)?;)*) => {
        $(impl<$($parameters)*> Counted for $type $(where $($inner: Counted),*)? {})*
    };
}

counted! {
    [T] Range<T>;
    [T] RangeInclusive<T>;
    [T] RangeFrom<T>;
    [T] slice::Iter<'_, T>;
    [T] slice::IterMut<'_, T>;
    [T] slice::Windows<'_, T>;
    [T] slice::Chunks<'_, T>;
    [T] slice::ChunksMut<'_, T>;
    [T] slice::ChunksExact<'_, T>;
    [T] slice::ChunksExactMut<'_, T>;
    [T] vec::IntoIter<T>;
    [T] vec::Drain<'_, T>;
    [T, const N: usize] array::IntoIter<T, N>;
    [T] option::IntoIter<T>;
    [T] option::Iter<'_, T>;
    [T] option::IterMut<'_, T>;
    [] str::Chars<'_>;
    [] str::Bytes<'_>;
    [T] Empty<T>;
    [T] Once<T>;
    [T] Repeat<T>;
    [T] RepeatN<T>;
    [I] &mut I where I;
    [I] Enumerate<I> where I;
    [I] Rev<I> where I;
    [I] Skip<I> where I;
    [I] Take<I> where I;
    [I] StepBy<I> where I;
    [I] Cycle<I> where I;
    [I] Cloned<I> where I;
    [I] Copied<I> where I;
    [I] Fuse<I> where I;
    [I, F] Map<I, F> where I;
    [I, F] Inspect<I, F> where I;
    [A, B] Zip<A, B> where A B;
    [A, B] Chain<A, B> where A B;
}

/// Tests whether an iterator is [`Counted`], as probes do.
#[derive(Debug)]
pub struct ItemOrder<'a, I>(pub &'a I);

/// Counted iterators.
pub trait Order {
    /// `true`.
    fn is_counted(&self) -> bool;
}

/// Other iterators.
pub trait OtherOrder {
    /// `false`.
    fn is_counted(&self) -> bool;
}

impl<I: Counted> Order for ItemOrder<'_, I> {
    #[inline]
    fn is_counted(&self) -> bool {
        true
    }
}

impl<I> OtherOrder for &ItemOrder<'_, I> {
    #[inline]
    fn is_counted(&self) -> bool {
        false
    }
}

/// The static state that the items of earlier iterations hold, if the loop changes it: at a loop
/// head it cannot be accessed any more.
#[derive(Debug, Default)]
pub struct Memory {
    held: Cell<Option<Remembered>>,
    /// True between the beginning of the loop's body and its end.
    inside: Cell<bool>,
}

/// A hash of static state, and whether any content was opaque.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Remembered {
    pub(super) state: u64,
    pub(super) opaque: bool,
}

impl Memory {
    /// Notes that the loop's body begins; a macro may jump out of it unnoticed.
    #[inline]
    pub fn begin(&self) {
        self.inside.set(true);
    }

    /// Notes that the body has handed over all that it changed.
    #[inline]
    pub fn end(&self) {
        self.inside.set(false);
    }

    /// The state of earlier items at the loop head; opaque if the body was left unnoticed.
    fn recall(&self) -> Option<Remembered> {
        if self.inside.replace(false) {
            let held = self.held.get().unwrap_or_default();
            self.held.set(Some(Remembered { opaque: true, ..held }));
        }
        self.held.get()
    }

    /// Adds the state of the items of this iteration.
    pub(super) fn add(&self, new: Remembered) {
        let old = self.held.get().unwrap_or_default();
        let state = mix(old.state, new.state);
        self.held.set(Some(Remembered { state, opaque: old.opaque || new.opaque }));
    }
}

/// The iterator of a `for` loop; it records a loop head for each item.
#[derive(Debug)]
pub struct Items<'a, I, F> {
    iterator: I,
    memory: &'a Memory,
    region: Region,
    counted: bool,
    /// True if the iterator's position may differ between paths.
    unknown: bool,
    carry: F,
}

/// The items of `iterator`, whose loop is `region`; `carry` hands over an item.
#[inline]
pub fn items<I: Iterator, F: FnMut(&mut I::Item, &mut Carrier)>(
    counted: bool,
    iterator: I,
    memory: &Memory,
    region: Region,
    carry: F,
) -> Items<'_, I, F> {
    Items { iterator, memory, region, counted, unknown: region.has_decided(), carry }
}

impl<I: Iterator, F: FnMut(&mut I::Item, &mut Carrier)> Iterator for Items<'_, I, F> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        if !self.region.is_open() {
            return self.iterator.next();
        }
        let before = mark::progress();
        let mut item = self.iterator.next();
        let computed = before != mark::progress();
        self.unknown |= computed && !self.counted;
        if let Some(item) = item.as_mut() {
            let (carry, unknown, memory) = (&mut self.carry, self.unknown, self.memory.recall());
            self.region.item_head(|to| {
                if computed {
                    to.temporary("items of the loop");
                    carry(item, to);
                }
                if let Some(Remembered { state, opaque }) = memory {
                    to.temporary("former items of the loop");
                    to.state(state);
                    if opaque {
                        to.opaque();
                    }
                }
                if unknown {
                    to.temporary("iterator of the loop");
                    to.opaque();
                }
            });
        }
        item
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.iterator.size_hint()
    }
}
