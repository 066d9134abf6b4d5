//! A graph as a program: lines of steps, conditions and loops.

use super::arrays::sample;
use super::names::{DEEP, Reader};
use crate::notation::{Names, Notation};
use crate::op::Op;
use crate::ssa::{Block, Def, End, Graph, Item, Node, Region, Series, SeriesData};

/// So many lines are shown at most.
const MOST_LINES: usize = 120;
/// So many lines of a gradient are shown at most.
const MOST_OF_GRADIENT: usize = 64;
/// What is further in is left out.
const DEEPEST: usize = 16;
/// So many values are shown at most where many get theirs at once.
const MOST_VALUES: usize = 8;

/// `graph` as a program: inputs are x₀, x₁, …, inactive ones d₀, d₁, …; other names stand for
/// what is large or used several times. What is very long is cut.
pub fn program(graph: &Graph) -> Notation {
    Writer::new(&Reader::new(graph)).whole(&[]).notation()
}

/// The outputs of `graph`, which are the derivatives by its active inputs; or how many lines
/// there would be, if those are too many to be read.
pub(super) fn gradient(graph: &Graph) -> Result<Notation, usize> {
    let reader = Reader::new(graph);
    let numbers = graph.returned_outputs().map(|number| number as usize);
    let heads = numbers.take_while(|&number| number < graph.active);
    let heads: Vec<String> = heads.map(|number| format!("∂f/∂{}", reader.input(number))).collect();
    let writer = Writer::new(&reader).whole(&heads);
    match writer.lines.len() + writer.left_out {
        length if length > MOST_OF_GRADIENT => Err(length),
        _ => Ok(writer.notation()),
    }
}

/// The loops of `graph` in order, each before those in it, and what they do.
pub(super) fn loops(graph: &Graph) -> Vec<(Region, Notation)> {
    let reader = Reader::new(graph);
    let mut loops = Vec::new();
    for block in graph.preorder() {
        for (region, data) in graph.regions.iter().filter(|(_, data)| data.root == block) {
            if data.cycle.is_some() {
                let mut writer = Writer::new(&reader);
                writer.looped(region, 0);
                loops.push((region, writer.notation()));
            }
        }
    }
    loops
}

/// The trip count of the loop `region`, if only the iteration decides whether there is another.
fn fixed_count(graph: &Graph, region: Region, again: Node) -> Option<u32> {
    match graph.nodes[again].def {
        Def::Apply(Op::Lt, args) if graph.nodes[args[0]].def == Def::Iteration(region) => {
            let last = graph.constant(args[1])?;
            (last >= 0.0 && last < f64::from(u32::MAX)).then(|| last.ceil() as u32 + 1)
        }
        _ => None,
    }
}

struct Writer<'a, 'g> {
    reader: &'a Reader<'g>,
    lines: Vec<(usize, String)>,
    /// How many lines were left out.
    left_out: usize,
    /// What the outputs are called, if they are not what is returned.
    heads: &'a [String],
}

impl<'a, 'g> Writer<'a, 'g> {
    fn new(reader: &'a Reader<'g>) -> Self {
        Writer { reader, lines: Vec::new(), left_out: 0, heads: &[] }
    }

    /// The lines of the whole graph.
    fn whole(mut self, heads: &'a [String]) -> Self {
        self.heads = heads;
        self.block(self.reader.graph.root(), 0, None);
        for &series in &self.reader.tables {
            let numbers = sample(self.reader.graph, series, |node| self.reader.text(node));
            if let (Some(name), Some(numbers)) = (self.reader.table(series), numbers) {
                self.line(0, format!("where {name} = {numbers}"));
            }
        }
        self
    }

    fn notation(mut self) -> Notation {
        if let Some(name) = self.reader.past.take() {
            let line = format!("where {name}[i] is {name} in iteration i, the first being 0");
            self.lines.push((0, line));
        }
        if self.left_out > 0 {
            self.lines.push((0, format!("… ({} more)", self.left_out)));
        }
        Notation::lines(&self.lines)
    }

    fn line(&mut self, depth: usize, line: impl Into<String>) {
        if self.lines.len() >= MOST_LINES {
            self.left_out += 1;
        } else {
            self.lines.push((depth, line.into()));
        }
    }

