//! Nested sums and products as lists, the way they are written.

use super::term::Term;
use crate::op::Op;

/// What is added up, each with whether it is subtracted.
pub(super) fn summands(term: &Term, negative: bool, parts: &mut Vec<(bool, Term)>) {
    let Term::Apply(op, args) = term else { return parts.push((negative, term.clone())) };
    match op {
        // What is subtracted keeps its parentheses, as in the program.
        _ if negative => parts.push((true, term.clone())),
        Op::Add | Op::Sub => {
            summands(&args[0], false, parts);
            summands(&args[1], *op == Op::Sub, parts);
        }
        Op::MulAdd => {
            parts.push((false, Term::apply(Op::Mul, args[..2].iter().cloned())));
            summands(&args[2], false, parts);
        }
        Op::ExpM1 => {
            parts.push((false, Term::apply(Op::Exp, args.iter().cloned())));
            parts.push((true, Term::Number(1.0)));
        }
        _ => parts.push((false, term.clone())),
    }
}

/// What is multiplied, and what is divided by.
#[derive(Default)]
pub(super) struct Factors {
    pub(super) negative: bool,
    pub(super) over: Vec<(Term, u32)>,
    pub(super) under: Vec<(Term, u32)>,
}

impl Factors {
    pub(super) fn collect(&mut self, term: &Term, inverse: bool) {
        match term {
            Term::Apply(Op::Mul, args) => {
                self.collect(&args[0], inverse);
                self.collect(&args[1], inverse);
            }
            Term::Apply(Op::Div, args) => {
                self.collect(&args[0], inverse);
                self.collect(&args[1], !inverse);
            }
            Term::Apply(Op::Recip, args) => self.collect(&args[0], !inverse),
            Term::Apply(Op::Neg, args) => {
                self.negative = !self.negative;
                self.collect(&args[0], inverse);
            }
            Term::Number(value) if *value < 0.0 => {
                self.negative = !self.negative;
                self.collect(&Term::Number(-value), inverse);
            }
            Term::Number(value) if *value == 1.0 => {}
            _ => {
                let (base, count) = match term {
                    Term::Apply(Op::Powi, args) => match args[1] {
                        Term::Number(n) if (1.0..1e4).contains(&n) => (&args[0], n as u32),
                        _ => (term, 1),
                    },
                    _ => (term, 1),
                };
                let list = if inverse { &mut self.under } else { &mut self.over };
                match list.iter_mut().find(|(known, _)| known == base) {
                    Some((Term::Number(_), _)) => list.push((base.clone(), count)),
                    Some((_, known)) => *known += count,
                    // Numbers come first.
                    None if matches!(base, Term::Number(_)) => {
                        let at = list.iter().take_while(|(t, _)| matches!(t, Term::Number(_)));
                        list.insert(at.count(), (base.clone(), count));
                    }
                    None => list.push((base.clone(), count)),
                }
            }
        }
    }
}
