//! Rolls the repetitions in a list of steps into loops, inner loops first.

use smallvec::SmallVec;

use super::RerollLimits;
use super::period::runs;
use super::search::{Homes, Repetition, Search, Source, Span};
use super::shape::{Inner, Ref, Shape, ShapeId, Shapes, Step};
use crate::ssa::Node;

/// Rolls `steps`; returns the number of loops in the list.
pub(super) fn roll(
    steps: &mut Vec<Step>,
    shapes: &mut Shapes,
    homes: &mut Homes<'_>,
    limits: &RerollLimits,
) -> usize {
    pass(steps, shapes, homes, limits);
    if part(steps, shapes, homes, limits) {
        pass(steps, shapes, homes, limits);
    }
    unroll_gathering(steps, shapes, homes, limits);
    steps.iter().filter(|step| is_loop(step, shapes)).count()
}

fn is_loop(step: &Step, shapes: &Shapes) -> bool {
    matches!(shapes.get(step.shape), Shape::Loop { .. })
}

/// Rolls until nothing repeats.
pub(super) fn pass(
    steps: &mut Vec<Step>,
    shapes: &mut Shapes,
    homes: &mut Homes<'_>,
    limits: &RerollLimits,
) {
    for _ in 0..limits.depth {
        let list: Vec<ShapeId> = steps.iter().map(|step| step.shape).collect();
        let runs = runs(&list, limits);
        if runs.is_empty() {
            break;
        }
        settle(steps, homes);
        let found = Search::new(steps, shapes, homes, limits).repetitions(&runs);
        if found.is_empty() {
            break;
        }
        *steps = replace(core::mem::take(steps), &found, shapes);
    }
}

/// Records the definitions of all outputs of `steps`.
pub(super) fn settle(steps: &[Step], homes: &mut Homes<'_>) {
    homes.begin();
    for (index, step) in steps.iter().enumerate() {
        let outputs = step.outputs.iter().enumerate();
        outputs.for_each(|(output, &node)| homes.set(node, index, output));
    }
}

/// Splits loops of `steps` so that more operands are array elements. Returns true if it has split
/// any.
///
/// This comes after rolling, because split loops do not repeat.
fn part(
    steps: &mut Vec<Step>,
    shapes: &mut Shapes,
    homes: &mut Homes<'_>,
    limits: &RerollLimits,
) -> bool {
    let (mut flat, mut loops) = (Vec::new(), Vec::new());
    for step in steps.iter() {
        let start = flat.len();
        match shapes.get(step.shape) {
            Shape::Loop { times, steps: body, .. } => {
                unroll(step, *times as usize, body, shapes, &mut flat);
                loops.push(Span { start, period: body.len(), times: *times as usize });
            }
            _ => flat.push(step.clone()),
        }
    }
    settle(&flat, homes);
    let parts = Search::new(&flat, shapes, homes, limits).parts(&loops);
    if parts.iter().all(Vec::is_empty) {
        return false;
    }
    let mut new = Vec::new();
    let mut of_loops = loops.iter().zip(&parts);
    for step in steps.drain(..) {
        if !is_loop(&step, shapes) {
            new.push(step);
            continue;
        }
        let Some((span, parts)) = of_loops.next() else { continue };
        if parts.is_empty() {
            new.push(step);
            continue;
        }
        let mut at = span.start;
        for part in parts {
            new.extend_from_slice(&flat[at..part.span.start]);
            at = part.span.end();
            new.push(looped(&flat[part.span.start..at], part, shapes));
        }
        new.extend_from_slice(&flat[at..span.end()]);
    }
    *steps = new;
    true
}

