//! Names: which nodes of a graph get one, and what the others are as terms.
//!
//! A node gets a name if its term is large, or not small and used several times, or if something
//! refers to it by name. So all terms are small, and the depth of recursion is bounded.

use core::cell::RefCell;

use hashbrown::HashMap;

use super::arrays::{Elements, elements, index};
use super::display::affine_power;
use crate::entity::{Array, Entity};
use crate::notation::{Level, Names, Term, subscript};
use crate::numeric::{AffinePower, Trips};
use crate::ssa::{Access, Block, CallData, Def, End, Graph, Item, Nest, Node, Region, Series};

/// Terms of more symbols than this have parts with names.
const LARGE: u32 = 24;
/// What is used several times gets a name if it has more symbols than this.
const SHARED: u32 = 4;
/// A branch with more ends than this is no term.
const MOST_ENDS: usize = 8;
/// Deeper than any term, as those that are large have names.
pub(super) const DEEP: usize = 1000;

/// The names of a graph.
pub(super) struct Reader<'a> {
    pub(super) graph: &'a Graph,
    pub(super) names: Array<Node, Option<String>>,
    /// The regions that are parts of terms.
    pub(super) inline: Array<Region, bool>,
    pub(super) counters: Array<Region, String>,
    arrays: Array<Series, Elements>,
    /// The arrays of constants or nodes, in order.
    pub(super) tables: Vec<Series>,
    /// A name whose saved trajectory is read.
    pub(super) past: RefCell<Option<String>>,
}

