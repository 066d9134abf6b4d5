//! The steps of a recording by their form.
//!
//! Of a trace loop only the first iterations and the last one are listed: from the longest distance
//! of a carried value on, each operand is the same or an affine function of the iteration number, so
//! that two more iterations and the last one determine it for those in the gap between them.

use hashbrown::HashMap;

use super::operands::{Leaf, Source};
use crate::entity::PrimaryMap;
use crate::loops::reroll::{TraceLoop, trace_loop};
use crate::op::Op;
use crate::ssa::{ArrayData, Def, End, Graph, Item, Node, PlaceId, Region};

/// The form of a step: all but its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// An application. The exponent of `powi` is part of it, because it must stay a constant.
    Apply { op: Op, exponent: Option<u64>, place: Option<PlaceId> },
    /// A guard on the operand.
    Guard { expect: bool },
}

impl Form {
    pub(super) fn place(self) -> Option<PlaceId> {
        match self {
            Form::Apply { place, .. } => place,
            Form::Guard { .. } => None,
        }
    }
}

/// A graph of one block, as a list of steps.
///
/// Steps with numbers beyond the list lie in gaps: those that steps of the list read.
pub(super) struct Recording<'a> {
    pub(super) graph: &'a Graph,
    pub(super) forms: Vec<Form>,
    /// The number of the form of each step.
    pub(super) form_of_step: Vec<u32>,
    /// For each step, also those in gaps, the number of earlier ones of the same form.
    pub(super) ordinals: Vec<u32>,
    /// For each step, also those in gaps, the number of earlier ones.
    positions: Vec<u32>,
    /// The operands of all steps, and for each step the end of its own.
    sources: Vec<Source>,
    ends: Vec<u32>,
    pub(super) returned: Vec<Source>,
    pub(super) gaps: Vec<Gap>,
    pub(super) in_gaps: Vec<InGap>,
    bodies: HashMap<Region, Body>,
}

/// Iterations of a trace loop that are left out.
pub(super) struct Gap {
    /// The first step after it: the first one of the last iteration.
    pub(super) at: u32,
    /// The number of steps of an iteration.
    pub(super) period: u32,
    /// The number of iterations.
    pub(super) times: u32,
    region: Region,
}

/// A step in a gap.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct InGap {
    pub(super) gap: u32,
    /// The same step of the last iteration before the gap, and the number of iterations to there.
    pub(super) step: u32,
    pub(super) ahead: u32,
}

/// The body of a trace loop.
struct Body {
    data: TraceLoop,
    /// The steps of an iteration.
    items: Vec<Item>,
    /// The first step of the first iteration.
    first: u32,
    /// The number of iterations before the gap.
    head: u32,
    gap: Option<u32>,
    /// The number of steps of each form in an iteration.
    counts: HashMap<u32, u32>,
}

/// The least number of iterations before a gap, so that these and the last one are found as a loop.
const LEAST_HEAD: u32 = 3;
/// The largest distance in iterations from a value of a trace loop to its use.
const MOST_DISTANCE: u32 = 16;
/// The largest number of steps in the list: a trace loop gives several iterations of its body.
const MOST_LISTED: usize = 1 << 22;
/// Until all steps are read, steps in gaps have numbers from here on.
const IN_GAPS: u32 = 1 << 31;

/// A loop, and one of its iterations.
type Iteration = (Region, u32);

