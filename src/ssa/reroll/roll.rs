//! Rolling: makes a loop of each repetition in a list of steps.
//!
//! Whether a run of steps of equal shapes is a loop depends on their operands.
//! Each operand of each step of the body must always come from the same step, so
//! many iterations back, or always from before the loop. Where that changes, one
//! loop ends and perhaps another begins: so what is peculiar in the first
//! iterations is left out, and loops inside loops part where they do.

use smallvec::SmallVec;

use super::RerollLimits;
use super::period::{Run, runs};
use super::shape::{Inner, Ref, Shape, ShapeId, Shapes, Step};
use crate::entity::Array;
use crate::ssa::graph::{Graph, Node};

/// Which step of a list, and which of its outputs, each node is.
pub(super) struct Homes {
    homes: Array<Node, (u32, u32, u32)>,
    list: u32,
}

impl Homes {
    pub(super) fn new(graph: &Graph) -> Self {
        Homes { homes: Array::filled((0, 0, 0), graph.nodes.len()), list: 0 }
    }

    /// Forgets all nodes.
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

/// Rolls `steps` until nothing repeats, inner loops first. Says how many loops
/// it has made.
pub(super) fn roll(
    steps: &mut Vec<Step>,
    shapes: &mut Shapes,
    homes: &mut Homes,
    limits: &RerollLimits,
) -> usize {
    let mut made = 0;
    for _ in 0..limits.depth {
        let list: Vec<ShapeId> = steps.iter().map(|step| step.shape).collect();
        let runs = runs(&list, limits);
        if runs.is_empty() {
            break;
        }
        homes.begin();
        for (index, step) in steps.iter().enumerate() {
            let outputs = step.outputs.iter().enumerate();
            outputs.for_each(|(output, &node)| homes.set(node, index, output));
        }
        let found = Search { steps, shapes, homes, limits }.repetitions(&runs);
        if found.is_empty() {
            break;
        }
        made += found.len();
        *steps = replace(core::mem::take(steps), &found, shapes);
    }
    made
}

/// Steps that are a loop.
struct Repetition {
    start: usize,
    period: usize,
    times: usize,
    /// Where each operand of the body comes from, in order.
    sources: Vec<Source>,
}

/// Where an operand of the body comes from, in the iterations so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// There was no iteration so far.
    Unknown,
    /// From before the loop, but from no loop.
    Before,
    /// From a loop before this one: of which step the output it was the last
    /// time, and what was added to its number then.
    Past { step: usize, output: usize, by: Option<i64> },
    /// From the iteration so far back.
    Inside { distance: usize, step: usize, output: usize },
}

struct Search<'a> {
    steps: &'a [Step],
    shapes: &'a Shapes,
    homes: &'a Homes,
    limits: &'a RerollLimits,
}

