//! Patterns of rules: from text to patterns of the e-graph.
//!
//! `(mul ?a 2)` is a primitive by its name, variables of one letter, and numbers.

use egg::{ENodeOrVar, Id, Pattern, PatternAst, RecExpr, Subst, Var};

use super::facts::Terms;
use super::language::Term;
use crate::op::Op;
use crate::ssa::{Def, Graph, Node};

/// A pattern as a tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Variable(char),
    Number(f64),
    Apply(Op, Vec<Tree>),
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
            return (words.next() == Some(")")).then_some(Tree::Apply(op, operands?));
        }
        match word.strip_prefix('?') {
            Some(name) => name.chars().next().map(Tree::Variable),
            None => word.parse().ok().map(Tree::Number),
        }
    }

    /// The primitives in it, one bit each.
    pub(super) fn ops(&self) -> u64 {
        match self {
            Tree::Variable(_) | Tree::Number(_) => 0,
            Tree::Apply(op, operands) => {
                operands.iter().fold(bit(*op), |ops, operand| ops | operand.ops())
            }
        }
    }

    /// The same pattern with the operands of sums and products in all orders.
    /// Constants come second in graphs, so they do in patterns.
    pub(super) fn orders(&self) -> Vec<Tree> {
        let Tree::Apply(op, operands) = self else { return vec![self.clone()] };
        let mut lists: Vec<Vec<Tree>> = vec![Vec::new()];
        for operand in operands {
            let orders = operand.orders();
            let longer = |list: &Vec<Tree>| {
                let list = list.clone();
                orders
                    .iter()
                    .map(move |order| [list.clone(), vec![order.clone()]].concat())
                    .collect::<Vec<_>>()
            };
            lists = lists.iter().flat_map(longer).collect();
        }
        let swaps = matches!(op, Op::Add | Op::Mul)
            && operands[0] != operands[1]
            && !matches!(operands[1], Tree::Number(_));
        let mut orders = Vec::new();
        for list in lists {
            if swaps {
                orders.push(Tree::Apply(*op, vec![list[1].clone(), list[0].clone()]));
            }
            orders.push(Tree::Apply(*op, list));
        }
        orders
    }

    /// Whether `node` is an instance of it, with these nodes for letters.
    pub(super) fn occurs(
        &self,
        graph: &Graph,
        node: Node,
        letters: &mut Vec<(char, Node)>,
    ) -> bool {
        match self {
            Tree::Variable(name) => match letters.iter().find(|(letter, _)| letter == name) {
                Some(&(_, same)) => same == node,
                None => {
                    letters.push((*name, node));
                    true
                }
            },
            Tree::Number(value) => graph.constant(node) == Some(*value),
            Tree::Apply(op, operands) => match graph.nodes[node].def {
                Def::Apply(same, args) if same == *op => {
                    let mut pairs = operands.iter().zip(args);
                    pairs.all(|(operand, arg)| operand.occurs(graph, arg, letters))
                }
                _ => false,
            },
        }
    }

    pub(super) fn ast(&self) -> PatternAst<Term> {
        let mut ast = RecExpr::default();
        self.add_to(&mut ast);
        ast
    }

    pub(super) fn pattern(&self) -> Pattern<Term> {
        Pattern::new(self.ast())
    }

    fn add_to(&self, ast: &mut PatternAst<Term>) -> Id {
        let node = match self {
            Tree::Variable(name) => ENodeOrVar::Var(variable(*name)),
            Tree::Number(value) => ENodeOrVar::ENode(Term::constant(*value)),
            Tree::Apply(op, operands) => {
                let ids: Vec<Id> = operands.iter().map(|operand| operand.add_to(ast)).collect();
                ENodeOrVar::ENode(Term::apply(*op, &ids))
            }
        };
        ast.add(node)
    }
}

pub(super) fn bit(op: Op) -> u64 {
    1 << op as u32
}

/// The variable of this letter.
pub(super) fn variable(name: char) -> Var {
    Var::from_u32(u32::from(name))
}

/// Adds the instance of `ast`. Returns its class, and, if it is one, the term at
/// its root.
pub(super) fn instantiate(
    terms: &mut Terms,
    ast: &PatternAst<Term>,
    subst: &Subst,
) -> Option<(Id, Option<Term>)> {
    let mut ids: Vec<Id> = Vec::with_capacity(ast.len());
    let mut root = None;
    for node in ast.iter() {
        let (id, term) = match node {
            ENodeOrVar::Var(variable) => (*subst.get(*variable)?, None),
            ENodeOrVar::ENode(term) => {
                let mut term = term.clone();
                for operand in egg::Language::children_mut(&mut term) {
                    *operand = terms.find(*ids.get(usize::from(*operand))?);
                }
                (terms.add(term.clone()), Some(term))
            }
        };
        ids.push(id);
        root = Some((id, term));
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_primitive_has_a_bit() {
        assert!(Op::ALL.len() <= 64);
    }

    #[test]
    fn operands_of_sums_and_products_come_in_all_orders() {
        let count = |text| Tree::parse(text).map(|tree| tree.orders().len());
        assert_eq!(count("(mul (div ?b ?a) ?a)"), Some(2));
        assert_eq!(count("(add (mul ?x ?x) 1)"), Some(1));
        assert_eq!(count("(add (mul ?a ?b) (mul ?a ?c))"), Some(8));
        assert_eq!(count("(mul ?a"), None);
        assert_eq!(count("(frob ?a)"), None);
    }
}
