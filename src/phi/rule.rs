//! The list of rules, and the description of their applications.

use super::reason::OpenReason;
use crate::ssa::Place;

/// A rule of φ-calculus.
///
/// φ(a, b) is the join of a branch; φ_L(p, d) is a φ at the head of loop L: `p` in the first
/// iteration, in later ones `d` of the iteration before.
///
/// # Examples
///
/// ```
/// use phigrad::report::Rule;
///
/// assert_eq!(Rule::C6.to_string(), "C6");
/// assert_eq!(Rule::C6.formula(), "L^n< d = a·φ_L(p, d) + b > gives a^n·p + b·Σ_{j<n} a^j");
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// Identity.
    F1,
    /// Distributive.
    F2,
    /// Commutative.
    F3,
    /// Loop entry.
    F4,
    /// Loop exit.
    F5,
    /// A function of two φs of one branch.
    C1,
    /// The derivative of a φ.
    C2,
    /// Exchange of nested φs.
    C3,
    /// A function whose results in all arms are equal.
    C4,
    /// A loop is its body, iterated n times.
    C5,
    /// An affine recurrence with invariant coefficients.
    C6,
    /// A sum.
    C7,
    /// A product.
    C8,
    /// An affine recurrence whose coefficients change.
    C9,
}

impl Rule {
    /// True if the rule is one of C5 to C9, about the value of a loop after its last iteration.
    pub(crate) fn is_about_loops(self) -> bool {
        matches!(self, Rule::C5 | Rule::C6 | Rule::C7 | Rule::C8 | Rule::C9)
    }

    /// The formula, as in the paper.
    pub fn formula(self) -> &'static str {
        match self {
            Rule::F1 => "φ(a, a, ..., a) = a",
            Rule::F2 => "f(φ(a1..ak)) = φ(f(a1)..f(ak))",
            Rule::F3 => "φ(a, b) = φ̄(b, a), φ̄ the complement",
            Rule::F4 => "φ_L(p, d) is p in the first iteration, d^(j) in iteration j+1",
            Rule::F5 => "φ_L'(a, b1..bm) = b1 at the exit",
            Rule::C1 => "f(φ(a1..ak), φ(b1..bk)) = φ(f(a1,b1)..f(ak,bk)), same φ",
            Rule::C2 => "∂/∂x φ(a1..ak) = φ(∂a1/∂x .. ∂ak/∂x)",
            Rule::C3 => "φ1(φ2(a,b), φ2(c,d)) = φ2(φ1(a,c), φ1(b,d))",
            Rule::C4 => "f(φ(a1..ak), φ(b1..bk)) = c if f(ai, bi) = c for every i",
            Rule::C5 => "L^n< d = f(φ_L(p, d)) > gives d_exit = f^[n](p)",
            Rule::C6 => "L^n< d = a·φ_L(p, d) + b > gives a^n·p + b·Σ_{j<n} a^j",
            Rule::C7 => "L^n< d = φ_L(p, d) + g(L) > gives p + Σ_{i<n} g(i)",
            Rule::C8 => "L^n< d = φ_L(p, d) · g(L) > gives p · Π_{i<n} g(i)",
            Rule::C9 => "L^n< d = a(L)·φ_L(p, d) + b(L) > gives p·Π_i a(i) + Σ_i b(i)·Π_{j>i} a(j)",
        }
    }
}

impl core::fmt::Display for Rule {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(self, f)
    }
}

/// An application of a rule.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Applied {
    /// The rule.
    pub rule: Rule,
    /// The place in the user's source, if it is known.
    pub at: Option<Place>,
    /// The resulting form, in mathematical notation.
    pub form: String,
}

impl core::fmt::Display for Applied {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.rule)?;
        if let Some(at) = &self.at {
            write!(f, " at {at}")?;
        }
        write!(f, ": {}", self.form)
    }
}

/// A loop, or a value of a loop, without a closed form.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenLoop {
    /// The place in the user's source, if it is known.
    pub at: Option<Place>,
    /// The reasons, one for each kind of closed form that was tried; at least one.
    pub reasons: Vec<OpenReason>,
}

impl OpenLoop {
    /// The reasons as one line.
    pub(crate) fn explained(&self) -> String {
        self.reasons.iter().map(ToString::to_string).collect::<Vec<String>>().join("; ")
    }
}

impl core::fmt::Display for OpenLoop {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "loop stays open")?;
        if let Some(at) = &self.at {
            write!(f, " at {at}")?;
        }
        write!(f, ": {}", self.explained())
    }
}
