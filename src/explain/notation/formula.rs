//! Terms and conditions of the nodes of a graph.

use super::term::{Level, Term, subscript};
use crate::op::Op;
use crate::ssa::{Block, Def, End, Graph, Node};

/// Formulas of a graph, by the names that its nodes have.
pub(crate) trait Names {
    fn graph(&self) -> &Graph;

    /// The name of `node`, if it has one.
    fn name(&self, _: Node) -> Option<String> {
        None
    }

    /// The term of `node`, if it is not determined by those of its operands.
    fn leaf(&self, node: Node, depth: usize) -> Option<Term>;

    /// `node` by its name, or written out to `depth`.
    fn term(&self, node: Node, depth: usize) -> Term {
        self.name(node).map_or_else(|| self.written(node, depth), Term::atom)
    }

    /// `node` written out to `depth`.
    fn written(&self, node: Node, depth: usize) -> Term {
        let graph = self.graph();
        match (self.leaf(node, depth), graph.nodes[node].def) {
            (Some(leaf), _) => leaf,
            (_, Def::Const(bits)) => Term::number(f64::from_bits(bits)),
            (_, Def::Input(number)) => Term::atom(input(graph, number)),
            (_, Def::Apply(op, args)) if depth > 0 => self.applied(op, &args, depth),
            (_, Def::Phi(region, number)) if depth > 0 => {
                self.passed(graph.regions[region].root, number as usize, depth)
            }
            _ => Term::ellipsis(),
        }
    }

    /// The application of `op`.
    fn applied(&self, op: Op, args: &[Node], depth: usize) -> Term {
        let inner = |&node: &Node| self.term(node, depth.saturating_sub(1));
        match (op, args) {
            (Op::Select, &[_, a, b]) if a == b => self.term(a, depth),
            (Op::Select, [condition, arms @ ..]) => {
                self.chosen(*condition, [0, 1].map(|arm| inner(&arms[arm])), depth)
            }
            (Op::Attach, [value, ..]) => self.term(*value, depth),
            _ if op.is_comparison() => {
                Term::new(self.comparison(op, args, true, depth - 1), Level::Relation)
            }
            _ => Term::apply(op, args[..op.arity()].iter().map(inner)),
        }
    }

    /// The term of φ `number` of the tree below `block`.
    fn passed(&self, block: Block, number: usize, depth: usize) -> Term {
        self.tree(block, depth, &mut |values| self.term(values[number], depth.saturating_sub(1)))
    }

    /// The term of the tree below `block`, from the terms `end` of its leaves.
    fn tree(&self, block: Block, depth: usize, end: &mut dyn FnMut(&[Node]) -> Term) -> Term {
        match &self.graph().blocks[block].end {
            End::Return(values) => end(values),
            &End::Branch { condition, then, otherwise } => {
                let arms = [then, otherwise].map(|arm| self.tree(arm, depth, end));
                self.chosen(condition, arms, depth)
            }
            End::Open => Term::ellipsis(),
        }
    }

    /// The φ of two terms.
    fn chosen(&self, condition: Node, [then, otherwise]: [Term; 2], depth: usize) -> Term {
        let condition = self.condition(condition, true, depth.saturating_sub(1));
        Term::atom(format!("φ({condition}; {}, {})", then.text(), otherwise.text()))
    }

    /// The condition `node`, or its complement if `holds` is false.
    fn condition(&self, node: Node, holds: bool, depth: usize) -> String {
        match self.graph().nodes[node].def {
            Def::Apply(op, args) if op.is_comparison() => self.comparison(op, &args, holds, depth),
            _ => {
                let term = self.term(node, depth).at_least(Level::Sum);
                format!("{term} {} 0", relation(Op::Ne, holds))
            }
        }
    }

    fn comparison(&self, op: Op, args: &[Node], holds: bool, depth: usize) -> String {
        let [a, b] = [args[0], args[1]].map(|arg| self.term(arg, depth).at_least(Level::Sum));
        format!("{a} {} {b}", relation(op, holds))
    }
}

/// The letter of an input, and its number among those of that letter.
pub(crate) fn letter(graph: &Graph, input: u32) -> (&'static str, usize) {
    match (input as usize).checked_sub(graph.active) {
        None => ("x", input as usize),
        Some(number) => ("d", number),
    }
}

/// The name of an input.
pub(crate) fn input(graph: &Graph, number: u32) -> String {
    let (letter, number) = letter(graph, number);
    format!("{letter}{}", subscript(number))
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
