//! Decides which periodic runs of steps are loops.
//!
//! A run of steps with equal templates is a loop if each operand of each step of the body always
//! comes from the same step, the same number of iterations back, or always from before the loop.
//! Where that changes, one loop ends and another may begin. So the peculiar first iterations of a
//! recurrence are left out, and adjacent loops are separated.

use super::RerollLimits;
use super::period::Run;
use super::shape::{Shapes, Step};
use crate::entity::PrimaryMap;
use crate::ssa::{Array, ArrayData, Def, Graph, Node};
use crate::trace::Carried;

/// The definition of each node: a step of the current list and the number of the output.
pub(super) struct Homes<'a> {
    graph: &'a Graph,
    homes: PrimaryMap<Node, (u32, u32, u32)>,
    list: u32,
}

impl<'a> Homes<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        Homes { graph, homes: PrimaryMap::filled((0, 0, 0), graph.nodes.len()), list: 0 }
    }

    /// Makes room for `count` nodes beyond those of the graph.
    pub(super) fn with_room(mut self, count: usize) -> Self {
        (0..count).for_each(|_| _ = self.homes.push((0, 0, 0)));
        self
    }

    pub(super) fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The number of the input `node`.
    fn input(&self, node: Node) -> Option<usize> {
        match self.graph.nodes.get(node)?.def {
            Def::Input(number) => Some(number as usize),
            _ => None,
        }
    }

    /// The array that an enclosing loop reads as `node`, with stride and base.
    fn element(&self, node: Node) -> Option<(Array, i32, usize)> {
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
        self.homes[node] = (self.list, step as u32, output as u32);
    }

    pub(super) fn get(&self, node: Node) -> Option<(usize, usize)> {
        let (list, step, output) = self.homes[node];
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
    Before,
    /// An element of an array: its latest index, and the step from the index before, once known.
    ArraySource { row: ArraySource, number: usize, by: Option<i64> },
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
}

