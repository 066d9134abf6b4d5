//! Short formulas without names, for the records of applied formulas. What a loop carries is
//! φ_L, what comes out of it φ_L', each with what it begins with.

use super::formula::Names;
use super::term::Term;
use crate::op::Op;
use crate::ssa::{Block, Def, End, Graph, Node, Region, SeriesData};

/// What is further down is left out.
const DEPTH: usize = 5;
/// A φ of a branch with more ends than this is left out.
const MOST_ENDS: usize = 4;

/// Writes nodes of a graph by what they are made of.
#[derive(Clone, Copy)]
pub(crate) struct Brief<'a>(&'a Graph);

impl Names for Brief<'_> {
    fn graph(&self) -> &Graph {
        self.0
    }

    fn name(&self, _: Node) -> Option<String> {
        None
    }

    fn leaf(&self, node: Node, depth: usize) -> Option<Term> {
        let graph = self.0;
        let carried = |sign: &str, first: Node| match depth.checked_sub(1) {
            Some(depth) => Term::atom(format!("{sign}({}, …)", self.term(first, depth).text())),
            None => Term::dots(),
        };
        match graph.nodes[node].def {
            Def::Iteration(_) => Some(Term::atom("i")),
            Def::Element(access) => {
                let first = match &graph.series[graph.accesses[access].series] {
                    SeriesData::Inputs { first, .. } => Some(Def::Input(*first)),
                    SeriesData::Nodes(nodes) => nodes.first().map(|&node| graph.nodes[node].def),
                    _ => None,
                };
                Some(match first {
                    Some(Def::Input(first)) if graph.is_active(first) => Term::atom("x"),
                    Some(Def::Input(_)) => Term::atom("d"),
                    _ => Term::dots(),
                })
            }
            Def::Entry(region, number) => {
                let entry = graph.entries(region).get(number as usize);
                Some(entry.map_or_else(Term::dots, |entry| carried("φ_L", entry.first)))
            }
            Def::Phi(region, number) if graph.regions[region].cycle.is_some() => {
                let mut entries = graph.entries(region).iter().enumerate();
                let its = entries.find(|&(at, _)| carries(graph, region, at, number as usize));
                Some(its.map_or_else(Term::dots, |(_, entry)| carried("φ_L'", entry.first)))
            }
            Def::Phi(region, _) => {
                let ends = graph.leaves(graph.regions[region].root).len();
                (ends > MOST_ENDS).then(Term::dots)
            }
            _ => None,
        }
    }
}

impl<'a> Brief<'a> {
    pub(crate) fn new(graph: &'a Graph) -> Self {
        Brief(graph)
    }

    pub(crate) fn node(&self, node: Node) -> String {
        self.term(node, DEPTH).text()
    }

    /// That the derivative of `phi`, a φ of a branch, is a φ of derivatives.
    pub(crate) fn differentiated(&self, phi: Node) -> Option<String> {
        let derivative =
            |value: Node| Term::atom(format!("∂({})", self.term(value, DEPTH - 1).text()));
        let result = match self.0.nodes[phi].def {
            Def::Apply(Op::Select, [condition, sides @ ..]) => {
                self.chosen(condition, sides.map(derivative), DEPTH)
            }
            Def::Phi(region, number) if self.0.regions[region].cycle.is_none() => {
                let value = |values: &[Node]| values.get(number as usize).copied();
                let mut end = |values: &[Node]| value(values).map_or_else(Term::dots, derivative);
                self.tree(self.0.regions[region].root, DEPTH, &mut end)
            }
            _ => return None,
        };
        Some(format!("∂{} = {}", self.node(phi), result.text()))
    }

    /// That all ends of the region of `phi` pass on `value`.
    pub(crate) fn same(&self, phi: Node, value: Node) -> String {
        format!("{} = {}", self.node(phi), self.node(value))
    }

    /// That the sides of the region of `phi` may change places.
    pub(crate) fn complement(&self, phi: Node) -> String {
        let Some((condition, sides)) = self.split(phi) else { return self.node(phi) };
        let [a, b] = sides.map(|side| self.term(side, DEPTH - 1).text());
        let [holds, fails] = [true, false].map(|holds| self.condition(condition, holds, DEPTH));
        format!("φ({holds}; {a}, {b}) = φ({fails}; {b}, {a})")
    }

    /// That the application `node` of φs of `region` comes to `known`, or may be applied to the
    /// sides.
    pub(crate) fn distributed(&self, node: Node, region: Region, known: Option<Node>) -> String {
        let result = match (known, self.0.nodes[node].def) {
            (Some(known), _) => self.term(known, DEPTH),
            (None, Def::Apply(op, args)) => {
                self.tree(self.0.regions[region].root, DEPTH - 1, &mut |values| {
                    let args = args[..op.arity()].iter().map(|arg| {
                        let side = match self.0.nodes[*arg].def {
                            Def::Phi(of, number) if of == region => values.get(number as usize),
                            _ => None,
                        };
                        self.term(*side.unwrap_or(arg), DEPTH - 2)
                    });
                    Term::apply(op, args)
                })
            }
            _ => Term::dots(),
        };
        format!("{} = {}", self.node(node), result.text())
    }

    /// That `phi`, a choice by `condition` between φs of `region`, is a φ of the choices
    /// between `pairs`, one for each end.
    pub(crate) fn exchanged(
        &self,
        phi: Node,
        condition: Node,
        region: Region,
        pairs: &[(Block, Node, Node)],
    ) -> String {
        let mut pairs = pairs.iter();
        let result = self.tree(self.0.regions[region].root, DEPTH - 1, &mut |_| {
            let Some(&(_, a, b)) = pairs.next() else { return Term::dots() };
            let sides = [a, b].map(|side| self.term(side, DEPTH - 3));
            if a == b { self.term(a, DEPTH - 2) } else { self.chosen(condition, sides, DEPTH - 2) }
        });
        format!("{} = {}", self.node(phi), result.text())
    }
}

/// Whether φ `number` of the loop `region` is what its entry φ `entry` is, or would be next,
/// at each exit.
pub(crate) fn carries(graph: &Graph, region: Region, entry: usize, number: usize) -> bool {
    let (decides, nexts) = graph.passed_before_phis(region);
    let leaves = graph.leaves(graph.regions[region].root);
    leaves.into_iter().all(|leaf| {
        let End::Return(values) = &graph.blocks[leaf].end else { return false };
        let again = values[..decides].first().and_then(|&again| graph.constant(again));
        let value = |index: usize| values.get(decides + index).copied();
        match again {
            Some(0.0) => {
                let phi = graph.entries(region).get(entry).map(|entry| entry.phi);
                [phi, value(entry)].contains(&value(nexts + number))
            }
            Some(_) => true,
            None => value(entry) == value(nexts + number),
        }
    })
}