impl<'a> Recording<'a> {
    /// The steps of `graph`; `None` if it has others than primitives, guards and trace loops.
    pub(super) fn of(graph: &'a Graph) -> Option<Self> {
        let End::Return(returned) = &graph.blocks[graph.root()].end else { return None };
        let steps = graph.blocks[graph.root()].items.len();
        let numbers = || Vec::with_capacity(steps);
        let recording = Recording {
            graph,
            forms: Vec::new(),
            form_of_step: numbers(),
            ordinals: numbers(),
            positions: numbers(),
            sources: Vec::with_capacity(2 * steps),
            ends: numbers(),
            returned: Vec::new(),
            gaps: Vec::new(),
            in_gaps: Vec::new(),
            bodies: HashMap::new(),
        };
        let mut builder = Builder {
            recording,
            numbers: HashMap::new(),
            counts: Vec::new(),
            position: 0,
            numbers_of_nodes: PrimaryMap::filled((None, 0), graph.nodes.len()),
            numbers_in_gaps: HashMap::new(),
            steps_in_gaps: Vec::new(),
        };
        for &item in &graph.blocks[graph.root()].items {
            match item {
                Item::Region(region) => builder.trace_loop(region)?,
                Item::Node(node) if matches!(graph.nodes[node].def, Def::Element(_)) => {}
                _ => {
                    if let Item::Node(node) = item {
                        let number = builder.recording.form_of_step.len() as u32;
                        builder.numbers_of_nodes[node] = (None, number);
                    }
                    builder.step(item, None)?;
                }
            }
        }
        let returned = returned.iter().map(|&node| builder.source(node, None));
        let returned = returned.collect::<Option<Vec<Source>>>()?;
        let Builder { recording, steps_in_gaps, .. } = builder;
        let mut recording = Recording { returned, ..recording };
        let listed = recording.len() as u32;
        for source in recording.sources.iter_mut().chain(&mut recording.returned) {
            if let Source::Step(step) = source
                && *step >= IN_GAPS
            {
                *step = *step - IN_GAPS + listed;
            }
        }
        for (position, ordinal) in steps_in_gaps {
            recording.positions.push(position);
            recording.ordinals.push(ordinal);
        }
        Some(recording)
    }

    /// The number of steps in the list.
    pub(super) fn len(&self) -> usize {
        self.form_of_step.len()
    }

    /// The operands of a step of the list.
    pub(super) fn operands(&self, step: u32) -> &[Source] {
        let start = (step as usize).checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.sources[start as usize..self.ends[step as usize] as usize]
    }

    /// The number of steps before this one, also of those in gaps.
    pub(super) fn position(&self, step: u32) -> u32 {
        self.positions[step as usize]
    }

    /// The step in the list that has the form of this one.
    pub(super) fn representative(&self, step: u32) -> u32 {
        let in_gap = (step as usize).checked_sub(self.len());
        in_gap.map_or(step, |number| self.in_gaps[number].step)
    }

    /// The gap right after the iteration of `step`, if there is one.
    pub(super) fn gap_after(&self, step: u32) -> Option<usize> {
        let next = self.gaps.partition_point(|gap| gap.at <= step);
        self.gaps.get(next).filter(|gap| step >= gap.at - gap.period).map(|_| next)
    }

    /// Operand `slot` of `step`, in the iteration before gap `gap`, for so many iterations later.
    /// Only for an operand that is no step there.
    pub(super) fn leaf_in_gap(
        &self,
        gap: usize,
        step: u32,
        slot: usize,
        ahead: u32,
    ) -> Option<Leaf> {
        let Gap { at, period, region, .. } = self.gaps[gap];
        let body = &self.bodies[&region];
        let item = body.items[(step + period - at) as usize];
        let node = operands(self.graph, &item)[slot];
        leaf(self.graph, node, Some((region, body.head - 1 + ahead)))
    }

    /// Tests whether operand `slot` of `step`, in the iteration before a gap, is a table of
    /// constants.
    pub(super) fn is_table(&self, gap: usize, step: u32, slot: usize) -> bool {
        let Gap { at, period, region, .. } = self.gaps[gap];
        let item = self.bodies[&region].items[(step + period - at) as usize];
        match self.graph.nodes[operands(self.graph, &item)[slot]].def {
            Def::Element(access) => {
                let array = self.graph.accesses[access].array;
                matches!(self.graph.arrays[array], ArrayData::Constants(_))
            }
            _ => false,
        }
    }

    /// The line and column of a step of this form; the largest for one without a place.
    pub(super) fn place(&self, form: u32) -> (u32, u32) {
        match self.forms[form as usize] {
            Form::Apply { place: Some(place), .. } => {
                let place = &self.graph.places[place];
                (place.line, place.column)
            }
            _ => (u32::MAX, u32::MAX),
        }
    }
}

/// The operands of a step.
fn operands<'g>(graph: &'g Graph, item: &'g Item) -> &'g [Node] {
    match item {
        Item::Node(node) => graph.operands(*node),
        Item::Guard { condition, .. } => core::slice::from_ref(condition),
        _ => &[],
    }
}

