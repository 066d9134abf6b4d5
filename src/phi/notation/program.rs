//! A graph told as a program: lines of steps, conditions and loops.

use super::read::Reader;
use super::rows::{marked, sample};
use super::sums::fixed_count;
use super::term::{Index, Line, Name, Part, Term};
use crate::ssa::{Block, Def, End, Item, Node, Region, SeriesData};

/// So many lines are told at most.
const MOST_LINES: usize = 120;
/// What is further in is left out.
const DEEPEST: usize = 16;
/// So many values are told at most where many get theirs at once.
const MOST_VALUES: usize = 8;

pub(super) struct Writer<'a, 'g> {
    reader: &'a Reader<'g>,
    lines: Vec<Line>,
    /// How many steps were left out.
    left_out: usize,
    /// What the outputs are called, if they are not what is returned.
    heads: Vec<Part>,
}

impl<'a, 'g> Writer<'a, 'g> {
    pub(super) fn new(reader: &'a Reader<'g>) -> Self {
        Writer { reader, lines: Vec::new(), left_out: 0, heads: Vec::new() }
    }

    /// The same with names for the outputs.
    pub(super) fn with_heads(self, heads: &[Part]) -> Self {
        Writer { heads: heads.to_vec(), ..self }
    }

    /// The lines of the whole graph.
    pub(super) fn whole(mut self) -> Vec<Line> {
        self.block(self.reader.graph.root(), 0, None);
        self.tables(0);
        self.finish()
    }

    /// The lines of one loop.
    pub(super) fn only(mut self, region: Region) -> Vec<Line> {
        match self.reader.inline[region] {
            false => self.looped(region, 0),
            true => {
                let phis = &self.reader.graph.regions[region].phis;
                let mut parts = Vec::new();
                self.list(phis, &mut parts);
                self.line(0, parts);
            }
        }
        self.finish()
    }

    /// How many lines the whole graph has.
    pub(super) fn length(mut self) -> usize {
        self.block(self.reader.graph.root(), 0, None);
        self.tables(0);
        self.lines.len() + self.left_out
    }

    fn finish(mut self) -> Vec<Line> {
        // It looks like a power.
        if let Some(name) = self.reader.past.take() {
            let i = Name { letter: "i", number: None };
            let index = Index { base: 0, steps: vec![(1, i.clone())] };
            let words = |words: &str| Part::Words(words.to_owned());
            let parts = vec![
                words("where "),
                Part::Term(Term::Past(name.clone(), index)),
                words(" is "),
                Part::Term(Term::Name(name)),
                words(" in iteration "),
                Part::Term(Term::Name(i)),
                words(", the first being 0"),
            ];
            self.lines.push(Line { depth: 0, parts });
        }
        if self.reader.left_out.get() {
            let words = "(without terms that only make up for rounded numbers)".to_owned();
            self.lines.push(Line { depth: 0, parts: vec![Part::Words(words)] });
        }
        if self.left_out > 0 {
            let words = format!("… ({} more)", self.left_out);
            self.lines.push(Line { depth: 0, parts: vec![Part::Words(words)] });
        }
        self.lines
    }

    fn line(&mut self, depth: usize, parts: Vec<Part>) {
        if self.lines.len() >= MOST_LINES {
            self.left_out += 1;
        } else {
            self.lines.push(Line { depth, parts });
        }
    }

    fn words(&mut self, depth: usize, words: &str) {
        self.line(depth, vec![Part::Words(words.to_owned())]);
    }

