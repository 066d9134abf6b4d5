//! Terms: what formulas are made of.

use crate::op::Op;

/// A name: a letter, and a number below it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Name {
    pub(super) letter: &'static str,
    pub(super) number: Option<usize>,
}

/// An index: a number, and counters of iterations with their factors.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Index {
    pub(super) base: u32,
    pub(super) steps: Vec<(i32, Name)>,
}

/// A formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    Number(f64),
    Name(Name),
    /// An element of a row of numbers.
    Element(Name, Index),
    /// What a number was in an iteration of a loop that has ended.
    Past(Name, Index),
    Apply(Op, Vec<Term>),
    /// What a loop carries, or what comes out of it, by what that begins with.
    Carried {
        exit: bool,
        first: Box<Term>,
    },
    /// Σ, or Π if `product`, of `body` for the values of a counter below `count`.
    Sum {
        product: bool,
        counter: Name,
        count: u32,
        body: Box<Term>,
    },
}

impl Term {
    pub(super) fn apply(op: Op, args: impl IntoIterator<Item = Term>) -> Term {
        Term::Apply(op, args.into_iter().collect())
    }
}

/// A part of a line of text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Words(String),
    Term(Term),
    /// Names that get values at once.
    Assign(Vec<Name>, Vec<Term>),
    /// A name that is defined by this.
    Define(Name, Term),
    /// The derivative of the function by an input.
    Derivative(Name),
    /// That a condition holds, or does not hold.
    Condition(Term, bool),
}

/// A line, so many levels in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) depth: usize,
    pub(super) parts: Vec<Part>,
}
