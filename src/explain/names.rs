//! Names: which nodes of a graph get one, and what the others are as terms.
//!
//! A node gets a name if its term is large, or not small and used several times, or if something
//! refers to it by name. So all terms are small, and the depth of recursion is bounded.

use hashbrown::{HashMap, HashSet};

use crate::entity::{Entity, PrimaryMap};
use crate::explain::notation::{Level, Names, Term, carried, letter as input_letter, subscript};
use crate::numeric::{AffinePower, Routine, Trips};
use crate::ssa::{
    Access, AccessData, Array, ArrayData, CallData, Def, Graph, Item, Nest, Node, Region, uses,
};

/// A term of more symbols than this gets a name.
const LARGE: usize = 20;
/// A term that is used several times gets a name if it has more symbols than this.
const SHARED: usize = 4;
/// A branch with more ends than this is no term.
const MOST_ENDS: usize = 8;
/// Deeper than any term, as those that are large have names.
pub(super) const DEEP: usize = 1000;

/// The names of a graph.
pub(super) struct Reader<'a> {
    pub(super) graph: &'a Graph,
    pub(super) names: PrimaryMap<Node, Option<String>>,
    pub(super) counters: PrimaryMap<Region, String>,
    arrays: PrimaryMap<Array, Elements>,
    /// The arrays of constants or nodes, in order.
    pub(super) tables: Vec<Array>,
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
        let names = PrimaryMap::filled(None, graph.nodes.len());
        let mut reader = Reader { graph, names, counters: counters(graph), arrays, tables };
        reader.choose();
        reader
    }

    fn choose(&mut self) {
        let graph = self.graph;
        let uses = uses(graph);
        let forced: HashSet<Node> = self.arrays.values().filter_map(Elements::past).collect();
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
        for node in graph.nodes.keys() {
            let letter = match graph.nodes[node].def {
                Def::Entry(..) => {
                    self.names[node] = give("w");
                    continue;
                }
                Def::Phi(region, number) if !self.is_inline(region) => {
                    self.names[node] = self.carried_name(region, number).or_else(|| give("z"));
                    continue;
                }
                Def::Phi(..) => "z",
                Def::Apply(op, _) if op.is_comparison() => continue,
                Def::Apply(..) | Def::Result(..) | Def::Element(_) => "t",
                Def::Input(_) | Def::Const(_) | Def::Iteration(_) | Def::Call(_) => continue,
            };
            let size = symbols(&self.text(node));
            if forced.contains(&node) || size > LARGE || size > SHARED && uses[node] > 1 {
                self.names[node] = give(letter);
            }
        }
    }

    /// Whether `region` can be a part of terms: nothing in it but steps.
    pub(super) fn is_inline(&self, region: Region) -> bool {
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

    /// The name of an entry φ of `region` whose value φ `number` has when the loop ends.
    fn carried_name(&self, region: Region, number: u32) -> Option<String> {
        let mut names = carried(self.graph, region, number as usize)
            .filter_map(|entry| self.names[entry.phi].as_ref());
        let phis = &self.graph.regions[region].phis;
        let is_free =
            |name: &&String| phis.iter().all(|&phi| self.names[phi].as_ref() != Some(*name));
        names.find(is_free).cloned()
    }

    pub(super) fn text(&self, node: Node) -> String {
        self.term(node, DEEP).text()
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
            Elements::Past(node) => {
                format!("{}[{}]", self.names[*node].as_deref().unwrap_or_default(), at(0))
            }
        })
    }

    /// A name whose saved trajectory is read.
    pub(super) fn past(&self) -> Option<&String> {
        self.arrays.values().find_map(|elements| self.names[elements.past()?].as_ref())
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

/// How many names, numbers and operators a term has.
fn symbols(text: &str) -> usize {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '.');
    words.filter(|word| !word.is_empty()).count()
        + text.matches(['+', '−', '·', '/', '√', '<', '>']).count()
}

/// A letter for the counter of each loop, by how many loops are around it.
fn counters(graph: &Graph) -> PrimaryMap<Region, String> {
    let nest = Nest::of(graph);
    let counter = |region: Region| {
        // A loop that replays another counts as that does.
        let counted = graph.regions[region].replays.unwrap_or(region);
        let around = core::iter::successors(nest.loop_around(counted), |&r| nest.loop_around(r));
        letter(&["i", "j", "k", "l", "m", "n"], around.count())
    };
    graph.regions.keys().map(counter).collect()
}

/// Letter `number`; after the last one they begin again with a prime.
fn letter(letters: &[&str], number: usize) -> String {
    letters[number % letters.len()].to_owned() + &"'".repeat(number / letters.len())
}

/// What the elements of an array are.
#[derive(Clone)]
enum Elements {
    /// Those of an array with a name, or inputs of a letter, from a number on.
    Named(String, usize),
    /// What a node was in each iteration.
    Past(Node),
}

impl Elements {
    fn inputs(graph: &Graph, first: u32) -> Elements {
        let (letter, number) = input_letter(graph, first);
        Elements::Named(letter.to_owned(), number)
    }

    fn past(&self) -> Option<Node> {
        if let Elements::Past(node) = self { Some(*node) } else { None }
    }
}

/// What the elements of each array are; those of constants and nodes are added to `tables`.
fn elements<'a>(graph: &'a Graph, tables: &mut Vec<Array>) -> PrimaryMap<Array, Elements> {
    let mut known: HashMap<&'a ArrayData, String> = HashMap::new();
    let mut sums = 0;
    let of = |(array, data): (Array, &'a ArrayData)| match data {
        ArrayData::Saved(node) => Elements::Past(*node),
        &ArrayData::Inputs { first, .. } => Elements::inputs(graph, first),
        ArrayData::Sums(_) | ArrayData::Outputs { .. } => {
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

/// `nodes` as inputs that follow one another.
fn inputs(graph: &Graph, nodes: &[Node]) -> Option<Elements> {
    let Def::Input(first) = graph.nodes[*nodes.first()?].def else { return None };
    let fits = |(number, &node): (u32, &Node)| {
        graph.nodes[node].def == Def::Input(number)
            && graph.is_active(number) == graph.is_active(first)
    };
    (first..).zip(nodes).all(fits).then(|| Elements::inputs(graph, first))
}

/// The index of an access as a text, counted from `first`.
fn index(access: &AccessData, first: usize, counters: &PrimaryMap<Region, String>) -> String {
    let mut text = String::new();
    for &(region, stride) in access.strides.iter().filter(|&&(_, stride)| stride != 0) {
        let sign = if stride < 0 { '−' } else { '+' };
        let factor = if stride.abs() == 1 { String::new() } else { stride.abs().to_string() };
        text.push_str(&format!("{sign}{factor}{}", counters[region]));
    }
    let base = first + access.base as usize;
    match text.strip_prefix('+') {
        Some(text) if base == 0 => text.to_owned(),
        Some(text) => format!("{text}+{base}"),
        None => format!("{base}{text}"),
    }
}
