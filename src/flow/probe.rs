//! Probes: find out from a variable, not from its type's bounds, what can be
//! carried.
//!
//! Each is a type with two traits that have a method of the same name. Method
//! resolution finds the one on the probe itself first, if its bounds hold, and
//! otherwise the one on a reference to the probe.

use super::{Carrier, Carry};

/// Hands over a variable, or says that it is opaque.
#[derive(Debug)]
pub struct Probe<'a, T: ?Sized>(pub &'a mut T);

/// The content is known.
pub trait Carried {
    /// Hands it over.
    fn hand_over(&mut self, to: &mut Carrier);
}

/// The content is not known.
pub trait Uncarried {
    /// Says so.
    fn hand_over(&mut self, to: &mut Carrier);
}

impl<T: Carry + ?Sized> Carried for Probe<'_, T> {
    #[inline]
    fn hand_over(&mut self, to: &mut Carrier) {
        self.0.carry(to);
    }
}

impl<T: ?Sized> Uncarried for &mut Probe<'_, T> {
    #[inline]
    fn hand_over(&mut self, to: &mut Carrier) {
        to.opaque();
    }
}

/// Tells of a variable, or says that not all is known.
#[derive(Debug)]
pub struct View<'a, T: ?Sized>(pub &'a T);

/// The content is known.
pub trait Viewed {
    /// Tells of it.
    fn show(&self, to: &mut Carrier);
}

/// The content is not known.
pub trait Hidden {
    /// Says so.
    fn show(&self, to: &mut Carrier);
}

impl<T: Carry + ?Sized> Viewed for View<'_, T> {
    fn show(&self, to: &mut Carrier) {
        if !to.is_done() {
            self.0.note(to);
        }
    }
}

impl<T: ?Sized> Hidden for &View<'_, T> {
    fn show(&self, to: &mut Carrier) {
        to.incomplete();
    }
}

/// Asks whether a variable is a mutable reference: such a variable may have
/// been lent to something that changes what is behind.
#[derive(Debug)]
pub struct Reach<'a, T: ?Sized>(pub &'a T);

/// It is a mutable reference.
pub trait Reaches {
    /// `true`.
    fn reaches(&self) -> bool;
}

/// It is not.
pub trait NoReference {
    /// `false`.
    fn reaches(&self) -> bool;
}

impl<T: ?Sized> Reaches for Reach<'_, &mut T> {
    #[inline]
    fn reaches(&self) -> bool {
        true
    }
}

impl<T: ?Sized> NoReference for &Reach<'_, T> {
    #[inline]
    fn reaches(&self) -> bool {
        false
    }
}

/// Asks whether a variable may hold a mutable reference, so that a change of it
/// may be one of something else that is in use when the variable is not.
#[derive(Debug)]
pub struct Hold<'a, T: ?Sized>(pub &'a T);

/// Its type says.
pub trait Holds {
    /// Whether it may.
    fn holds(&self) -> bool;
}

/// It is not known.
pub trait MayHold {
    /// `true`.
    fn holds(&self) -> bool;
}

impl<T: Carry + ?Sized> Holds for Hold<'_, T> {
    #[inline]
    fn holds(&self) -> bool {
        T::REFERS
    }
}

impl<T: ?Sized> MayHold for &Hold<'_, T> {
    #[inline]
    fn holds(&self) -> bool {
        true
    }
}
