//! The e-graph of a segment: its terms, and an egg analysis with facts about each class.

use core::hash::{Hash, Hasher};

use egg::{Analysis, DidMerge, EGraph, Id, Language};

use super::loops::{ALL, Enclosing, LoopSet};
use crate::op::{MAX_ARITY, Op, eval};
use crate::ssa::{Range, range_of};

/// The e-graph of a segment.
pub(super) type Terms = EGraph<Term, FactAnalysis>;

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

/// A set of primitives, and one bit for constants.
pub(super) type OpSet = u128;

const _: () = assert!(Op::ALL.len() < OpSet::BITS as usize);

/// The bit of a primitive in a set of primitives.
pub(super) fn bit(op: Op) -> OpSet {
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

/// Terms are hashed often, so each is one or two words for the hasher.
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
    /// One kind for all terms: egg keeps a list of classes for each kind, for its own matcher,
    /// which is not used (see `matching`).
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

/// The facts about a class. A union of classes keeps the facts that hold for both: their terms are
/// equal as real numbers, but rounded differently.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Facts {
    pub(super) range: Range,
    pub(super) constant: Option<u64>,
    /// Sources of NaN, a bit for each leaf and for each term that may be NaN although no operand
    /// is: if one of these is NaN, so is this class.
    pub(super) nan_if: u128,
    /// Sources of NaN: if this class is NaN, one of these is. `None` if there may be other sources.
    pub(super) nan_only_if: Option<u128>,
    /// The primitives of the terms in the class, one bit each.
    pub(super) ops: OpSet,
    /// The enclosing loops in which the class changes, if the best of its terms is chosen.
    pub(super) changes: LoopSet,
    /// True if it depends on a carried value of an enclosing loop.
    pub(super) is_carried: bool,
    /// The number of unions that widened its range.
    widened: u8,
}

/// The largest number of widenings of a range, after which it becomes unknown: a class that
/// contains a term of itself may widen its range in each iteration.
const MAX_WIDENINGS: u8 = 16;
/// The number of bits for leaves in [`Facts::nan_if`]; the other bits are for terms.
const LEAF_BITS: u32 = 64;

/// The facts about a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) range: Range,
    /// The enclosing loops in which it changes.
    pub(super) changes: LoopSet,
    /// True if it depends on a carried value of an enclosing loop.
    pub(super) is_carried: bool,
}

/// The analysis, with its inputs and the superseded terms.
#[derive(Clone, Debug, Default)]
pub(super) struct FactAnalysis {
    pub(super) leaves: Vec<Leaf>,
    /// The loops that the segment's steps can be hoisted out of.
    pub(super) enclosing: Enclosing,
    /// Terms that another term of their class replaces at any cost.
    pub(super) superseded: Vec<Term>,
    /// The number of terms with a bit of their own in [`Facts::nan_if`].
    origins: u32,
}

impl Facts {
    fn leaf(number: u32, Leaf { range, changes, is_carried }: Leaf) -> Facts {
        let bit = (number < LEAF_BITS).then(|| 1u128 << number);
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
        Facts { constant: Some(bits), nan_only_if, ..Facts::leaf(LEAF_BITS, leaf) }
    }

    /// These facts, with the range intersected with `range`.
    pub(super) fn and(self, range: Range) -> Facts {
        let range = self.range.intersection(range);
        let nan_only_if = if range.nan { self.nan_only_if } else { Some(0) };
        Facts { range, nan_only_if, ..self }
    }
}

impl FactAnalysis {
    /// The analysis of a segment in these loops.
    pub(super) fn within(enclosing: Enclosing) -> FactAnalysis {
        FactAnalysis { enclosing, ..FactAnalysis::default() }
    }

    pub(super) fn leaf(&self, number: u32) -> Leaf {
        let unknown = Leaf { range: Range::UNKNOWN, changes: ALL, is_carried: false };
        self.leaves.get(number as usize).copied().unwrap_or(unknown)
    }
}

impl Analysis<Term> for FactAnalysis {
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
        let range = a.range.union(b.range);
        let widened = a.widened.max(b.widened).saturating_add(u8::from(range != a.range));
        let merged = Facts {
            range: if widened > MAX_WIDENINGS { Range::UNKNOWN } else { range },
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

/// True if a NaN operand always makes the result NaN.
fn propagates_nan(op: Op) -> bool {
    use Op::{CopySign, Eq, Ge, Gt, Hypot, Le, Lt, Max, Min, Ne, Powf, Powi, Same, Select};
    !matches!(
        op,
        Select | Powi | Powf | Hypot | CopySign | Min | Max | Lt | Le | Gt | Ge | Eq | Ne | Same
    )
}

/// The facts about `op` of `operands`.
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
        origin = 1u128.checked_shl(LEAF_BITS + egraph.analysis.origins);
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
        // NaN to the power 0 is 1.
        Op::Powi | Op::Powf if ranges[1].is_nonzero() => a,
        op if propagates_nan(op) => a | b | c,
        _ => 0,
    };
    let changes = known.iter().fold(0, |all, facts| all | facts.changes);
    let is_carried = known.iter().any(|facts| facts.is_carried);
    let leaf = Leaf { range, changes, is_carried };
    Facts { nan_if: nan_if | origin.unwrap_or(0), nan_only_if, ..Facts::leaf(LEAF_BITS, leaf) }
}
