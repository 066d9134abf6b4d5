//! Loops in loops whose trip count changes by the same number from one outer iteration to the next,
//! as in a triangle.
//!
//! The inner loops have been rolled. They have the same *shape*: their templates are equal but for
//! the trip count. An outer iteration may use from an earlier one only what its inner loops computed
//! in their last iterations; all other operands of inner loops, a *row* for each outer iteration,
//! come from before the outer loop.

use smallvec::SmallVec;

use super::RerollLimits;
use super::argument::{Arg, ArraySource, Leaf, OutputGraph};
use super::emit::{Args, Emitter, Locals, Operand};
use super::period::PeriodicRun;
use super::search::{Definitions, Source, Span, continued};
use super::template::{Inner, Ref, Step, Template, TemplateId, Templates};
use crate::op::Op;
use crate::ssa::{Array, Block, End, Node, PlaceId, Region};

/// The trip counts of an inner loop: that in the first outer iteration, and its change from one to
/// the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Trips {
    pub(super) first: u32,
    pub(super) by: i32,
}

impl Trips {
    /// The trip count in this outer iteration.
    pub(super) fn at(self, iteration: usize) -> usize {
        let trips = i64::from(self.first) + i64::from(self.by) * iteration as i64;
        usize::try_from(trips).unwrap_or(0)
    }
}

/// The source of operands of the body.
#[derive(Clone, Copy)]
enum SlotSource {
    /// That of an operand.
    Operand(Source),
    /// A row of operands, as long as the trip count.
    Row,
}

/// The operands of a loop: rows, and initial values of carried operands.
enum Slot {
    Row,
    /// So many initial values.
    Carried(usize),
}

/// An array of which a row is a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowArray {
    Inputs {
        is_active: bool,
    },
    /// The elements that an enclosing loop reads with this stride.
    Elements(Array, i32),
    /// This output in each iteration of the loop that is this step.
    Loop(usize, usize),
}

/// An outer loop.
struct Ragged {
    span: Span,
    /// The trip counts of the steps of the body that are loops with other ones in each iteration.
    trips: Vec<Option<Trips>>,
    sources: Vec<SlotSource>,
}

/// Rolls outer loops around loops of one shape; returns true if there are any.
pub(super) fn roll_ragged(
    steps: &mut Vec<Step>,
    templates: &mut Templates,
    definitions: &mut Definitions<'_>,
    limits: &RerollLimits,
) -> bool {
    let shapes: Vec<TemplateId> = steps.iter().map(|step| templates.shape(step.template)).collect();
    if steps.iter().zip(&shapes).all(|(step, &shape)| step.template == shape) {
        return false;
    }
    let runs = super::period::runs(&shapes, limits);
    let mut found: Vec<Ragged> = Vec::new();
    let mut taken = vec![false; steps.len()];
    for PeriodicRun { period, start, end } in runs {
        let mut at = start;
        while at + period * limits.iterations.max(2) as usize <= end {
            if taken[at..at + period].contains(&true) {
                at += 1;
                continue;
            }
            let end = (at..end).find(|&i| taken[i]).unwrap_or(end);
            let search = Search { steps, shapes: &shapes, templates, definitions };
            match search.longest(period, at, end, limits) {
                Some(ragged) => {
                    taken[at..ragged.span.end()].fill(true);
                    at = ragged.span.end();
                    found.push(ragged);
                }
                None => at += 1,
            }
        }
    }
    found.sort_unstable_by_key(|ragged| ragged.span.start);
    let is_found = !found.is_empty();
    let mut new = Vec::new();
    let mut at = 0;
    for ragged in found {
        new.extend_from_slice(&steps[at..ragged.span.start]);
        at = ragged.span.end();
        new.push(loop_step(&steps[ragged.span.start..at], &ragged, templates));
    }
    new.extend_from_slice(&steps[at..]);
    *steps = new;
    is_found
}

struct Search<'a, 'g> {
    steps: &'a [Step],
    shapes: &'a [TemplateId],
    templates: &'a Templates,
    definitions: &'a Definitions<'g>,
}

