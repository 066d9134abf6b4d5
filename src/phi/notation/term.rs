//! Terms: what formulas are made of.

use crate::op::Op;
use crate::ssa::Node;

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

/// What a term stands for that does not say it in full. Two such terms are the same
/// only if they are known to stand for one node, so that no two are collected that
/// merely look alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin(pub(super) Option<Node>);

impl PartialEq for Origin {
    fn eq(&self, other: &Origin) -> bool {
        self.0.is_some() && self.0 == other.0
    }
}

/// A formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    Number(f64),
    Name(Name),
    /// What is left out, or an element whose index is not told.
    Vague(&'static str, Origin),
    /// In words: what a routine computes.
    Text(String),
    /// An element of a row of numbers.
    Element(Name, Index),
    /// What a number was in an iteration of a loop that has ended.
    Past(Name, Index),
    Apply(Op, Vec<Term>),
    /// What a loop carries, or what comes out of it, by what that begins with.
    Carried {
        exit: bool,
        first: Box<Term>,
        of: Origin,
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

    /// The term as it reads when `names` have become `terms`; `None` if it is about what
    /// some of them were before.
    pub(super) fn after(&self, names: &[Name], terms: &[Term]) -> Option<Term> {
        if let Some(at) =
            terms.iter().position(|term| term == self && !matches!(term, Term::Number(_)))
        {
            return names.get(at).map(|name| Term::Name(name.clone()));
        }
        let inside = |term: &Term| term.after(names, terms).map(Box::new);
        Some(match self {
            Term::Name(name) if names.contains(name) => return None,
            Term::Apply(op, args) => {
                let args: Option<Vec<Term>> =
                    args.iter().map(|arg| arg.after(names, terms)).collect();
                Term::Apply(*op, args?)
            }
            Term::Sum { product, counter, count, body } => Term::Sum {
                product: *product,
                counter: counter.clone(),
                count: *count,
                body: inside(body)?,
            },
            Term::Carried { exit, first, of } => {
                Term::Carried { exit: *exit, first: inside(first)?, of: *of }
            }
            other => other.clone(),
        })
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
