//! The language of the e-graph: the primitives of [`Op`], constants and leaves.

use core::fmt;
use core::hash::{Hash, Hasher};

use egg::{Id, Language};

use crate::op::{MAX_ARITY, Op};

/// A term whose operands are classes of the e-graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Term {
    /// A value from outside the segment, by its number.
    Leaf(u32),
    /// A constant, by its bits.
    Const(u64),
    /// A primitive; entries beyond its arity are 0.
    Apply(Op, [Id; MAX_ARITY]),
}

impl Term {
    pub(super) fn apply(op: Op, operands: &[Id]) -> Term {
        Term::Apply(op, core::array::from_fn(|i| operands.get(i).copied().unwrap_or(Id::from(0))))
    }

    pub(super) fn constant(value: f64) -> Term {
        Term::Const(value.to_bits())
    }
}

/// Terms are hashed often; so each is one word for the hasher, or two.
impl Hash for Term {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let word = |id: Id| usize::from(id) as u64;
        match *self {
            Term::Leaf(number) => state.write_u64(u64::from(number)),
            Term::Const(bits) => state.write_u64(!bits),
            Term::Apply(op, [a, b, c]) => {
                state.write_u64((op as u64 + 1) << 32 | word(a));
                state.write_u64(word(b) << 32 | word(c));
            }
        }
    }
}

impl Language for Term {
    /// egg keeps a list of classes for each kind of terms, for its own matcher. It is not
    /// used (see `matching`), so there is one kind.
    type Discriminant = ();

    fn discriminant(&self) {}

    fn matches(&self, other: &Term) -> bool {
        match (self, other) {
            (Term::Leaf(a), Term::Leaf(b)) => a == b,
            (Term::Const(a), Term::Const(b)) => a == b,
            (Term::Apply(a, _), Term::Apply(b, _)) => a == b,
            _ => false,
        }
    }

    fn children(&self) -> &[Id] {
        match self {
            Term::Leaf(_) | Term::Const(_) => &[],
            Term::Apply(op, operands) => &operands[..op.arity()],
        }
    }

    fn children_mut(&mut self) -> &mut [Id] {
        match self {
            Term::Leaf(_) | Term::Const(_) => &mut [],
            Term::Apply(op, operands) => &mut operands[..op.arity()],
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::Leaf(number) => write!(f, "leaf{number}"),
            Term::Const(bits) => write!(f, "{:?}", f64::from_bits(*bits)),
            Term::Apply(op, _) => write!(f, "{op}"),
        }
    }
}
