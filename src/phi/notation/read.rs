//! Reading a graph: which nodes get names of their own, and what the others are
//! as terms.
//!
//! A node gets a name if it is large, or not small and used several times, or if
//! something refers to it that needs a name. So each term is small, and so is the
//! depth to which functions here call themselves.

use core::cell::{Cell, RefCell};

use hashbrown::HashMap;

use super::display::result_text;
use super::rows::{Row, rows};
use super::sums::{Summed, sums_of};
use super::term::{Index, Name, Term};
use super::tidy::tidy;
use super::write::Script;
use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{Access, Block, CallData, Def, End, Graph, Item, Nest, Node, Region, Series};

/// How a graph is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    /// Whether loops that only add up or multiply are written Σ and Π.
    pub(super) sums: bool,
    /// Whether branches are always terms, and names are defined apart.
    pub(super) formulas: bool,
    /// Whether sums are polynomials around pivots, so that terms may be there only
    /// to make up for the rounding of those.
    pub(super) pivots: bool,
}

/// A term of more symbols than this has parts with names.
const LARGE: u32 = 24;
/// What is used several times gets a name if it has more symbols than this.
const SHARED: u32 = 4;
/// The same in formulas.
const SHARED_IN_FORMULAS: u32 = 6;
/// A branch of more ends than this is not a term.
const MOST_ENDS: usize = 4;

