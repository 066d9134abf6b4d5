//! Sums and products the way people write them: numbers are folded, like terms
//! collected.

use super::term::Term;
use crate::op::Op;

/// A term of a sum that is smaller than this part of the largest one only makes up
/// for the rounding of numbers in that.
const ROUNDING: f64 = 1e-13;

/// A number times a product.
#[derive(Clone, Debug)]
struct Item {
    number: f64,
    /// How many numbers it was made of.
    folded: u32,
    factors: Vec<Term>,
}

/// The application of `op` to `args`, which are tidy, and whether terms were left
/// out: those that make up for the rounding of `pivots`, if there are any.
pub(super) fn tidy(op: Op, args: Vec<Term>, pivots: bool) -> (Term, bool) {
    let term = Term::Apply(op, args);
    match op {
        Op::Add | Op::Sub | Op::Neg | Op::MulAdd => {
            let mut items = Vec::new();
            collect(&term, 1.0, &mut items);
            items.retain(|item| item.number != 0.0);
            let left_out = pivots && drop_rounding(&mut items);
            (sum(items), left_out)
        }
        Op::Mul => (sum(vec![item(&term)]), false),
        Op::Select => (sign(&term).unwrap_or(term), false),
        _ => (term, false),
    }
}

/// The derivative of an absolute value, φ(a > 0; b, φ(a < 0; −b, a²)), as a product
/// with the sign of a. The last of these is zero, or not a number if a is not.
fn sign(term: &Term) -> Option<Term> {
    let choice = |term: &Term, relation: Op| -> Option<[Term; 3]> {
        let Term::Apply(Op::Select, args) = term else { return None };
        let Term::Apply(op, sides) = &args[0] else { return None };
        let is_sign = *op == relation && sides[1] == Term::Number(0.0);
        is_sign.then(|| [sides[0].clone(), args[1].clone(), args[2].clone()])
    };
    let [a, plus, rest] = choice(term, Op::Gt)?;
    let [other, minus, last] = choice(&rest, Op::Lt)?;
    let square = Term::apply(Op::Mul, [a.clone(), a.clone()]);
    let opposite = tidy(Op::Neg, vec![plus.clone()], false).0;
    if a != other || minus != opposite || last != square {
        return None;
    }
    let signum = Term::apply(Op::Signum, [a]);
    Some(tidy(Op::Mul, vec![plus, signum], false).0)
}

/// Adds what `term` times `scale` is a sum of to `items`.
fn collect(term: &Term, scale: f64, items: &mut Vec<Item>) {
    match term {
        Term::Apply(Op::Add, args) => {
            collect(&args[0], scale, items);
            collect(&args[1], scale, items);
        }
        Term::Apply(Op::Sub, args) => {
            collect(&args[0], scale, items);
            collect(&args[1], -scale, items);
        }
        Term::Apply(Op::Neg, args) => collect(&args[0], -scale, items),
        Term::Apply(Op::MulAdd, args) => {
            collect(&Term::apply(Op::Mul, args[..2].iter().cloned()), scale, items);
            collect(&args[2], scale, items);
        }
        _ => {
            let mut new = item(term);
            new.number *= scale;
            let is_same = |known: &&mut Item| same(&known.factors, &new.factors);
            match items.iter_mut().find(is_same) {
                Some(known) => {
                    let before = known.number.abs();
                    known.number += new.number;
                    known.folded += new.folded.max(1);
                    // What is left of equal numbers is their rounding.
                    if known.number.abs() < f64::EPSILON * before {
                        known.number = 0.0;
                    }
                }
                None => items.push(new),
            }
        }
    }
}

/// `term` as a number times a product.
fn item(term: &Term) -> Item {
    let mut made = Item { number: 1.0, folded: 0, factors: Vec::new() };
    let mut pending = vec![term];
    while let Some(term) = pending.pop() {
        match term {
            Term::Apply(Op::Mul, args) => pending.extend([&args[1], &args[0]]),
            Term::Apply(Op::Neg, args) => {
                made.number = -made.number;
                pending.push(&args[0]);
            }
            Term::Number(number) => {
                made.number *= number;
                made.folded += 1;
            }
            _ => made.factors.push(term.clone()),
        }
    }
    made
}

/// Whether two products have the same factors.
fn same(a: &[Term], b: &[Term]) -> bool {
    let mut left: Vec<&Term> = b.iter().collect();
    a.len() == b.len()
        && a.iter().all(|factor| match left.iter().position(|other| *other == factor) {
            Some(at) => {
                left.swap_remove(at);
                true
            }
            None => false,
        })
}

/// Drops what only makes up for the rounding of pivots; whether there was any.
fn drop_rounding(items: &mut Vec<Item>) -> bool {
    let pivot = |factor: &Term| match factor {
        Term::Apply(Op::Add | Op::Sub, args) => match &args[1] {
            Term::Number(number) => number.abs().max(1.0),
            _ => 1.0,
        },
        _ => 1.0,
    };
    let size = |item: &Item| item.number.abs();
    let level = |item: &Item| size(item) * item.factors.iter().map(pivot).product::<f64>();
    let most = items.iter().map(size).fold(0.0, f64::max);
    let highest = items.iter().map(level).fold(0.0, f64::max);
    let before = items.len();
    items.retain(|item| {
        let other = if item.factors.is_empty() { highest } else { most };
        size(item) >= ROUNDING * other
    });
    items.len() < before
}

