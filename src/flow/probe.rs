//! Probes: generated code asks by them which traits the type of a variable implements, without
//! bounds.
//!
//! Each is a type with two traits that have a method of the same name. Method resolution selects
//! the implementation for the probe itself if its bounds hold, and otherwise the one for a
//! reference to the probe (autoref specialisation).

use core::cell::Cell;
use core::marker::PhantomData;

use super::known_aliasing::KnownAliasing;
use super::{Carrier, Carry};

/// Hands over a variable, or marks it as opaque.
#[derive(Debug)]
pub struct Probe<'a, T: ?Sized>(pub &'a mut T);

/// Types with `Carry`.
pub trait Carried {
    /// Hands over the variable.
    fn hand_over(&mut self, to: &mut Carrier);
}

/// Other types.
pub trait Uncarried {
    /// Marks the variable as opaque.
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

/// Captures a variable, or marks the capture as incomplete.
#[derive(Debug)]
pub struct View<'a, T: ?Sized>(pub &'a T);

/// Types with `Carry`.
pub trait Viewed {
    /// Captures the variable.
    fn show(&self, to: &mut Carrier);
}

/// Other types.
pub trait Hidden {
    /// Marks the capture as incomplete.
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

/// Tests whether a variable is a mutable reference, which may have been lent to something that
/// changes its target. Only the type is used.
#[derive(Debug)]
pub struct Reach<'a, T: ?Sized>(pub Option<&'a T>);

/// Mutable references.
pub trait Reaches {
    /// `true`.
    fn reaches(&self) -> bool;
}

/// Other types.
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

/// Tests whether a variable may hold a mutable reference or a cell, through which something else
/// may change while the variable is not in use. Called on a reference to a reference to this, which
/// gives three implementations an order: by value, with one reference more, with one less. Only the
/// type is used.
#[derive(Debug)]
pub struct Hold<'a, T: ?Sized>(pub Option<&'a T>);

/// Types with `Carry`.
pub trait Holds {
    /// True if it may.
    fn holds(&self) -> bool;
}

/// Types with `KnownAliasing`.
pub trait HoldsKnown {
    /// True if it may.
    fn holds(&self) -> bool;
}

/// Other types.
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

impl<T: KnownAliasing + ?Sized> HoldsKnown for &&Hold<'_, T> {
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

/// Tests whether the methods of a type are those of the standard library, whose names tell which of
/// them change nothing. There are three answers, as for [`Hold`].
#[derive(Debug)]
pub struct Own<T: ?Sized>(PhantomData<T>);

impl<T: ?Sized> Own<T> {
    /// Takes the type of a place, which is not evaluated.
    #[inline]
    pub fn of<'a>(_: impl FnOnce() -> &'a T) -> Self
    where
        T: 'a,
    {
        Own(PhantomData)
    }
}

/// Types with `Carry`.
pub trait OwnMethods {
    /// Sets this bit if the methods may be user code.
    fn note(&self, methods: &Cell<u64>, bit: u32);
}

/// Types with `KnownAliasing`.
pub trait KnownMethods {
    /// Sets nothing.
    fn note(&self, methods: &Cell<u64>, bit: u32);
}

/// Other types.
pub trait OtherMethods {
    /// Sets this bit.
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

impl<T: KnownAliasing + ?Sized> KnownMethods for &&Own<T> {
    #[inline]
    fn note(&self, _: &Cell<u64>, _: u32) {}
}

impl<T: ?Sized> OtherMethods for Own<T> {
    #[inline]
    fn note(&self, methods: &Cell<u64>, bit: u32) {
        methods.set(methods.get() | 1 << bit);
    }
}
