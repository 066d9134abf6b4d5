//! Short formulas without names, to describe applications of rules. Entry φs are φ_L and exit φs
//! φ_L', each with its first value.

use super::formula::{Names, letter};
use super::term::Term;
use crate::op::Op;
use crate::ssa::{ArrayData, Block, Def, End, Entry, Graph, Node, Region};

/// The largest depth of a term; deeper operands become "…".
const MAX_DEPTH: usize = 5;
/// The largest number of leaves of a branch; a φ of a larger one becomes "…".
const MAX_LEAVES: usize = 4;

/// Writes nodes of a graph as terms of their operands.
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
                    _ => Term::ellipsis(),
                });
            }
            Def::Entry(region, number) => ("φ_L", graph.entries(region).get(number as usize)),
            Def::Phi(region, number) if graph.regions[region].cycle.is_some() => {
                ("φ_L'", carried(graph, region, number as usize).next())
            }
            Def::Phi(region, _) => {
                let ends = graph.leaves(graph.regions[region].root).len();
                return (ends > MAX_LEAVES).then(Term::ellipsis);
            }
            _ => return None,
        };
        Some(match entry {
            Some(entry) if depth > 0 => Term::atom(format!(
                "{sign}({}, …)",
                Names::term(self, entry.first, depth - 1).text()
            )),
            _ => Term::ellipsis(),
        })
    }
}

impl<'a> Brief<'a> {
    pub(crate) fn new(graph: &'a Graph) -> Self {
        Brief(graph)
    }

    pub(crate) fn term(&self, node: Node) -> Term {
        Names::term(self, node, MAX_DEPTH)
    }

    pub(crate) fn node(&self, node: Node) -> String {
        self.term(node).text()
    }

    /// The equation of C2 for `phi`: the derivative of a φ of a branch is a φ of derivatives.
    /// `None` for other nodes.
    pub(crate) fn differentiated(&self, phi: Node) -> Option<String> {
        let derivative = |value: Node| {
            Term::atom(format!("∂({})", Names::term(self, value, MAX_DEPTH - 1).text()))
        };
        let result = match self.0.nodes[phi].def {
            Def::Apply(Op::Select, [condition, arms @ ..]) => {
                self.chosen(condition, arms.map(derivative), MAX_DEPTH)
            }
            Def::Phi(region, number) if self.0.regions[region].cycle.is_none() => {
                let root = self.0.regions[region].root;
                self.tree(root, MAX_DEPTH, &mut |values| derivative(values[number as usize]))
            }
            _ => return None,
        };
        Some(format!("∂{} = {}", self.node(phi), result.text()))
    }

    /// The equation of `node` and `other`.
    pub(crate) fn same(&self, node: Node, other: Node) -> String {
        format!("{} = {}", self.node(node), self.node(other))
    }

    /// The equation of F3 for the first φ of a branch: its arms are swapped.
    pub(crate) fn complement(&self, condition: Node, arms: [Block; 2]) -> String {
        let [a, b] = arms.map(|arm| self.passed(arm, 0, MAX_DEPTH).text());
        let [holds, fails] = [true, false].map(|holds| self.condition(condition, holds, MAX_DEPTH));
        format!("φ({holds}; {a}, {b}) = φ({fails}; {b}, {a})")
    }

    /// The equation of `node` and a φ of `region` of applications, one for each leaf.
    pub(crate) fn distributed<'b>(
        &self,
        node: Node,
        region: Region,
        ends: impl IntoIterator<Item = (Op, &'b [Node])>,
    ) -> String {
        let mut ends = ends.into_iter();
        let result = self.tree(self.0.regions[region].root, MAX_DEPTH - 1, &mut |_| {
            ends.next()
                .map_or_else(Term::ellipsis, |(op, args)| self.applied(op, args, MAX_DEPTH - 1))
        });
        format!("{} = {}", self.node(node), result.text())
    }
}

/// The entry φs of the loop `region` that equal exit φ `number` at each exit: the value of the last
/// iteration, or the next one.
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