fn sum(mut items: Vec<Item>) -> Term {
    // No minus at the beginning, if there is a choice.
    if let Some(at) = items.iter().position(|item| item.number > 0.0) {
        items[..=at].rotate_right(1);
    }
    let mut sum: Option<Term> = None;
    for item in items {
        let number = if item.folded > 1 { shortened(item.number) } else { item.number };
        sum = Some(match sum {
            None => product(number, item.factors),
            Some(sum) if number < 0.0 => {
                Term::apply(Op::Sub, [sum, product(-number, item.factors)])
            }
            Some(sum) => Term::apply(Op::Add, [sum, product(number, item.factors)]),
        });
    }
    sum.unwrap_or(Term::Number(0.0))
}

fn product(number: f64, factors: Vec<Term>) -> Term {
    let factors = factors.into_iter().reduce(|a, b| Term::apply(Op::Mul, [a, b]));
    match factors {
        None => Term::Number(number),
        Some(_) if number == 0.0 => Term::Number(0.0),
        Some(factors) if number == 1.0 => factors,
        Some(factors) if number == -1.0 => Term::apply(Op::Neg, [factors]),
        Some(factors) => Term::apply(Op::Mul, [Term::Number(number), factors]),
    }
}

/// The number without the digits that rounding has made.
pub(super) fn shortened(number: f64) -> f64 {
    format!("{number:.14e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::super::term::Name;
    use super::super::write::Script;
    use super::*;

    fn x(number: usize) -> Term {
        Term::Name(Name { letter: "x", number: Some(number) })
    }

    fn told(op: Op, args: [Term; 2]) -> (String, bool) {
        let (term, left_out) = tidy(op, args.into(), false);
        (Script::Unicode.term(&term), left_out)
    }

    #[test]
    fn like_terms_are_collected_and_numbers_folded() {
        let times = |n: f64, x: Term| Term::apply(Op::Mul, [Term::Number(n), x]);
        let both = |a: Term, b: Term| Term::apply(Op::Mul, [a, b]);
        for (op, args, expected) in [
            (Op::Add, [times(1900.0, x(1)), times(1900.0, x(1))], "3800·x₁"),
            (Op::Mul, [Term::Number(0.01), times(100.0, x(1))], "x₁"),
            (Op::Add, [both(x(0), x(1)), both(x(1), x(0))], "2·x₀·x₁"),
            (Op::Sub, [times(0.1, x(0)), times(0.1, x(0))], "0"),
            (Op::Sub, [times(0.1, x(0)), times(-0.2, x(0))], "0.3·x₀"),
            (Op::Add, [times(-1.0, x(0)), x(1)], "x₁ − x₀"),
            (Op::Add, [x(1), Term::Number(-702.0)], "x₁ − 702"),
            (Op::Mul, [Term::Number(0.0), x(1)], "0"),
        ] {
            assert_eq!(told(op, args), (expected.to_owned(), false));
        }
    }

    #[test]
    fn what_makes_up_for_a_rounded_pivot_is_left_out() {
        let shifted = Term::apply(Op::Sub, [x(0), Term::Number(0.7)]);
        let line = Term::apply(Op::Mul, [Term::Number(99.0), shifted]);
        let told = |size: f64, pivots: bool| {
            let (term, left_out) = tidy(Op::Add, vec![line.clone(), Term::Number(size)], pivots);
            (Script::Unicode.term(&term), left_out)
        };
        assert_eq!(told(-2e-15, true), ("99·(x₀ − 0.7)".to_owned(), true));
        assert_eq!(told(-2e-9, true), ("99·(x₀ − 0.7) − 2e-9".to_owned(), false));
        assert_eq!(told(-2e-15, false), ("99·(x₀ − 0.7) − 2e-15".to_owned(), false));
    }

    #[test]
    fn the_derivative_of_an_absolute_value_is_a_sign() {
        let zero = |op: Op| Term::apply(op, [x(0), Term::Number(0.0)]);
        let square = Term::apply(Op::Mul, [x(0), x(0)]);
        let minus = Term::apply(Op::Neg, [x(1)]);
        let inner = |last: Term| Term::apply(Op::Select, [zero(Op::Lt), minus.clone(), last]);
        let told = |last: Term| {
            let args = vec![zero(Op::Gt), x(1), inner(last)];
            Script::Unicode.term(&tidy(Op::Select, args, false).0)
        };
        assert_eq!(told(square), "x₁·sgn(x₀)");
        assert_eq!(told(x(2)), "φ(x₀ > 0; x₁, φ(x₀ < 0; −x₁, x₂))");
    }
}