    fn list(&self, values: &[Node]) -> String {
        let shown = values.iter().take(MOST_VALUES).map(|&value| self.reader.text(value));
        let more = values.len() > MOST_VALUES;
        let more = more.then(|| format!("… ({} values)", values.len()));
        shown.chain(more).collect::<Vec<String>>().join(", ")
    }

    fn block(&mut self, block: Block, depth: usize, tree: Option<Region>) {
        let data = &self.reader.graph.blocks[block];
        if depth > DEEPEST {
            self.left_out += 1;
            return;
        }
        data.items.iter().for_each(|item| self.item(item, depth));
        match &data.end {
            End::Return(values) => match tree {
                Some(region) => self.pass_on(region, values, depth),
                None if self.heads.is_empty() => {
                    let values = self.list(values);
                    self.line(depth, format!("return {values}"));
                }
                None => {
                    for (head, &value) in self.heads.iter().zip(values) {
                        self.line(depth, format!("{head} = {}", self.reader.text(value)));
                    }
                    self.derivatives(depth);
                }
            },
            &End::Branch { condition, then, otherwise } => {
                self.line(depth, format!("if {}", self.reader.condition(condition, true, DEEP)));
                self.block(then, depth + 1, tree);
                self.line(depth, "else");
                self.block(otherwise, depth + 1, tree);
            }
            End::Open => self.line(depth, "…"),
        }
    }

    fn define(&mut self, node: Node, depth: usize) {
        if let Some(name) = &self.reader.names[node] {
            let term = self.reader.written(node, DEEP).text();
            self.line(depth, format!("{name} = {term}"));
        }
    }

    fn item(&mut self, item: &Item, depth: usize) {
        let (reader, graph) = (self.reader, self.reader.graph);
        match *item {
            Item::Node(node) => match graph.nodes[node].def {
                Def::Call(_) => {
                    reader.called(node).into_iter().for_each(|called| self.line(depth, called));
                }
                _ => self.define(node, depth),
            },
            Item::Guard { condition, expect } => match graph.constant(condition) {
                Some(held) if (held != 0.0) != expect => {
                    self.line(depth, "stop, since this was never seen");
                }
                _ => {
                    let condition = reader.condition(condition, expect, DEEP);
                    self.line(depth, format!("provided that {condition}"));
                }
            },
            // It is a part of terms; names in it are defined before them.
            Item::Region(region) if reader.inline[region] => {
                let data = &graph.regions[region];
                for block in graph.tree(data.root) {
                    graph.blocks[block].items.iter().for_each(|item| self.item(item, depth));
                }
                data.phis.iter().for_each(|&phi| self.define(phi, depth));
            }
            Item::Region(region) if graph.regions[region].cycle.is_some() => {
                self.looped(region, depth);
            }
            Item::Region(region) => self.block(graph.regions[region].root, depth, Some(region)),
            Item::Fill(series) => self.fill(series, depth),
            Item::Accumulate(access, node) => {
                let (sum, added) = (reader.element(access).text(), reader.text(node));
                self.line(depth, format!("add {added} to {sum}"));
            }
        }
    }

    fn fill(&mut self, series: Series, depth: usize) {
        let reader = self.reader;
        let Some(name) = reader.table(series) else { return };
        let first = |node: &Option<Node>| node.map_or("0".to_owned(), |node| reader.text(node));
        let mut firsts: Vec<String> = match &reader.graph.series[series] {
            SeriesData::Sums(firsts) => firsts.iter().take(MOST_VALUES).map(first).collect(),
            _ => vec!["0".to_owned()],
        };
        firsts.dedup();
        let firsts = firsts.join(", ");
        self.line(depth, format!("{name} has the sums that begin with {firsts}"));
    }

