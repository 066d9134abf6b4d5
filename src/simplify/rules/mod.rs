//! The rewrite rules, as tables, and the conditions for their application.
//!
//! - `algebra`: factors, powers, roots, signs, constants and differences
//! - `exponentials`: exponentials and logarithms, softplus and the logistic function
//!
//! Each rule has a [`Tag`]. A real-only rule, or one that needs facts, may round differently from
//! the original, but not worse; it makes no finite number infinite or NaN. It may give a finite
//! number where an intermediate result overflowed. A NaN among the inputs is always propagated. A
//! fact that is not known counts as false.
//!
//! Rules whose results have less accurate derivatives are only for [`Stage::Final`](super::Stage).

mod algebra;
mod exponentials;

use egg::{Id, Language};

use super::egraph::{Facts, Term, Terms, bit};
use super::loops::ALL;
use super::matching::Substitution;
use crate::op::Op;
use crate::ssa::Range;

/// The condition under which a rewrite rule holds. For an example see
/// [`RewriteRule`](super::RewriteRule).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Both sides have the same bits.
    Exact,
    /// Both sides are the same real number for all operands, without new infinities or NaN.
    Real,
    /// Both sides are the same real number if facts about the operands hold.
    NeedsFact,
}

/// The right-hand side of a rule.
#[derive(Clone, Copy)]
pub(super) enum Right {
    /// An instance of this pattern.
    Pattern(&'static str),
    /// The class that a function adds, by terms of these primitives.
    Computed(fn(&mut Match<'_>) -> Option<Id>, &'static [Op]),
}

/// A rule.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) tag: Tag,
    pub(super) left: &'static str,
    pub(super) right: Right,
    pub(super) holds: fn(&Match<'_>) -> bool,
    /// True replaces at any cost, since the right-hand side is finite or accurate where the
    /// left-hand side is not.
    pub(super) supersedes: bool,
    /// True if an instance alone is worth building an e-graph.
    pub(super) triggers: bool,
    /// True if the right-hand side may be differentiated; false restricts the rule to
    /// [`Stage::Final`](super::Stage).
    pub(super) at_any_stage: bool,
}

/// All rules.
pub(super) fn rules() -> impl Iterator<Item = &'static Rule> {
    algebra::RULES.iter().chain(exponentials::RULES)
}

const fn rule(name: &'static str, tag: Tag, left: &'static str, right: Right) -> Rule {
    Rule {
        name,
        tag,
        left,
        right,
        holds: |_| true,
        supersedes: false,
        triggers: true,
        at_any_stage: false,
    }
}

/// A rule whose sides have the same bits.
const fn exact(name: &'static str, left: &'static str, right: &'static str) -> Rule {
    rule(name, Tag::Exact, left, Right::Pattern(right)).at_any_stage()
}

/// A rule whose sides are the same real number.
const fn real(name: &'static str, left: &'static str, right: &'static str) -> Rule {
    rule(name, Tag::Real, left, Right::Pattern(right))
}

/// A rule whose sides are the same real number if the facts `holds` do.
const fn fact(
    name: &'static str,
    left: &'static str,
    right: &'static str,
    holds: fn(&Match<'_>) -> bool,
) -> Rule {
    rule(name, Tag::NeedsFact, left, Right::Pattern(right)).when(holds)
}

/// A rule whose right-hand side `compute` adds, with these primitives, if its facts hold.
const fn computed(
    name: &'static str,
    left: &'static str,
    compute: fn(&mut Match<'_>) -> Option<Id>,
    ops: &'static [Op],
) -> Rule {
    rule(name, Tag::NeedsFact, left, Right::Computed(compute, ops))
}

impl Rule {
    const fn when(self, holds: fn(&Match<'_>) -> bool) -> Rule {
        Rule { holds, ..self }
    }

    const fn superseding(self) -> Rule {
        Rule { supersedes: true, ..self }
    }

    const fn auxiliary(self) -> Rule {
        Rule { triggers: false, ..self }
    }

    const fn at_any_stage(self) -> Rule {
        Rule { at_any_stage: true, ..self }
    }
}

/// An instance of the left-hand side of a rule.
pub(super) struct Match<'a> {
    pub(super) terms: &'a mut Terms,
    pub(super) substitution: &'a Substitution<Id>,
    pub(super) term: Term,
}

impl Match<'_> {
    fn id(&self, name: char) -> Option<Id> {
        self.substitution.iter().find(|(letter, _)| *letter == name).map(|&(_, id)| id)
    }

    fn facts(&self, name: char) -> Option<&Facts> {
        self.id(name).map(|id| &self.terms[id].data)
    }

    fn range(&self, name: char) -> Range {
        self.facts(name).map_or(Range::UNKNOWN, |facts| facts.range)
    }

    fn constant(&self, name: char) -> Option<f64> {
        self.facts(name)?.constant.map(f64::from_bits)
    }

    /// True if a term of `name` has the primitive `op`.
    fn is_result_of(&self, name: char, op: Op) -> bool {
        self.facts(name).is_some_and(|facts| facts.ops & bit(op) != 0)
    }

    /// True if `name` depends on a carried value of an enclosing loop.
    fn is_carried(&self, name: char) -> bool {
        self.facts(name).is_some_and(|facts| facts.is_carried)
    }

    /// True if `a` is carried and all `others` are invariant in the innermost loop, so that the
    /// rounding error of an operation on `others` is the same in all iterations and accumulates.
    fn accumulates(&self, others: &[char]) -> bool {
        let innermost = self.terms.analysis.enclosing.first().map_or(ALL, |&(bit, _)| bit);
        let varies = |&name: &char| self.facts(name).is_none_or(|all| all.changes & innermost != 0);
        self.is_carried('a') && !others.iter().any(varies)
    }

    /// True if `name` may be so near to 0 that its sum with 1 loses a digit.
    fn may_be_small(&self, name: char) -> bool {
        self.range(name).lower < 0.7 && self.range(name).upper > -0.7
    }

    /// True if the program computes u - 1, and ln(u) or u + 1, for an operand u of the instance: in
    /// ln(u)·x/(u - 1) with u = 1 + x (Kahan), and in (u - 1)/(u + 1), the rounding error of u
    /// cancels. It would not cancel if one of them were accurate by itself.
    fn is_compensated(&self) -> bool {
        self.term.children().iter().any(|&id| self.has_compensation(id))
    }

    fn has_compensation(&self, id: Id) -> bool {
        let (id, mut difference, mut other) = (self.terms.find(id), false, false);
        let is = |id: Id, value: f64| self.terms[id].data.constant == Some(value.to_bits());
        for parent in self.terms[id].parents() {
            for term in &self.terms[parent].nodes {
                let Term::Apply(op, [a, b, _]) = *term else { continue };
                let (a, b) = (self.terms.find(a), self.terms.find(b));
                match op {
                    Op::Sub => difference |= a == id && is(b, 1.0) || b == id && is(a, 1.0),
                    Op::Add if a == id => {
                        difference |= is(b, -1.0);
                        other |= is(b, 1.0);
                    }
                    Op::Ln | Op::Log2 | Op::Log10 => other |= a == id,
                    _ => {}
                }
            }
        }
        difference && other
    }

    fn apply(&mut self, op: Op, operands: &[Id]) -> Id {
        let operands: Vec<Id> = operands.iter().map(|&id| self.terms.find(id)).collect();
        self.terms.add(Term::apply(op, &operands))
    }

    fn number(&mut self, value: f64) -> Id {
        self.terms.add(Term::constant(value))
    }
}