impl Search<'_, '_> {
    /// The longest loop that begins at `start`, if it has enough iterations and another trip count
    /// in each.
    fn longest(
        &self,
        period: usize,
        start: usize,
        end: usize,
        limits: &RerollLimits,
    ) -> Option<Ragged> {
        let body = &self.steps[start..start + period];
        let second = self.steps.get(start + period..start + 2 * period)?;
        let trips = body.iter().zip(second).map(|(first, second)| {
            let first = self.templates.trips(first.template)?;
            let by =
                i32::try_from(i64::from(self.templates.trips(second.template)?) - i64::from(first));
            by.ok().filter(|&by| by != 0).map(|by| Trips { first, by })
        });
        let trips: Vec<Option<Trips>> = trips.collect();
        if trips.iter().all(Option::is_none) {
            return None;
        }
        let mut ragged = Ragged { span: Span { start, period, times: 0 }, trips, sources: vec![] };
        let most = ((end - start) / period).min(limits.times as usize);
        while ragged.span.times < most && self.extend(&mut ragged, limits.distance) {
            ragged.span.times += 1;
        }
        let times = ragged.span.times;
        for source in &mut ragged.sources {
            // Found in the iteration that did not fit.
            if let SlotSource::Operand(Source::Inside { distance, .. }) = source
                && *distance >= times
            {
                *source = SlotSource::Operand(Source::LiveIn);
            }
        }
        let is_long = times >= limits.iterations.max(2) as usize;
        let weight = |step: &Step| self.templates.weight(step.template);
        let weight: u64 = self.steps[start..ragged.span.end()].iter().map(weight).sum();
        let fits = is_long
            && weight >= limits.ragged_weight
            && self.has_no_other_users(&ragged)
            && self.has_affine_rows(&ragged);
        fits.then_some(ragged)
    }

    /// Tests whether the steps after the iterations so far are a further one, and notes the sources
    /// of its operands.
    fn extend(&self, ragged: &mut Ragged, most_distance: u32) -> bool {
        let Ragged { span: Span { start, period, times }, trips, sources } = ragged;
        let (start, period, times) = (*start, *period, *times);
        let mut next = Vec::with_capacity(sources.len());
        for (at, trips_of_step) in trips.iter().enumerate() {
            let index = start + times * period + at;
            let step = &self.steps[index];
            let fits = match trips_of_step {
                None => step.template == self.steps[start + at].template,
                Some(trips_of_step) => {
                    self.shapes[index] == self.shapes[start + at]
                        && self.templates.trips(step.template)
                            == u32::try_from(trips_of_step.at(times)).ok()
                }
            };
            if !fits {
                return false;
            }
            let source = |operand: Node, known: Option<&SlotSource>| {
                let known = match known {
                    Some(&SlotSource::Operand(source)) => source,
                    _ => Source::Unknown,
                };
                let here = self.definitions.get(operand).filter(|&(step, _)| step >= start);
                let source = match here {
                    Some((step, output)) => {
                        let (distance, step) =
                            (times - (step - start) / period, (step - start) % period);
                        let iteration = times - distance;
                        let output =
                            self.output(trips[step], (start, period), (iteration, step), output)?;
                        let here = Source::Inside { distance, step, output };
                        continued(known, here, times, most_distance)?
                    }
                    None => match known {
                        Source::Unknown | Source::LiveIn => Source::LiveIn,
                        _ => return None,
                    },
                };
                Some(SlotSource::Operand(source))
            };
            let slots = match trips_of_step {
                None => vec![Slot::Carried(step.operands.len())],
                Some(_) => self.templates.slots(step.template),
            };
            let mut operands = step.operands.iter();
            for slot in slots {
                match slot {
                    Slot::Carried(count) => {
                        for &operand in operands.by_ref().take(count) {
                            let Some(source) = source(operand, sources.get(next.len())) else {
                                return false;
                            };
                            next.push(source);
                        }
                    }
                    Slot::Row => {
                        let count = trips_of_step.map_or(0, |trips| trips.at(times));
                        let is_inside = |&operand: &Node| {
                            self.definitions.get(operand).is_some_and(|(step, _)| step >= start)
                        };
                        if operands.by_ref().take(count).any(is_inside) {
                            return false;
                        }
                        next.push(SlotSource::Row);
                    }
                }
            }
        }
        *sources = next;
        true
    }

    /// The number of `output` among those of the step in an outer loop: of an inner loop with another
    /// trip count in each iteration those of its last iteration.
    fn output(
        &self,
        trips: Option<Trips>,
        (start, period): (usize, usize),
        (iteration, step): (usize, usize),
        output: usize,
    ) -> Option<usize> {
        let Some(_) = trips else { return Some(output) };
        let outputs = self.steps[start + iteration * period + step].outputs.len();
        let width = self.templates.outputs_of_iteration(self.steps[start + step].template)?;
        output.checked_sub(outputs - width)
    }

