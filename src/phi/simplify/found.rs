//! Where a rule may apply: what its letters stand for, and what rules without a
//! pattern on the right side make of them.

use egg::{Id, Language};

use super::facts::{Facts, Terms};
use super::language::Term;
use super::matching::Letters;
use super::pattern::bit;
use super::range::Range;
use crate::op::Op;

/// Where a rule may apply.
pub(super) struct Found<'a> {
    pub(super) terms: &'a mut Terms,
    pub(super) letters: &'a Letters<Id>,
    /// What was found.
    pub(super) term: Term,
}

impl Found<'_> {
    pub(super) fn id(&self, name: char) -> Option<Id> {
        self.letters.iter().find(|(letter, _)| *letter == name).map(|&(_, id)| id)
    }

    fn facts(&self, name: char) -> Option<&Facts> {
        self.id(name).map(|id| &self.terms[id].data)
    }

    pub(super) fn range(&self, name: char) -> Range {
        self.facts(name).map_or(Range::UNKNOWN, |facts| facts.range)
    }

    pub(super) fn constant(&self, name: char) -> Option<f64> {
        self.facts(name)?.constant.map(f64::from_bits)
    }

    /// Whether `op` is known to compute `name`.
    pub(super) fn is_made_by(&self, name: char, op: Op) -> bool {
        self.facts(name).is_some_and(|facts| facts.ops & bit(op) != 0)
    }

    /// Whether `name` is the same in all iterations of the innermost loop around.
    pub(super) fn is_free(&self, name: char) -> bool {
        self.facts(name).is_some_and(|facts| self.terms.analysis.is_free(facts))
    }

    /// Whether `name` depends on what a loop around it carries. There the rounding error of
    /// what is free of the loop comes again in each iteration, and adds up.
    pub(super) fn is_carried(&self, name: char) -> bool {
        self.facts(name).is_some_and(|facts| facts.is_carried)
    }

    /// Whether `name` is the same in all iterations of the innermost loop around, also if it
    /// is not computed before that.
    pub(super) fn stays(&self, name: char) -> bool {
        self.is_free(name) || self.facts(name).is_some_and(|facts| facts.changes == 0)
    }

    /// Whether an operand of what was found has a rounding error that the program makes
    /// up for.
    pub(super) fn is_compensated(&self) -> bool {
        self.term.children().iter().any(|&operand| self.terms[operand].data.is_compensated)
    }

    /// Whether that holds for what the divisor of what was found is computed from.
    pub(super) fn divides_by_compensated(&self) -> bool {
        let Some(&divisor) = self.term.children().last() else { return false };
        let below = self.terms[divisor].nodes.iter().flat_map(|term| term.children());
        below.into_iter().any(|&operand| self.terms[operand].data.is_compensated)
    }

    /// Whether one of `kept` is NaN if `lost` is.
    fn keeps_nan(&self, lost: char, kept: &[char]) -> bool {
        let Some(Some(only_if)) = self.facts(lost).map(|facts| facts.nan_only_if) else {
            return false;
        };
        let nan_if = |&name: &char| self.facts(name).map_or(0, |facts| facts.nan_if);
        only_if & !kept.iter().fold(0, |all, name| all | nan_if(name)) == 0
    }

    /// Whether `lost` may cancel and leave `kept`.
    pub(super) fn cancels(&self, lost: char, kept: &[char]) -> bool {
        self.range(lost).is_nonzero() && self.keeps_nan(lost, kept)
    }

    pub(super) fn apply(&mut self, op: Op, operands: &[Id]) -> Id {
        let operands: Vec<Id> = operands.iter().map(|&id| self.terms.find(id)).collect();
        self.terms.add(Term::apply(op, &operands))
    }

    pub(super) fn number(&mut self, value: f64) -> Id {
        self.terms.add(Term::constant(value))
    }

    /// What is left of the sum `whole` without `part`, if no part of it may be below 0.
    pub(super) fn rest(&mut self, part: char, whole: char) -> Option<Id> {
        /// How many parts are left at most.
        const MOST: usize = 16;
        let (part, mut whole) = (self.id(part)?, self.id(whole)?);
        let mut others: Vec<Id> = Vec::new();
        while whole != part {
            let first = |found: &Found<'_>| {
                found.terms[whole].nodes.iter().find_map(|term| match *term {
                    Term::Apply(Op::Add, [a, b, _]) if a == part || b == part => {
                        Some((part, if a == part { b } else { a }))
                    }
                    _ => None,
                })
            };
            // Sums grow to the left.
            let deeper = |found: &Found<'_>| {
                found.terms[whole].nodes.iter().find_map(|term| match *term {
                    Term::Apply(Op::Add, [a, b, _]) => Some((a, b)),
                    _ => None,
                })
            };
            let (next, other) = first(self).or_else(|| deeper(self))?;
            if others.len() >= MOST || next == whole {
                return None;
            }
            others.push(other);
            whole = next;
        }
        let are_sums = others.iter().chain([&part]);
        if !are_sums.copied().all(|id| self.terms[id].data.range.is_not_negative()) {
            return None;
        }
        others.into_iter().rev().reduce(|sum, other| self.apply(Op::Add, &[sum, other]))
    }

    /// `name` to the power `exponent`.
    fn power(&mut self, name: char, exponent: f64) -> Option<Id> {
        let base = self.id(name)?;
        if exponent == 1.0 {
            return Some(base);
        }
        let exponent = self.terms.add(Term::constant(exponent));
        Some(self.apply(Op::Powf, &[base, exponent]))
    }

    /// `name` times `factor`, which `is_exact` or rounded, if that is a factor that overflows
    /// and underflows no earlier than the two that it is made of.
    fn scaled(&mut self, name: char, factor: f64, is_exact: bool) -> Option<Id> {
        let id = self.id(name)?;
        if !factor.is_normal() || !is_exact && self.is_carried(name) {
            return None;
        }
        let factor = self.terms.add(Term::constant(factor));
        Some(self.apply(Op::Mul, &[id, factor]))
    }
}

