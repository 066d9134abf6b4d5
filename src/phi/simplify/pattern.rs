//! Patterns of rules, read from text.
//!
//! `(mul ?a 2)` is a primitive by its name, variables of one letter, and numbers. The
//! letters k and m stand for constants.

use egg::Id;

use super::facts::Terms;
use super::language::Term;
use super::matching::Letters;
use crate::op::Op;

/// A pattern as a tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Variable(char),
    Number(f64),
    Apply {
        op: Op,
        operands: Vec<Tree>,
        /// Whether the operands in the other order are another pattern of the same
        /// value. Constants come second in graphs, so they do in patterns.
        swaps: bool,
        /// What the operands need, see [`Tree::needs`].
        below: u64,
    },
}

impl Tree {
    /// Reads `text`; `None` if it is no pattern.
    pub(super) fn parse(text: &str) -> Option<Tree> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ");
        let mut words = spaced.split_whitespace();
        let tree = Tree::read(&mut words)?;
        words.next().is_none().then_some(tree)
    }

    fn read<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Tree> {
        let word = words.next()?;
        if word == "(" {
            let op = Op::from_name(words.next()?)?;
            let operands: Option<Vec<Tree>> = (0..op.arity()).map(|_| Tree::read(words)).collect();
            let operands = operands?;
            let swaps = matches!(op, Op::Add | Op::Mul)
                && operands[0] != operands[1]
                && !matches!(operands[1], Tree::Number(_));
            let below = operands.iter().fold(0, |all, operand| all | operand.needs());
            let tree = Tree::Apply { op, operands, swaps, below };
            return (words.next() == Some(")")).then_some(tree);
        }
        match word.strip_prefix('?') {
            Some(name) => name.chars().next().map(Tree::Variable),
            None => word.parse().ok().map(Tree::Number),
        }
    }

    /// The primitive at the root.
    pub(super) fn root(&self) -> Option<Op> {
        match self {
            Tree::Variable(_) | Tree::Number(_) => None,
            Tree::Apply { op, .. } => Some(*op),
        }
    }

    /// What a value must have to be an instance: the primitive at the root, or
    /// [`CONSTANT`].
    pub(super) fn needs(&self) -> u64 {
        match self {
            Tree::Variable('k' | 'm') | Tree::Number(_) => CONSTANT,
            Tree::Variable(_) => 0,
            Tree::Apply { op, .. } => bit(*op),
        }
    }

    /// What the operands of a value must have for it to be an instance, in any order.
    pub(super) fn needs_below(&self) -> u64 {
        match self {
            Tree::Variable(_) | Tree::Number(_) => 0,
            Tree::Apply { below, .. } => *below,
        }
    }

    /// The primitives in it, one bit each.
    pub(super) fn ops(&self) -> u64 {
        match self {
            Tree::Variable(_) | Tree::Number(_) => 0,
            Tree::Apply { op, operands, .. } => {
                operands.iter().fold(bit(*op), |ops, operand| ops | operand.ops())
            }
        }
    }

    /// Adds the instance in which letters stand for these classes. Returns its class;
    /// none if a letter is missing.
    pub(super) fn instantiate(&self, terms: &mut Terms, letters: &Letters<Id>) -> Option<Id> {
        match self {
            Tree::Variable(name) => {
                let id = letters.iter().find(|(letter, _)| letter == name)?.1;
                Some(terms.find(id))
            }
            Tree::Number(value) => Some(terms.add(Term::constant(*value))),
            Tree::Apply { op, operands, .. } => {
                let mut ids = [Id::from(0); crate::op::MAX_ARITY];
                for (id, operand) in ids.iter_mut().zip(operands) {
                    *id = operand.instantiate(terms, letters)?;
                }
                // What was added last may have made classes one.
                let ids = ids.map(|id| terms.find(id));
                Some(terms.add(Term::apply(*op, &ids[..op.arity()])))
            }
        }
    }
}

/// The bit of constants, beside those of primitives.
pub(super) const CONSTANT: u64 = 1 << 63;

pub(super) fn bit(op: Op) -> u64 {
    1 << op as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_primitive_has_a_bit() {
        assert!(Op::ALL.iter().all(|&op| bit(op) != 0 && bit(op) < CONSTANT));
    }

    #[test]
    fn operands_of_sums_and_products_swap_where_that_is_another_pattern() {
        let swaps = |text| match Tree::parse(text) {
            Some(Tree::Apply { swaps, .. }) => Some(swaps),
            _ => None,
        };
        assert_eq!(swaps("(mul (div ?b ?a) ?a)"), Some(true));
        assert_eq!(swaps("(add (mul ?x ?x) 1)"), Some(false));
        assert_eq!(swaps("(add ?x ?x)"), Some(false));
        assert_eq!(swaps("(sub ?a ?b)"), Some(false));
        assert_eq!(Tree::parse("(mul ?a"), None);
        assert_eq!(Tree::parse("(frob ?a)"), None);
    }
}
