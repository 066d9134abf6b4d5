//! Conditions: comparisons, and choices between them, told without the numbers 0 and 1
//! that stand for their outcomes.

use super::term::Term;
use super::write::{Level, Script};
use crate::op::Op;

/// How a condition holds together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Join {
    Single,
    And,
    Or,
}

/// What decides `term`, a condition, and whether that has to hold for it: a comparison
/// of an outcome with a number is that outcome, or its opposite.
pub(super) fn decision(term: &Term) -> (&Term, bool) {
    let (mut term, mut holds) = (term, true);
    loop {
        let same = match term {
            Term::Apply(Op::Select, args) => match [truth(&args[1]), truth(&args[2])] {
                [Some(a), Some(b)] if a != b => Some((&args[0], a)),
                _ => None,
            },
            Term::Apply(Op::Eq | Op::Ne, args) => {
                let is_equal = matches!(term, Term::Apply(Op::Eq, _));
                let outcomes = match &args[0] {
                    Term::Apply(Op::Select, sides) => Some((&sides[0], [&sides[1], &sides[2]])),
                    _ => None,
                };
                match (outcomes, &args[0], &args[1]) {
                    (Some((inner, [Term::Number(a), Term::Number(b)])), _, Term::Number(n))
                        if (a == n) != (b == n) =>
                    {
                        Some((inner, (a == n) == is_equal))
                    }
                    (_, inner @ Term::Apply(op, _), Term::Number(0.0)) if op.is_comparison() => {
                        Some((inner, !is_equal))
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        match same {
            Some((inner, is_same)) => {
                holds = holds == is_same;
                term = inner;
            }
            None => return (term, holds),
        }
    }
}

/// Whether a condition that is a number holds.
fn truth(term: &Term) -> Option<bool> {
    match term {
        Term::Number(number) => Some(*number != 0.0),
        _ => None,
    }
}

impl Script {
    /// That `term` holds, or does not hold.
    pub(super) fn condition(self, term: &Term, holds: bool) -> String {
        self.joined(term, holds).0
    }

    fn joined(self, term: &Term, holds: bool) -> (String, Join) {
        let (term, is_same) = decision(term);
        let holds = holds == is_same;
        match term {
            Term::Apply(Op::Select, args) => {
                let (first, rest) = match [truth(&args[1]), truth(&args[2])] {
                    // c and a; c or b; not c and b; not c or a.
                    [None, Some(false)] => ((true, Join::And), &args[1]),
                    [Some(true), None] => ((true, Join::Or), &args[2]),
                    [Some(false), None] => ((false, Join::And), &args[2]),
                    [None, Some(true)] => ((false, Join::Or), &args[1]),
                    _ => return (self.compared(term, holds), Join::Single),
                };
                let (is_so, join) = first;
                // The opposite of both is one of the opposites.
                let join = match (join, holds) {
                    (join, true) => join,
                    (Join::And, false) => Join::Or,
                    (_, false) => Join::And,
                };
                let sides = [self.joined(&args[0], is_so == holds), self.joined(rest, holds)];
                let sides =
                    sides.map(|(text, inner)| match inner == Join::Single || inner == join {
                        true => text,
                        false => self.parenthesised(&text),
                    });
                let sign = match join {
                    Join::Or => self.pick("∨", "\\lor"),
                    Join::And | Join::Single => self.pick("∧", "\\land"),
                };
                (format!("{} {sign} {}", sides[0], sides[1]), join)
            }
            _ => (self.compared(term, holds), Join::Single),
        }
    }

    /// A comparison, or that a number is not zero.
    fn compared(self, term: &Term, holds: bool) -> String {
        match term {
            Term::Apply(Op::Lt, args) if args[1] == Term::Number(f64::INFINITY) => {
                let inner = match &args[0] {
                    Term::Apply(Op::Abs, inner) => &inner[0],
                    other => other,
                };
                if let (true, Some(bounded)) = (*inner != args[0], bounded(inner)) {
                    return self.compared(&bounded, holds);
                }
                let not = if holds { "" } else { "not " };
                let words = self.words(&format!(" is {not}finite"));
                format!("{}{words}", self.at_least(inner, Level::Sum))
            }
            Term::Apply(op, args) if op.is_comparison() => {
                let sides = [0, 1].map(|i| self.at_least(&args[i], Level::Sum));
                format!("{} {} {}", sides[0], self.relation(*op, holds), sides[1])
            }
            other => {
                let relation = self.relation(if holds { Op::Ne } else { Op::Eq }, true);
                format!("{} {relation} 0", self.at_least(other, Level::Sum))
            }
        }
    }
}

/// That a number is within the range in which its product or quotient with a large constant is
/// finite, if `term` is such a one: a guard against what comes later, which overflows much
/// earlier.
fn bounded(term: &Term) -> Option<Term> {
    /// Smaller constants are taken for the program's own.
    const LARGE: f64 = 1e200;
    let Term::Apply(op @ (Op::Mul | Op::Div), args) = term else { return None };
    let (&Term::Number(scale), number) = (&args[0], &args[1]) else { return None };
    let size = Term::apply(Op::Abs, [number.clone()]);
    let (relation, limit) = match op {
        Op::Mul => (Op::Le, f64::MAX / scale),
        _ => (Op::Ge, scale / f64::MAX),
    };
    (scale > LARGE && scale.is_finite()).then(|| Term::apply(relation, [size, Term::Number(limit)]))
}

#[cfg(test)]
mod tests {
    use super::super::term::Name;
    use super::*;

    fn relation(op: Op, number: usize) -> Term {
        let x = Term::Name(Name { letter: "x", number: Some(number) });
        Term::apply(op, [x, Term::Number(0.5)])
    }

    fn choice(condition: Term, a: Term, b: Term) -> Term {
        Term::apply(Op::Select, [condition, a, b])
    }

    #[test]
    fn finite_products_with_large_constants_are_bounds() {
        let x = || Term::Name(Name { letter: "x", number: Some(0) });
        let finite = |scale: f64| {
            let product = Term::apply(Op::Mul, [Term::Number(scale), x()]);
            let size = Term::apply(Op::Abs, [product]);
            Term::apply(Op::Lt, [size, Term::Number(f64::INFINITY)])
        };
        let large = finite(f64::MAX / 4e38);
        assert_eq!(Script::Unicode.condition(&large, true), "|x₀| ≤ 4e38");
        assert_eq!(Script::Unicode.condition(&large, false), "|x₀| > 4e38");
        assert_eq!(Script::Unicode.condition(&finite(3.0), true), "3·x₀ is finite");
        let quotient = Term::apply(Op::Div, [Term::Number(f64::MAX * 4e-77), x()]);
        let size = Term::apply(Op::Abs, [quotient]);
        let large = Term::apply(Op::Lt, [size, Term::Number(f64::INFINITY)]);
        assert_eq!(Script::Unicode.condition(&large, true), "|x₀| ≥ 4e-77");
    }

    #[test]
    fn choices_between_outcomes_are_told_flat() {
        let (yes, no) = (|| Term::Number(1.0), || Term::Number(0.0));
        let (a, b) = (|| relation(Op::Gt, 0), || relation(Op::Lt, 1));
        let equal = |term, number| Term::apply(Op::Eq, [term, Term::Number(number)]);
        let c = || choice(a(), b(), no());
        for (term, holds, doubted) in [
            (choice(a(), yes(), no()), "x₀ > 0.5", "x₀ ≤ 0.5"),
            (equal(choice(a(), no(), yes()), 0.0), "x₀ > 0.5", "x₀ ≤ 0.5"),
            (equal(choice(a(), Term::Number(2.0), yes()), 1.0), "x₀ ≤ 0.5", "x₀ > 0.5"),
            (equal(b(), 0.0), "x₁ ≥ 0.5", "x₁ < 0.5"),
            (c(), "x₀ > 0.5 ∧ x₁ < 0.5", "x₀ ≤ 0.5 ∨ x₁ ≥ 0.5"),
            (choice(a(), yes(), b()), "x₀ > 0.5 ∨ x₁ < 0.5", "x₀ ≤ 0.5 ∧ x₁ ≥ 0.5"),
            (choice(a(), no(), b()), "x₀ ≤ 0.5 ∧ x₁ < 0.5", "x₀ > 0.5 ∨ x₁ ≥ 0.5"),
            (choice(a(), b(), yes()), "x₀ ≤ 0.5 ∨ x₁ < 0.5", "x₀ > 0.5 ∧ x₁ ≥ 0.5"),
            (
                choice(b(), yes(), c()),
                "x₁ < 0.5 ∨ (x₀ > 0.5 ∧ x₁ < 0.5)",
                "x₁ ≥ 0.5 ∧ (x₀ ≤ 0.5 ∨ x₁ ≥ 0.5)",
            ),
        ] {
            assert_eq!(Script::Unicode.condition(&term, true), holds);
            assert_eq!(Script::Unicode.condition(&term, false), doubted);
        }
        let swapped = choice(equal(choice(a(), no(), yes()), 1.0), yes(), b());
        assert_eq!(Script::Unicode.term(&swapped), "φ(x₀ > 0.5; x₁ < 0.5, 1)");
        assert_eq!(Script::Latex.condition(&c(), true), "x_{0} > 0.5 \\land x_{1} < 0.5");
    }
}