    fn looped(&mut self, region: Region, depth: usize) {
        let (reader, graph) = (self.reader, self.reader.graph);
        let data = &graph.regions[region];
        let Some(cycle) = &data.cycle else { return };
        let counter = &reader.counters[region];
        let count = self.count(data.replays.unwrap_or(region));
        let mut line = match (data.replays, count) {
            (Some(_), Some((count, true))) => format!("loop {count} times backwards in {counter}"),
            (Some(_), _) => format!("for each iteration of the loop in {counter}, backwards"),
            (None, Some((count, true))) => format!("loop {count} times in {counter}"),
            (None, Some((count, false))) => format!("loop at most {count} times in {counter}"),
            (None, None) => format!("loop (seen at most {} times) in {counter}", cycle.bound),
        };
        for (number, entry) in cycle.entries.iter().enumerate().take(MOST_VALUES) {
            let word = if number == 0 { ", with" } else { "," };
            let (phi, first) = (reader.text(entry.phi), reader.text(entry.first));
            line.push_str(&format!("{word} {phi} from {first}"));
        }
        if cycle.entries.len() > MOST_VALUES {
            line.push_str(", …");
        }
        self.line(depth, line);
        let before = self.lines.len();
        self.block(data.root, depth + 1, Some(region));
        // A loop that is only there to be replayed.
        let is_empty = self.lines.len() == before && cycle.entries.is_empty();
        if is_empty && data.replays.is_none() && matches!(count, Some((_, true))) {
            self.lines.pop();
        }
    }

    /// The trip count of a loop where nothing else ends it, and whether nothing does; `None` if
    /// numbers decide it.
    fn count(&self, region: Region) -> Option<(u32, bool)> {
        let graph = self.reader.graph;
        let (mut count, mut always) = (None, true);
        for leaf in graph.leaves(graph.regions[region].root) {
            let End::Return(values) = &graph.blocks[leaf].end else { continue };
            let again = *values.first()?;
            match (graph.constant(again), fixed_count(graph, region, again)) {
                (Some(0.0), _) => always = false,
                (_, Some(found)) if count.is_none_or(|count| count == found) => count = Some(found),
                _ => return None,
            }
        }
        count.map(|count| (count, always))
    }

    /// The derivatives that are elements of an array.
    fn derivatives(&mut self, depth: usize) {
        let reader = self.reader;
        for (series, first, count) in reader.graph.output_rows() {
            let Some(name) = reader.table(series) else { continue };
            let derivative = |number: u32| format!("∂f/∂{}", reader.input(number as usize));
            let (first, last) = (derivative(first), derivative(first + count - 1));
            let all = if count > 1 { format!("{first}, …, {last}") } else { first };
            self.line(depth, format!("{all} = {name}"));
        }
    }

    /// What the end of a tree of `region` passes on.
    fn pass_on(&mut self, region: Region, values: &[Node], depth: usize) {
        let (reader, graph) = (self.reader, self.reader.graph);
        let data = &graph.regions[region];
        let (decides, nexts) = graph.passed_before_phis(region);
        let again = values[..decides].first().copied();
        let decided = again.and_then(|again| graph.constant(again)).map(|again| again != 0.0);
        let mut changes: Vec<(&String, Node)> = Vec::new();
        let mut change = |name: Option<&'a String>, value: Node| {
            let is_new = |name: &&String| {
                reader.names[value].as_ref() != Some(name)
                    && !changes.iter().any(|(known, _)| known == name)
            };
            changes.extend(name.filter(is_new).map(|name| (name, value)));
        };
        if decided != Some(false) || data.replays.is_some() {
            for (entry, &value) in graph.entries(region).iter().zip(&values[decides..]) {
                change(reader.names[entry.phi].as_ref(), value);
            }
        }
        if decided != Some(true) || decides == 0 {
            for (&phi, &value) in data.phis.iter().zip(&values[decides + nexts..]) {
                change(reader.names[phi].as_ref().filter(|_| !reader.inline[region]), value);
            }
        }
        let counted = again.and_then(|again| fixed_count(graph, region, again));
        if let (Some(again), None, None) = (again, decided, counted) {
            let condition = reader.condition(again, true, DEEP);
            self.line(depth, format!("this is the last iteration unless {condition}"));
        }
        let (names, values): (Vec<&str>, Vec<Node>) =
            changes.iter().map(|&(name, value)| (name.as_str(), value)).unzip();
        match &names[..] {
            [] => {}
            [name] => self.line(depth, format!("{name} ← {}", self.list(&values))),
            names => {
                let more = if names.len() > MOST_VALUES { ", …" } else { "" };
                let names = names[..names.len().min(MOST_VALUES)].join(", ");
                self.line(depth, format!("({names}{more}) ← ({})", self.list(&values)));
            }
        }
        if decided == Some(false) {
            self.line(depth, "leave the loop");
        }
    }
}