/// a·(b + c), where the graph stops if the sum is not finite.
pub(super) fn times_free_sum(found: &mut Found<'_>) -> Option<Id> {
    times_guarded(found, Op::Add)
}

/// The same for a·(b - c).
pub(super) fn times_free_difference(found: &mut Found<'_>) -> Option<Id> {
    times_guarded(found, Op::Sub)
}

fn times_guarded(found: &mut Found<'_>, op: Op) -> Option<Id> {
    let (a, b, c) = (found.id('a')?, found.id('b')?, found.id('c')?);
    let sum = found.apply(op, &[b, c]);
    if !found.terms.analysis.guarded.contains(&sum) {
        found.terms.analysis.guarded.push(sum);
    }
    Some(found.apply(Op::Mul, &[a, sum]))
}

/// `a + b`, if that is no rounded number.
fn exact_sum(a: f64, b: f64) -> Option<f64> {
    let sum = a + b;
    let is_exact = sum.is_finite() && sum - a == b && sum - b == a;
    is_exact.then_some(sum)
}

/// Of infinite `y` the quotient is NaN, and so must be the power, or infinite.
pub(super) fn lower_power(found: &mut Found<'_>) -> Option<Id> {
    let k = found.constant('k')?;
    let lower = exact_sum(k, -1.0)?;
    let grows = k > 1.0 || found.range('y').is_finite();
    grows.then(|| found.power('y', lower)).flatten()
}

pub(super) fn quotient_of_powers(found: &mut Found<'_>) -> Option<Id> {
    let power = exact_sum(found.constant('k')?, -found.constant('m')?)?;
    let grows = power > 0.0 || found.range('y').is_finite();
    (grows && power != 0.0).then(|| found.power('y', power)).flatten()
}

/// Both exponents positive, so that of zero and infinity the powers are that, too.
pub(super) fn product_of_powers(found: &mut Found<'_>) -> Option<Id> {
    let (k, m) = (found.constant('k')?, found.constant('m')?);
    let power = exact_sum(k, m)?;
    (k > 0.0 && m > 0.0).then(|| found.power('y', power)).flatten()
}

pub(super) fn times_times(found: &mut Found<'_>) -> Option<Id> {
    let (k, m) = (found.constant('k')?, found.constant('m')?);
    let factor = k * m;
    found.scaled('x', factor, k.mul_add(m, -factor) == 0.0)
}

pub(super) fn times_over(found: &mut Found<'_>) -> Option<Id> {
    let (k, m) = (found.constant('k')?, found.constant('m')?);
    let factor = k / m;
    found.scaled('x', factor, factor.mul_add(m, -k) == 0.0)
}

pub(super) fn multiples(found: &mut Found<'_>) -> Option<Id> {
    let (k, m) = (found.constant('k')?, found.constant('m')?);
    found.scaled('x', k + m, exact_sum(k, m).is_some())
}

pub(super) fn multiple_and_one(found: &mut Found<'_>) -> Option<Id> {
    let k = found.constant('k')?;
    found.scaled('x', k + 1.0, exact_sum(k, 1.0).is_some())
}
