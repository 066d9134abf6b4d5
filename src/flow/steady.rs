//! Types without `Carry` of which it is known whether something else may change through them.

use core::iter::{Chain, Cloned, Copied, Cycle, Enumerate, Peekable, Rev, Skip, StepBy, Take, Zip};
use core::{array, slice, str};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use std::vec;

use super::Carry;

/// Types of which it is known whether they hold a mutable reference or a cell.
pub trait Steady {
    /// True if they may hold one.
    const REFERS: bool;
}

/// Implements `KnownAliasing` for types that hold what their parameters hold.
macro_rules! steady {
    ($([$($parameters:tt)*] $type:ty, $($part:ident: $bound:ident)*;)*) => {
        $(
            impl<$($parameters)*> Steady for $type
            where
                $($part: $bound),*
            {
                const REFERS: bool = false $(|| <$part as $bound>::REFERS)*;
            }
        )*
    };
}

steady! {
    [T] slice::Iter<'_, T>, T: Carry;
    [T] slice::Windows<'_, T>, T: Carry;
    [T] slice::Chunks<'_, T>, T: Carry;
    [T] slice::ChunksExact<'_, T>, T: Carry;
    [T] vec::IntoIter<T>, T: Carry;
    [T, const N: usize] array::IntoIter<T, N>, T: Carry;
    [T] core::ops::Range<T>, T: Carry;
    [T] core::ops::RangeFrom<T>, T: Carry;
    [T] core::ops::RangeInclusive<T>, T: Carry;
    [] str::Chars<'_>,;
    [] str::Bytes<'_>,;
    [] Duration,;
    [] Instant,;
    [I] Enumerate<I>, I: Steady;
    [I] Rev<I>, I: Steady;
    [I] Skip<I>, I: Steady;
    [I] Take<I>, I: Steady;
    [I] StepBy<I>, I: Steady;
    [I] Cycle<I>, I: Steady;
    [I] Cloned<I>, I: Steady;
    [I] Copied<I>, I: Steady;
    [A, B] Zip<A, B>, A: Steady B: Steady;
    [A, B] Chain<A, B>, A: Steady B: Steady;
    [K, V, S] HashMap<K, V, S>, K: Carry V: Carry;
    [T, S] HashSet<T, S>, T: Carry;
}

impl<I: Iterator<Item: Carry> + Steady> Steady for Peekable<I> {
    const REFERS: bool = I::REFERS || <I::Item as Carry>::REFERS;
}

impl<T: Steady + ?Sized> Steady for &T {
    const REFERS: bool = T::REFERS;
}

/// A function can change statics only.
macro_rules! functions {
    ($([$($parameter:ident)*])*) => {
        $(
            impl<R $(, $parameter)*> Steady for fn($($parameter),*) -> R {
                const REFERS: bool = false;
            }
        )*
    };
}

functions! { [] [A] [A B] [A B C] [A B C D] }
