//! A graph as a program: lines of steps, conditions and loops.

use super::names::{NodeNames, UNLIMITED_DEPTH};
use crate::explain::notation::{Names, Notation, Term, input};
use crate::loops::trip_count;
use crate::ssa::{Array, ArrayData, Block, End, Entry, Graph, Item, Nest, Node, Region};

/// The largest number of lines of a program.
const MAX_LINES: usize = 120;
/// The largest number of lines of a gradient.
const MAX_GRADIENT_LINES: usize = 64;
/// The largest nesting depth; deeper blocks are omitted.
const MAX_NESTING: usize = 16;
/// The largest number of values in a list.
const MAX_VALUES: usize = 8;

/// `graph` as a program. Inputs are x₀, x₁, …, inactive ones d₀, d₁, …; terms that are large or
/// used several times have names. Long programs are truncated.
pub fn program(graph: &Graph) -> Notation {
    Writer::new(&NodeNames::new(graph)).write_graph(None).notation()
}

/// The outputs of `graph`, the derivatives by its active inputs, as a program; the number of its
/// lines if these are too many.
pub(super) fn gradient(graph: &Graph) -> Result<Notation, usize> {
    let reader = NodeNames::new(graph);
    let numbers = graph.returned_outputs().take_while(|&number| graph.is_active(number));
    let output_names: Vec<String> =
        numbers.map(|number| format!("∂f/∂{}", input(graph, number))).collect();
    let writer = Writer::new(&reader).write_graph(Some(&output_names));
    match writer.lines.len() + writer.omitted {
        length if length > MAX_GRADIENT_LINES => Err(length),
        _ => Ok(writer.notation()),
    }
}

/// The loops of `graph` as programs, outer ones before inner ones.
pub(super) fn loops(graph: &Graph) -> Vec<(Region, Notation)> {
    let (reader, nest) = (NodeNames::new(graph), Nest::of(graph));
    let written = |region: Region| {
        let mut writer = Writer::new(&reader);
        writer.write_loop(region, 0);
        (region, writer.notation())
    };
    let is_loop = |block: Block, region: &Region| {
        graph.regions[*region].root == block && graph.regions[*region].cycle.is_some()
    };
    let blocks = graph.preorder().into_iter();
    let regions = blocks.filter_map(|b| nest.block_region(b).filter(|region| is_loop(b, region)));
    regions.map(written).collect()
}

/// The texts of the first items of `all`, and their number if there are more.
fn list<T>(all: &[T], text: impl FnMut(&T) -> String) -> String {
    let more = (all.len() > MAX_VALUES).then(|| format!("… ({} values)", all.len()));
    all.iter().take(MAX_VALUES).map(text).chain(more).collect::<Vec<String>>().join(", ")
}

struct Writer<'a, 'g> {
    reader: &'a NodeNames<'g>,
    lines: Vec<(usize, String)>,
    /// The number of omitted lines.
    omitted: usize,
    /// The names of the outputs that are not elements of arrays; `None` if all are returned.
    output_names: Option<&'a [String]>,
}

impl<'a, 'g> Writer<'a, 'g> {
    fn new(reader: &'a NodeNames<'g>) -> Self {
        Writer { reader, lines: Vec::new(), omitted: 0, output_names: None }
    }

    /// The lines of the whole graph.
    fn write_graph(mut self, output_names: Option<&'a [String]>) -> Self {
        self.output_names = output_names;
        self.block(self.reader.graph.root(), 0, None);
        for &array in &self.reader.tables {
            let numbers = match &self.reader.graph.arrays[array] {
                ArrayData::Constants(all) => {
                    list(all, |&bits| Term::number(f64::from_bits(bits)).text())
                }
                data => self.list(&data.nodes().collect::<Vec<Node>>()),
            };
            let name = self.reader.table(array).unwrap_or_default();
            self.line(0, format!("where {name} = ({numbers})"));
        }
        if let Some(name) = self.reader.saved() {
            self.line(0, format!("where {name}[i] is {name} in iteration i, counted from 0"));
        }
        self
    }

    fn notation(mut self) -> Notation {
        if self.omitted > 0 {
            self.lines.push((0, format!("… ({} more)", self.omitted)));
        }
        Notation::lines(&self.lines)
    }

