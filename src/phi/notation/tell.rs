//! Equations between φs, for the record of formulas that were applied.

use super::read::{Reader, Style};
use super::term::{Origin, Term};
use super::write::Script;
use crate::op::Op;
use crate::ssa::{Block, Def, End, Graph, Node, Region};

/// What is further down is left out.
const DEPTH: usize = 4;

/// Tells equations about a graph.
pub(in crate::phi) struct Teller<'a> {
    reader: Reader<'a>,
}

impl<'a> Teller<'a> {
    pub(in crate::phi) fn new(graph: &'a Graph) -> Self {
        Teller { reader: Reader::new(graph, Style { sums: false, formulas: false, pivots: false }) }
    }

    /// That all ends of the region of `phi` pass on `value`.
    pub(in crate::phi) fn same(&self, phi: Node, value: Node) -> String {
        equation(&self.brief(phi, DEPTH), &self.brief(value, DEPTH))
    }

    /// That the sides of the region of `phi` may change places.
    pub(in crate::phi) fn complement(&self, phi: Node) -> String {
        let term = self.brief(phi, DEPTH);
        let swapped = match &term {
            Term::Apply(Op::Select, args) => {
                let condition = match &args[0] {
                    Term::Apply(Op::Ne, sides) => Term::apply(Op::Eq, sides.iter().cloned()),
                    other => other.clone(),
                };
                Term::apply(Op::Select, [condition, args[2].clone(), args[1].clone()])
            }
            other => other.clone(),
        };
        equation(&term, &swapped)
    }

    /// That the application `node` of φs of `region` comes to `known`, or may be
    /// done on its sides.
    pub(in crate::phi) fn distributed(
        &self,
        node: Node,
        region: Region,
        known: Option<Node>,
    ) -> String {
        let told = self.brief(node, DEPTH);
        let result = match known {
            Some(known) => self.brief(known, DEPTH),
            None => {
                self.choice(self.reader.graph.regions[region].root, DEPTH, &mut |teller, values| {
                    let Def::Apply(op, args) = teller.reader.graph.nodes[node].def else {
                        return teller.brief(node, DEPTH);
                    };
                    let args = args[..op.arity()].iter().map(|&arg| {
                        let side = match teller.reader.graph.nodes[arg].def {
                            Def::Phi(of, number) if of == region => values.get(number as usize),
                            _ => None,
                        };
                        teller.brief(side.copied().unwrap_or(arg), DEPTH - 2)
                    });
                    Term::Apply(op, args.collect())
                })
            }
        };
        equation(&told, &result)
    }

    /// That `phi`, a choice by `condition` between φs of `region`, is a φ of
    /// choices between these.
    pub(in crate::phi) fn exchanged(
        &self,
        phi: Node,
        condition: Node,
        region: Region,
        pairs: &[(Block, Node, Node)],
    ) -> String {
        let mut pairs = pairs.iter();
        let condition = self.brief(condition, DEPTH - 2);
        let root = self.reader.graph.regions[region].root;
        let result = self.choice(root, DEPTH, &mut |teller, _| match pairs.next() {
            Some(&(_, a, b)) if a == b => teller.brief(a, DEPTH - 2),
            Some(&(_, a, b)) => {
                let sides = [a, b].map(|side| teller.brief(side, DEPTH - 2));
                let [a, b] = sides;
                Term::apply(Op::Select, [condition.clone(), a, b])
            }
            None => nothing(),
        });
        equation(&self.brief(phi, DEPTH), &result)
    }

    /// What the tree below `block` comes to, where `end` tells what its ends do. Its
    /// conditions are told to `depth` at most: they may be φs of branches in turn, each
    /// with conditions of their own.
    fn choice(
        &self,
        block: Block,
        depth: usize,
        end: &mut dyn FnMut(&Self, &[Node]) -> Term,
    ) -> Term {
        match &self.reader.graph.blocks[block].end {
            End::Return(values) => end(self, values),
            &End::Branch { condition, then, otherwise } => {
                let condition = self.brief(condition, depth.min(DEPTH - 2));
                let then = self.choice(then, depth, end);
                let otherwise = self.choice(otherwise, depth, end);
                Term::apply(Op::Select, [condition, then, otherwise])
            }
            End::Open => nothing(),
        }
    }

    /// `node`, to a certain depth.
    fn brief(&self, node: Node, depth: usize) -> Term {
        let graph = self.reader.graph;
        let Some(depth) = depth.checked_sub(1) else {
            return match graph.nodes[node].def {
                Def::Input(_) | Def::Const(_) | Def::Iteration(_) => self.reader.term(node),
                _ => nothing(),
            };
        };
        match graph.nodes[node].def {
            Def::Apply(op, args) => {
                let args = args[..op.arity()].iter();
                Term::Apply(op, args.map(|&arg| self.brief(arg, depth)).collect())
            }
            Def::Phi(region, number) if graph.regions[region].cycle.is_none() => {
                let leaves = graph.leaves(graph.regions[region].root);
                if leaves.len() > 4 {
                    return nothing();
                }
                self.choice(graph.regions[region].root, depth, &mut |teller, values| {
                    let value = values.get(number as usize);
                    value.map_or_else(nothing, |&value| teller.brief(value, depth))
                })
            }
            _ => self.reader.term(node),
        }
    }
}

fn nothing() -> Term {
    Term::Vague("…", Origin(None))
}

fn equation(left: &Term, right: &Term) -> String {
    format!("{} = {}", Script::Unicode.term(left), Script::Unicode.term(right))
}