impl Names for Reader<'_> {
    fn graph(&self) -> &Graph {
        self.graph
    }

    fn name(&self, node: Node) -> Option<String> {
        self.names[node].clone()
    }

    fn leaf(&self, node: Node, _: usize) -> Option<Term> {
        match self.graph.nodes[node].def {
            Def::Iteration(region) => Some(Term::atom(self.counters[region].clone())),
            Def::Element(access) => Some(self.element(access)),
            Def::Result(call, number) => self.result(call, number as usize),
            // It is assumed to be accepted.
            Def::Call(_) => Some(Term::number(1.0)),
            _ => None,
        }
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        let mut tables = Vec::new();
        let arrays = elements(graph, &mut tables);
        let mut reader = Reader {
            counters: counters(graph),
            names: Array::filled(None, graph.nodes.len()),
            inline: Array::new(),
            graph,
            arrays,
            tables,
            past: RefCell::default(),
        };
        reader.inline = graph.regions.keys().map(|region| reader.is_inline(region)).collect();
        reader.choose();
        reader
    }

    fn choose(&mut self) {
        let graph = self.graph;
        let uses = uses(graph);
        let mut forced = Array::filled(false, graph.nodes.len());
        for elements in self.arrays.values() {
            if let Elements::Past(node) = elements {
                forced[*node] = true;
            }
        }
        let is_single = graph.regions.keys().flat_map(|region| graph.entries(region)).count() == 1;
        let mut numbers: HashMap<&'static str, usize> = HashMap::new();
        let mut give = |letter: &'static str| {
            let number = numbers.entry(letter).or_insert(0);
            *number += 1;
            Some(match letter == "w" && is_single {
                true => letter.to_owned(),
                false => format!("{letter}{}", subscript(*number)),
            })
        };
        let mut sizes: Array<Node, u32> = Array::filled(1, graph.nodes.len());
        for node in graph.nodes.keys() {
            match graph.nodes[node].def {
                Def::Input(_) | Def::Const(_) | Def::Iteration(_) | Def::Call(_) => continue,
                Def::Entry(..) => self.names[node] = give("w"),
                Def::Phi(region, number) => {
                    if !self.inline[region] {
                        self.names[node] = self.carried_name(region, number).or_else(|| give("z"));
                        continue;
                    }
                    sizes[node] = self.size_of_phi(region, number as usize, &sizes);
                }
                Def::Result(..) | Def::Element(_) => {}
                Def::Apply(..) => {
                    let operands = graph.nodes[node].args().iter();
                    sizes[node] = operands.map(|&arg| self.size(arg, &sizes)).sum::<u32>() + 1;
                }
            }
            let letter = match graph.nodes[node].def {
                Def::Apply(op, _) if op.is_comparison() => continue,
                Def::Phi(..) => "z",
                _ => "t",
            };
            let is_large = sizes[node] > LARGE || sizes[node] > SHARED && uses[node] > 1;
            if forced[node] || is_large {
                self.names[node] = self.names[node].take().or_else(|| give(letter));
            }
        }
    }

    /// Whether `region` can be a part of terms: nothing in it but steps.
    fn is_inline(&self, region: Region) -> bool {
        let fits = |item: &Item| match *item {
            Item::Node(_) => true,
            Item::Region(inner) => self.is_inline(inner),
            Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) => false,
        };
        let (graph, data) = (self.graph, &self.graph.regions[region]);
        data.cycle.is_none()
            && graph.leaves(data.root).len() <= MOST_ENDS
            && graph.tree(data.root).iter().all(|&block| graph.blocks[block].items.iter().all(fits))
    }

    /// The name of an entry φ of `region` that is what a φ of it is when it ends, but for exits
    /// where it is assigned.
    fn carried_name(&self, region: Region, number: u32) -> Option<String> {
        let data = &self.graph.regions[region];
        let (decides, nexts) = self.graph.passed_before_phis(region);
        let leaves = self.graph.leaves(data.root);
        let agrees = |entry: usize, leaf: &Block| {
            let End::Return(values) = &self.graph.blocks[*leaf].end else { return false };
            let is_known = |&again: &Node| self.graph.constant(again).is_some();
            values[..decides].first().is_some_and(is_known)
                || values.get(decides + entry) == values.get(decides + nexts + number as usize)
        };
        let is_free =
            |name: &&String| data.phis.iter().all(|&phi| self.names[phi].as_ref() != Some(*name));
        let mut entries = self.graph.entries(region).iter().enumerate();
        entries.find_map(|(entry, data)| {
            let name = self.names[data.phi].as_ref().filter(is_free)?;
            leaves.iter().all(|leaf| agrees(entry, leaf)).then(|| name.clone())
        })
    }

    fn size(&self, node: Node, sizes: &Array<Node, u32>) -> u32 {
        if self.names[node].is_some() { 1 } else { sizes[node] }
    }

    fn size_of_phi(&self, region: Region, number: usize, sizes: &Array<Node, u32>) -> u32 {
        let of = |block: Block| match &self.graph.blocks[block].end {
            End::Branch { condition, .. } => self.size(*condition, sizes),
            End::Return(values) => values.get(number).map_or(1, |&value| self.size(value, sizes)),
            End::Open => 0,
        };
        self.graph.tree(self.graph.regions[region].root).into_iter().map(of).sum::<u32>() + 1
    }

    pub(super) fn text(&self, node: Node) -> String {
        self.term(node, DEEP).text()
    }

    pub(super) fn element(&self, access: Access) -> Term {
        let data = &self.graph.accesses[access];
        let at = |first| index(data, first, &self.counters);
        let below = |name: &str, at: String| match at.parse() {
            Ok(at) => format!("{name}{}", subscript(at)),
            Err(_) if at.chars().count() == 1 => format!("{name}_{at}"),
            Err(_) => format!("{name}_{{{at}}}"),
        };
        Term::atom(match &self.arrays[data.series] {
            Elements::Named(name) if name.is_ascii() => below(name, at(0)),
            Elements::Named(name) => format!("{name}[{}]", at(0)),
            Elements::Past(node) => {
                let name = self.names[*node].clone().unwrap_or_default();
                let past = format!("{name}[{}]", at(0));
                self.past.borrow_mut().get_or_insert(name);
                past
            }
            Elements::Inputs(letter, first) => below(letter, at(*first)),
        })
    }

    /// The name of an array, if it has one.
    pub(super) fn table(&self, series: Series) -> Option<&str> {
        if let Elements::Named(name) = &self.arrays[series] { Some(name) } else { None }
    }

    /// The routine that a call runs, its operands, and the letter of its results.
    fn routine(&self, call: Node) -> Option<(&AffinePower, &[Node], String)> {
        const LETTERS: [&str; 5] = ["y", "u", "v", "r", "s"];
        let Def::Call(call) = self.graph.nodes[call].def else { return None };
        let CallData { routine, args } = &self.graph.calls[call];
        let (letter, round) = (call.index() % LETTERS.len(), call.index() / LETTERS.len());
        Some((affine_power(routine)?, args, LETTERS[letter].to_owned() + &"'".repeat(round)))
    }

    /// A component of the state after all steps, or its partial derivative.
    fn result(&self, call: Node, number: usize) -> Option<Term> {
        let (power, args, letter) = self.routine(call)?;
        let stride = 1 + power.differentiated().len();
        let (output, part) = ((number - 1) / stride, (number - 1) % stride);
        let row = *power.outputs().get(output)? as usize;
        let component = letter + &subscript(row + 1);
        let Some(part) = part.checked_sub(1) else { return Some(Term::atom(component)) };
        let by = self.term(*args.get(*power.differentiated().get(part)? as usize)?, DEEP);
        Some(Term::new(format!("∂{component}/∂{}", by.at_least(Level::Atom)), Level::Root))
    }

    /// What a call comes to: a vector.
    pub(super) fn called(&self, call: Node) -> Option<String> {
        let (power, args, letter) = self.routine(call)?;
        let n = match power.trips() {
            Trips::Constant(count) => count.to_string(),
            Trips::Input(input) => {
                self.term(*args.get(input as usize)?, DEEP).at_least(Level::Atom)
            }
        };
        let is_driven = power.map().offset().iter().any(Option::is_some);
        let sum = if is_driven { format!(" + Σ_{{j<{n}}} A^j·b") } else { String::new() };
        let place = self.graph.nodes[call].place.and_then(|place| self.graph.places.get(place));
        let place = place.map(|place| format!(" of the loop in line {}", place.line));
        Some(format!("{letter} = A^{n}·p{sum}{}", place.unwrap_or_default()))
    }
}

