//! Decides which periodic runs of steps are loops.
//!
//! A run of steps with equal templates is a loop if each operand of each step of the body always
//! comes from the same step, the same number of iterations back, or always from before the loop.
//! Where that changes, one loop ends and another may begin. So the peculiar first iterations of a
//! recurrence are left out, and adjacent loops are separated.

use super::RerollLimits;
use super::period::PeriodicRun;
use super::template::{Step, Templates};
use crate::entity::PrimaryMap;
use crate::loops::cells::LEAST_COLUMNS;
use crate::ssa::{Array, ArrayData, Def, Graph, Node, Region, uses};
use crate::trace::CarriedValues;

/// The definition of each node: a step of the current list and the number of the output.
pub(super) struct Definitions<'a> {
    graph: &'a Graph,
    definitions: PrimaryMap<Node, (u32, u32, u32)>,
    /// The number of users of each node of the graph.
    uses: PrimaryMap<Node, u32>,
    list: u32,
}

impl<'a> Definitions<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        Definitions {
            graph,
            definitions: PrimaryMap::filled((0, 0, 0), graph.nodes.len()),
            uses: uses(graph),
            list: 0,
        }
    }

    /// Makes room for `count` nodes beyond those of the graph.
    pub(super) fn with_room(mut self, count: usize) -> Self {
        (0..count).for_each(|_| _ = self.definitions.push((0, 0, 0)));
        self
    }

    pub(super) fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The bits of `node` if it is a constant.
    pub(super) fn constant(&self, node: Node) -> Option<u64> {
        self.graph.nodes.get(node)?;
        self.graph.constant(node).map(f64::to_bits)
    }

    /// The number of users of `node`; the largest number for one that is not of the graph.
    pub(super) fn uses(&self, node: Node) -> u32 {
        self.uses.get(node).copied().unwrap_or(u32::MAX)
    }

    /// The number of the input `node`.
    pub(super) fn input(&self, node: Node) -> Option<usize> {
        match self.graph.nodes.get(node)?.def {
            Def::Input(number) => Some(number as usize),
            _ => None,
        }
    }

    /// The loop of which `node` is an entry φ, and its number there, if that has so many that they
    /// may become cells.
    pub(super) fn entry(&self, node: Node) -> Option<(Region, usize)> {
        let Def::Entry(region, number) = self.graph.nodes.get(node)?.def else { return None };
        (self.graph.entries(region).len() >= LEAST_COLUMNS).then_some((region, number as usize))
    }

    /// The array that an enclosing loop reads as `node`, with stride and base.
    pub(super) fn element(&self, node: Node) -> Option<(Array, i32, usize)> {
        let Def::Element(access) = self.graph.nodes.get(node)?.def else { return None };
        let data = &self.graph.accesses[access];
        match (&self.graph.arrays[data.array], &data.strides[..]) {
            (ArrayData::Inputs { .. } | ArrayData::Saved(_), &[(_, stride)]) => {
                Some((data.array, stride, data.base as usize))
            }
            _ => None,
        }
    }

    /// Begins a new list: no node has a definition.
    pub(super) fn begin(&mut self) {
        self.list += 1;
    }

    pub(super) fn set(&mut self, node: Node, step: usize, output: usize) {
        self.definitions[node] = (self.list, step as u32, output as u32);
    }

    pub(super) fn get(&self, node: Node) -> Option<(usize, usize)> {
        let (list, step, output) = self.definitions[node];
        (list == self.list).then_some((step as usize, output as usize))
    }
}

/// The position of a loop in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    /// The number of steps of an iteration.
    pub(super) period: usize,
    /// The number of iterations.
    pub(super) times: usize,
}

impl Span {
    pub(super) fn end(&self) -> usize {
        self.start + self.period * self.times
    }
}

/// Steps that form a loop.
pub(super) struct Repetition {
    pub(super) span: Span,
    /// The source of each operand of the body, in order.
    pub(super) sources: Vec<Source>,
}

/// The source of an operand of the body, in the iterations so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// No iteration so far.
    Unknown,
    /// A live-in that is no element of an array.
    LiveIn,
    /// An element of an array: its latest index, and the step from the index before, once known.
    Element { array: ArraySource, index: usize, stride: Option<i64> },
    /// An output of a step, `distance` iterations back.
    Inside { distance: usize, step: usize, output: usize },
}