    fn block(&mut self, block: Block, depth: usize, tree: Option<Region>) {
        let data = &self.reader.graph.blocks[block];
        if depth > DEEPEST {
            self.left_out += 1;
            return;
        }
        for item in &data.items {
            self.item(item, depth);
        }
        match &data.end {
            End::Return(values) => match tree {
                None if self.heads.is_empty() => {
                    let mut parts = vec![Part::Words("return ".to_owned())];
                    self.list(values, &mut parts);
                    self.line(depth, parts);
                }
                None => {
                    for (head, &value) in self.heads.clone().into_iter().zip(values) {
                        let term = Part::Term(self.reader.term(value));
                        self.line(depth, vec![head, Part::Words(" = ".to_owned()), term]);
                    }
                    self.rows(depth);
                }
                Some(region) => self.pass_on(region, values, depth),
            },
            &End::Branch { condition, then, otherwise } => {
                let condition = Part::Condition(self.reader.term(condition), true);
                self.line(depth, vec![Part::Words("if ".to_owned()), condition]);
                self.side(then, depth + 1, tree);
                self.words(depth, "else");
                self.side(otherwise, depth + 1, tree);
            }
            End::Open => self.words(depth, "…"),
        }
    }

    fn side(&mut self, block: Block, depth: usize, tree: Option<Region>) {
        let before = self.lines.len() + self.left_out;
        self.block(block, depth, tree);
        if self.lines.len() + self.left_out == before {
            self.words(depth, "nothing");
        }
    }

    fn item(&mut self, item: &Item, depth: usize) {
        let reader = self.reader;
        match *item {
            Item::Node(node) => {
                if let Some(name) = &reader.names[node] {
                    let part = Part::Define(name.clone(), reader.definition(node));
                    self.line(depth, vec![part]);
                }
            }
            Item::Guard { condition, expect }
                if reader.graph.constant(condition).is_some_and(|held| (held != 0.0) != expect) =>
            {
                self.words(depth, "stop, since this was never seen");
            }
            Item::Guard { condition, expect } => {
                let condition = Part::Condition(reader.term(condition), expect);
                self.line(depth, vec![Part::Words("provided that ".to_owned()), condition]);
            }
            Item::Region(region) if reader.inline[region] => {}
            Item::Region(region) if reader.graph.regions[region].cycle.is_some() => {
                self.looped(region, depth);
            }
            Item::Region(region) => {
                self.block(reader.graph.regions[region].root, depth, Some(region));
            }
            Item::Fill(series) => {
                if let Some(name) = reader.table(series) {
                    let mut parts = vec![
                        Part::Term(Term::Name(name.clone())),
                        Part::Words(" has the sums that begin with ".to_owned()),
                    ];
                    if let SeriesData::Outputs { .. } = reader.graph.series[series] {
                        parts.push(Part::Term(Term::Number(0.0)));
                    }
                    if let SeriesData::Sums(firsts) = &reader.graph.series[series] {
                        let first = |node: &Option<Node>| match *node {
                            Some(node) => Part::Term(reader.term(node)),
                            None => Part::Term(Term::Number(0.0)),
                        };
                        let is_same = firsts.windows(2).all(|pair| pair[0] == pair[1]);
                        let shown = if is_same { 1 } else { MOST_VALUES };
                        for (number, node) in firsts.iter().take(shown).enumerate() {
                            if number > 0 {
                                parts.push(Part::Words(", ".to_owned()));
                            }
                            parts.push(first(node));
                        }
                        if !is_same && firsts.len() > shown {
                            parts.push(Part::Words(", …".to_owned()));
                        }
                    }
                    self.line(depth, parts);
                }
            }
            Item::Accumulate(access, node) => {
                let (sum, added) = (reader.element(access), reader.term(node));
                let parts = vec![
                    Part::Words("add ".to_owned()),
                    Part::Term(added),
                    Part::Words(" to ".to_owned()),
                    Part::Term(sum),
                ];
                self.line(depth, parts);
            }
        }
    }

