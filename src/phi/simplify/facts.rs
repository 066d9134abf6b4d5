//! What is known of the classes of the e-graph, as its analysis.

use egg::{Analysis, DidMerge, EGraph, Id};

use super::language::Term;
use super::loops::{ALL, LoopSet, Ways, is_free};
use super::pattern::bit;
use super::range::{Range, range_of};
use crate::op::{MAX_ARITY, Op, eval};

/// The e-graph of a segment.
pub(super) type Terms = EGraph<Term, Knowledge>;

/// What is known of a class. When classes become one, it is what held for both:
/// the terms of a class are equal as real numbers, but rounded otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Facts {
    pub(super) range: Range,
    pub(super) constant: Option<u64>,
    /// Where NaN may come from, one bit for each leaf and for each term that may be
    /// NaN though no operand is: if one of them is NaN, so is this.
    pub(super) nan_if: u128,
    /// If this is NaN, one of these is; unless something else may make it NaN.
    pub(super) nan_only_if: Option<u128>,
    /// The primitives of the terms in the class, one bit each.
    pub(super) ops: u64,
    /// The loops around the segment in which it changes, as far as is known: of equal terms
    /// the one that changes in fewer may be chosen.
    pub(super) changes: LoopSet,
    /// Whether it depends on what a loop around the segment carries.
    pub(super) is_carried: bool,
    /// Whether its rounding may be made up for, see [`compensated`](super::compensated::compensated).
    pub(super) is_compensated: bool,
    /// How often its range has been widened by terms that were found to be equal.
    pub(super) widened: u8,
}

/// Where a term is made of its own class each round may widen the range by a little more: after so
/// many times nothing is known of it.
const MOST_WIDENED: u8 = 16;

/// The analysis, with what it is told.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    /// What is known of the leaves.
    pub(super) leaves: Vec<Range>,
    /// In which of the loops around the segment each leaf changes; in all if that is not
    /// told.
    pub(super) changes: Vec<LoopSet>,
    /// The leaves that depend on what a loop around them carries, as far as that is told.
    pub(super) carried: Vec<bool>,
    /// The loops that the segment is in, as far as its steps can be moved out of them.
    pub(super) ways: Ways,
    /// The classes whose values must be finite, or the graph is to stop before the loop.
    pub(super) guarded: Vec<Id>,
    /// Terms that a better one of their class is to replace at any cost.
    pub(super) superseded: Vec<Term>,
    /// The classes of those that are superseded because an exponential in them may
    /// overflow.
    pub(super) overflowing: Vec<Id>,
    /// How many terms have a bit of their own, see [`Facts::nan_if`].
    origins: u32,
}

/// How many leaves have a bit; the other bits are for terms.
const LEAVES: u32 = 64;

impl Facts {
    fn leaf(number: u32, range: Range, changes: LoopSet, is_carried: bool) -> Facts {
        let bit = (number < LEAVES).then(|| 1u128 << number);
        let nan_only_if = if range.nan { bit } else { Some(0) };
        Facts {
            range,
            constant: None,
            nan_if: bit.unwrap_or(0),
            nan_only_if,
            ops: 0,
            changes,
            is_carried,
            is_compensated: false,
            widened: 0,
        }
    }

    fn constant(bits: u64) -> Facts {
        let range = Range::constant(f64::from_bits(bits));
        let nan_only_if = if range.nan { None } else { Some(0) };
        Facts {
            constant: Some(bits),
            nan_if: 0,
            nan_only_if,
            ..Facts::leaf(LEAVES, range, 0, false)
        }
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
    pub(super) fn within(ways: Ways) -> Knowledge {
        Knowledge { ways, ..Knowledge::default() }
    }

    /// In which of the loops around the segment this leaf changes.
    pub(super) fn changes_of(&self, leaf: u32) -> LoopSet {
        self.changes.get(leaf as usize).copied().unwrap_or(ALL)
    }

    /// Whether what has these facts is computed before the innermost loop around.
    pub(super) fn is_free(&self, facts: &Facts) -> bool {
        is_free(facts.changes, &self.ways)
    }
}

impl Analysis<Term> for Knowledge {
    type Data = Facts;

    fn make(egraph: &mut Terms, term: &Term, _: Id) -> Facts {
        match *term {
            Term::Leaf(number) => {
                let known = egraph.analysis.leaves.get(number as usize);
                let changes = egraph.analysis.changes_of(number);
                let is_carried = egraph.analysis.carried.get(number as usize);
                let range = known.copied().unwrap_or(Range::UNKNOWN);
                Facts::leaf(number, range, changes, is_carried.copied().unwrap_or(false))
            }
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
            is_compensated: a.is_compensated || b.is_compensated,
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
pub(super) fn propagates_nan(op: Op) -> bool {
    !matches!(
        op,
        Op::Select
            | Op::Powi
            | Op::Powf
            | Op::Hypot
            | Op::CopySign
            | Op::Min
            | Op::Max
            | Op::Lt
            | Op::Le
            | Op::Gt
            | Op::Ge
            | Op::Eq
            | Op::Ne
            | Op::Same
    )
}

fn applied(egraph: &mut Terms, op: Op, operands: &[Id]) -> Facts {
    // Of an operand that is missing.
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
    let mut result = range_of(op, ranges, is_square);
    let is_origin =
        || range_of(op, ranges.map(|range| Range { nan: false, ..range }), is_square).nan;
    let mut origin = None;
    let nan_only_if = if !result.nan {
        Some(0)
    } else if is_origin() {
        origin = 1u128.checked_shl(LEAVES + egraph.analysis.origins);
        egraph.analysis.origins += 1;
        origin
    } else {
        let all = known.iter().map(|facts| facts.nan_only_if);
        all.reduce(|a, b| a.zip(b).map(|(a, b)| a | b)).flatten()
    };
    if nan_only_if == Some(0) {
        result.nan = false;
    }
    let [a, b, c] = facts.map(|facts| facts.nan_if);
    let nan_if = match op {
        Op::Select => b & c,
        // The power 0 of NaN is 1.
        Op::Powi | Op::Powf if ranges[1].is_nonzero() => a,
        Op::Powi | Op::Powf => 0,
        op if propagates_nan(op) => a | b | c,
        _ => 0,
    };
    let nan_if = nan_if | origin.unwrap_or(0);
    let changes = known.iter().fold(0, |all, facts| all | facts.changes);
    let is_carried = known.iter().any(|facts| facts.is_carried);
    Facts { nan_if, nan_only_if, ..Facts::leaf(LEAVES, result, changes, is_carried) }
}
