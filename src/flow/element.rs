//! Elements: what of a collection is handed over if only one element changed.

use std::collections::VecDeque;

use super::{Carrier, Carry};

/// Collections whose elements have numbers, and do not change by being looked up.
pub trait Indexed {
    /// The type of an element.
    type Item;

    /// The element with this number, if there is one.
    fn element(&mut self, index: usize) -> Option<&mut Self::Item>;
}

macro_rules! indexed {
    ($([$($parameters:tt)*] $type:ty;)*) => {
        $(
            impl<$($parameters)*> Indexed for $type {
                type Item = T;

                #[inline]
                fn element(&mut self, index: usize) -> Option<&mut T> {
                    self.get_mut(index)
                }
            }
        )*
    };
}

indexed! {
    [T] [T];
    [T, const N: usize] [T; N];
    [T] Vec<T>;
    [T] VecDeque<T>;
}

/// Hands over one element of a collection; all of it, if it is not known how to
/// find the element; or says that it is opaque. Method resolution finds the first
/// of the three traits whose bounds hold.
#[derive(Debug)]
pub struct Element<'a, C: ?Sized, I>(pub &'a mut C, pub &'a I);

/// The element is known.
pub trait CarriedElement {
    /// Hands it over.
    fn hand_over(&mut self, to: &mut Carrier);
}

/// The collection is known.
pub trait CarriedWhole {
    /// Hands it over.
    fn hand_over(&mut self, to: &mut Carrier);
}

/// Nothing is known.
pub trait UncarriedElement {
    /// Says so.
    fn hand_over(&mut self, to: &mut Carrier);
}

impl<C: Indexed + ?Sized> CarriedElement for &mut Element<'_, C, usize>
where
    C::Item: Carry,
{
    #[inline]
    fn hand_over(&mut self, to: &mut Carrier) {
        match self.0.element(*self.1) {
            // Two indices may be equal.
            Some(element) if to.is_new(core::ptr::from_ref(element).addr()) => element.carry(to),
            Some(_) => {}
            None => to.state(0),
        }
    }
}

impl<C: Carry + ?Sized, I> CarriedWhole for &mut &mut Element<'_, C, I> {
    #[inline]
    fn hand_over(&mut self, to: &mut Carrier) {
        if to.is_new(core::ptr::from_ref(&*self.0).addr()) {
            self.0.carry(to);
        }
    }
}

impl<C: ?Sized, I> UncarriedElement for Element<'_, C, I> {
    #[inline]
    fn hand_over(&mut self, to: &mut Carrier) {
        to.opaque();
    }
}

/// Collections whose elements have numbers, to be looked at.
pub trait Numbered {
    /// The type of an element.
    type Item;

    /// The element with this number, if there is one.
    fn item(&self, index: usize) -> Option<&Self::Item>;
}

macro_rules! numbered {
    ($([$($parameters:tt)*] $type:ty;)*) => {
        $(
            impl<$($parameters)*> Numbered for $type {
                type Item = T;

                fn item(&self, index: usize) -> Option<&T> {
                    self.get(index)
                }
            }
        )*
    };
}

numbered! {
    [T] [T];
    [T, const N: usize] [T; N];
    [T] Vec<T>;
    [T] VecDeque<T>;
}

impl<C: Numbered + ?Sized> Numbered for &C {
    type Item = C::Item;

    fn item(&self, index: usize) -> Option<&C::Item> {
        (**self).item(index)
    }
}

impl<C: Numbered + ?Sized> Numbered for &mut C {
    type Item = C::Item;

    fn item(&self, index: usize) -> Option<&C::Item> {
        (**self).item(index)
    }
}

/// Tells of one element of a collection and not where it is; of all of it and of
/// the index, if it is not known how to find the element; or says that not all is
/// known. Method resolution finds the first of the three traits whose bounds hold.
#[derive(Debug)]
pub struct ElementView<'a, C: ?Sized, I>(pub &'a C, pub &'a I);

/// The element is known.
pub trait ViewedElement {
    /// Tells of it.
    fn show(&self, to: &mut Carrier);
}

/// The collection and the index are known.
pub trait ViewedWhole {
    /// Tells of them.
    fn show(&self, to: &mut Carrier);
}

/// Nothing is known.
pub trait HiddenElement {
    /// Says so.
    fn show(&self, to: &mut Carrier);
}

impl<C: Numbered + ?Sized> ViewedElement for &ElementView<'_, C, usize>
where
    C::Item: Carry,
{
    fn show(&self, to: &mut Carrier) {
        match self.0.item(*self.1) {
            Some(element) if !to.is_done() => element.note(to),
            Some(_) => {}
            None => to.incomplete(),
        }
    }
}

impl<C: Carry + ?Sized, I: Carry> ViewedWhole for &&ElementView<'_, C, I> {
    fn show(&self, to: &mut Carrier) {
        if !to.is_done() {
            self.0.note(to);
            self.1.note(to);
        }
    }
}

impl<C: ?Sized, I> HiddenElement for ElementView<'_, C, I> {
    fn show(&self, to: &mut Carrier) {
        to.incomplete();
    }
}

/// Tells whether two indices are equal.
#[derive(Debug)]
pub struct SameIndex<'a, I, J>(pub &'a I, pub &'a J);

/// They are numbers.
pub trait ComparedIndices {
    /// Tells it.
    fn show(&self, to: &mut Carrier);
}

/// They are something else.
pub trait OtherIndices {
    /// Says that not all is known.
    fn show(&self, to: &mut Carrier);
}

impl ComparedIndices for SameIndex<'_, usize, usize> {
    fn show(&self, to: &mut Carrier) {
        to.state(u64::from(self.0 == self.1));
    }
}

impl<I, J> OtherIndices for &SameIndex<'_, I, J> {
    fn show(&self, to: &mut Carrier) {
        to.incomplete();
    }
}
