//! `Carry`: what a type hands over where ways meet; the types of the language.

use core::convert::Infallible;
use core::marker::PhantomData;
use core::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use super::Carrier;
use crate::trace::Var;

/// What a variable of this type hands over where the ways of a function meet.
///
/// Functions with [`traced`](crate::traced) call this for the variables that
/// they change. Everything that may differ from one way to another, or from
/// one value of the type to another, has to be handed over, always in the same
/// order: traced numbers by [`Carrier::var`], all else by [`Carrier::state`],
/// also lengths and which variant an enum is. [Derive](derive@crate::Carry) it;
/// by hand it looks like this:
///
/// ```
/// use phigrad::flow::Carrier;
/// use phigrad::{Carry, Var};
///
/// struct Momentum {
///     steps: usize,
///     speed: Vec<Var>,
/// }
///
/// impl Carry for Momentum {
///     fn carry(&mut self, to: &mut Carrier) {
///         self.steps.carry(to);
///         self.speed.carry(to);
///     }
///
///     fn note(&self, to: &mut Carrier) {
///         self.steps.note(to);
///         self.speed.note(to);
///     }
/// }
/// ```
///
/// A variable of a type without `Carry` is opaque: the function stays correct,
/// but its ways are not merged while the variable is in use.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `phigrad::Carry`",
    note = "derive `phigrad::Carry`, or name the variable in `#[phigrad::traced(opaque(..))]`"
)]
pub trait Carry {
    /// Whether it may hold a mutable reference or a cell, so that something else
    /// may change by it. To say so is always safe, but ways are then not merged
    /// where it is used. A type of plain fields alone says `false`.
    const REFERS: bool = true;

    /// Whether it is a type of the language, the standard library or this crate.
    #[doc(hidden)]
    const COMMON: bool = false;

    /// Hands over all content; traced numbers are replaced on the way.
    fn carry(&mut self, to: &mut Carrier);

    /// Tells of all content that is only shared, in the same order. Also of what
    /// never changes: values that tell the same are taken for equal.
    fn note(&self, to: &mut Carrier);
}

impl Carry for Var {
    const REFERS: bool = false;
    const COMMON: bool = true;

    fn carry(&mut self, to: &mut Carrier) {
        to.var(self);
    }

    fn note(&self, to: &mut Carrier) {
        to.seen(self);
    }
}

/// Types whose content is a few words, which are `$words` of `$value`.
macro_rules! words {
    ($($type:ty, |$value:ident| $words:expr;)*) => {
        $(
            impl Carry for $type {
                const REFERS: bool = false;
                const COMMON: bool = true;

                #[inline]
                fn carry(&mut self, to: &mut Carrier) {
                    self.note(to);
                }

                #[inline]
                fn note(&self, to: &mut Carrier) {
                    let $value = *self;
                    for word in $words {
                        to.state(word);
                    }
                }
            }
        )*
    };
}

words! {
    f64, |x| [x.to_bits()];
    f32, |x| [u64::from(x.to_bits())];
    bool, |x| [u64::from(x)];
    char, |x| [u64::from(x)];
    u8, |x| [u64::from(x)];
    u16, |x| [u64::from(x)];
    u32, |x| [u64::from(x)];
    u64, |x| [x];
    usize, |x| [x as u64];
    u128, |x| [x as u64, (x >> 64) as u64];
    i8, |x| [x as u64];
    i16, |x| [x as u64];
    i32, |x| [x as u64];
    i64, |x| [x as u64];
    isize, |x| [x as u64];
    i128, |x| [x as u64, (x >> 64) as u64];
    core::cmp::Ordering, |x| [x as u64];
}

impl Carry for str {
    const REFERS: bool = false;
    const COMMON: bool = true;

    fn carry(&mut self, to: &mut Carrier) {
        self.note(to);
    }

    fn note(&self, to: &mut Carrier) {
        to.state(self.len() as u64);
        for byte in self.bytes() {
            if to.is_done() {
                break;
            }
            to.state(u64::from(byte));
        }
    }
}