    /// Tests whether all rows have a form in a loop: the operands of each row are the same, or all are
    /// constants, or elements of one array whose index is affine in both iteration numbers.
    fn has_affine_rows(&self, ragged: &Ragged) -> bool {
        let Span { start, period, times } = ragged.span;
        ragged.trips.iter().enumerate().all(|(at, trips)| {
            let Some(trips) = *trips else { return true };
            let mut begins = vec![0; times];
            self.templates.slots(self.steps[start + at].template).into_iter().all(|slot| {
                let count = |iteration| match slot {
                    Slot::Row => trips.at(iteration),
                    Slot::Carried(count) => count,
                };
                let rows = begins.iter().enumerate().map(|(iteration, &begin)| {
                    let step = &self.steps[start + iteration * period + at];
                    &step.operands[begin..][..count(iteration)]
                });
                let rows: Vec<&[Node]> = rows.collect();
                begins.iter_mut().enumerate().for_each(|(i, begin)| *begin += count(i));
                matches!(slot, Slot::Carried(_)) || self.is_affine(&rows)
            })
        })
    }

    fn is_affine(&self, rows: &[&[Node]]) -> bool {
        let all = || rows.iter().flat_map(|row| row.iter().copied());
        if rows.iter().all(|row| row.iter().all(|&node| node == row[0]))
            || all().all(|node| self.definitions.constant(node).is_some())
        {
            return true;
        }
        let index = |i: usize, j: usize| self.index(*rows.get(i)?.get(j)?);
        let (Some((array, base)), Some((_, inner)), Some((_, outer))) =
            (index(0, 0), index(0, 1), index(1, 0))
        else {
            return false;
        };
        let expected =
            |i: usize, j: usize| base + (outer - base) * i as i64 + (inner - base) * j as i64;
        rows.iter()
            .enumerate()
            .all(|(i, row)| (0..row.len()).all(|j| index(i, j) == Some((array, expected(i, j)))))
    }

    /// The array of which `node` is an element, and its index.
    fn index(&self, node: Node) -> Option<(RowArray, i64)> {
        if let Some((step, output)) = self.definitions.get(node) {
            let template = self.steps[step].template;
            let width = self.templates.outputs_of_iteration(template)?;
            let is_even = self.templates.is_even_loop(template);
            return is_even
                .then(|| (RowArray::Loop(step, output % width), (output / width) as i64));
        }
        if let Some((array, stride, base)) = self.definitions.element(node) {
            return Some((RowArray::Elements(array, stride), base as i64));
        }
        let number = self.definitions.input(node)?;
        let is_active = number < self.definitions.graph().active;
        Some((RowArray::Inputs { is_active }, number as i64))
    }

    /// Tests whether only an inner loop itself uses what it computes before its last iteration.
    fn has_no_other_users(&self, ragged: &Ragged) -> bool {
        let Span { start, period, times } = ragged.span;
        let mut own = hashbrown::HashMap::new();
        for iteration in 0..times {
            for (at, trips) in ragged.trips.iter().enumerate() {
                let step = &self.steps[start + iteration * period + at];
                let (Some(trips), Template::Loop { steps: body, .. }) =
                    (trips, self.templates.get(step.template))
                else {
                    continue;
                };
                let trips = trips.at(iteration);
                let width = step.outputs.len() / trips.max(1);
                own.clear();
                for inner in 0..trips {
                    for operand in body.iter().flat_map(|step| &step.operands) {
                        let (value, from) = match *operand {
                            Ref::Own(value) => (value, Some(inner)),
                            Ref::Carried { value, distance, .. } => {
                                (value, inner.checked_sub(distance as usize))
                            }
                            Ref::Outer(_) | Ref::Rows { .. } => continue,
                        };
                        if let Some(from) = from {
                            *own.entry(step.outputs[from * width + value as usize]).or_insert(0) +=
                                1;
                        }
                    }
                }
                let before_last = &step.outputs[..step.outputs.len() - width];
                let has_others = |node: &Node| {
                    self.definitions.uses(*node) > own.get(node).copied().unwrap_or(0)
                };
                if before_last.iter().any(has_others) {
                    return false;
                }
            }
        }
        true
    }
}

