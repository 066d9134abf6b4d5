//! Types without `Carry` of which it is known whether something else may change through them.

use core::iter::{Chain, Cloned, Copied, Cycle, Enumerate, Peekable, Rev, Skip, StepBy, Take, Zip};
use core::{array, slice, str};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use std::vec;

use super::Carry;

/// Types of which it is known whether they hold a mutable reference or a cell.
pub trait KnownAliasing {
    /// True if they may hold one.
    const REFERS: bool;
}

/// Implements `KnownAliasing` for types that hold what their parameters hold.
macro_rules! known_aliasing {
    ($([$($parameters:tt)*] $type:ty, $($part:ident: $bound:ident)*;)*) => {
        $(
            impl<$($parameters)*> KnownAliasing for $type
            where
                $($part: $bound),*
            {
                const REFERS: bool = false $(|| <$part as $bound>::REFERS)*;
            }
        )*
    };
}

known_aliasing! {
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
    [I] Enumerate<I>, I: KnownAliasing;
    [I] Rev<I>, I: KnownAliasing;
    [I] Skip<I>, I: KnownAliasing;
    [I] Take<I>, I: KnownAliasing;
    [I] StepBy<I>, I: KnownAliasing;
    [I] Cycle<I>, I: KnownAliasing;
    [I] Cloned<I>, I: KnownAliasing;
    [I] Copied<I>, I: KnownAliasing;
    [A, B] Zip<A, B>, A: KnownAliasing B: KnownAliasing;
    [A, B] Chain<A, B>, A: KnownAliasing B: KnownAliasing;
    [K, V, S] HashMap<K, V, S>, K: Carry V: Carry;
    [T, S] HashSet<T, S>, T: Carry;
}

impl<I: Iterator<Item: Carry> + KnownAliasing> KnownAliasing for Peekable<I> {
    const REFERS: bool = I::REFERS || <I::Item as Carry>::REFERS;
}

impl<T: KnownAliasing + ?Sized> KnownAliasing for &T {
    const REFERS: bool = T::REFERS;
}

/// A function can change statics only.
macro_rules! functions {
    ($([$($parameter:ident)*])*) => {
        $(
            impl<R $(, $parameter)*> KnownAliasing for fn($($parameter),*) -> R {
                const REFERS: bool = false;
            }
        )*
    };
}

functions! { [] [A] [A B] [A B C] [A B C D] }
