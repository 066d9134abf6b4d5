//! Names for nodes and arrays; the other nodes are written as terms.
//!
//! A node gets a name if its term is large, if it is used several times and its term is not small,
//! or if its values are saved. So all terms are small, and the depth of recursion is bounded.

use hashbrown::{HashMap, HashSet};

use crate::entity::{Entity, PrimaryMap};
use crate::explain::notation::{Level, Names, Term, carried, letter as input_letter, subscript};
use crate::numeric::{AffinePower, Routine, Trips};
use crate::ssa::{
    Access, AccessData, Array, ArrayData, CallData, Def, Graph, Item, Nest, Node, Region, uses,
};

/// The largest term without a name, in symbols.
const MAX_TERM_SYMBOLS: usize = 20;
/// The largest term without a name that is used several times, in symbols.
const MAX_SHARED_SYMBOLS: usize = 4;
/// The largest number of leaves of a branch that is written as a term.
const MAX_LEAVES: usize = 8;
/// A depth that no term reaches, since large terms have names.
pub(super) const UNLIMITED_DEPTH: usize = 1000;

/// A graph with the names of its nodes, loop counters and arrays.
pub(super) struct NodeNames<'a> {
    pub(super) graph: &'a Graph,
    pub(super) names: PrimaryMap<Node, Option<String>>,
    pub(super) counters: PrimaryMap<Region, String>,
    arrays: PrimaryMap<Array, Elements>,
    /// The arrays of constants or nodes, in order.
    pub(super) tables: Vec<Array>,
}

impl Names for NodeNames<'_> {
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
            // Calls are assumed to be accepted.
            Def::Call(_) => Some(Term::number(1.0)),
            _ => None,
        }
    }
}

