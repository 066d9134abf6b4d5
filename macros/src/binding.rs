//! Bindings: variables and the facts known about them.

use proc_macro2::Ident;

use crate::hint::Hint;
use crate::log::{Branch, Variable};

/// A variable and the facts known about it.
pub struct Binding {
    pub name: Ident,
    /// Declared with `mut`.
    pub mutable: bool,
    pub reference: Reference,
    pub origin: Origin,
    /// Named in the attribute's `opaque`.
    pub opaque: bool,
    /// Its type is known where it is declared.
    pub known: bool,
    /// Its type is `Copy`.
    pub copied: bool,
    /// Certainly holds a reference.
    pub holder: bool,
    /// Certainly a number.
    pub number: bool,
    /// The variables that it may have borrowed from.
    pub lenders: Vec<Variable>,
    /// Its position in the log.
    pub at: usize,
    /// The branch that declares it.
    pub branch: Branch,
    /// Declared with a type.
    pub typed: bool,
    /// The hint that it is plain, if there is one.
    pub hint: Option<Hint>,
    /// Has a shadow: it may be plain, and each use of it is one that can be rewritten.
    pub tracked: bool,
    /// Declared with a small number, or without a value.
    pub is_small: bool,
    /// Certainly a sequence of `Var`s.
    pub vars: bool,
}

/// The knowledge whether a variable is a mutable reference.
#[derive(Clone, Copy, Default, PartialEq)]
pub enum Reference {
    #[default]
    Unknown,
    /// It is one.
    Mutable,
    /// It is none.
    NotMutable,
}

/// The declaration of a variable.
#[derive(Clone, Copy, Default, PartialEq)]
pub enum Origin {
    /// A pattern that is matched with a value.
    #[default]
    Value,
    /// A `let` with a closure.
    Closure,
    /// A `let` without a value.
    Deferred,
    /// A parameter of the function.
    Parameter,
    /// The pattern of a `for` loop.
    Item,
}

impl Binding {
    /// Tests whether it is known to be a mutable reference.
    pub fn is_reference(&self) -> bool {
        self.reference == Reference::Mutable
    }

    /// Tests whether it holds a closure.
    pub fn is_closure(&self) -> bool {
        self.origin == Origin::Closure
    }

    /// Tests whether it was declared without a value.
    pub fn is_deferred(&self) -> bool {
        self.origin == Origin::Deferred
    }

    /// Tests whether it is a parameter of the function.
    pub fn is_parameter(&self) -> bool {
        self.origin == Origin::Parameter
    }
}
