//! `Carry`: the content that a type hands over where paths join; implementations for types of the
//! language.

use core::convert::Infallible;
use core::marker::PhantomData;
use core::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use super::Carrier;
use crate::trace::Var;

/// The content of a variable that is handed over where the paths of a function join.
///
/// Functions with [`traced`](crate::traced) call this for the variables that they change. An
/// implementation hands over all content that may differ between paths or between values of the
/// type, always in the same order: traced numbers by [`Carrier::var`], everything else by
/// [`Carrier::state`], including lengths and the variant of an enum. [Derive](derive@crate::Carry)
/// it, or implement it like this:
///
/// ```
/// use phigrad::{Carrier, Carry, Var};
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
/// A variable of a type without `Carry` is opaque: the function stays correct, but its paths are
/// not merged while the variable is in use.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `phigrad::Carry`",
    note = "derive `phigrad::Carry`, or name the variable in `#[phigrad::traced(opaque(..))]`"
)]
pub trait Carry {
    /// True if a value may hold a mutable reference or a cell, through which something else may
    /// change. `true` is always safe, but paths are not merged where the value is used. A type of
    /// plain fields alone sets `false`.
    const REFERS: bool = true;

    /// True for types of the language, the standard library and this crate.
    #[doc(hidden)]
    const COMMON: bool = false;

    /// Hands over all content and replaces the traced numbers by φs.
    fn carry(&mut self, to: &mut Carrier);

    /// Hands over all content behind a shared reference, in the same order, constant content
    /// included: values that hand over the same are taken for equal.
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

/// Implements `Carry` for types whose content is the words `$words` of `$value`.
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

    /// The content does not tell which variable the reference points to.
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

/// Implements `Carry` for structs and tuples: all fields, in order.
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
                    // An empty range may have equal bounds.
                    to.state(u64::from(self.is_empty()));
                }
            }
        )*
    };
}

inclusive_ranges!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize char);