impl<'a> NodeNames<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        let mut tables = Vec::new();
        let arrays = elements(graph, &mut tables);
        let names = PrimaryMap::filled(None, graph.nodes.len());
        let mut names = NodeNames { graph, names, counters: counters(graph), arrays, tables };
        names.assign_names();
        names
    }

    fn assign_names(&mut self) {
        let graph = self.graph;
        let uses = uses(graph);
        let forced: HashSet<Node> = self.arrays.values().filter_map(Elements::saved).collect();
        let is_single = graph.regions.keys().flat_map(|region| graph.entries(region)).count() == 1;
        let mut numbers: HashMap<&'static str, usize> = HashMap::new();
        let mut new_name = |letter: &'static str| {
            let number = numbers.entry(letter).or_insert(0);
            *number += 1;
            Some(match letter == "w" && is_single {
                true => letter.to_owned(),
                false => format!("{letter}{}", subscript(*number)),
            })
        };
        for node in graph.nodes.keys() {
            let letter = match graph.nodes[node].def {
                Def::Entry(..) => {
                    self.names[node] = new_name("w");
                    continue;
                }
                Def::Phi(region, number) if !self.is_inline(region) => {
                    self.names[node] = self.carried_name(region, number).or_else(|| new_name("z"));
                    continue;
                }
                Def::Phi(..) => "z",
                Def::Apply(op, _) if op.is_comparison() => continue,
                Def::Apply(..) | Def::Result(..) | Def::Element(_) => "t",
                Def::Input(_) | Def::Const(_) | Def::Iteration(_) | Def::Call(_) => continue,
            };
            let size = symbols(&self.text(node));
            if forced.contains(&node)
                || size > MAX_TERM_SYMBOLS
                || size > MAX_SHARED_SYMBOLS && uses[node] > 1
            {
                self.names[node] = new_name(letter);
            }
        }
    }

    /// True if `region` can be written as a term: a branch of nodes alone.
    pub(super) fn is_inline(&self, region: Region) -> bool {
        let fits = |item: &Item| match *item {
            Item::Node(_) => true,
            Item::Region(inner) => self.is_inline(inner),
            Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => false,
        };
        let (graph, data) = (self.graph, &self.graph.regions[region]);
        data.cycle.is_none()
            && graph.leaves(data.root).len() <= MAX_LEAVES
            && graph.tree(data.root).iter().all(|&block| graph.blocks[block].items.iter().all(fits))
    }

    /// The name of an entry φ of `region` whose value at the exit is φ `number`, unless another φ
    /// has it.
    fn carried_name(&self, region: Region, number: u32) -> Option<String> {
        let mut names = carried(self.graph, region, number as usize)
            .filter_map(|entry| self.names[entry.phi].as_ref());
        let phis = &self.graph.regions[region].phis;
        let is_free =
            |name: &&String| phis.iter().all(|&phi| self.names[phi].as_ref() != Some(*name));
        names.find(is_free).cloned()
    }

    pub(super) fn text(&self, node: Node) -> String {
        self.term(node, UNLIMITED_DEPTH).text()
    }

    pub(super) fn element(&self, access: Access) -> Term {
        let data = &self.graph.accesses[access];
        let at = |first| index(data, first, &self.counters);
        Term::atom(match &self.arrays[data.array] {
            Elements::Named(name, first) if name.is_ascii() => match at(*first) {
                at if at.bytes().all(|byte| byte.is_ascii_digit()) => {
                    format!("{name}{}", subscript(first + data.base as usize))
                }
                at if at.chars().count() == 1 => format!("{name}_{at}"),
                at => format!("{name}_{{{at}}}"),
            },
            Elements::Named(name, _) => format!("{name}[{}]", at(0)),
            Elements::Saved(node) => {
                format!("{}[{}]", self.names[*node].as_deref().unwrap_or_default(), at(0))
            }
        })
    }

    /// The name of a node whose saved trajectory is read, if there is one.
    pub(super) fn saved(&self) -> Option<&String> {
        self.arrays.values().find_map(|elements| self.names[elements.saved()?].as_ref())
    }

    /// The name of an array, if it has one.
    pub(super) fn table(&self, array: Array) -> Option<&str> {
        if let Elements::Named(name, _) = &self.arrays[array] { Some(name) } else { None }
    }

    /// The routine that a call runs, its operands, and the letter of its results.
    fn routine(&self, call: Node) -> Option<(&AffinePower, &[Node], String)> {
        let Def::Call(call) = self.graph.nodes[call].def else { return None };
        let CallData { routine, args } = &self.graph.calls[call];
        let Routine::AffinePower(power) = &**routine else { return None };
        Some((power, args, letter(&["y", "u", "v", "r", "s"], call.index())))
    }

    /// A component of the state after all steps, or its partial derivative.
    fn result(&self, call: Node, number: usize) -> Option<Term> {
        let (power, args, letter) = self.routine(call)?;
        let stride = 1 + power.differentiated().len();
        let (output, partial) = ((number - 1) / stride, (number - 1) % stride);
        let row = *power.outputs().get(output)? as usize;
        let component = letter + &subscript(row + 1);
        let Some(partial) = partial.checked_sub(1) else { return Some(Term::atom(component)) };
        let by =
            self.term(*args.get(*power.differentiated().get(partial)? as usize)?, UNLIMITED_DEPTH);
        Some(Term::new(format!("∂{component}/∂{}", by.at_least(Level::Atom)), Level::Root))
    }

    /// The definition of the result of a call, a vector.
    pub(super) fn called(&self, call: Node) -> Option<String> {
        let (power, args, letter) = self.routine(call)?;
        let n = match power.trips() {
            Trips::Constant(count) => count.to_string(),
            Trips::Input(input) => {
                self.term(*args.get(input as usize)?, UNLIMITED_DEPTH).at_least(Level::Atom)
            }
        };
        let mut text = format!("{letter} = A^{n}·p");
        if power.map().offset().iter().any(Option::is_some) {
            text += &format!(" + Σ_{{j<{n}}} A^j·b");
        }
        if let Some(place) = self.graph.place(self.graph.nodes[call].place) {
            text += &format!(" of the loop in line {}", place.line);
        }
        Some(text)
    }
}

/// The number of names, numbers and operators in a term.
fn symbols(text: &str) -> usize {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '.');
    words.filter(|word| !word.is_empty()).count()
        + text.matches(['+', '−', '·', '/', '√', '<', '>']).count()
}