    fn line(&mut self, depth: usize, line: impl Into<String>) {
        if self.lines.len() >= MAX_LINES {
            self.omitted += 1;
        } else {
            self.lines.push((depth, line.into()));
        }
    }

    fn list(&self, values: &[Node]) -> String {
        list(values, |&value| self.reader.text(value))
    }

    fn block(&mut self, block: Block, depth: usize, tree: Option<Region>) {
        let data = &self.reader.graph.blocks[block];
        if depth > MAX_NESTING {
            self.omitted += 1;
            return;
        }
        data.items.iter().for_each(|item| self.item(item, depth));
        match &data.end {
            End::Return(values) => match (tree, self.output_names) {
                (Some(region), _) => self.pass_on(region, values, depth),
                (None, None) => {
                    let values = self.list(values);
                    self.line(depth, format!("return {values}"));
                }
                (None, Some(output_names)) => {
                    for (output_name, &value) in output_names.iter().zip(values) {
                        self.line(depth, format!("{output_name} = {}", self.reader.text(value)));
                    }
                    // Derivatives that are elements of arrays.
                    for (array, first, count) in self.reader.graph.output_arrays() {
                        let derivative =
                            |number: u32| format!("∂f/∂{}", input(self.reader.graph, number));
                        let mut all = derivative(first);
                        if count > 1 {
                            all += &format!(", …, {}", derivative(first + count - 1));
                        }
                        let name = self.reader.table(array).unwrap_or_default();
                        self.line(depth, format!("{all} = {name}"));
                    }
                }
            },
            &End::Branch { condition, then, otherwise } => {
                self.line(
                    depth,
                    format!("if {}", self.reader.condition(condition, true, UNLIMITED_DEPTH)),
                );
                self.block(then, depth + 1, tree);
                self.line(depth, "else");
                self.block(otherwise, depth + 1, tree);
            }
            End::Open => self.line(depth, "…"),
        }
    }

    fn define(&mut self, node: Node, depth: usize) {
        if let Some(name) = &self.reader.names[node] {
            let term = self.reader.written(node, UNLIMITED_DEPTH).text();
            self.line(depth, format!("{name} = {term}"));
        }
    }

    fn item(&mut self, item: &Item, depth: usize) {
        let (reader, graph) = (self.reader, self.reader.graph);
        match *item {
            Item::Node(node) => match reader.called(node) {
                Some(called) => self.line(depth, called),
                None => self.define(node, depth),
            },
            Item::Guard { condition, expect } => match graph.constant(condition) {
                Some(held) if (held != 0.0) != expect => {
                    self.line(depth, "stop: this path was never recorded");
                }
                _ => {
                    let condition = reader.condition(condition, expect, UNLIMITED_DEPTH);
                    self.line(depth, format!("provided that {condition}"));
                }
            },
            // A branch that is written as a term; the names in it are defined before.
            Item::Region(region) if reader.is_inline(region) => {
                let data = &graph.regions[region];
                for block in graph.tree(data.root) {
                    graph.blocks[block].items.iter().for_each(|item| self.item(item, depth));
                }
                data.phis.iter().for_each(|&phi| self.define(phi, depth));
            }
            Item::Region(region) if graph.regions[region].cycle.is_some() => {
                self.write_loop(region, depth);
            }
            Item::Region(region) => self.block(graph.regions[region].root, depth, Some(region)),
            Item::Fill(array) => self.fill(array, depth),
            Item::Accumulate(access, node) => {
                let (sum, added) = (reader.element(access).text(), reader.text(node));
                self.line(depth, format!("add {added} to {sum}"));
            }
            Item::Store(access, node) => {
                let (cell, stored) = (reader.element(access).text(), reader.text(node));
                self.line(depth, format!("{cell} = {stored}"));
            }
        }
    }

