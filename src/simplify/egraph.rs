//! The e-graph of a segment: its terms, and what is known of each class as egg's analysis.

use core::hash::{Hash, Hasher};

use egg::{Analysis, DidMerge, EGraph, Id, Language};

use super::loops::{ALL, Enclosing, LoopSet};
use super::range::{Range, range_of};
use crate::op::{MAX_ARITY, Op, eval};

/// The e-graph of a segment.
pub(super) type Terms = EGraph<Term, Knowledge>;

/// A term whose operands are classes of the e-graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Term {
    /// A value from outside the segment, by its number.
    Leaf(u32),
    /// A constant, by its bits.
    Const(u64),
    /// A primitive; entries past its arity are 0.
    Apply(Op, [Id; MAX_ARITY]),
}

/// The bit of a primitive in a set of primitives.
pub(super) fn bit(op: Op) -> u64 {
    1 << op as u32
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
    /// egg keeps a list of classes for each kind of term, for its own matcher, which is not
    /// used (see `matching`). So there is one kind.
    type Discriminant = ();

    fn discriminant(&self) {}

    fn matches(&self, other: &Term) -> bool {
        match (self, other) {
            (Term::Apply(a, _), Term::Apply(b, _)) => a == b,
            _ => self == other,
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

/// What is known of a class. A union of classes keeps what holds for both: their terms are
/// equal as real numbers, but rounded differently.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Facts {
    pub(super) range: Range,
    pub(super) constant: Option<u64>,
    /// Where NaN may come from, one bit for each leaf and for each term that may be NaN
    /// though no operand is: if one of them is NaN, so is this.
    pub(super) nan_if: u128,
    /// If this is NaN, one of these is; `None` if something else may make it NaN.
    pub(super) nan_only_if: Option<u128>,
    /// The primitives of the terms in the class, one bit each.
    pub(super) ops: u64,
    /// The enclosing loops in which it changes: of equal terms the one that changes in fewer
    /// may be chosen.
    pub(super) changes: LoopSet,
    /// Whether it depends on what an enclosing loop carries.
    pub(super) is_carried: bool,
    /// How often unions have widened its range.
    widened: u8,
}

/// A class with a term over itself may widen its range by a little in each iteration. After
/// so many times nothing is known of it.
const MOST_WIDENED: u8 = 16;
/// How many leaves have a bit in [`Facts::nan_if`]; the other bits are for terms.
const LEAVES: u32 = 64;

/// What is known of a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) range: Range,
    /// The enclosing loops in which it changes.
    pub(super) changes: LoopSet,
    /// Whether it depends on what an enclosing loop carries.
    pub(super) is_carried: bool,
}

/// The analysis, with its inputs and the marks of rules.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    pub(super) leaves: Vec<Leaf>,
    /// The loops that the segment's steps can be hoisted out of.
    pub(super) enclosing: Enclosing,
    /// Terms that another one of their class replaces at any cost.
    pub(super) superseded: Vec<Term>,
    /// How many terms have a bit of their own in [`Facts::nan_if`].
    origins: u32,
}

impl Facts {
    fn leaf(number: u32, Leaf { range, changes, is_carried }: Leaf) -> Facts {
        let bit = (number < LEAVES).then(|| 1u128 << number);
        Facts {
            range,
            constant: None,
            nan_if: bit.unwrap_or(0),
            nan_only_if: if range.nan { bit } else { Some(0) },
            ops: 0,
            changes,
            is_carried,
            widened: 0,
        }
    }

    fn constant(bits: u64) -> Facts {
        let range = Range::constant(f64::from_bits(bits));
        let nan_only_if = if range.nan { None } else { Some(0) };
        let leaf = Leaf { range, changes: 0, is_carried: false };
        Facts { constant: Some(bits), nan_only_if, ..Facts::leaf(LEAVES, leaf) }
    }

    /// The same, and what else is known of the number.
    pub(super) fn and(self, range: Range) -> Facts {
        let range = self.range.both(range);
        let nan_only_if = if range.nan { self.nan_only_if } else { Some(0) };
        Facts { range, nan_only_if, ..self }
    }
}

impl Knowledge {
    /// Of a segment in these loops.
    pub(super) fn within(enclosing: Enclosing) -> Knowledge {
        Knowledge { enclosing, ..Knowledge::default() }
    }