    fn looped(&mut self, region: Region, depth: usize) {
        let (reader, graph) = (self.reader, self.reader.graph);
        let data = &graph.regions[region];
        let Some(cycle) = &data.cycle else { return };
        let counter = Part::Term(Term::Name(reader.counter(region).clone()));
        let words = |words: String| Part::Words(words);
        let count = self.count(data.replays.unwrap_or(region));
        let mut parts = match (data.replays, count) {
            (Some(_), Some((count, true))) => {
                vec![words(format!("loop {count} times backwards in ")), counter]
            }
            (Some(_), _) => {
                vec![words("for each iteration of the loop in ".to_owned()), counter]
            }
            (None, Some((count, true))) => {
                vec![words(format!("loop {count} times in ")), counter]
            }
            (None, Some((count, false))) => {
                vec![words(format!("loop at most {count} times in ")), counter]
            }
            (None, None) => {
                vec![words(format!("loop (seen at most {} times) in ", cycle.bound)), counter]
            }
        };
        if data.replays.is_some() && !matches!(count, Some((_, true))) {
            parts.push(words(", backwards".to_owned()));
        }
        let before = self.lines.len();
        for (number, entry) in cycle.entries.iter().enumerate() {
            if number >= MOST_VALUES {
                parts.push(Part::Words(", …".to_owned()));
                break;
            }
            let word = if number == 0 { ", with " } else { ", " };
            parts.push(Part::Words(word.to_owned()));
            parts.push(Part::Term(reader.term(entry.phi)));
            parts.push(Part::Words(" from ".to_owned()));
            parts.push(Part::Term(reader.term(entry.first)));
        }
        self.line(depth, parts);
        self.block(data.root, depth + 1, Some(region));
        // Of a loop that is only there to be gone through backwards nothing is told.
        let is_empty = self.lines.len() == before + 1 && cycle.entries.is_empty();
        if is_empty && data.replays.is_none() && matches!(count, Some((_, true))) {
            self.lines.pop();
        }
    }

    /// How often a loop is gone through if nothing else ends it, and whether
    /// nothing does; `None` if numbers decide it.
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

    /// The derivatives that are series of outputs.
    fn rows(&mut self, depth: usize) {
        let reader = self.reader;
        for (series, first, count) in reader.graph.output_rows() {
            let Some(name) = reader.table(series) else { continue };
            let derivative = |number: u32| Part::Derivative(reader.input(number as usize));
            let mut parts = vec![derivative(first)];
            if count > 1 {
                parts.push(Part::Words(", …, ".to_owned()));
                parts.push(derivative(first + count - 1));
            }
            parts.push(Part::Words(" = ".to_owned()));
            parts.push(Part::Term(Term::Name(name.clone())));
            self.line(depth, parts);
        }
    }

    /// What the end of a tree of `region` passes on.
    fn pass_on(&mut self, region: Region, values: &[Node], depth: usize) {
        let (reader, graph) = (self.reader, self.reader.graph);
        let data = &graph.regions[region];
        let (decides, nexts) = graph.passed_before_phis(region);
        let again = values[..decides].first().copied();
        let decided = again.and_then(|again| graph.constant(again)).map(|again| again != 0.0);
        let counted = again.and_then(|again| fixed_count(graph, region, again));
        let (mut names, mut terms) = (Vec::new(), Vec::new());
        let mut assign = |name: Option<&Name>, value: Node| {
            let term = reader.term(value);
            let is_new =
                |name: &&Name| term != Term::Name((*name).clone()) && !names.contains(*name);
            if let Some(name) = name.filter(is_new) {
                names.push(name.clone());
                terms.push(term);
            }
        };
        if decided != Some(false) || data.replays.is_some() {
            for (entry, &value) in graph.entries(region).iter().zip(&values[decides..]) {
                assign(reader.names[entry.phi].as_ref(), value);
            }
        }
        if decided != Some(true) || decides == 0 {
            for (&phi, &value) in data.phis.iter().zip(&values[decides + nexts..]) {
                if !reader.inline[region] {
                    assign(reader.names[phi].as_ref(), value);
                }
            }
        }
        let decides = match (again, decided, counted) {
            (Some(again), None, None) => Some(reader.term(again)),
            _ => None,
        };
        // What is decided of values that are about to change is decided before.
        let (before, after) = match decides {
            Some(term) => match term.after(&names, &terms) {
                Some(term) => (None, Some(term)),
                None => (Some(term), None),
            },
            None => (None, None),
        };
        if let Some(condition) = before {
            let words = Part::Words("this is the last iteration unless ".to_owned());
            self.line(depth, vec![words, Part::Condition(condition, true)]);
        }
        let chunks = names.chunks(MOST_VALUES).zip(terms.chunks(MOST_VALUES));
        for (number, (names, terms)) in chunks.enumerate() {
            let mut parts = vec![Part::Assign(names.to_vec(), terms.to_vec())];
            if number > 0 {
                parts.insert(0, Part::Words("at once with this ".to_owned()));
            }
            self.line(depth, parts);
        }
        if let Some(condition) = after {
            let condition = Part::Condition(condition, true);
            self.line(depth, vec![Part::Words("go on if ".to_owned()), condition]);
        }
        if decided == Some(false) {
            self.words(depth, "leave the loop");
        }
    }