/// Unrolls loops for which more operands are copied to arrays than the loop has work.
fn unroll_gathering(
    steps: &mut Vec<Step>,
    shapes: &Shapes,
    homes: &mut Homes<'_>,
    limits: &RerollLimits,
) {
    if !steps.iter().any(|step| is_loop(step, shapes)) {
        return;
    }
    settle(steps, homes);
    let search = Search::new(steps, shapes, homes, limits);
    let mut new = Vec::with_capacity(steps.len());
    for step in steps.iter() {
        if let Shape::Loop { times, steps: body, .. } = shapes.get(step.shape) {
            let times = *times as usize;
            let gathered = body.iter().flat_map(|inner| &inner.operands).map(|&operand| {
                let Ref::Outer(outer) = operand else { return 0 };
                search.gathered(&step.operands[outer as usize..][..times])
            });
            if gathered.sum::<usize>() as u64 * 2 > shapes.weight(step.shape) {
                unroll(step, times, body, shapes, &mut new);
                continue;
            }
        }
        new.push(step.clone());
    }
    *steps = new;
}

/// The steps of a loop with so many iterations and this body.
fn unroll(whole: &Step, times: usize, body: &[Inner], shapes: &Shapes, flat: &mut Vec<Step>) {
    let width = shapes.outputs(whole.shape) / times.max(1);
    let mut next = 0;
    for iteration in 0..times {
        for step in body {
            let operand = |&operand: &Ref| match operand {
                Ref::Own(value) => whole.outputs[iteration * width + value as usize],
                Ref::Outer(outer) => whole.operands[outer as usize + iteration],
                Ref::Carried { value, distance, outer } => {
                    match iteration.checked_sub(distance as usize) {
                        Some(earlier) => whole.outputs[earlier * width + value as usize],
                        None => whole.operands[outer as usize + iteration],
                    }
                }
            };
            let operands = step.operands.iter().map(operand).collect();
            let end = next + shapes.outputs(step.shape);
            let outputs = SmallVec::from_slice(&whole.outputs[next..end]);
            next = end;
            flat.push(Step { shape: step.shape, operands, outputs });
        }
    }
}

/// Replaces each repetition by a loop.
fn replace(steps: Vec<Step>, found: &[Repetition], shapes: &mut Shapes) -> Vec<Step> {
    let mut new = Vec::new();
    let mut at = 0;
    for repetition in found {
        let span = repetition.span;
        new.extend_from_slice(&steps[at..span.start]);
        at = span.end();
        new.push(looped(&steps[span.start..at], repetition, shapes));
    }
    new.extend_from_slice(&steps[at..]);
    new
}

/// The loop step for a repetition.
fn looped(steps: &[Step], repetition: &Repetition, shapes: &mut Shapes) -> Step {
    let Span { period, times, .. } = repetition.span;
    let body = &steps[..period];
    let mut operands = SmallVec::new();
    let inner = inside(steps, repetition, &mut operands);
    let place = body.iter().find_map(|step| shapes.place(step.shape));
    let outputs: SmallVec<[Node; 1]> =
        steps.iter().flat_map(|step| step.outputs.iter().copied()).collect();
    let shape = Shape::Loop { times: times as u32, steps: inner, place };
    let weight = body.iter().map(|step| shapes.weight(step.shape)).sum::<u64>() * times as u64;
    let shape = shapes.intern(shape, outputs.len(), weight);
    Step { shape, operands, outputs }
}

/// The body of the loop for a repetition. Appends the operands of the loop to `operands`.
pub(super) fn inside(
    steps: &[Step],
    repetition: &Repetition,
    operands: &mut SmallVec<[Node; 3]>,
) -> Vec<Inner> {
    let Span { period, times, .. } = repetition.span;
    let body = &steps[..period];
    let mut numbers = Vec::with_capacity(period);
    let mut width = 0;
    for step in body {
        numbers.push(width);
        width += step.outputs.len();
    }
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
                Source::Unknown | Source::Before | Source::ArraySource { .. } => {
                    first(times);
                    Ref::Outer(outer)
                }
            }
        });
        let refs = refs.collect();
        inner.push(Inner { shape: step.shape, operands: refs });
    }
    inner
}