/// The search in one list of steps.
pub(super) struct Search<'a> {
    steps: &'a [Step],
    homes: &'a Homes<'a>,
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
        shapes: &'a Shapes,
        homes: &'a Homes<'a>,
        limits: &'a RerollLimits,
    ) -> Self {
        let mut before = vec![(0, 0)];
        let (mut outputs, mut weight) = (0, 0);
        for step in steps {
            outputs += step.outputs.len();
            weight += shapes.weight(step.shape);
            before.push((outputs, weight));
        }
        let rolled = |(start, step): (usize, &Step)| {
            let width = shapes.outputs_of_iteration(step.shape)?;
            Some(Rolled { start, width })
        };
        let loops = steps.iter().enumerate().map(rolled).collect();
        Search { steps, homes, limits, before, loops }
    }

    /// The loops in `runs`, in the order of the list; of overlapping ones that with the shorter
    /// period.
    pub(super) fn repetitions(&self, runs: &[Run]) -> Vec<Repetition> {
        let mut taken = vec![false; self.steps.len()];
        let (mut found, mut marked) = (Vec::new(), 0);
        for run in runs {
            let mut at = run.start;
            while at < run.end {
                let free = (at..run.end).find(|&i| taken[i]).unwrap_or(run.end);
                self.stretch(run.period, at, free, false, &mut found);
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
    pub(super) fn parts(&mut self, loops: &[Span]) -> Vec<Vec<Repetition>> {
        let mut all = Vec::with_capacity(loops.len());
        for &whole in loops {
            let mut parts = Vec::new();
            for together in 1..=self.limits.together.max(1) as usize {
                parts.clear();
                self.stretch(whole.period * together, whole.start, whole.end(), true, &mut parts);
                if are_as_good(&parts, whole) {
                    break;
                }
            }
            let stays = matches!(&parts[..], [only] if only.span == whole);
            if stays || !are_as_good(&parts, whole) {
                parts.clear();
                self.set_loop(whole);
            }
            for part in &parts {
                self.set_loop(part.span);
            }
            all.push(parts);
        }
        all
    }

    /// The number of `operands`, those of one operand of a loop body, that must be copied to an
    /// array of nodes before the loop.
    pub(super) fn gathered(&self, operands: &[Node]) -> usize {
        let mut source = Some(Source::Unknown);
        for &operand in operands {
            let row = self.row(operand, self.homes.get(operand));
            source = source.and_then(|source| before(source, row));
        }
        if matches!(source, Some(Source::ArraySource { .. }))
            || operands.windows(2).all(|w| w[0] == w[1])
        {
            return 0;
        }
        let is_leaf = |node: Node| {
            self.homes.input(node).is_some() || self.homes.graph.constant(node).is_some()
        };
        operands.iter().filter(|&&operand| !is_leaf(operand)).count()
    }

    fn set_loop(&mut self, Span { start, period, times }: Span) {
        let width = self.before[start + period].0 - self.before[start].0;
        self.loops[start..start + period * times].fill(Some(Rolled { start, width }));
    }

    /// Finds loops of this period between `at` and `end`.
    fn stretch(
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
            if let Some(together) = self.cycle(&repetition).filter(|_| !strict) {
                let end = repetition.span.end();
                let grouped = self.longest(period * together, at, end, strict);
                if grouped.span.times >= iterations {
                    repetition = grouped;
                }
            }
            if !strict && repetition.span.times >= iterations {
                repetition = self.begun_later(repetition, end);
            }
            let span = repetition.span;
            let weight = self.before[span.end()].1 - self.before[span.start].1;
            if span.times >= iterations && weight >= self.limits.weight {
                at = span.end();
                found.push(repetition);
            } else {
                at += period;
            }
        }
    }

    /// The same loop rotated to end at `end`, if fewer values are carried then.
    fn begun_later(&self, repetition: Repetition, end: usize) -> Repetition {
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
        let mut carried = Carried::new(period);
        for (at, source) in users.zip(&repetition.sources) {
            if let Source::Inside { distance, step, output } = *source {
                carried.add((step, output), step, distance, at);
            }
        }
        if !carried.is_less_from(later) {
            return repetition;
        }
        let begun_later = self.longest(period, start + later, end, false);
        if begun_later.span.times == times { begun_later } else { repetition }
    }

    /// The number of iterations after which live-in operands repeat, if they are not the same in
    /// each iteration and not all are constants: so many iterations are merged into one.
    fn cycle(&self, repetition: &Repetition) -> Option<usize> {
        let Span { start, period, times } = repetition.span;
        let most = (times / self.limits.iterations.max(2) as usize)
            .min(self.limits.together.max(1) as usize);
        if most < 2 {
            return None;
        }
        let operands = |iteration: usize| {
            let first = start + iteration * period;
            self.steps[first..first + period].iter().flat_map(|step| &step.operands).copied()
        };
        let constant = |node: Node| {
            let data = self.homes.graph.nodes.get(node);
            data.and_then(|_| self.homes.graph.constant(node)).map(f64::to_bits)
        };
        let is_same =
            |a: Node, b: Node| a == b || constant(a).is_some_and(|bits| constant(b) == Some(bits));
        // The live-ins of both iterations are the same.
        let is_alike = |a: usize, b: usize| {
            let mut pairs = operands(a).zip(operands(b)).zip(&repetition.sources);
            pairs.all(|((a, b), source)| *source != Source::Before || is_same(a, b))
        };
        let together = (1..=most).find(|&back| is_alike(0, back)).filter(|&back| back > 1)?;
        let is_cycle = (together..times).all(|iteration| is_alike(iteration, iteration - together));
        let mut cycle = (0..together).flat_map(operands).zip(repetition.sources.iter().cycle());
        let is_computed = |node: Node| constant(node).is_none();
        let counts = cycle.any(|(node, source)| *source == Source::Before && is_computed(node));
        (is_cycle && counts).then_some(together)
    }

    /// The step that defines `node`, and the number of the output.
    pub(super) fn home(&self, node: Node) -> Option<(usize, usize)> {
        self.homes.get(node)
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
                    let home = self.homes.get(operand);
                    let next = match home.filter(|&(step, _)| step >= start) {
                        Some((step, output)) => {
                            let distance = times - (step - start) / period;
                            let step = (step - start) % period;
                            self.inside(*source, Source::Inside { distance, step, output }, times)
                        }
                        None if strict => before(*source, self.row(operand, home)),
                        None => before(*source, None),
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
                *source = Source::Before;
            }
        }
        Repetition { span: Span { start, period, times }, sources }
    }

    /// The source of an operand that came from `source` before and in this iteration from `here`;
    /// `None` if they do not fit together.
    fn inside(&self, source: Source, here: Source, iteration: usize) -> Option<Source> {
        let begins = match here {
            Source::Inside { distance, .. } => {
                distance == iteration && distance <= self.limits.distance as usize
            }
            _ => false,
        };
        let fits = match source {
            Source::Unknown | Source::Before | Source::ArraySource { .. } => begins,
            Source::Inside { .. } => source == here,
        };
        fits.then_some(here)
    }

    /// The array of which `node` is an element, with its index and the number of elements per
    /// iteration.
    fn row(&self, node: Node, home: Option<(usize, usize)>) -> Option<(ArraySource, usize, usize)> {
        let Some((step, output)) = home else {
            if let Some((array, stride, base)) = self.homes.element(node) {
                return Some((ArraySource::Elements(array, stride), base, 1));
            }
            let number = self.homes.input(node)?;
            let is_active = number < self.homes.graph.active;
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

/// The source of an operand that came from `source` before and now from before the loop, perhaps
/// from an array; `None` if they do not fit together.
fn before(source: Source, row: Option<(ArraySource, usize, usize)>) -> Option<Source> {
    match (source, row) {
        (Source::Unknown, Some((row, number, _))) => {
            Some(Source::ArraySource { row, number, by: None })
        }
        (Source::Unknown | Source::Before, None) => Some(Source::Before),
        (Source::ArraySource { row, number, by }, Some((same, now, width))) if row == same => {
            let added = now as i64 - number as i64;
            let fits = by.is_none_or(|by| by == added) && added % (width.max(1) as i64) == 0;
            fits.then_some(Source::ArraySource { row, number: now, by: Some(added) })
        }
        _ => None,
    }
}

/// Tests whether these pieces can replace the whole loop: they cover at least half of it, and are
/// few or of equal length.
fn are_as_good(parts: &[Repetition], whole: Span) -> bool {
    let inside: usize = parts.iter().map(|part| part.span.end() - part.span.start).sum();
    let middle = parts.get(1..parts.len().saturating_sub(1)).unwrap_or_default();
    let are_even = middle.windows(2).all(|pair| pair[0].span.times == pair[1].span.times);
    inside * 2 >= whole.end() - whole.start && (parts.len() <= 3 || are_even)
}
