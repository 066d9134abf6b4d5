//! `Carry` for arrays, collections and enums of the standard library.

use core::ops::{Bound, ControlFlow};
use core::slice;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::vec;

use super::{Carrier, Carry};

/// Hands over elements, until the capture is incomplete.
fn note_all<'a, T: Carry + 'a>(elements: impl IntoIterator<Item = &'a T>, to: &mut Carrier) {
    for element in elements {
        if to.is_done() {
            break;
        }
        element.note(to);
    }
}

/// Implements `Carry` for sequences: the length is static state.
macro_rules! sequence {
    ($sequence:ty) => {
        impl<T: Carry> Carry for $sequence {
            const REFERS: bool = T::REFERS;
            const COMMON: bool = true;

            fn carry(&mut self, to: &mut Carrier) {
                to.state(self.len() as u64);
                self.iter_mut().for_each(|element| element.carry(to));
            }

            fn note(&self, to: &mut Carrier) {
                to.state(self.len() as u64);
                note_all(self, to);
            }
        }
    };
}

sequence!([T]);
sequence!(Vec<T>);
sequence!(VecDeque<T>);

impl<T: Carry, const N: usize> Carry for [T; N] {
    const REFERS: bool = T::REFERS;
    const COMMON: bool = true;

    fn carry(&mut self, to: &mut Carrier) {
        self.iter_mut().for_each(|element| element.carry(to));
    }

    fn note(&self, to: &mut Carrier) {
        note_all(self, to);
    }
}

impl<K: Carry, V: Carry> Carry for BTreeMap<K, V> {
    const REFERS: bool = K::REFERS || V::REFERS;
    const COMMON: bool = true;

    fn carry(&mut self, to: &mut Carrier) {
        to.state(self.len() as u64);
        for (key, value) in self {
            key.note(to);
            value.carry(to);
        }
    }

    fn note(&self, to: &mut Carrier) {
        to.state(self.len() as u64);
        for (key, value) in self {
            if to.is_done() {
                break;
            }
            key.note(to);
            value.note(to);
        }
    }
}

impl<T: Carry> Carry for BTreeSet<T> {
    const REFERS: bool = T::REFERS;
    const COMMON: bool = true;

    fn carry(&mut self, to: &mut Carrier) {
        self.note(to);
    }

    fn note(&self, to: &mut Carrier) {
        to.state(self.len() as u64);
        note_all(self, to);
    }
}

impl<T: Carry + ?Sized> Carry for Box<T> {
    const REFERS: bool = T::REFERS;
    const COMMON: bool = T::COMMON;

    fn carry(&mut self, to: &mut Carrier) {
        (**self).carry(to);
    }

    fn note(&self, to: &mut Carrier) {
        (**self).note(to);
    }
}

impl Carry for String {
    const REFERS: bool = false;
    const COMMON: bool = true;

    fn carry(&mut self, to: &mut Carrier) {
        self.as_str().note(to);
    }

    fn note(&self, to: &mut Carrier) {
        self.as_str().note(to);
    }
}

/// Implements `Carry` for pointers with reference counts, whose content is shared.
macro_rules! shared {
    ($($type:ident)*) => {
        $(
            impl<T: Carry + ?Sized> Carry for $type<T> {
                const REFERS: bool = T::REFERS;
                const COMMON: bool = T::COMMON;

                fn carry(&mut self, to: &mut Carrier) {
                    (**self).note(to);
                }

                fn note(&self, to: &mut Carrier) {
                    (**self).note(to);
                }
            }
        )*
    };
}

shared!(Rc Arc);

/// Implements `Carry` for enums: the index of the variant, then its content.
macro_rules! variants {
    ($([$($parameter:ident)*] $type:ty { $($number:literal $pattern:pat => $($field:ident)?;)* })*) => {
        $(
            impl<$($parameter: Carry),*> Carry for $type {
                const REFERS: bool = false $(|| $parameter::REFERS)*;
                const COMMON: bool = true;

                fn carry(&mut self, to: &mut Carrier) {
                    match self {
                        $($pattern => { to.state($number); $($field.carry(to);)? })*
                    }
                }

                fn note(&self, to: &mut Carrier) {
                    match self {
                        $($pattern => { to.state($number); $($field.note(to);)? })*
                    }
                }
            }
        )*
    };
}

variants! {
    [T] Option<T> { 0 None => ; 1 Some(value) => value; }
    [T E] Result<T, E> { 0 Ok(value) => value; 1 Err(error) => error; }
    [B C] ControlFlow<B, C> { 0 ControlFlow::Continue(value) => value; 1 ControlFlow::Break(value) => value; }
    [T] Bound<T> { 0 Bound::Included(at) => at; 1 Bound::Excluded(at) => at; 2 Bound::Unbounded => ; }
}

impl<T: Carry> Carry for slice::Iter<'_, T> {
    const REFERS: bool = T::REFERS;
    const COMMON: bool = true;

    fn carry(&mut self, to: &mut Carrier) {
        self.as_slice().note(to);
    }

    fn note(&self, to: &mut Carrier) {
        self.as_slice().note(to);
    }
}

impl<T: Carry> Carry for vec::IntoIter<T> {
    const REFERS: bool = T::REFERS;
    const COMMON: bool = true;

    fn carry(&mut self, to: &mut Carrier) {
        self.as_mut_slice().carry(to);
    }

    fn note(&self, to: &mut Carrier) {
        self.as_slice().note(to);
    }
}