/// A sequence of values that an index can follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArraySource {
    Active,
    Inactive,
    /// The outputs of the loop whose first step is this one.
    Loop(usize),
    /// The elements that an enclosing loop reads from an array with this stride.
    Elements(Array, i32),
    /// The entry φs of an enclosing loop.
    Entries(Region),
}

/// The search in one list of steps.
pub(super) struct Search<'a> {
    steps: &'a [Step],
    definitions: &'a Definitions<'a>,
    limits: &'a RerollLimits,
    /// The number of outputs, and the weight, of the steps before each step.
    before: Vec<(usize, u64)>,
    /// The loop that each step is or will be in.
    loops: Vec<Option<Rolled>>,
}

/// A loop whose outputs are numbered from 0, `width` in each iteration.
#[derive(Clone, Copy)]
struct Rolled {
    /// Its first step.
    start: usize,
    width: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        steps: &'a [Step],
        templates: &'a Templates,
        definitions: &'a Definitions<'a>,
        limits: &'a RerollLimits,
    ) -> Self {
        let mut before = vec![(0, 0)];
        let (mut outputs, mut weight) = (0, 0);
        for step in steps {
            outputs += step.outputs.len();
            weight += templates.weight(step.template);
            before.push((outputs, weight));
        }
        let rolled = |(start, step): (usize, &Step)| {
            let width = templates.outputs_of_iteration(step.template)?;
            Some(Rolled { start, width })
        };
        let loops = steps.iter().enumerate().map(rolled).collect();
        Search { steps, definitions, limits, before, loops }
    }

    /// The loops in `runs`, in the order of the list; of overlapping ones that with the shorter
    /// period.
    pub(super) fn repetitions(&self, runs: &[PeriodicRun]) -> Vec<Repetition> {
        let mut taken = vec![false; self.steps.len()];
        let (mut found, mut marked) = (Vec::new(), 0);
        for run in runs {
            let mut at = run.start;
            while at < run.end {
                let free = (at..run.end).find(|&i| taken[i]).unwrap_or(run.end);
                self.find_loops(run.period, at, free, false, &mut found);
                at = (free..run.end).find(|&i| !taken[i]).unwrap_or(run.end);
            }
            for Repetition { span, .. } in &found[marked..] {
                taken[span.start..span.end()].fill(true);
            }
            marked = found.len();
        }
        found.sort_unstable_by_key(|repetition: &Repetition| repetition.span.start);
        found
    }

    /// Splits each loop where its operands stop to form arithmetic progressions of input numbers,
    /// or of outputs of an earlier loop. If they do so only with several iterations merged into
    /// one, these are merged. A loop has no pieces if they would be no better.
    pub(super) fn split(&mut self, loops: &[Span]) -> Vec<Vec<Repetition>> {
        let mut all = Vec::with_capacity(loops.len());
        for &whole in loops {
            let mut pieces = Vec::new();
            for factor in 1..=self.limits.merged_iterations.max(1) as usize {
                pieces.clear();
                self.find_loops(whole.period * factor, whole.start, whole.end(), true, &mut pieces);
                if are_better(&pieces, whole) {
                    break;
                }
            }
            let stays = matches!(&pieces[..], [only] if only.span == whole);
            if stays || !are_better(&pieces, whole) {
                pieces.clear();
                self.set_loop(whole);
            }
            for piece in &pieces {
                self.set_loop(piece.span);
            }
            all.push(pieces);
        }
        all
    }

    /// The number of `operands`, those of one operand of a loop body, that must be copied to an
    /// array of nodes before the loop, and cannot become cells.
    pub(super) fn copied_operands(&self, operands: &[Node]) -> usize {
        let mut source = Some(Source::Unknown);
        for &operand in operands {
            let array = self.array(operand, self.definitions.get(operand));
            source = source.and_then(|source| live_in(source, array));
        }
        if matches!(source, Some(Source::Element { .. }))
            || operands.windows(2).all(|w| w[0] == w[1])
        {
            return 0;
        }
        let is_leaf = |node: Node| {
            self.definitions.input(node).is_some()
                || self.definitions.graph.constant(node).is_some()
        };
        operands.iter().filter(|&&node| !is_leaf(node) && !self.may_be_cell(node)).count()
    }

    /// Tests whether `node` is one of many outputs of each iteration of a loop, which may become cells.
    fn may_be_cell(&self, node: Node) -> bool {
        let rolled = self.definitions.get(node).and_then(|(step, _)| self.loops[step]);
        rolled.is_some_and(|loop_step| loop_step.width >= LEAST_COLUMNS)
    }

    fn set_loop(&mut self, Span { start, period, times }: Span) {
        let width = self.before[start + period].0 - self.before[start].0;
        self.loops[start..start + period * times].fill(Some(Rolled { start, width }));
    }

    /// Finds loops of this period between `at` and `end`.
    fn find_loops(
        &self,
        period: usize,
        mut at: usize,
        end: usize,
        strict: bool,
        found: &mut Vec<Repetition>,
    ) {
        let iterations = self.limits.iterations.max(2) as usize;
        while at + period * iterations <= end {
            let mut repetition = self.longest(period, at, end, strict);
            if let Some(factor) = self.merge_factor(&repetition).filter(|_| !strict) {
                let end = repetition.span.end();
                let grouped = self.longest(period * factor, at, end, strict);
                if grouped.span.times >= iterations {
                    repetition = grouped;
                }
            }
            if !strict && repetition.span.times >= iterations {
                repetition = self.rotated(repetition, end);
            }
            let span = repetition.span;
            let weight = self.before[span.end()].1 - self.before[span.start].1;
            // The pieces of a loop are the bodies of an outer one.
            let least = if strict { self.limits.weight / 2 } else { self.limits.weight };
            if span.times >= iterations && weight >= least {
                at = span.end();
                found.push(repetition);
            } else {
                at += period;
            }
        }
    }

    /// The same loop rotated to end at `end`, if fewer values are carried then.
    fn rotated(&self, repetition: Repetition, end: usize) -> Repetition {
        let Span { start, period, times } = repetition.span;
        let later = end - repetition.span.end();
        if later == 0 {
            return repetition;
        }
        let body = &self.steps[start..start + period];
        let users = body
            .iter()
            .enumerate()
            .flat_map(|(at, step)| core::iter::repeat_n(at, step.operands.len()));
        let mut carried = CarriedValues::new(period);
        for (at, source) in users.zip(&repetition.sources) {
            if let Source::Inside { distance, step, output } = *source {
                carried.add((step, output), step, distance, at);
            }
        }
        if !carried.is_smaller_rotated(later) {
            return repetition;
        }
        let rotated = self.longest(period, start + later, end, false);
        if rotated.span.times == times { rotated } else { repetition }
    }

    /// The number of iterations after which live-in operands repeat, if they are not the same in
    /// each iteration and not all are constants: so many iterations are merged into one.
    fn merge_factor(&self, repetition: &Repetition) -> Option<usize> {
        let Span { start, period, times } = repetition.span;
        let most = (times / self.limits.iterations.max(2) as usize)
            .min(self.limits.merged_iterations.max(1) as usize);
        if most < 2 {
            return None;
        }
        let operands = |iteration: usize| {
            let first = start + iteration * period;
            self.steps[first..first + period].iter().flat_map(|step| &step.operands).copied()
        };
        let constant = |node: Node| {
            let data = self.definitions.graph.nodes.get(node);
            data.and_then(|_| self.definitions.graph.constant(node)).map(f64::to_bits)
        };
        let is_same =
            |a: Node, b: Node| a == b || constant(a).is_some_and(|bits| constant(b) == Some(bits));
        // The live-ins of both iterations are the same.
        let is_alike = |a: usize, b: usize| {
            let mut pairs = operands(a).zip(operands(b)).zip(&repetition.sources);
            pairs.all(|((a, b), source)| *source != Source::LiveIn || is_same(a, b))
        };
        let factor = (1..=most).find(|&back| is_alike(0, back)).filter(|&back| back > 1)?;
        let is_cycle = (factor..times).all(|iteration| is_alike(iteration, iteration - factor));
        let mut live_ins = (0..factor).flat_map(operands).zip(repetition.sources.iter().cycle());
        let is_computed = |node: Node| constant(node).is_none();
        let counts = live_ins.any(|(node, source)| *source == Source::LiveIn && is_computed(node));
        (is_cycle && counts).then_some(factor)
    }

    /// The step that defines `node`, and the number of the output.
    pub(super) fn definition(&self, node: Node) -> Option<(usize, usize)> {
        self.definitions.get(node)
    }

    /// The longest loop that begins at `start`.
    pub(super) fn longest(
        &self,
        period: usize,
        start: usize,
        end: usize,
        strict: bool,
    ) -> Repetition {
        let body = &self.steps[start..start + period];
        let slots = body.iter().map(|step| step.operands.len()).sum();
        let mut sources = vec![Source::Unknown; slots];
        let most = ((end - start) / period).min(self.limits.times as usize);
        let mut times = 0;
        'iterations: while times < most {
            let mut sources = sources.iter_mut();
            let first = start + times * period;
            for step in &self.steps[first..first + period] {
                for (&operand, source) in step.operands.iter().zip(&mut sources) {
                    let definition = self.definitions.get(operand);
                    let next = match definition.filter(|&(step, _)| step >= start) {
                        Some((step, output)) => {
                            let distance = times - (step - start) / period;
                            let step = (step - start) % period;
                            continued(
                                *source,
                                Source::Inside { distance, step, output },
                                times,
                                self.limits.distance,
                            )
                        }
                        None if strict => live_in(*source, self.array(operand, definition)),
                        None => live_in(*source, None),
                    };
                    match next {
                        Some(next) => *source = next,
                        None => break 'iterations,
                    }
                }
            }
            times += 1;
        }
        for source in &mut sources {
            // Found in the iteration that did not fit.
            if matches!(source, Source::Inside { distance, .. } if *distance >= times) {
                *source = Source::LiveIn;
            }
        }
        Repetition { span: Span { start, period, times }, sources }
    }

    /// The array of which `node` is an element, with its index and the number of elements per
    /// iteration.
    fn array(
        &self,
        node: Node,
        definition: Option<(usize, usize)>,
    ) -> Option<(ArraySource, usize, usize)> {
        let Some((step, output)) = definition else {
            if let Some((array, stride, base)) = self.definitions.element(node) {
                return Some((ArraySource::Elements(array, stride), base, 1));
            }
            if let Some((region, number)) = self.definitions.entry(node) {
                return Some((ArraySource::Entries(region), number, 1));
            }
            let number = self.definitions.input(node)?;
            let is_active = number < self.definitions.graph.active;
            return Some((
                if is_active { ArraySource::Active } else { ArraySource::Inactive },
                number,
                1,
            ));
        };
        let Rolled { start, width } = self.loops[step]?;
        let number = self.before[step].0 - self.before[start].0 + output;
        Some((ArraySource::Loop(start), number, width))
    }
}

