//! The rewrite rules, as tables, and what they ask of where their left-hand side occurs.
//!
//! Each rule says what it needs to be right. A rule that is real-only or needs facts may round
//! differently from what it replaces, but not worse; it makes no infinity or NaN where there
//! was a finite number. It may give a number where an intermediate result overflowed; a NaN
//! among the inputs always shows. Unknown means no.
//!
//! Rules that cost accuracy in the derivative of what they make are for graphs that are not
//! differentiated any more.

mod algebra;
mod exponentials;

use egg::{Id, Language};

use super::egraph::{Facts, Term, Terms, bit};
use super::loops::ALL;
use super::matching::Letters;
use super::range::Range;
use crate::op::Op;

/// On what numbers a rewrite rule holds. For an example see
/// [`RewriteRule`](super::RewriteRule).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// The same bits.
    Exact,
    /// The same real number; and no new infinities and NaN, whatever the operands.
    Real,
    /// The same where something is known of the operands.
    NeedsFact,
}

/// What replaces an instance of the left-hand side.
#[derive(Clone, Copy)]
pub(super) enum Right {
    /// An instance of this pattern.
    Pattern(&'static str),
    /// What this makes, with these primitives.
    Made(fn(&mut Match<'_>) -> Option<Id>, &'static [Op]),
}

/// A rule.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) tag: Tag,
    pub(super) left: &'static str,
    pub(super) right: Right,
    pub(super) holds: fn(&Match<'_>) -> bool,
    /// Whether to replace at any cost, since the right-hand side is finite or accurate where
    /// the left-hand side is not.
    pub(super) supersedes: bool,
    /// Whether it is worth an e-graph; if not, it is used where there is one.
    pub(super) triggers: bool,
    /// Whether what it makes may be differentiated.
    pub(super) before_derivatives: bool,
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
        before_derivatives: false,
    }
}

/// The same bits.
const fn exact(name: &'static str, left: &'static str, right: &'static str) -> Rule {
    rule(name, Tag::Exact, left, Right::Pattern(right)).anywhere()
}

/// The same real number.
const fn real(name: &'static str, left: &'static str, right: &'static str) -> Rule {
    rule(name, Tag::Real, left, Right::Pattern(right))
}

/// The same where that `holds`.
const fn fact(
    name: &'static str,
    left: &'static str,
    right: &'static str,
    holds: fn(&Match<'_>) -> bool,
) -> Rule {
    rule(name, Tag::NeedsFact, left, Right::Pattern(right)).when(holds)
}

/// What `make` makes where it holds, with these primitives.
const fn made(
    name: &'static str,
    left: &'static str,
    make: fn(&mut Match<'_>) -> Option<Id>,
    ops: &'static [Op],
) -> Rule {
    rule(name, Tag::NeedsFact, left, Right::Made(make, ops))
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

    const fn anywhere(self) -> Rule {
        Rule { before_derivatives: true, ..self }
    }
}

/// An instance of the left-hand side of a rule.
pub(super) struct Match<'a> {
    pub(super) terms: &'a mut Terms,
    pub(super) letters: &'a Letters<Id>,
    pub(super) term: Term,
}

impl Match<'_> {
    fn id(&self, name: char) -> Option<Id> {
        self.letters.iter().find(|(letter, _)| *letter == name).map(|&(_, id)| id)
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

    /// Whether `op` is known to compute `name`.
    fn is_result_of(&self, name: char, op: Op) -> bool {
        self.facts(name).is_some_and(|facts| facts.ops & bit(op) != 0)
    }

    /// Whether `name` depends on what an enclosing loop carries.
    fn is_carried(&self, name: char) -> bool {
        self.facts(name).is_some_and(|facts| facts.is_carried)
    }

    /// Whether what is computed of `others` has the same rounding error in all iterations of
    /// a loop that carries `a`, where it accumulates.
    fn accumulates(&self, others: &[char]) -> bool {
        let innermost = self.terms.analysis.enclosing.first().map_or(ALL, |&(bit, _)| bit);
        let varies = |&name: &char| self.facts(name).is_none_or(|all| all.changes & innermost != 0);
        self.is_carried('a') && !others.iter().any(varies)
    }

    /// Whether `name` may be so near to 0 that a digit of it is lost in a sum with 1.
    fn may_be_small(&self, name: char) -> bool {
        self.range(name).lower < 0.7 && self.range(name).upper > -0.7
    }

    /// Whether the program computes u - 1, and ln(u) or u + 1, where u is an operand of what
    /// was found: in ln(u)·x/(u - 1) with u = 1 + x (Kahan), and in (u - 1)/(u + 1), the
    /// rounding error of u cancels. It would not if one of them were accurate by itself.
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
