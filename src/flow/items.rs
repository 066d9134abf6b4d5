//! The iterator of a `for` loop: what its hidden state means for merging.
//!
//! The position of an iterator is no variable, so it cannot be handed over. Most
//! iterators stand where the number of the iteration says, and what they give
//! out is known with it. Others are noticed by what they record: an iterator
//! that decides or computes with traced numbers by unknown rules is opaque.

use core::iter::{
    Chain, Cloned, Copied, Cycle, Empty, Enumerate, Fuse, Inspect, Map, Once, Repeat, RepeatN, Rev,
    Skip, StepBy, Take, Zip,
};
use core::ops::{Range, RangeFrom, RangeInclusive};
use core::{array, option, slice, str};
use std::vec;

use super::{Carrier, Region};
use crate::trace::mark;

/// Iterators that stand where the number of items says that they have given
/// out, and hold nothing that was computed on the way.
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

/// Asks an iterator whether it is [`Counted`]; see [`probe`](super::probe).
#[derive(Debug)]
pub struct ItemOrder<'a, I>(pub &'a I);

/// It is.
pub trait Order {
    /// `true`.
    fn is_counted(&self) -> bool;
}

/// It is not.
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

/// The iterator of a `for` loop, which passes the loop's head with each item.
#[derive(Debug)]
pub struct Items<I, F> {
    iterator: I,
    region: Region,
    counted: bool,
    /// Whether the iterator may stand elsewhere on another way.
    unknown: bool,
    carry: F,
}

/// The items of `iterator`, whose loop is `region`; `carry` hands one over.
#[inline]
pub fn items<I: Iterator, F: FnMut(&mut I::Item, &mut Carrier)>(
    counted: bool,
    iterator: I,
    region: Region,
    carry: F,
) -> Items<I, F> {
    Items { iterator, region, counted, unknown: region.has_decided(), carry }
}

impl<I: Iterator, F: FnMut(&mut I::Item, &mut Carrier)> Iterator for Items<I, F> {
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
            let (carry, unknown) = (&mut self.carry, self.unknown);
            self.region.iterate(|to| {
                if computed {
                    to.variable("items of the loop", true);
                    carry(item, to);
                }
                if unknown {
                    to.variable("iterator of the loop", true);
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
