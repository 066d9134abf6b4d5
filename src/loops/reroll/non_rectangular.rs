//! Non-rectangular loop nests: inner loops whose trip count changes by the same number from one
//! outer iteration to the next, as in a triangle.
//!
//! The inner loops have been rolled. They have the same *shape*: their templates are equal but for
//! the trip count. An outer iteration may use from an earlier one only what its inner loops computed
//! in their last iterations; all other operands of inner loops, a *row* for each outer iteration,
//! come from before the outer loop.

use smallvec::SmallVec;

use super::RerollLimits;
use super::period::PeriodicRun;
use super::search::{Definitions, Source, Span, continued};
use super::template::{Inner, Ref, Step, Template, TemplateId, Templates};
use crate::ssa::{Array, Node};

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
struct NonRectangular {
    span: Span,
    /// The trip counts of the steps of the body that are loops with other ones in each iteration.
    trips: Vec<Option<Trips>>,
    sources: Vec<SlotSource>,
}

/// The result of the search for an outer loop from one step on.
enum Found {
    Nest(NonRectangular),
    /// A loop whose operands have no form in the new graph, or which is too small, up to this step.
    Refused {
        end: usize,
    },
    /// Too few iterations.
    Short,
}

/// Rolls outer loops around loops of one shape; returns true if there are any.
pub(super) fn roll_non_rectangular(
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
    let mut found: Vec<NonRectangular> = Vec::new();
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
            at = match search.longest(period, at, end, limits) {
                Found::Nest(nest) => {
                    let end = nest.span.end();
                    taken[at..end].fill(true);
                    found.push(nest);
                    end
                }
                // Not again from each of its iterations, so that the search takes linear time.
                Found::Refused { end } => end,
                Found::Short => at + 1,
            };
        }
    }
    found.sort_unstable_by_key(|nest| nest.span.start);
    let is_found = !found.is_empty();
    let mut new = Vec::new();
    let mut at = 0;
    for nest in found {
        new.extend_from_slice(&steps[at..nest.span.start]);
        at = nest.span.end();
        new.push(loop_step(&steps[nest.span.start..at], &nest, templates));
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
    /// The longest loop that begins at `start`, with another trip count of an inner loop in each
    /// iteration.
    fn longest(&self, period: usize, start: usize, end: usize, limits: &RerollLimits) -> Found {
        let body = &self.steps[start..start + period];
        let Some(second) = self.steps.get(start + period..start + 2 * period) else {
            return Found::Short;
        };
        let trips = body.iter().zip(second).map(|(first, second)| {
            let first = self.templates.trips(first.template)?;
            let by =
                i32::try_from(i64::from(self.templates.trips(second.template)?) - i64::from(first));
            by.ok().filter(|&by| by != 0).map(|by| Trips { first, by })
        });
        let trips: Vec<Option<Trips>> = trips.collect();
        if trips.iter().all(Option::is_none) {
            return Found::Short;
        }
        let mut nest =
            NonRectangular { span: Span { start, period, times: 0 }, trips, sources: vec![] };
        let most = ((end - start) / period).min(limits.times as usize);
        while nest.span.times < most && self.extend(&mut nest, limits.distance) {
            nest.span.times += 1;
        }
        if nest.span.times < limits.iterations.max(2) as usize {
            return Found::Short;
        }
        let weight = |step: &Step| self.templates.weight(step.template);
        let weight: u64 = self.steps[start..nest.span.end()].iter().map(weight).sum();
        let fits = weight >= limits.non_rectangular_weight
            && self.has_no_other_users(&nest)
            && self.has_affine_rows(&nest);
        if fits { Found::Nest(nest) } else { Found::Refused { end: nest.span.end() } }
    }

    /// Tests whether the steps after the iterations so far are a further one, and notes the sources
    /// of its operands.
    fn extend(&self, nest: &mut NonRectangular, most_distance: u32) -> bool {
        let NonRectangular { span: Span { start, period, times }, trips, sources } = nest;
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
    fn has_affine_rows(&self, nest: &NonRectangular) -> bool {
        let Span { start, period, times } = nest.span;
        nest.trips.iter().enumerate().all(|(at, trips)| {
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
            let is_even = self.templates.is_rectangular_loop(template);
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
    fn has_no_other_users(&self, nest: &NonRectangular) -> bool {
        let Span { start, period, times } = nest.span;
        let mut own = hashbrown::HashMap::new();
        for iteration in 0..times {
            for (at, trips) in nest.trips.iter().enumerate() {
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
fn loop_step(steps: &[Step], nest: &NonRectangular, templates: &mut Templates) -> Step {
    let Span { period, times, .. } = nest.span;
    let body = &steps[..period];
    let mut numbers = Vec::with_capacity(period);
    let mut width = 0;
    let mut inner_templates = Vec::with_capacity(period);
    for (step, trips) in body.iter().zip(&nest.trips) {
        numbers.push(width);
        let (template, count) = match (trips, templates.get(step.template)) {
            (Some(trips), Template::Loop { steps, place, .. }) => {
                let (steps, place) = (without_trips(steps).unwrap_or_default(), *place);
                let count = step.outputs.len() / (trips.first as usize).max(1);
                let weight = templates.weight(step.template);
                let template = Template::AffineLoop { trips: *trips, steps, place };
                (templates.intern(template, count, weight), count)
            }
            _ => (step.template, step.outputs.len()),
        };
        inner_templates.push((template, count));
        width += count;
    }
    let mut operands: SmallVec<[Node; 3]> = SmallVec::new();
    let mut sources = nest.sources.iter();
    let mut inner = Vec::with_capacity(period);
    for (index, (step, trips)) in body.iter().zip(&nest.trips).enumerate() {
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
