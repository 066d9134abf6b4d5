//! The rewrite rules, as tables.
//!
//! Each rule says what it needs to be right. A rule that is real-only or needs
//! facts may round otherwise than what it replaces, but not worse; it makes no
//! infinity or NaN where there was a finite number. It may give a number where an
//! intermediate result overflowed; a NaN among the inputs is never forgotten.
//! Unknown means no.
//!
//! Rules that would cost accuracy in the derivative of what they make are for
//! graphs that are differentiated no more.

use egg::Id;

mod algebra;
mod exponentials;
mod shares;

use super::found::Found;
use crate::op::Op;

/// On what numbers a rewrite rule holds.
///
/// # Examples
///
/// ```
/// use phigrad::phi::{Tag, rewrite_rules};
///
/// assert!(rewrite_rules().any(|rule| rule == ("power-half", Tag::NeedsFact)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// The same bits.
    Exact,
    /// The same real number; and no new infinities and NaN, whatever the operands.
    Real,
    /// The same where something is known of the operands.
    NeedsFact,
}

/// What takes the place of what was found.
#[derive(Clone, Copy)]
pub(super) enum Right {
    /// An instance of this pattern.
    Pattern(&'static str),
    /// What this makes, with these primitives.
    Made(fn(&mut Found<'_>) -> Option<Id>, &'static [Op]),
}

/// A rule.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) tag: Tag,
    pub(super) left: &'static str,
    pub(super) right: Right,
    pub(super) holds: fn(&Found<'_>) -> bool,
    /// Whether to replace at any cost, since the right side is finite or accurate
    /// where the left one is not.
    pub(super) is_stable: bool,
    /// Whether that is for its accuracy, so that it is taken also where what the left
    /// side is made of is computed anyway.
    pub(super) is_accurate: bool,
    /// Whether it is worth an e-graph of its own; if not, it is used where there is one.
    pub(super) is_worth_it: bool,
    /// The letters of which it makes something that can be computed before a loop. The rule
    /// is worth an e-graph where they are free of the loop, and the other letters are not.
    pub(super) frees: &'static str,
    /// Whether what it makes may be differentiated.
    pub(super) before_derivatives: bool,
}

fn always(_: &Found<'_>) -> bool {
    true
}

/// Whether `x` may be so near to 0 that what is added to 1, or left of it, loses a digit.
fn may_be_small(found: &Found<'_>) -> bool {
    found.range('x').low < 0.7 && found.range('x').high > -0.7
}

const fn rule(name: &'static str, tag: Tag, left: &'static str, right: Right) -> Rule {
    Rule {
        name,
        tag,
        left,
        right,
        holds: always,
        is_stable: false,
        is_accurate: false,
        is_worth_it: true,
        frees: "",
        before_derivatives: false,
    }
}

impl Rule {
    const fn given(self, holds: fn(&Found<'_>) -> bool) -> Rule {
        Rule { holds, ..self }
    }

    const fn stable(self) -> Rule {
        Rule { is_stable: true, ..self }
    }

    const fn accurate(self) -> Rule {
        Rule { is_stable: true, is_accurate: true, ..self }
    }

    const fn on_the_way(self) -> Rule {
        Rule { is_worth_it: false, ..self }
    }

    const fn freeing(self, frees: &'static str) -> Rule {
        Rule { is_worth_it: false, frees, ..self }
    }

    const fn anywhere(self) -> Rule {
        Rule { before_derivatives: true, ..self }
    }
}

/// All rules.
pub(super) fn rules() -> impl Iterator<Item = &'static Rule> {
    algebra::RULES.iter().chain(exponentials::RULES).chain(shares::RULES)
}