    fn fill(&mut self, array: Array, depth: usize) {
        let reader = self.reader;
        let Some(name) = reader.table(array) else { return };
        if let ArrayData::Cells(count) = reader.graph.arrays[array] {
            self.line(depth, format!("{name} is an array of {count} numbers"));
            return;
        }
        let mut firsts = match &reader.graph.arrays[array] {
            ArrayData::Sums(firsts) => firsts.clone(),
            _ => vec![None],
        };
        firsts.dedup();
        let firsts = list(&firsts, |first| first.map_or("0".to_owned(), |node| reader.text(node)));
        self.line(depth, format!("{name} is an array of sums that start with {firsts}"));
    }

    fn write_loop(&mut self, region: Region, depth: usize) {
        let (reader, graph) = (self.reader, self.reader.graph);
        let data = &graph.regions[region];
        let Some(cycle) = &data.cycle else { return };
        let count = self.count(data.replays.unwrap_or(region));
        let times = match count {
            Some((count, true)) => format!("{count} times"),
            Some((count, false)) => format!("at most {count} times"),
            None => format!("(recorded at most {} times)", cycle.bound),
        };
        let direction = if data.replays.is_some() { " backwards" } else { "" };
        let mut line = format!("loop {times}{direction} in {}", reader.counters[region]);
        if !cycle.entries.is_empty() {
            let first = |entry: &Entry| {
                format!("{} from {}", reader.text(entry.phi), reader.text(entry.first))
            };
            line.push_str(&format!(", with {}", list(&cycle.entries, first)));
        }
        self.line(depth, line);
        let before = self.lines.len();
        self.block(data.root, depth + 1, Some(region));
        // An empty loop that exists only to be replayed is not shown.
        let is_empty = self.lines.len() == before && cycle.entries.is_empty();
        if is_empty && data.replays.is_none() && matches!(count, Some((_, true))) {
            self.lines.pop();
        }
    }

    /// The largest trip count of a loop, and true if it has no other exit; `None` if the loop
    /// condition depends on data.
    fn count(&self, region: Region) -> Option<(u64, bool)> {
        let graph = self.reader.graph;
        let (mut counts, mut always) = (Vec::new(), true);
        for leaf in graph.leaves(graph.regions[region].root) {
            let End::Return(values) = &graph.blocks[leaf].end else { continue };
            match graph.constant(values[0]) {
                Some(0.0) => always = false,
                _ => counts.push(trip_count(graph, region, values[0])?),
            }
        }
        counts.dedup();
        if let [count] = counts[..] { Some((count, always)) } else { None }
    }

    /// Writes the operands of φs at a leaf of `region` as assignments.
    fn pass_on(&mut self, region: Region, values: &[Node], depth: usize) {
        let (reader, graph) = (self.reader, self.reader.graph);
        let data = &graph.regions[region];
        let (decides, nexts) = graph.passed_before_phis(region);
        let again = values[..decides].first().copied();
        let decided = again.and_then(|again| graph.constant(again)).map(|again| again != 0.0);
        let entries = graph.entries(region).iter().map(|entry| entry.phi).zip(&values[decides..]);
        let entries = entries.filter(|_| decided != Some(false) || data.replays.is_some());
        let phis = data.phis.iter().copied().zip(&values[decides + nexts..]);
        let phis = phis.filter(|_| decided != Some(true) && !reader.is_inline(region));
        let mut changes: Vec<(&String, Node)> = Vec::new();
        for (phi, &value) in entries.chain(phis) {
            let Some(name) = &reader.names[phi] else { continue };
            let is_known = changes.iter().any(|(known, _)| *known == name);
            if !is_known && reader.names[value].as_ref() != Some(name) {
                changes.push((name, value));
            }
        }
        if let (Some(again), None) = (again, decided)
            && trip_count(graph, region, again).is_none()
        {
            let condition = reader.condition(again, true, UNLIMITED_DEPTH);
            self.line(depth, format!("last iteration unless {condition}"));
        }
        let (names, values): (Vec<&String>, Vec<Node>) = changes.into_iter().unzip();
        let (left, right) = (list(&names, |name| name.to_string()), self.list(&values));
        match names.len() {
            0 => {}
            1 => self.line(depth, format!("{left} ← {right}")),
            _ => self.line(depth, format!("({left}) ← ({right})")),
        }
        if decided == Some(false) {
            self.line(depth, "exit the loop");
        }
    }
}