/// The source of an operand that came from `source` before and in this iteration from `here`;
/// `None` if they do not fit together.
pub(super) fn continued(
    source: Source,
    here: Source,
    iteration: usize,
    most_distance: u32,
) -> Option<Source> {
    let begins = match here {
        Source::Inside { distance, .. } => {
            distance == iteration && distance <= most_distance as usize
        }
        _ => false,
    };
    let fits = match source {
        Source::Unknown | Source::LiveIn | Source::Element { .. } => begins,
        Source::Inside { .. } => source == here,
    };
    fits.then_some(here)
}

/// The source of an operand that came from `source` before and now from before the loop, perhaps
/// from an array; `None` if they do not fit together.
fn live_in(source: Source, array: Option<(ArraySource, usize, usize)>) -> Option<Source> {
    match (source, array) {
        (Source::Unknown, Some((array, index, _))) => {
            Some(Source::Element { array, index, stride: None })
        }
        (Source::Unknown | Source::LiveIn, None) => Some(Source::LiveIn),
        (Source::Element { array, index, stride }, Some((same, now, width))) if array == same => {
            let added = now as i64 - index as i64;
            let fits =
                stride.is_none_or(|stride| stride == added) && added % (width.max(1) as i64) == 0;
            fits.then_some(Source::Element { array, index: now, stride: Some(added) })
        }
        _ => None,
    }
}

/// Tests whether these pieces can replace the whole loop: they cover at least half of it, and are
/// few or regular.
fn are_better(pieces: &[Repetition], whole: Span) -> bool {
    let covered: usize = pieces.iter().map(|piece| piece.span.end() - piece.span.start).sum();
    let times: Vec<usize> = pieces.iter().map(|piece| piece.span.times).collect();
    let middle = times.get(1..times.len().saturating_sub(1)).unwrap_or_default();
    covered * 2 >= whole.end() - whole.start
        && (pieces.len() <= 3 || are_regular(middle) || are_regular(&times))
}

/// Tests whether trip counts change by the same number from one to the next, as in a triangle, or
/// repeat such a sequence.
fn are_regular(times: &[usize]) -> bool {
    let change = |at: usize| times[at] as i64 - times[at - 1] as i64;
    let period = (2..times.len()).find(|&at| change(at) != change(1)).unwrap_or(times.len());
    (period..times.len()).all(|at| times[at] == times[at - period])
}