impl Templates {
    /// The trip count, if `id` is a loop.
    fn trips(&self, id: TemplateId) -> Option<u32> {
        match self.get(id) {
            Template::Loop { times, .. } => Some(*times),
            _ => None,
        }
    }

    /// The operands of `id`, a loop, in order.
    fn slots(&self, id: TemplateId) -> Vec<Slot> {
        let Template::Loop { steps, .. } = self.get(id) else { return Vec::new() };
        let slot = |operand: &Ref| match *operand {
            Ref::Own(_) => None,
            Ref::Outer(_) | Ref::Rows { .. } => Some(Slot::Row),
            Ref::Carried { distance, .. } => Some(Slot::Carried(distance as usize)),
        };
        steps.iter().flat_map(|step| &step.operands).filter_map(slot).collect()
    }
}

/// The body of a loop whose trip count is not part of it: each row is one operand.
pub(super) fn without_trips(steps: &[Inner]) -> Option<Vec<Inner>> {
    let mut next = 0;
    let mut reference = |operand: &Ref| {
        let outer = next;
        match *operand {
            Ref::Own(value) => Some(Ref::Own(value)),
            Ref::Outer(_) => {
                next += 1;
                Some(Ref::Outer(outer))
            }
            Ref::Carried { value, distance, .. } => {
                next += distance;
                Some(Ref::Carried { value, distance, outer })
            }
            // Rows of rows.
            Ref::Rows { .. } => None,
        }
    };
    let inner = |step: &Inner| {
        let operands = step.operands.iter().map(&mut reference).collect::<Option<_>>()?;
        Some(Inner { template: step.template, operands })
    };
    steps.iter().map(inner).collect()
}

/// The outer loop as a step.
fn loop_step(steps: &[Step], ragged: &Ragged, templates: &mut Templates) -> Step {
    let Span { period, times, .. } = ragged.span;
    let body = &steps[..period];
    let mut numbers = Vec::with_capacity(period);
    let mut width = 0;
    let mut inner_templates = Vec::with_capacity(period);
    for (step, trips) in body.iter().zip(&ragged.trips) {
        numbers.push(width);
        let (template, count) = match (trips, templates.get(step.template)) {
            (Some(trips), Template::Loop { steps, place, .. }) => {
                let (steps, place) = (without_trips(steps).unwrap_or_default(), *place);
                let count = step.outputs.len() / (trips.first as usize).max(1);
                let weight = templates.weight(step.template);
                let template = Template::Ragged { trips: *trips, steps, place };
                (templates.intern(template, count, weight), count)
            }
            _ => (step.template, step.outputs.len()),
        };
        inner_templates.push((template, count));
        width += count;
    }
    let mut operands: SmallVec<[Node; 3]> = SmallVec::new();
    let mut sources = ragged.sources.iter();
    let mut inner = Vec::with_capacity(period);
    for (index, (step, trips)) in body.iter().zip(&ragged.trips).enumerate() {
        let iterations = || steps.iter().skip(index).step_by(period);
        let slots = match trips {
            None => vec![Slot::Carried(step.operands.len())],
            Some(_) => templates.slots(step.template),
        };
        // The position of the slot among the operands of the step in each iteration.
        let mut before = vec![0; times];
        let mut refs: SmallVec<[Ref; 3]> = SmallVec::new();
        for slot in slots {
            match slot {
                Slot::Row => {
                    let Some(trips) = *trips else { continue };
                    sources.next();
                    let outer = operands.len() as u32;
                    for (iteration, step) in iterations().take(times).enumerate() {
                        let count = trips.at(iteration);
                        operands.extend_from_slice(&step.operands[before[iteration]..][..count]);
                        before[iteration] += count;
                    }
                    refs.push(Ref::Rows { outer, trips });
                }
                Slot::Carried(count) => {
                    for _ in 0..count {
                        let outer = operands.len() as u32;
                        let mut first = |count: usize| {
                            let firsts = iterations().take(count).zip(&before);
                            operands.extend(firsts.map(|(step, &at)| step.operands[at]));
                        };
                        refs.push(match sources.next() {
                            Some(&SlotSource::Operand(Source::Inside {
                                distance,
                                step,
                                output,
                            })) => {
                                first(distance);
                                let value = (numbers[step] + output) as u32;
                                match distance as u32 {
                                    0 => Ref::Own(value),
                                    distance => Ref::Carried { value, distance, outer },
                                }
                            }
                            _ => {
                                first(times);
                                Ref::Outer(outer)
                            }
                        });
                        before.iter_mut().for_each(|at| *at += 1);
                    }
                }
            }
        }
        inner.push(Inner { template: inner_templates[index].0, operands: refs });
    }
    let outputs = steps.iter().enumerate().flat_map(|(at, step)| {
        let count = inner_templates[at % period].1;
        step.outputs[step.outputs.len() - count..].iter().copied()
    });
    let outputs: SmallVec<[Node; 1]> = outputs.collect();
    let place = body.iter().find_map(|step| templates.place(step.template));
    let weight = steps.iter().map(|step| templates.weight(step.template)).sum();
    let template = Template::Loop { times: times as u32, steps: inner, place };
    Step { template: templates.intern(template, outputs.len(), weight), operands, outputs }
}