/// How many places refer to each node.
fn uses(graph: &Graph) -> Array<Node, u32> {
    let mut uses = Array::filled(0, graph.nodes.len());
    // What one place refers to several times is a power, or written once.
    let mut count = |nodes: &[Node]| {
        let again = |&(i, node): &(usize, &Node)| !nodes[..i].contains(node);
        nodes.iter().enumerate().filter(again).for_each(|(_, &node)| uses[node] += 1);
    };
    graph.nodes.values().for_each(|data| count(data.args()));
    for data in graph.blocks.values() {
        for item in &data.items {
            if let Item::Guard { condition: node, .. } | Item::Accumulate(_, node) = *item {
                count(&[node]);
            }
        }
        match &data.end {
            End::Return(values) => count(values),
            End::Branch { condition, .. } => count(&[*condition]),
            End::Open => {}
        }
    }
    let entries = graph.regions.keys().flat_map(|region| graph.entries(region));
    entries.for_each(|entry| count(&[entry.first]));
    uses
}

/// A letter for the counter of each loop, by how many loops are around it.
fn counters(graph: &Graph) -> Array<Region, String> {
    const LETTERS: [&str; 6] = ["i", "j", "k", "l", "m", "n"];
    let nest = Nest::of(graph);
    let counter = |region: Region| {
        // A loop that replays another counts as that does.
        let counted = graph.regions[region].replays.unwrap_or(region);
        let around = core::iter::successors(nest.loop_around(counted), |&r| nest.loop_around(r));
        let depth = around.count();
        LETTERS.get(depth).map_or_else(|| format!("i{}", subscript(depth)), |&name| name.to_owned())
    };
    graph.regions.keys().map(counter).collect()
}