impl Search<'_> {
    fn repetitions(&self, runs: &[Run]) -> Vec<Repetition> {
        let has_loops = |step: &Step| self.shapes.outputs_of_iteration(step.shape).is_some();
        let mut manners = vec![true];
        if self.steps.iter().any(has_loops) {
            manners.push(false);
        }
        let mut taken = vec![false; self.steps.len()];
        let (mut found, mut marked) = (Vec::new(), 0);
        for run in runs {
            for &strict in &manners {
                let mut at = run.start;
                while at < run.end {
                    let free = (at..run.end).find(|&i| taken[i]).unwrap_or(run.end);
                    self.stretch(run.period, at, free, strict, &mut found);
                    at = (free..run.end).find(|&i| !taken[i]).unwrap_or(run.end);
                }
                for Repetition { start, period, times, .. } in &found[marked..] {
                    taken[*start..start + period * times].fill(true);
                }
                marked = found.len();
            }
        }
        found.sort_unstable_by_key(|repetition: &Repetition| repetition.start);
        found
    }

    /// Finds repetitions of this period from `at` to `end`.
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
            let repetition = self.longest(period, at, end, strict);
            let (start, times) = (repetition.start, repetition.times);
            let weights = self.steps[start..start + period * times].iter().map(|step| step.weight);
            if times >= iterations && weights.sum::<u64>() >= self.limits.weight {
                at += period * times;
                found.push(repetition);
            } else {
                at += period;
            }
        }
    }

    /// The longest repetition that begins at `start`.
    fn longest(&self, period: usize, start: usize, end: usize, strict: bool) -> Repetition {
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
                    let next = self.source(*source, operand, start, period, times, strict);
                    match next {
                        Some(next) => *source = next,
                        None => break 'iterations,
                    }
                }
            }
            times += 1;
        }
        for source in &mut sources {
            // What only an iteration that is left out has found.
            if matches!(source, Source::Inside { distance, .. } if *distance >= times) {
                *source = Source::Before;
            }
        }
        Repetition { start, period, times, sources }
    }

    /// Where an operand comes from that in iteration number `iteration` is
    /// `operand` and so far came from `source`; none if that does not fit.
    fn source(
        &self,
        source: Source,
        operand: Node,
        start: usize,
        period: usize,
        iteration: usize,
        strict: bool,
    ) -> Option<Source> {
        let home = self.homes.get(operand);
        if let Some((step, output)) = home.filter(|&(step, _)| step >= start) {
            let distance = iteration - (step - start) / period;
            let here = Source::Inside { distance, step: (step - start) % period, output };
            let begins = distance == iteration && distance <= self.limits.distance as usize;
            let fits = match source {
                Source::Unknown => begins,
                Source::Before | Source::Past { .. } => begins && iteration > 0,
                Source::Inside { .. } => source == here,
            };
            return fits.then_some(here);
        }
        let home = home.filter(|_| strict);
        let width = |step: usize| self.shapes.outputs_of_iteration(self.steps[step].shape);
        let past = home.and_then(|(step, output)| Some((step, output, width(step)?)));
        match (source, past) {
            (Source::Unknown, Some((step, output, _))) => {
                Some(Source::Past { step, output, by: None })
            }
            (Source::Unknown | Source::Before, None) => Some(Source::Before),
            (Source::Past { step, output, by }, Some((here, now, width))) if step == here => {
                let added = now as i64 - output as i64;
                let fits = by.is_none_or(|by| by == added) && added % (width.max(1) as i64) == 0;
                fits.then_some(Source::Past { step, output: now, by: Some(added) })
            }
            _ => None,
        }
    }
}

/// The list with a loop in place of each repetition.
fn replace(steps: Vec<Step>, found: &[Repetition], shapes: &mut Shapes) -> Vec<Step> {
    let mut new = Vec::new();
    let mut at = 0;
    for repetition in found {
        new.extend_from_slice(&steps[at..repetition.start]);
        at = repetition.start + repetition.period * repetition.times;
        new.push(looped(&steps[repetition.start..at], repetition, shapes));
    }
    new.extend_from_slice(&steps[at..]);
    new
}

/// The loop of these steps.
fn looped(steps: &[Step], repetition: &Repetition, shapes: &mut Shapes) -> Step {
    let Repetition { period, times, .. } = *repetition;
    let body = &steps[..period];
    let mut numbers = Vec::with_capacity(period);
    let mut width = 0;
    for step in body {
        numbers.push(width);
        width += step.outputs.len();
    }
    let mut operands = SmallVec::new();
    let mut sources = repetition.sources.iter();
    let mut inner = Vec::with_capacity(period);
    for (index, step) in body.iter().enumerate() {
        let refs = (0..step.operands.len()).zip(&mut sources).map(|(slot, source)| {
            let outer = operands.len() as u32;
            let mut first = |count: usize| {
                let iterations = steps.iter().skip(index).step_by(period).take(count);
                operands.extend(iterations.map(|step| step.operands[slot]));
            };
            match *source {
                Source::Inside { distance, step, output } => {
                    first(distance);
                    let value = (numbers[step] + output) as u32;
                    match distance as u32 {
                        0 => Ref::Own(value),
                        distance => Ref::Carried { value, distance, outer },
                    }
                }
                Source::Unknown | Source::Before | Source::Past { .. } => {
                    first(times);
                    Ref::Outer(outer)
                }
            }
        });
        let refs = refs.collect();
        inner.push(Inner { shape: step.shape, operands: refs });
    }
    let place = body.iter().find_map(|step| shapes.place(step.shape));
    let outputs: SmallVec<[Node; 1]> =
        steps.iter().flat_map(|step| step.outputs.iter().copied()).collect();
    let shape = Shape::Loop { times: times as u32, steps: inner, place };
    let shape = shapes.intern(shape, outputs.len());
    Step { shape, operands, outputs, weight: steps.iter().map(|step| step.weight).sum() }
}