/// An operand of an inner loop in the new graph, before that loop is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// The operand in the first iteration of the inner loop.
    first: Box<Arg>,
    /// The change of its index from one iteration to the next.
    by: i32,
}

impl OutputGraph {
    /// The operand whose rows are `args`, one row after the other, in iteration i of `outside`, a
    /// loop that will be appended to `block`.
    pub(super) fn rows_in_loop(
        &mut self,
        args: &[Arg],
        (trips, times): (Trips, usize),
        outside: Region,
        block: Block,
        place: Option<PlaceId>,
    ) -> Arg {
        let mut starts = Vec::with_capacity(times);
        let mut at = 0;
        for iteration in 0..times {
            starts.push(at);
            at += trips.at(iteration);
        }
        let rows = || starts.iter().enumerate().map(|(i, &start)| &args[start..][..trips.at(i)]);
        if rows().all(|row| row.iter().all(|arg| *arg == row[0])) {
            let firsts: Vec<Arg> = rows().map(|row| row[0].clone()).collect();
            return self.in_loop(&firsts, outside, block, place);
        }
        self.progression(rows(), outside)
            .or_else(|| padded_table(rows(), outside))
            .unwrap_or(Arg::Missing)
    }

    /// The access, if `rows` are elements of one array whose index is affine in both iteration
    /// numbers.
    fn progression<'a>(
        &self,
        rows: impl Iterator<Item = &'a [Arg]> + Clone,
        outside: Region,
    ) -> Option<Arg> {
        let index = |arg: &Arg| self.element_index(arg);
        let mut firsts = rows.clone();
        let (first, second) = (firsts.next()?, firsts.next()?);
        let (array, base) = index(first.first()?)?;
        let by_inner = index(first.get(1)?)?.1 - base;
        let by_outer = index(second.first()?)?.1 - base;
        let like = super::argument::strides_of(&first[0]);
        let fits = |(i, row): (i64, &[Arg])| {
            row.iter().zip(0..).all(|(arg, j): (&Arg, i64)| {
                index(arg) == Some((array, base + by_outer * i + by_inner * j))
                    && super::argument::strides_of(arg) == like
            })
        };
        if !(0..).zip(rows).all(fits) {
            return None;
        }
        let mut strides: SmallVec<[(Region, i32); 2]> = like.into();
        strides.push((outside, i32::try_from(by_outer).ok()?));
        let element = Arg::Element { array, base: u32::try_from(base).ok()?, strides };
        let by = i32::try_from(by_inner).ok()?;
        Some(Arg::Row(Row { first: Box::new(element), by }))
    }
}

/// The table of `rows`, which are constants; shorter rows are padded.
fn padded_table<'a>(rows: impl Iterator<Item = &'a [Arg]> + Clone, outside: Region) -> Option<Arg> {
    let width = rows.clone().map(<[Arg]>::len).max()?;
    let mut leaves = Vec::new();
    for row in rows {
        let constants = row.iter().map(|arg| match arg {
            &Arg::Leaf(leaf @ Leaf::Const(_)) => Some(leaf),
            _ => None,
        });
        let constants: Option<Vec<Leaf>> = constants.collect();
        let constants = constants?;
        let last = *constants.last()?;
        leaves.extend(constants.into_iter().chain(core::iter::repeat(last)).take(width));
    }
    let strides = [(outside, i32::try_from(width).ok()?)].into_iter().collect();
    let table = Arg::Table { leaves: leaves.into(), strides };
    Some(Arg::Row(Row { first: Box::new(table), by: 1 }))
}