    fn list(&self, values: &[Node], parts: &mut Vec<Part>) {
        for (number, &value) in values.iter().enumerate() {
            if number > 0 {
                parts.push(Part::Words(", ".to_owned()));
            }
            if number >= MOST_VALUES {
                parts.push(Part::Words(format!("… ({} values)", values.len())));
                break;
            }
            parts.push(Part::Term(self.reader.term(value)));
        }
    }

    /// What the rows of numbers are.
    fn tables(&mut self, depth: usize) {
        for &series in &self.reader.tables {
            let Some(name) = self.reader.table(series) else { continue };
            let Some((nodes, numbers, count)) = sample(self.reader.graph, series) else { continue };
            if let Some(marked) = marked(self.reader.graph, series) {
                let (words, name) = (Part::Words("where ".to_owned()), Term::Name(name.clone()));
                self.line(depth, vec![words, Part::Term(name), Part::Words(marked)]);
                continue;
            }
            let mut parts = vec![
                Part::Words("where ".to_owned()),
                Part::Term(Term::Name(name.clone())),
                Part::Words(" = (".to_owned()),
            ];
            let terms = nodes.iter().map(|&node| self.reader.term(node));
            let terms = terms.chain(numbers.iter().map(|&number| Term::Number(number)));
            for (number, term) in terms.enumerate() {
                if number > 0 {
                    parts.push(Part::Words(", ".to_owned()));
                }
                parts.push(Part::Term(term));
            }
            let more = nodes.len() + numbers.len() < count;
            parts.push(Part::Words(match more {
                true => format!(", …), {count} numbers"),
                false => ")".to_owned(),
            }));
            self.line(depth, parts);
        }
    }

    /// The outputs, each with what it is called, and the definitions that they
    /// need; `None` if there are more than `most` lines.
    pub(super) fn formulas(mut self, heads: &[Part], most: usize) -> Option<Vec<Line>> {
        let reader = self.reader;
        let graph = reader.graph;
        if graph.leaves(graph.root()).len() > most {
            return None;
        }
        for (number, head) in heads.iter().enumerate() {
            let equals = Part::Words(" = ".to_owned());
            let term = reader.choice(graph.root(), number);
            self.line(0, vec![head.clone(), equals, Part::Term(term)]);
        }
        for (node, data) in graph.nodes.iter() {
            let Some(name) = &reader.names[node] else { continue };
            if matches!(data.def, Def::Apply(..) | Def::Element(_) | Def::Phi(..)) {
                let part = Part::Define(name.clone(), reader.definition(node));
                self.line(1, vec![Part::Words("where ".to_owned()), part]);
            }
            if self.lines.len() > most {
                return None;
            }
        }
        for block in graph.preorder() {
            for item in &graph.blocks[block].items {
                match *item {
                    Item::Node(_) => {}
                    Item::Guard { condition, expect } if block == graph.root() => {
                        let condition = Part::Condition(reader.term(condition), expect);
                        let words = Part::Words("provided that ".to_owned());
                        self.line(1, vec![words, condition]);
                    }
                    Item::Region(region) if reader.inline[region] || reader.is_silent(region) => {}
                    _ => return None,
                }
            }
        }
        self.tables(1);
        (self.lines.len() <= most).then(|| self.finish())
    }
}