/// The letter of the counter of each loop, by its nesting depth.
fn counters(graph: &Graph) -> PrimaryMap<Region, String> {
    let nest = Nest::of(graph);
    let counter = |region: Region| {
        // A loop that replays another has the counter of that.
        let counted = graph.regions[region].replays.unwrap_or(region);
        let around = core::iter::successors(nest.loop_around(counted), |&r| nest.loop_around(r));
        letter(&["i", "j", "k", "l", "m", "n"], around.count())
    };
    graph.regions.keys().map(counter).collect()
}

/// Letter `number`; after the last letter they repeat with a prime.
fn letter(letters: &[&str], number: usize) -> String {
    letters[number % letters.len()].to_owned() + &"'".repeat(number / letters.len())
}

/// The elements of an array.
#[derive(Clone)]
enum Elements {
    /// Elements of an array with a name, or inputs with a letter, from a number on.
    Named(String, usize),
    /// The values of a node in each iteration.
    Saved(Node),
}

impl Elements {
    fn inputs(graph: &Graph, first: u32) -> Elements {
        let (letter, number) = input_letter(graph, first);
        Elements::Named(letter.to_owned(), number)
    }

    fn saved(&self) -> Option<Node> {
        if let Elements::Saved(node) = self { Some(*node) } else { None }
    }
}

/// The elements of each array; arrays of constants and nodes are appended to `tables`.
fn elements<'a>(graph: &'a Graph, tables: &mut Vec<Array>) -> PrimaryMap<Array, Elements> {
    let mut known: HashMap<&'a ArrayData, String> = HashMap::new();
    let mut sums = 0;
    let of = |(array, data): (Array, &'a ArrayData)| match data {
        ArrayData::Saved(node) => Elements::Saved(*node),
        &ArrayData::Inputs { first, .. } => Elements::inputs(graph, first),
        ArrayData::Sums(_) | ArrayData::Outputs { .. } | ArrayData::Cells(_) => {
            sums += 1;
            Elements::Named(format!("S{}", subscript(sums)), 0)
        }
        ArrayData::Nodes(nodes) if let Some(elements) = inputs(graph, nodes) => elements,
        ArrayData::Nodes(_) | ArrayData::Constants(_) => {
            let count = known.len();
            let name = known.entry(data).or_insert_with(|| {
                tables.push(array);
                letter(&["a", "b", "c", "g", "h"], count)
            });
            Elements::Named(name.clone(), 0)
        }
    };
    graph.arrays.iter().map(of).collect()
}

/// The elements of `nodes`, if they are consecutive inputs.
fn inputs(graph: &Graph, nodes: &[Node]) -> Option<Elements> {
    let Def::Input(first) = graph.nodes[*nodes.first()?].def else { return None };
    let fits = |(number, &node): (u32, &Node)| {
        graph.nodes[node].def == Def::Input(number)
            && graph.is_active(number) == graph.is_active(first)
    };
    (first..).zip(nodes).all(fits).then(|| Elements::inputs(graph, first))
}

/// The index of an access as text, counted from `first`.
fn index(access: &AccessData, first: usize, counters: &PrimaryMap<Region, String>) -> String {
    let mut text = String::new();
    for &(region, stride) in access.strides.iter().filter(|&&(_, stride)| stride != 0) {
        let sign = if stride < 0 { '−' } else { '+' };
        let factor = if stride.abs() == 1 { String::new() } else { stride.abs().to_string() };
        text.push_str(&format!("{sign}{factor}{}", counters[region]));
    }
    for &(region, change) in &access.changes {
        let sign = if change < 0 { '−' } else { '+' };
        let factor = if change.abs() == 1 { String::new() } else { change.abs().to_string() };
        let counter = &counters[region];
        text.push_str(&format!("{sign}{factor}{counter}({counter}−1)/2"));
    }
    let base = first + access.base as usize;
    match text.strip_prefix('+') {
        Some(text) if base == 0 => text.to_owned(),
        Some(text) => format!("{text}+{base}"),
        None => format!("{base}{text}"),
    }
}
