//! The terms and conditions of a graph's nodes.

use super::term::{Level, Term, subscript};
use crate::op::Op;
use crate::ssa::{Block, Def, End, Graph, Node};

/// Formulas of a graph, by the names that its nodes have.
pub(crate) trait Names {
    fn graph(&self) -> &Graph;

    /// The name of `node`, if it has one.
    fn name(&self, node: Node) -> Option<String>;

    /// What is written for `node`, if that is no matter of its operands alone.
    fn leaf(&self, node: Node, depth: usize) -> Option<Term>;

    /// The name of an input.
    fn input(&self, number: usize) -> String {
        match number.checked_sub(self.graph().active) {
            None => format!("x{}", subscript(number)),
            Some(number) => format!("d{}", subscript(number)),
        }
    }

    /// `node` by its name, or written out to `depth`.
    fn term(&self, node: Node, depth: usize) -> Term {
        self.name(node).map_or_else(|| self.written(node, depth), Term::atom)
    }

    /// `node` written out to `depth`.
    fn written(&self, node: Node, depth: usize) -> Term {
        if let Some(leaf) = self.leaf(node, depth) {
            return leaf;
        }
        let inner = |node: Node| self.term(node, depth.saturating_sub(1));
        match self.graph().nodes[node].def {
            Def::Const(bits) => Term::number(f64::from_bits(bits)),
            Def::Input(number) => Term::atom(self.input(number as usize)),
            Def::Apply(Op::Attach, [value, ..]) => self.term(value, depth),
            _ if depth == 0 => Term::dots(),
            Def::Apply(op, _) if op.is_comparison() => {
                Term::new(self.condition(node, true, depth - 1), Level::Relation)
            }
            Def::Apply(Op::Select, [condition, sides @ ..]) => {
                self.chosen(condition, sides.map(inner), depth)
            }
            Def::Apply(op, args) => Term::apply(op, args[..op.arity()].iter().map(|&a| inner(a))),
            Def::Phi(region, number) => {
                let value = |values: &[Node]| values.get(number as usize).copied();
                let mut end = |values: &[Node]| value(values).map_or_else(Term::dots, inner);
                self.tree(self.graph().regions[region].root, depth, &mut end)
            }
            _ => Term::dots(),
        }
    }

    /// What the tree below `block` comes to, by what its ends pass on.
    fn tree(&self, block: Block, depth: usize, end: &mut dyn FnMut(&[Node]) -> Term) -> Term {
        match &self.graph().blocks[block].end {
            End::Return(values) => end(values),
            &End::Branch { condition, then, otherwise } => {
                let sides = [then, otherwise].map(|side| self.tree(side, depth, end));
                self.chosen(condition, sides, depth)
            }
            End::Open => Term::dots(),
        }
    }

    /// φ of two terms.
    fn chosen(&self, condition: Node, [then, otherwise]: [Term; 2], depth: usize) -> Term {
        let (condition, holds) = self.decision(condition);
        let condition = self.condition(condition, true, depth.saturating_sub(1));
        let sides = if holds { [then, otherwise] } else { [otherwise, then] };
        Term::atom(format!("φ({condition}; {}, {})", sides[0].text(), sides[1].text()))
    }

    /// The condition and the sides of a choice between two values.
    fn split(&self, choice: Node) -> Option<(Node, [Node; 2])> {
        match self.graph().nodes[choice].def {
            _ if self.name(choice).is_some() => None,
            Def::Apply(Op::Select, [condition, sides @ ..]) => Some((condition, sides)),
            Def::Phi(region, number) if self.graph().regions[region].cycle.is_none() => {
                let blocks = &self.graph().blocks;
                let root = &blocks[self.graph().regions[region].root];
                let End::Branch { condition, then, otherwise } = root.end else { return None };
                let value = |block: Block| match &blocks[block].end {
                    End::Return(values) => values.get(number as usize).copied(),
                    _ => None,
                };
                Some((condition, [value(then)?, value(otherwise)?]))
            }
            _ => None,
        }
    }

    /// What decides a condition, and whether that has to hold for it: a choice between numbers is
    /// decided by its condition, and so is a comparison of it with one of them.
    fn decision(&self, condition: Node) -> (Node, bool) {
        let (mut decides, mut holds) = (condition, true);
        loop {
            let (choice, compared) = match self.graph().nodes[decides].def {
                Def::Apply(op @ (Op::Eq | Op::Ne), [choice, number, _]) => {
                    (choice, self.graph().constant(number).map(|number| (number, op == Op::Eq)))
                }
                _ => (decides, Some((0.0, false))),
            };
            let Some((number, is_equal)) = compared else { return (decides, holds) };
            let is_so = |value: f64| (value == number) == is_equal;
            let sides = match (self.split(choice), self.graph().nodes[choice].def) {
                (Some((condition, [a, b])), _) => {
                    let [a, b] = [a, b].map(|side| self.graph().constant(side).map(is_so));
                    a.zip(b).map(|(a, b)| (condition, a, b))
                }
                (None, Def::Apply(op, _)) if op.is_comparison() && choice != decides => {
                    Some((choice, is_so(1.0), is_so(0.0)))
                }
                _ => None,
            };
            match sides {
                Some((inner, a, b)) if a != b => (decides, holds) = (inner, holds == a),
                _ => return (decides, holds),
            }
        }
    }

    /// That the condition `node` holds, or that it does not.
    fn condition(&self, node: Node, holds: bool, depth: usize) -> String {
        let (node, is_same) = self.decision(node);
        let (holds, graph) = (holds == is_same, self.graph());
        let side = |node: Node| self.term(node, depth).at_least(Level::Sum);
        match graph.nodes[node].def {
            Def::Apply(Op::Lt, [a, b, _]) if graph.constant(b) == Some(f64::INFINITY) => {
                let inner = match graph.nodes[a].def {
                    Def::Apply(Op::Abs, [inner, ..]) if self.name(a).is_none() => inner,
                    _ => a,
                };
                format!("{} is {}finite", side(inner), if holds { "" } else { "not " })
            }
            Def::Apply(op, [a, b, _]) if op.is_comparison() => {
                format!("{} {} {}", side(a), relation(op, holds), side(b))
            }
            _ => format!("{} {} 0", side(node), relation(Op::Ne, holds)),
        }
    }
}

fn relation(op: Op, holds: bool) -> &'static str {
    match (op, holds) {
        (Op::Lt, true) | (Op::Ge, false) => "<",
        (Op::Gt, true) | (Op::Le, false) => ">",
        (Op::Le, true) | (Op::Gt, false) => "≤",
        (Op::Ge, true) | (Op::Lt, false) => "≥",
        (Op::Eq, true) | (Op::Ne, false) => "=",
        (Op::Ne, true) | (Op::Eq, false) => "≠",
        (_, true) => "≡",
        (_, false) => "≢",
    }
}