/// The input or constant that `node` is, in an iteration of its loop.
fn leaf(graph: &Graph, node: Node, iteration: Option<Iteration>) -> Option<Leaf> {
    match graph.nodes[node].def {
        Def::Const(bits) => Some(Leaf::Const(bits)),
        Def::Input(number) => Some(Leaf::Input(number)),
        Def::Element(access) => {
            let data = &graph.accesses[access];
            let index = index(graph, node, iteration)?;
            match &graph.arrays[data.array] {
                ArrayData::Constants(numbers) => Some(Leaf::Const(*numbers.get(index as usize)?)),
                ArrayData::Inputs { first, .. } => Some(Leaf::Input(first + index)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The index of an element of an array, in an iteration of the loop around.
fn index(graph: &Graph, node: Node, iteration: Option<Iteration>) -> Option<u32> {
    let Def::Element(access) = graph.nodes[node].def else { return None };
    let data = &graph.accesses[access];
    let mut index = i64::from(data.base);
    for &(by, stride) in &data.strides {
        let (_, number) = iteration.filter(|&(region, _)| region == by)?;
        index += i64::from(stride) * i64::from(number);
    }
    u32::try_from(index).ok().filter(|_| data.changes.is_empty())
}

/// The state while the steps are read.
struct Builder<'a> {
    recording: Recording<'a>,
    /// The numbers of forms, and of how many steps each is.
    numbers: HashMap<Form, u32>,
    counts: Vec<u32>,
    /// The number of steps so far, also of those in gaps.
    position: u32,
    /// For each node the trace loop that it is in, and the number of its step there.
    numbers_of_nodes: PrimaryMap<Node, (Option<Region>, u32)>,
    numbers_in_gaps: HashMap<InGap, u32>,
    /// The position and the ordinal of each step in gaps.
    steps_in_gaps: Vec<(u32, u32)>,
}

impl Builder<'_> {
    /// Adds a step.
    fn step(&mut self, item: Item, iteration: Option<Iteration>) -> Option<()> {
        let graph = self.recording.graph;
        let form = form(graph, item)?;
        for &operand in operands(graph, &item) {
            let source = self.source(operand, iteration)?;
            self.recording.sources.push(source);
        }
        let recording = &mut self.recording;
        (recording.len() < MOST_LISTED).then_some(())?;
        let number = *self.numbers.entry(form).or_insert_with(|| {
            recording.forms.push(form);
            self.counts.push(0);
            self.counts.len() as u32 - 1
        });
        recording.ends.push(u32::try_from(recording.sources.len()).ok()?);
        recording.form_of_step.push(number);
        recording.ordinals.push(self.counts[number as usize]);
        recording.positions.push(self.position);
        self.counts[number as usize] += 1;
        self.position = self.position.checked_add(1)?;
        Some(())
    }

    /// Adds the steps of a trace loop.
    fn trace_loop(&mut self, region: Region) -> Option<()> {
        let graph = self.recording.graph;
        let data = trace_loop(graph, region)?;
        // An element would not show as the source of what it is carried to.
        let is_element = |&node: &Node| matches!(graph.nodes[node].def, Def::Element(_));
        (!data.passed.iter().any(is_element)).then_some(())?;
        let head = (longest_distance(graph, region, &data)? + 2).max(LEAST_HEAD);
        let times = data.times;
        let is_step = |item: &&Item| match **item {
            Item::Node(node) => match graph.nodes[node].def {
                // The condition for another iteration is the last item.
                Def::Apply(..) => graph.blocks[data.body].items.last() != Some(*item),
                _ => false,
            },
            _ => true,
        };
        let items: Vec<Item> =
            graph.blocks[data.body].items.iter().filter(is_step).copied().collect();
        for (&item, number) in items.iter().zip(0..) {
            if let Item::Node(node) = item {
                self.numbers_of_nodes[node] = (Some(region), number);
            }
        }
        let first = self.recording.form_of_step.len() as u32;
        let period = items.len() as u32;
        let is_listed = |number: &u32| *number < head || *number + 1 == times;
        let body =
            Body { data, items: items.clone(), first, head, gap: None, counts: HashMap::new() };
        self.recording.bodies.insert(region, body);
        for number in (0..times).filter(is_listed) {
            if number > head {
                let skipped = number - head;
                let at = self.recording.form_of_step.len() as u32;
                let body = self.recording.bodies.get_mut(&region)?;
                body.gap = Some(self.recording.gaps.len() as u32);
                for &form in &self.recording.form_of_step[(at - period) as usize..] {
                    *body.counts.entry(form).or_default() += 1;
                    self.counts[form as usize] += skipped;
                }
                self.position = self.position.checked_add(period.checked_mul(skipped)?)?;
                self.recording.gaps.push(Gap { at, period, times: skipped, region });
            }
            for &item in &items {
                self.step(item, Some((region, number)))?;
            }
        }
        Some(())
    }

    /// The source of `node`, in an iteration of the loop around.
    fn source(&mut self, node: Node, iteration: Option<Iteration>) -> Option<Source> {
        let graph = self.recording.graph;
        let (mut node, mut iteration) = (node, iteration);
        loop {
            if let Some(leaf) = leaf(graph, node, iteration) {
                return Some(Source::Leaf(leaf));
            }
            match graph.nodes[node].def {
                Def::Apply(..) => match self.numbers_of_nodes[node] {
                    (None, step) => return Some(Source::Step(step)),
                    (Some(region), number) => {
                        let (_, at) = iteration.filter(|&(own, _)| own == region)?;
                        return self.step_of(region, number, at).map(Source::Step);
                    }
                },
                Def::Entry(region, number) => {
                    let (_, at) = iteration.filter(|&(own, _)| own == region)?;
                    let number = number as usize;
                    (node, iteration) = match at.checked_sub(1) {
                        None => (graph.entries(region)[number].first, None),
                        Some(before) => {
                            let next = self.recording.bodies[&region].data.passed[number];
                            (next, Some((region, before)))
                        }
                    };
                }
                Def::Phi(region, number) => {
                    let data = &self.recording.bodies.get(&region)?.data;
                    let number = graph.entries(region).len() + number as usize;
                    (node, iteration) = (data.passed[number], Some((region, data.times - 1)));
                }
                Def::Element(access) => {
                    let index = index(graph, node, iteration)?;
                    let array = graph.accesses[access].array;
                    let ArrayData::Saved(saved) = graph.arrays[array] else { return None };
                    let (region, _) = self.numbers_of_nodes[saved];
                    (node, iteration) = (saved, Some((region?, index)));
                }
                _ => return None,
            }
        }
    }

    /// Step `number` of iteration `at` of `region`.
    fn step_of(&mut self, region: Region, number: u32, at: u32) -> Option<u32> {
        let recording = &mut self.recording;
        let body = &recording.bodies[&region];
        let period = body.items.len() as u32;
        (at < body.data.times).then_some(())?;
        if at < body.head {
            return Some(body.first + at * period + number);
        }
        if at + 1 == body.data.times {
            return Some(body.first + body.head * period + number);
        }
        let step = body.first + (body.head - 1) * period + number;
        let in_gap = InGap { gap: body.gap?, step, ahead: at + 1 - body.head };
        let count = self.numbers_in_gaps.len() as u32;
        Some(*self.numbers_in_gaps.entry(in_gap).or_insert_with(|| {
            let count_of_form = body.counts[&recording.form_of_step[step as usize]];
            let ordinal = recording.ordinals[step as usize] + in_gap.ahead * count_of_form;
            let position = recording.positions[step as usize] + in_gap.ahead * period;
            self.steps_in_gaps.push((position, ordinal));
            recording.in_gaps.push(in_gap);
            IN_GAPS + count
        }))
    }
}

/// The largest distance in iterations from a value of `region` to its use.
fn longest_distance(graph: &Graph, region: Region, data: &TraceLoop) -> Option<u32> {
    let entries = graph.entries(region).len();
    let distance = |number: usize| {
        let mut next = data.passed[number];
        for distance in 1..=MOST_DISTANCE {
            match graph.nodes[next].def {
                Def::Entry(of, number) if of == region => next = data.passed[number as usize],
                _ => return Some(distance),
            }
        }
        None
    };
    (0..entries).try_fold(0, |most: u32, number| Some(most.max(distance(number)?)))
}

fn form(graph: &Graph, item: Item) -> Option<Form> {
    Some(match item {
        Item::Node(node) => {
            let data = &graph.nodes[node];
            let Def::Apply(op, args) = data.def else { return None };
            let exponent = match graph.nodes[args[1]].def {
                Def::Const(bits) if op == Op::Powi => Some(bits),
                _ if op == Op::Powi => return None,
                _ => None,
            };
            Form::Apply { op, exponent, place: data.place }
        }
        Item::Guard { expect, .. } => Form::Guard { expect },
        _ => return None,
    })
}
