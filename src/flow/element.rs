//! Elements: handing over a single element of a collection if only that may have changed.

use std::collections::VecDeque;

use super::{Carrier, Carry};

/// Collections with numbered elements and a lookup that changes nothing.
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

/// Hands over one element of a collection; or the whole collection, if its elements are not
/// numbered; or marks it as opaque. Method resolution selects the first of the three traits whose
/// bounds hold (autoref specialisation).
#[derive(Debug)]
pub struct Element<'a, C: ?Sized, I>(pub &'a mut C, pub &'a I);

/// Collections with known elements.
pub trait CarriedElement {
    /// Hands over the element.
    fn hand_over(&mut self, to: &mut Carrier);
}

/// Collections with known content.
pub trait CarriedWhole {
    /// Hands over the collection.
    fn hand_over(&mut self, to: &mut Carrier);
}

/// Other collections.
pub trait UncarriedElement {
    /// Marks the collection as opaque.
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

/// Collections with numbered elements, by shared reference.
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

/// Captures one element of a collection, without its index; or the whole collection and the index,
/// if its elements are not numbered; or marks the capture as incomplete. Method resolution selects
/// the first of the three traits whose bounds hold.
#[derive(Debug)]
pub struct ElementView<'a, C: ?Sized, I>(pub &'a C, pub &'a I);

/// Collections with known elements.
pub trait ViewedElement {
    /// Captures the element.
    fn show(&self, to: &mut Carrier);
}

/// Collections and indices with known content.
pub trait ViewedWhole {
    /// Captures both.
    fn show(&self, to: &mut Carrier);
}

/// Other collections.
pub trait HiddenElement {
    /// Marks the capture as incomplete.
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

/// Captures whether two indices are equal.
#[derive(Debug)]
pub struct SameIndex<'a, I, J>(pub &'a I, pub &'a J);

/// Numbers.
pub trait ComparedIndices {
    /// Captures the result of the comparison.
    fn show(&self, to: &mut Carrier);
}

/// Other indices.
pub trait OtherIndices {
    /// Marks the capture as incomplete.
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