impl Carry for Infallible {
    const REFERS: bool = false;
    const COMMON: bool = true;

    fn carry(&mut self, _: &mut Carrier) {}

    fn note(&self, _: &mut Carrier) {}
}

impl<T: ?Sized> Carry for PhantomData<T> {
    const REFERS: bool = false;
    const COMMON: bool = true;

    fn carry(&mut self, _: &mut Carrier) {}

    fn note(&self, _: &mut Carrier) {}
}

impl<T: Carry + ?Sized> Carry for &T {
    const REFERS: bool = T::REFERS;
    const COMMON: bool = T::COMMON;

    fn carry(&mut self, to: &mut Carrier) {
        (**self).note(to);
    }

    fn note(&self, to: &mut Carrier) {
        (**self).note(to);
    }
}

impl<T: Carry + ?Sized> Carry for &mut T {
    const COMMON: bool = T::COMMON;

    /// Content by itself does not say to which variable the reference leads.
    fn carry(&mut self, to: &mut Carrier) {
        if to.is_assigned() {
            to.opaque();
        } else {
            (**self).carry(to);
        }
    }

    fn note(&self, to: &mut Carrier) {
        (**self).note(to);
    }
}

/// Structs and tuples: all fields, in order.
macro_rules! fields {
    ($([$($parameter:ident)*] $type:ty { $($field:tt)* })*) => {
        $(
            impl<$($parameter: Carry),*> Carry for $type {
                const REFERS: bool = false $(|| $parameter::REFERS)*;
                const COMMON: bool = true;

                #[inline]
                fn carry(&mut self, to: &mut Carrier) {
                    let _ = &to;
                    $(self.$field.carry(to);)*
                }

                #[inline]
                fn note(&self, to: &mut Carrier) {
                    let _ = &to;
                    $(self.$field.note(to);)*
                }
            }
        )*
    };
}

fields! {
    [] () {}
    [A] (A,) { 0 }
    [A B] (A, B) { 0 1 }
    [A B C] (A, B, C) { 0 1 2 }
    [A B C D] (A, B, C, D) { 0 1 2 3 }
    [A B C D E] (A, B, C, D, E) { 0 1 2 3 4 }
    [A B C D E F] (A, B, C, D, E, F) { 0 1 2 3 4 5 }
    [A B C D E F G] (A, B, C, D, E, F, G) { 0 1 2 3 4 5 6 }
    [A B C D E F G H] (A, B, C, D, E, F, G, H) { 0 1 2 3 4 5 6 7 }
    [A B C D E F G H I] (A, B, C, D, E, F, G, H, I) { 0 1 2 3 4 5 6 7 8 }
    [A B C D E F G H I J] (A, B, C, D, E, F, G, H, I, J) { 0 1 2 3 4 5 6 7 8 9 }
    [A B C D E F G H I J K] (A, B, C, D, E, F, G, H, I, J, K) { 0 1 2 3 4 5 6 7 8 9 10 }
    [A B C D E F G H I J K L] (A, B, C, D, E, F, G, H, I, J, K, L) { 0 1 2 3 4 5 6 7 8 9 10 11 }
    [] RangeFull {}
    [T] Range<T> { start end }
    [T] RangeFrom<T> { start }
    [T] RangeTo<T> { end }
    [T] RangeToInclusive<T> { end }
}

macro_rules! inclusive_ranges {
    ($($type:ty)*) => {
        $(
            impl Carry for RangeInclusive<$type> {
                const REFERS: bool = false;
                const COMMON: bool = true;

                fn carry(&mut self, to: &mut Carrier) {
                    self.note(to);
                }

                fn note(&self, to: &mut Carrier) {
                    self.start().note(to);
                    self.end().note(to);
                    // Bounds that are equal do not tell whether the last number
                    // has been given out.
                    to.state(u64::from(self.is_empty()));
                }
            }
        )*
    };
}

inclusive_ranges!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize char);