/// What is known about how to tell a graph.
pub(super) struct Reader<'a> {
    pub(super) graph: &'a Graph,
    pub(super) style: Style,
    pub(super) names: Array<Node, Option<Name>>,
    /// The regions that are parts of terms.
    pub(super) inline: Array<Region, bool>,
    sums: Array<Region, Option<Vec<Summed>>>,
    counters: Array<Region, Name>,
    /// The names of series that are no input, and of inputs what each is.
    rows: Array<Series, Row>,
    /// The series that are named, in order.
    pub(super) tables: Vec<Series>,
    /// Whether terms were left out that only make up for rounding.
    pub(super) left_out: Cell<bool>,
    /// A name of which it was told what it had been in some iteration.
    pub(super) past: RefCell<Option<Name>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(graph: &'a Graph, style: Style) -> Self {
        let nest = Nest::of(graph);
        let mut tables = Vec::new();
        let rows = rows(graph, &mut tables);
        let sums = graph.regions.keys().map(|region| match style.sums {
            true => sums_of(graph, region),
            false => None,
        });
        let mut reader = Reader {
            sums: sums.collect(),
            counters: counters(graph, &nest),
            names: Array::filled(None, graph.nodes.len()),
            inline: Array::filled(false, graph.regions.len()),
            graph,
            style,
            rows,
            tables,
            left_out: Cell::new(false),
            past: RefCell::default(),
        };
        reader.choose_names();
        reader
    }

    fn choose_names(&mut self) {
        let graph = self.graph;
        let uses = uses(graph);
        let shared = if self.style.formulas { SHARED_IN_FORMULAS } else { SHARED };
        let mut forced = Array::filled(false, graph.nodes.len());
        for row in self.rows.values() {
            if let Row::Past(node) = row {
                forced[*node] = true;
            }
        }
        let mut spines = Array::filled(false, graph.nodes.len());
        for sum in self.sums.values().flatten().flatten() {
            sum.spine.iter().for_each(|&node| spines[node] = true);
        }
        let mut sizes: Array<Node, u32> = Array::filled(1, graph.nodes.len());
        let mut numbers: HashMap<&'static str, usize> = HashMap::new();
        let carried = graph.regions.values().filter_map(|data| data.cycle.as_ref());
        let single = carried.map(|cycle| cycle.entries.len()).sum::<usize>() == 1;
        let mut chosen: Array<Region, bool> = Array::filled(false, graph.regions.len());
        for node in graph.nodes.keys() {
            let mut give = |letter: &'static str, numbered: bool| {
                let number = numbers.entry(letter).or_insert(0);
                *number += 1;
                Some(Name { letter, number: numbered.then_some(*number) })
            };
            match graph.nodes[node].def {
                Def::Input(_) | Def::Const(_) | Def::Iteration(_) => {}
                Def::Call(_) => {}
                Def::Result(..) => self.names[node] = give("c", true),
                Def::Entry(region, _) if self.sums[region].is_some() && !forced[node] => {}
                Def::Entry(..) => self.names[node] = give("w", !single),
                Def::Phi(region, number) => {
                    if !core::mem::replace(&mut chosen[region], true) {
                        self.inline[region] = self.is_inline(region, &sizes);
                    }
                    if self.inline[region] && !forced[node] {
                        let size = self.size_of_phi(region, number, &sizes);
                        sizes[node] = size;
                        let large = size > LARGE || size > shared && uses[node] > 1;
                        if self.style.formulas && large {
                            self.names[node] = give("z", true);
                        }
                    } else {
                        if self.sums[region].take().is_some() {
                            for entry in graph.entries(region) {
                                let name = give("w", !single);
                                let known = &mut self.names[entry.phi];
                                *known = known.take().or(name);
                            }
                        }
                        self.names[node] = self.carried_name(region, number);
                        if self.names[node].is_none() {
                            self.names[node] = give("z", true);
                        }
                    }
                }
                Def::Apply(..) | Def::Element(_) => {
                    let data = &graph.nodes[node];
                    let operands = data.args().iter();
                    let operands =
                        operands.map(|&arg| if self.names[arg].is_some() { 1 } else { sizes[arg] });
                    let size = operands.sum::<u32>() + 1;
                    sizes[node] = size;
                    let large = size > LARGE || size > shared && uses[node] > 1;
                    // A condition is no number.
                    let is_condition = matches!(data.def, Def::Apply(op, _) if op.is_comparison());
                    if forced[node] || large && !spines[node] && !is_condition {
                        self.names[node] = give("t", true);
                    }
                }
            }
        }
        for region in graph.regions.keys() {
            if self.inline[region] || self.sums[region].take().is_none() {
                continue;
            }
            for entry in graph.entries(region) {
                let number = numbers.entry("w").or_insert(0);
                *number += 1;
                let name = Name { letter: "w", number: (!single).then_some(*number) };
                self.names[entry.phi].get_or_insert(name);
            }
        }
    }

    /// Whether `region` can be a part of terms: nothing in it has a name.
    fn is_inline(&self, region: Region, sizes: &Array<Node, u32>) -> bool {
        let data = &self.graph.regions[region];
        if data.cycle.is_some() && self.sums[region].is_none() {
            return false;
        }
        let most = if self.style.formulas { 4 * MOST_ENDS } else { MOST_ENDS };
        let (mut pending, mut ends, mut size) = (vec![data.root], 0, 0);
        while let Some(block) = pending.pop() {
            let data = &self.graph.blocks[block];
            for item in &data.items {
                let fits = match *item {
                    Item::Node(node) => self.style.formulas || self.names[node].is_none(),
                    Item::Region(inner) => self.inline[inner] || self.is_silent(inner),
                    Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) => false,
                };
                if !fits {
                    return false;
                }
            }
            match &data.end {
                End::Branch { condition, then, otherwise } => {
                    size += self.size(*condition, sizes);
                    pending.extend([*otherwise, *then]);
                }
                End::Return(values) => {
                    ends += 1;
                    size += values.iter().map(|&value| self.size(value, sizes)).max().unwrap_or(0);
                }
                End::Open => return false,
            }
            if ends > most || size > LARGE && !self.style.formulas {
                return false;
            }
        }
        true
    }

    /// The name of an entry φ of `region` that is what a φ of it is when it ends.
    fn carried_name(&self, region: Region, number: u32) -> Option<Name> {
        let data = &self.graph.regions[region];
        let (decides, nexts) = self.graph.passed_before_phis(region);
        let leaves = self.graph.leaves(data.root);
        let agrees = |entry: usize, leaf: &Block| {
            let End::Return(values) = &self.graph.blocks[*leaf].end else { return false };
            let again = values[..decides].first();
            let decided = again.and_then(|&again| self.graph.constant(again));
            let value = |index: usize| values.get(decides + index);
            decided.is_some() || value(entry) == value(nexts + number as usize)
        };
        let (entries, phis) = (self.graph.entries(region), &data.phis);
        let taken = |name: &Name| phis.iter().any(|&phi| self.names[phi].as_ref() == Some(name));
        let carries = |entry: usize| {
            let name = self.names[entries[entry].phi].as_ref()?;
            let fits = leaves.iter().all(|leaf| agrees(entry, leaf)) && !taken(name);
            fits.then(|| name.clone())
        };
        (0..entries.len()).find_map(carries)
    }

    fn size(&self, node: Node, sizes: &Array<Node, u32>) -> u32 {
        if self.names[node].is_some() { 1 } else { sizes[node] }
    }

    /// Whether `region` is only there for what replays it.
    pub(super) fn is_silent(&self, region: Region) -> bool {
        let data = &self.graph.regions[region];
        self.style.formulas && data.phis.is_empty() && data.cycle.is_none()
    }

    fn size_of_phi(&self, region: Region, number: u32, sizes: &Array<Node, u32>) -> u32 {
        let (decides, nexts) = self.graph.passed_before_phis(region);
        let (mut pending, mut size) = (vec![self.graph.regions[region].root], 1u32);
        while let Some(block) = pending.pop() {
            match &self.graph.blocks[block].end {
                End::Branch { condition, then, otherwise } => {
                    size = size.saturating_add(self.size(*condition, sizes));
                    pending.extend([*otherwise, *then]);
                }
                End::Return(values) => {
                    let value = values.get(decides + nexts + number as usize);
                    size = size.saturating_add(value.map_or(1, |&value| self.size(value, sizes)));
                }
                End::Open => {}
            }
        }
        size
    }

    /// `node` by its name, or what it is.
    pub(super) fn term(&self, node: Node) -> Term {
        match &self.names[node] {
            Some(name) => Term::Name(name.clone()),
            None => self.definition(node),
        }
    }

    /// What `node` is.
    pub(super) fn definition(&self, node: Node) -> Term {
        match self.graph.nodes[node].def {
            Def::Const(bits) => Term::Number(f64::from_bits(bits)),
            Def::Input(number) => Term::Name(self.input(number as usize)),
            Def::Iteration(region) => Term::Name(self.counters[region].clone()),
            Def::Element(access) => self.element(access),
            Def::Apply(op, args) => {
                let args: Vec<Term> =
                    args[..op.arity()].iter().map(|&arg| self.term(arg)).collect();
                if !self.style.sums {
                    return Term::Apply(op, args);
                }
                let (term, left_out) = tidy(op, args, self.style.pivots);
                self.left_out.set(self.left_out.get() || left_out);
                term
            }
            Def::Phi(region, number) => match &self.sums[region] {
                Some(sums) => self.sum(region, &sums[number as usize]),
                None => self.choice(self.graph.regions[region].root, number as usize),
            },
            // These have names.
            Def::Call(_) => Term::Number(1.0),
            Def::Result(of, number) => match self.graph.nodes[of].def {
                Def::Call(call) => {
                    let CallData { routine, args } = &self.graph.calls[call];
                    let name = |input: usize| match args.get(input) {
                        Some(&arg) => Script::Unicode.term(&self.term(arg)),
                        None => "…".to_owned(),
                    };
                    Term::Text(result_text(routine, number, name))
                }
                _ => Term::Number(f64::NAN),
            },
            Def::Entry(region, _) => Term::Name(self.counters[region].clone()),
        }
    }

    /// What value number `number` of the ends below `block` comes to.
    pub(super) fn choice(&self, block: Block, number: usize) -> Term {
        match &self.graph.blocks[block].end {
            End::Return(values) => {
                values.get(number).map_or(Term::Number(f64::NAN), |&value| self.term(value))
            }
            &End::Branch { condition, then, otherwise } => {
                let condition = self.term(condition);
                let sides = [then, otherwise].map(|side| self.choice(side, number));
                match sides {
                    [then, otherwise] if then == otherwise => then,
                    [then, otherwise] => Term::apply(Op::Select, [condition, then, otherwise]),
                }
            }
            End::Open => Term::Number(f64::NAN),
        }
    }

    pub(super) fn sum(&self, region: Region, sum: &Summed) -> Term {
        let mut body: Option<Term> = None;
        let (join, leave) = match sum.product {
            false => (Op::Add, Op::Sub),
            true => (Op::Mul, Op::Div),
        };
        for &(inverse, part) in &sum.parts {
            let part = self.term(part);
            body = Some(match (body, inverse, sum.product) {
                (None, false, _) => part,
                (None, true, false) => Term::apply(Op::Neg, [part]),
                (None, true, true) => Term::apply(Op::Recip, [part]),
                (Some(body), false, _) => Term::apply(join, [body, part]),
                (Some(body), true, _) => Term::apply(leave, [body, part]),
            });
        }
        let body = Box::new(body.unwrap_or(Term::Number(0.0)));
        let (counter, product) = (self.counters[region].clone(), sum.product);
        let neutral = if product { 1.0 } else { 0.0 };
        if *body == Term::Number(neutral) {
            return self.term(sum.first);
        }
        let all = Term::Sum { product, counter, count: sum.count, body };
        match self.graph.constant(sum.first) {
            Some(first) if first == neutral => all,
            _ => Term::apply(join, [self.term(sum.first), all]),
        }
    }

    pub(super) fn input(&self, number: usize) -> Name {
        match number.checked_sub(self.graph.active) {
            None => Name { letter: "x", number: Some(number) },
            Some(number) => Name { letter: "d", number: Some(number) },
        }
    }

    pub(super) fn counter(&self, region: Region) -> &Name {
        &self.counters[region]
    }

    pub(super) fn element(&self, access: Access) -> Term {
        let data = &self.graph.accesses[access];
        let steps = data.strides.iter().filter(|&&(_, stride)| stride != 0);
        let steps = steps.map(|&(region, stride)| (stride, self.counters[region].clone()));
        let index = Index { base: data.base, steps: steps.collect() };
        match &self.rows[data.series] {
            Row::Named(name) => Term::Element(name.clone(), index),
            Row::Past(node) => match &self.names[*node] {
                Some(name) => {
                    self.past.borrow_mut().get_or_insert_with(|| name.clone());
                    Term::Past(name.clone(), index)
                }
                None => self.definition(*node),
            },
            Row::Inputs { letter, first, step } => {
                let base = first + step * i64::from(index.base);
                let scaled = |(factor, name): (i32, Name)| (factor * *step as i32, name);
                let steps: Vec<(i32, Name)> = index.steps.into_iter().map(scaled).collect();
                let base = u32::try_from(base).unwrap_or(0);
                match steps.is_empty() {
                    true => Term::Name(Name { letter, number: Some(base as usize) }),
                    false => Term::Element(Name { letter, number: None }, Index { base, steps }),
                }
            }
        }
    }

    /// The name of a series, if it has one.
    pub(super) fn table(&self, series: Series) -> Option<&Name> {
        match &self.rows[series] {
            Row::Named(name) => Some(name),
            Row::Inputs { .. } | Row::Past(_) => None,
        }
    }
}

