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
