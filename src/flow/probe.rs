//! Probes: find out from a variable, not from its type's bounds, what can be
//! carried.
//!
//! Each is a type with two traits that have a method of the same name. Method
//! resolution finds the one on the probe itself first, if its bounds hold, and
//! otherwise the one on a reference to the probe.

use core::cell::Cell;
use core::marker::PhantomData;

use super::steady::Steady;
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
/// been lent to something that changes what is behind. Only its type is looked at.
#[derive(Debug)]
pub struct Reach<'a, T: ?Sized>(pub Option<&'a T>);

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

/// Asks whether a variable may hold a mutable reference or a cell, so that
/// something else that is in use when the variable is not may change by it. What
/// is asked is a reference to a reference to this, so that there is an order of
/// three: by value, with one reference more, with one less. Only its type is looked
/// at.
#[derive(Debug)]
pub struct Hold<'a, T: ?Sized>(pub Option<&'a T>);

/// Its type says.
pub trait Holds {
    /// Whether it may.
    fn holds(&self) -> bool;
}

/// It is `Steady`.
pub trait HoldsSteadily {
    /// Whether it may.
    fn holds(&self) -> bool;
}

/// It is not known.
pub trait MayHold {
    /// `true`.
    fn holds(&self) -> bool;
}

impl<T: Carry + ?Sized> Holds for &Hold<'_, T> {
    #[inline]
    fn holds(&self) -> bool {
        T::REFERS
    }
}

impl<T: Steady + ?Sized> HoldsSteadily for &&Hold<'_, T> {
    #[inline]
    fn holds(&self) -> bool {
        T::REFERS
    }
}

impl<T: ?Sized> MayHold for Hold<'_, T> {
    #[inline]
    fn holds(&self) -> bool {
        true
    }
}

/// Asks whether a type's methods are those of the standard library, where the
/// name of one says that it changes nothing. There are three answers, as above.
#[derive(Debug)]
pub struct Own<T: ?Sized>(PhantomData<T>);

impl<T: ?Sized> Own<T> {
    /// Asks of the type of a place, which is not looked at.
    #[inline]
    pub fn of<'a>(_: impl FnOnce() -> &'a T) -> Self
    where
        T: 'a,
    {
        Own(PhantomData)
    }
}

/// Its `Carry` says.
pub trait OwnMethods {
    /// Notes in this bit that they may be the user's.
    fn note(&self, methods: &Cell<u64>, bit: u32);
}

/// It is `Steady`.
pub trait SteadyMethods {
    /// Notes nothing.
    fn note(&self, methods: &Cell<u64>, bit: u32);
}

/// It is not known.
pub trait OtherMethods {
    /// Notes in this bit that they may be the user's.
    fn note(&self, methods: &Cell<u64>, bit: u32);
}

impl<T: Carry + ?Sized> OwnMethods for &Own<T> {
    #[inline]
    fn note(&self, methods: &Cell<u64>, bit: u32) {
        if !T::COMMON {
            methods.set(methods.get() | 1 << bit);
        }
    }
}

impl<T: Steady + ?Sized> SteadyMethods for &&Own<T> {
    #[inline]
    fn note(&self, _: &Cell<u64>, _: u32) {}
}

impl<T: ?Sized> OtherMethods for Own<T> {
    #[inline]
    fn note(&self, methods: &Cell<u64>, bit: u32) {
        methods.set(methods.get() | 1 << bit);
    }
}