/// How many places refer to each node.
fn uses(graph: &Graph) -> Array<Node, u32> {
    let mut uses = Array::filled(0, graph.nodes.len());
    let mut count = |node: Node| uses[node] += 1;
    for data in graph.nodes.values() {
        // A product of a node with itself is a power of it.
        let args = data.args();
        let again = |&(i, arg): &(usize, &Node)| !args[..i].contains(arg);
        args.iter().enumerate().filter(again).for_each(|(_, &arg)| count(arg));
    }
    for data in graph.blocks.values() {
        for item in &data.items {
            if let Item::Guard { condition: node, .. } | Item::Accumulate(_, node) = *item {
                count(node);
            }
        }
        match &data.end {
            End::Return(values) => {
                // What is passed on twice by one end is told once.
                let mut values = values.to_vec();
                values.sort_unstable();
                values.dedup();
                values.into_iter().for_each(&mut count);
            }
            &End::Branch { condition, .. } => count(condition),
            End::Open => {}
        }
    }
    for region in graph.regions.keys() {
        graph.entries(region).iter().for_each(|entry| count(entry.first));
    }
    uses
}

/// A letter for the counter of each loop, by how many loops are around it.
fn counters(graph: &Graph, nest: &Nest) -> Array<Region, Name> {
    const LETTERS: [&str; 6] = ["i", "j", "k", "l", "m", "n"];
    let mut depths: Array<Region, Option<usize>> = Array::filled(None, graph.regions.len());
    // A region comes after those around it.
    for block in graph.preorder() {
        for region in graph.regions_of(block) {
            let around = nest.loop_around(region).and_then(|around| depths[around]);
            depths[region] = Some(around.map_or(0, |depth| depth + 1));
        }
    }
    let names = graph.regions.keys().map(|region| {
        // A loop that replays another counts as that does.
        let counted = graph.regions[region].replays.unwrap_or(region);
        let depth = depths[counted].unwrap_or(0);
        match LETTERS.get(depth) {
            Some(letter) => Name { letter, number: None },
            None => Name { letter: "i", number: Some(depth) },
        }
    });
    names.collect()
}
