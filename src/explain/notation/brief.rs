//! Short formulas without names, for the records of applied formulas. What a loop carries is
//! φ_L, what comes out of it φ_L', each with what it begins with.

use super::formula::{Names, letter};
use super::term::Term;
use crate::op::Op;
use crate::ssa::{ArrayData, Block, Def, End, Entry, Graph, Node, Region};

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

    fn leaf(&self, node: Node, depth: usize) -> Option<Term> {
        let graph = self.0;
        let (sign, entry) = match graph.nodes[node].def {
            Def::Iteration(_) => return Some(Term::atom("i")),
            Def::Element(access) => {
                let first = match &graph.arrays[graph.accesses[access].array] {
                    ArrayData::Inputs { first, .. } => Some(Def::Input(*first)),
                    ArrayData::Nodes(nodes) => nodes.first().map(|&node| graph.nodes[node].def),
                    _ => None,
                };
                return Some(match first {
                    Some(Def::Input(first)) => Term::atom(letter(graph, first).0),
                    _ => Term::dots(),
                });
            }
            Def::Entry(region, number) => ("φ_L", graph.entries(region).get(number as usize)),
            Def::Phi(region, number) if graph.regions[region].cycle.is_some() => {
                ("φ_L'", carried(graph, region, number as usize).next())
            }
            Def::Phi(region, _) => {
                let ends = graph.leaves(graph.regions[region].root).len();
                return (ends > MOST_ENDS).then(Term::dots);
            }
            _ => return None,
        };
        Some(match entry {
            Some(entry) if depth > 0 => Term::atom(format!(
                "{sign}({}, …)",
                Names::term(self, entry.first, depth - 1).text()
            )),
            _ => Term::dots(),
        })
    }
}

impl<'a> Brief<'a> {
    pub(crate) fn new(graph: &'a Graph) -> Self {
        Brief(graph)
    }

    pub(crate) fn term(&self, node: Node) -> Term {
        Names::term(self, node, DEPTH)
    }

    pub(crate) fn node(&self, node: Node) -> String {
        self.term(node).text()
    }

    /// That the derivative of `phi`, a φ of a branch, is a φ of derivatives.
    pub(crate) fn differentiated(&self, phi: Node) -> Option<String> {
        let derivative =
            |value: Node| Term::atom(format!("∂({})", Names::term(self, value, DEPTH - 1).text()));
        let result = match self.0.nodes[phi].def {
            Def::Apply(Op::Select, [condition, sides @ ..]) => {
                self.chosen(condition, sides.map(derivative), DEPTH)
            }
            Def::Phi(region, number) if self.0.regions[region].cycle.is_none() => {
                let root = self.0.regions[region].root;
                self.tree(root, DEPTH, &mut |values| derivative(values[number as usize]))
            }
            _ => return None,
        };
        Some(format!("∂{} = {}", self.node(phi), result.text()))
    }

    /// That `node` comes to `other`.
    pub(crate) fn same(&self, node: Node, other: Node) -> String {
        format!("{} = {}", self.node(node), self.node(other))
    }

    /// That the sides of a branch may change places, by the first values that they pass on.
    pub(crate) fn complement(&self, condition: Node, sides: [Block; 2]) -> String {
        let [a, b] = sides.map(|side| self.passed(side, 0, DEPTH).text());
        let [holds, fails] = [true, false].map(|holds| self.condition(condition, holds, DEPTH));
        format!("φ({holds}; {a}, {b}) = φ({fails}; {b}, {a})")
    }

    /// That `node` is a φ of `region` of applications, one for each end.
    pub(crate) fn distributed<'b>(
        &self,
        node: Node,
        region: Region,
        ends: impl IntoIterator<Item = (Op, &'b [Node])>,
    ) -> String {
        let mut ends = ends.into_iter();
        let result = self.tree(self.0.regions[region].root, DEPTH - 1, &mut |_| {
            ends.next().map_or_else(Term::dots, |(op, args)| self.applied(op, args, DEPTH - 1))
        });
        format!("{} = {}", self.node(node), result.text())
    }
}

/// The entries of the loop `region` whose values φ `number` has at each exit: those of the last
/// iteration, or those that would be next.
pub(crate) fn carried(
    graph: &Graph,
    region: Region,
    number: usize,
) -> impl Iterator<Item = &Entry> {
    let (decides, nexts) = graph.passed_before_phis(region);
    let leaves = graph.leaves(graph.regions[region].root);
    let is_carried = move |at: usize, entry: &Entry| {
        leaves.iter().all(|&leaf| {
            let End::Return(values) = &graph.blocks[leaf].end else { return false };
            let again = values[..decides].first().and_then(|&again| graph.constant(again));
            let value = values.get(decides + nexts + number);
            let is_next = values.get(decides + at) == value;
            match again {
                Some(0.0) => is_next || value == Some(&entry.phi),
                Some(_) => true,
                None => is_next,
            }
        })
    };
    let entries = graph.entries(region).iter().enumerate();
    entries.filter(move |&(at, entry)| is_carried(at, entry)).map(|(_, entry)| entry)
}