    pub(super) fn leaf(&self, number: u32) -> Leaf {
        let unknown = Leaf { range: Range::UNKNOWN, changes: ALL, is_carried: false };
        self.leaves.get(number as usize).copied().unwrap_or(unknown)
    }
}

impl Analysis<Term> for Knowledge {
    type Data = Facts;

    fn make(egraph: &mut Terms, term: &Term, _: Id) -> Facts {
        match *term {
            Term::Leaf(number) => Facts::leaf(number, egraph.analysis.leaf(number)),
            Term::Const(bits) => Facts::constant(bits),
            Term::Apply(op, operands) => {
                Facts { ops: bit(op), ..applied(egraph, op, &operands[..op.arity()]) }
            }
        }
    }

    fn merge(&mut self, a: &mut Facts, b: Facts) -> DidMerge {
        let range = a.range.either(b.range);
        let widened = a.widened.max(b.widened).saturating_add(u8::from(range != a.range));
        let merged = Facts {
            range: if widened > MOST_WIDENED { Range::UNKNOWN } else { range },
            widened,
            constant: a.constant.filter(|_| a.constant == b.constant),
            nan_if: a.nan_if & b.nan_if,
            nan_only_if: a.nan_only_if.zip(b.nan_only_if).map(|(a, b)| a | b),
            ops: a.ops | b.ops,
            changes: a.changes & b.changes,
            is_carried: a.is_carried && b.is_carried,
        };
        let did = DidMerge(merged != *a, merged != b);
        *a = merged;
        did
    }

    fn modify(egraph: &mut Terms, id: Id) {
        if let Some(bits) = egraph[id].data.constant {
            let constant = egraph.add(Term::Const(bits));
            egraph.union(id, constant);
        }
    }
}

/// Whether a NaN among the operands always makes the result NaN.
fn propagates_nan(op: Op) -> bool {
    use Op::{CopySign, Eq, Ge, Gt, Hypot, Le, Lt, Max, Min, Ne, Powf, Powi, Same, Select};
    !matches!(
        op,
        Select | Powi | Powf | Hypot | CopySign | Min | Max | Lt | Le | Gt | Ge | Eq | Ne | Same
    )
}

fn applied(egraph: &mut Terms, op: Op, operands: &[Id]) -> Facts {
    // Missing operands are zeros.
    let mut facts = [Facts::constant(0); MAX_ARITY];
    for (facts, &operand) in facts.iter_mut().zip(operands) {
        *facts = egraph[operand].data;
    }
    let known = &facts[..operands.len()];
    if known.iter().all(|facts| facts.constant.is_some()) {
        let value = |facts: Facts| facts.constant.map_or(0.0, f64::from_bits);
        return Facts::constant(eval(op, facts.map(value)).to_bits());
    }
    let ranges = facts.map(|facts| facts.range);
    let is_square = operands.len() > 1 && egraph.find(operands[0]) == egraph.find(operands[1]);
    let mut range = range_of(op, ranges, is_square);
    let is_origin =
        || range_of(op, ranges.map(|range| Range { nan: false, ..range }), is_square).nan;
    let mut origin = None;
    let nan_only_if = if !range.nan {
        Some(0)
    } else if is_origin() {
        origin = 1u128.checked_shl(LEAVES + egraph.analysis.origins);
        egraph.analysis.origins += 1;
        origin
    } else {
        let all = known.iter().map(|facts| facts.nan_only_if);
        all.reduce(|a, b| a.zip(b).map(|(a, b)| a | b)).flatten()
    };
    range.nan &= nan_only_if != Some(0);
    let [a, b, c] = facts.map(|facts| facts.nan_if);
    let nan_if = match op {
        Op::Select => b & c,
        // The power 0 of NaN is 1.
        Op::Powi | Op::Powf if ranges[1].is_nonzero() => a,
        op if propagates_nan(op) => a | b | c,
        _ => 0,
    };
    let changes = known.iter().fold(0, |all, facts| all | facts.changes);
    let is_carried = known.iter().any(|facts| facts.is_carried);
    let leaf = Leaf { range, changes, is_carried };
    Facts { nan_if: nan_if | origin.unwrap_or(0), nan_only_if, ..Facts::leaf(LEAVES, leaf) }
}
