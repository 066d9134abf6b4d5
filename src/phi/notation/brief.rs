//! Terms of a few symbols, for the record of formulas that were applied. They are
//! told without a look at the rest of the graph.

use super::phis::carries;
use super::rows::{Row, inputs};
use super::term::{Name, Origin, Term};
use super::tidy::tidy;
use super::write::Script;
use crate::ssa::{Def, Graph, Node, SeriesData};

/// What is further down is left out.
const DEPTH: usize = 5;

/// Tells nodes of a graph, by what they are made of. What a loop carries is told as
/// φ_L, with what it begins with.
#[derive(Clone, Copy)]
pub(in crate::phi) struct Brief<'a> {
    graph: &'a Graph,
}

impl<'a> Brief<'a> {
    pub(in crate::phi) fn new(graph: &'a Graph) -> Self {
        Brief { graph }
    }

    pub(in crate::phi) fn node(&self, node: Node) -> String {
        Script::Unicode.term(&self.term(node, DEPTH))
    }

    fn carried(&self, node: Node, exit: bool, first: Node, depth: usize) -> Term {
        let first = Box::new(self.term(first, depth - 1));
        Term::Carried { exit, first, of: Origin(Some(node)) }
    }

    fn term(&self, node: Node, depth: usize) -> Term {
        let name =
            |letter: &'static str, number: Option<usize>| Term::Name(Name { letter, number });
        let input = |number: usize| match number.checked_sub(self.graph.active) {
            None => name("x", Some(number)),
            Some(number) => name("d", Some(number)),
        };
        let vague = |letter: &'static str| Term::Vague(letter, Origin(Some(node)));
        match self.graph.nodes[node].def {
            Def::Const(bits) => Term::Number(f64::from_bits(bits)),
            Def::Call(_) | Def::Result(..) => vague("…"),
            Def::Input(number) => input(number as usize),
            // Of which loop is not told.
            Def::Iteration(_) => vague("i"),
            Def::Element(access) => {
                let data = &self.graph.accesses[access];
                match &self.graph.series[data.series] {
                    &SeriesData::Inputs { first, .. } => match self.graph.is_active(first) {
                        true => vague("x"),
                        false => vague("d"),
                    },
                    SeriesData::Nodes(nodes) => match inputs(self.graph, nodes) {
                        Some(Row::Inputs { letter, .. }) => vague(letter),
                        _ => vague("…"),
                    },
                    _ => vague("…"),
                }
            }
            _ if depth == 0 => vague("…"),
            Def::Apply(op, args) => {
                let args = args[..op.arity()].iter().map(|&arg| self.term(arg, depth - 1));
                tidy(op, args.collect(), false).0
            }
            Def::Entry(region, number) => match self.graph.entries(region).get(number as usize) {
                Some(entry) => self.carried(node, false, entry.first, depth),
                None => vague("…"),
            },
            Def::Phi(region, number) => {
                let entries = self.graph.entries(region);
                let is_its = |&entry: &usize| carries(self.graph, region, entry, number as usize);
                match (0..entries.len()).find(is_its) {
                    Some(entry) => self.carried(node, true, entries[entry].first, depth),
                    None => vague("…"),
                }
            }
        }
    }
}

/// A number, without the digits that are only rounding.
pub(in crate::phi) fn number(number: f64) -> String {
    Script::Unicode.term(&Term::Number(super::tidy::shortened(number)))
}