impl Row {
    /// The operand in `inside`, the inner loop.
    fn in_loop(self, inside: Region) -> Arg {
        let Row { first, by } = self;
        match *first {
            Arg::Element { array, base, mut strides } => {
                strides.push((inside, by));
                Arg::Element { array, base, strides }
            }
            Arg::Table { leaves, mut strides } => {
                strides.push((inside, by));
                Arg::Table { leaves, strides }
            }
            other => other,
        }
    }
}

impl Emitter<'_> {
    /// Emits an inner loop of iterations of `around`, which will run at most `times` times.
    pub(super) fn emit_ragged(
        &mut self,
        template: TemplateId,
        args: Args,
        (around, times): (Region, u32),
        block: Block,
        locals: &mut Locals,
    ) {
        let Template::Ragged { trips, steps, place } = self.templates.get(template) else { return };
        let (trips, place) = (*trips, *place);
        let most = trips.at(0).max(trips.at(times.saturating_sub(1) as usize)) as u32;
        let width = steps.iter().map(|step| self.templates.outputs(step.template)).sum();
        let mut inner = Locals::new(width);
        steps.iter().flat_map(|step| &step.operands).for_each(|&operand| inner.need(operand));
        let needed: Vec<usize> = (0..width).filter(|&number| locals.is_needed(number)).collect();
        needed.iter().for_each(|&number| inner.need(Ref::Own(number as u32)));
        let last = self.last_iteration(trips, around, block, place);
        // Initial values first: they are steps before the loop.
        let region = self.output.graph.regions.next_key();
        let row = |_: &mut OutputGraph, operand: Ref, _| match operand {
            Ref::Outer(outer) => Row::operand(&args[outer as usize], region),
            _ => Arg::Missing,
        };
        let (carried, operands) = self.operands_by(&self.refs(steps, place), &args, block, row);
        let pushed = self.output.graph.push_region(block, None, place);
        debug_assert_eq!(region, pushed);
        let phis = self.output.graph.make_loop(region, most, &carried.firsts);
        let number = self.output.graph.intern_iteration(region);
        let body = self.output.graph.regions[region].root;
        let mut operands = operands.into_iter();
        for step in steps {
            let args = operands.by_ref().take(step.operands.len());
            let args = args.map(|operand: Operand| operand.arg(&inner, &phis)).collect();
            self.step(step.template, args, body, &mut inner);
        }
        let nexts = self.nexts(&carried, &inner, &phis, body, place);
        let values: Vec<Node> = needed
            .iter()
            .map(|&number| self.output.node(&inner.get(number as u32), body, place))
            .collect();
        let again = self.output.graph.push_apply(body, Op::Lt, &[number, last], place);
        let passed = [again].into_iter().chain(nexts).chain(values);
        self.output.graph.blocks[body].end = End::Return(passed.collect());
        let outputs = needed
            .into_iter()
            .map(|number| (number, Arg::Leaf(Leaf::Node(self.output.graph.push_phi(region)))));
        let outputs: Vec<(usize, Arg)> = outputs.collect();
        locals.define_some(width, outputs);
    }

    /// The number of the last iteration of an inner loop, as a node of `block`, in `around`.
    fn last_iteration(
        &mut self,
        Trips { first, by }: Trips,
        around: Region,
        block: Block,
        place: Option<PlaceId>,
    ) -> Node {
        let graph = &mut self.output.graph;
        let number = graph.intern_iteration(around);
        let multiple = match by {
            1 => number,
            _ => {
                let by = graph.intern_const(f64::from(by).to_bits());
                graph.push_apply(block, Op::Mul, &[number, by], place)
            }
        };
        let first = graph.intern_const((f64::from(first) - 1.0).to_bits());
        graph.push_apply(block, Op::Add, &[multiple, first], place)
    }
}

impl Row {
    /// The operand of a step in `inside`.
    pub(super) fn operand(arg: &Arg, inside: Region) -> Arg {
        match arg {
            Arg::Row(row) => row.clone().in_loop(inside),
            other => other.clone(),
        }
    }
}

/// The array and the index of an element or input.
impl OutputGraph {
    fn element_index(&self, arg: &Arg) -> Option<(ArraySource, i64)> {
        super::argument::place(arg, &self.graph)
    }
}
