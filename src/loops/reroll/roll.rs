//! Rolls the repetitions in a list of steps into loops, inner loops first.

use smallvec::SmallVec;

use super::RerollLimits;
use super::non_rectangular::roll_non_rectangular;
use super::period::runs;
use super::search::{Definitions, Repetition, Search, Source, Span};
use super::template::{Inner, Ref, Step, Template, TemplateId, Templates};
use crate::ssa::Node;

/// Rolls `steps`; returns the number of loops in the list.
pub(super) fn roll(
    steps: &mut Vec<Step>,
    templates: &mut Templates,
    definitions: &mut Definitions<'_>,
    limits: &RerollLimits,
) -> usize {
    roll_repeatedly(steps, templates, definitions, limits);
    if !steps.iter().any(|step| is_loop(step, templates)) {
        return 0;
    }
    split_loops(steps, templates, definitions, limits);
    for _ in 0..limits.depth {
        set_definitions(steps, definitions);
        // First, because what is around such loops may repeat as it is.
        let is_changed = roll_non_rectangular(steps, templates, definitions, limits);
        roll_repeatedly(steps, templates, definitions, limits);
        if !is_changed {
            break;
        }
    }
    unroll_copying(steps, templates, definitions, limits);
    steps.iter().filter(|step| is_loop(step, templates)).count()
}

fn is_loop(step: &Step, templates: &Templates) -> bool {
    matches!(templates.get(step.template), Template::Loop { .. })
}

/// The trip count and the body of a loop that can be unrolled.
fn rectangular_loop<'t>(step: &Step, templates: &'t Templates) -> Option<(usize, &'t [Inner])> {
    match templates.get(step.template) {
        Template::Loop { times, steps, .. } if templates.is_rectangular_loop(step.template) => {
            Some((*times as usize, steps))
        }
        _ => None,
    }
}

/// Rolls until nothing repeats.
pub(super) fn roll_repeatedly(
    steps: &mut Vec<Step>,
    templates: &mut Templates,
    definitions: &mut Definitions<'_>,
    limits: &RerollLimits,
) {
    for _ in 0..limits.depth {
        if steps.len() < limits.iterations as usize {
            break;
        }
        let list: Vec<TemplateId> = steps.iter().map(|step| step.template).collect();
        let runs = runs(&list, limits);
        if runs.is_empty() {
            break;
        }
        set_definitions(steps, definitions);
        let found = Search::new(steps, templates, definitions, limits).repetitions(&runs);
        if found.is_empty() {
            break;
        }
        *steps = replace(core::mem::take(steps), &found, templates);
    }
}

/// Records the definitions of all outputs of `steps`.
pub(super) fn set_definitions(steps: &[Step], definitions: &mut Definitions<'_>) {
    definitions.begin();
    for (index, step) in steps.iter().enumerate() {
        let outputs = step.outputs.iter().enumerate();
        outputs.for_each(|(output, &node)| definitions.set(node, index, output));
    }
}

/// Splits loops of `steps` so that more operands are array elements.
///
/// This comes after rolling, because split loops do not repeat.
fn split_loops(
    steps: &mut Vec<Step>,
    templates: &mut Templates,
    definitions: &mut Definitions<'_>,
    limits: &RerollLimits,
) {
    // All loops unrolled in one list, so that their operands can be followed.
    let (mut flat, mut loops) = (Vec::new(), Vec::new());
    for step in steps.iter() {
        let start = flat.len();
        match rectangular_loop(step, templates) {
            Some((times, body)) => {
                unroll(step, times, body, templates, &mut flat);
                loops.push(Span { start, period: body.len(), times });
            }
            None => flat.push(step.clone()),
        }
    }
    set_definitions(&flat, definitions);
    let pieces = Search::new(&flat, templates, definitions, limits).split(&loops);
    if pieces.iter().all(Vec::is_empty) {
        return;
    }
    // The pieces of each split loop, with the steps between them.
    let mut new = Vec::new();
    let mut of_loops = loops.iter().zip(&pieces);
    for step in steps.drain(..) {
        if !templates.is_rectangular_loop(step.template) {
            new.push(step);
            continue;
        }
        let Some((span, pieces)) = of_loops.next() else { continue };
        if pieces.is_empty() {
            new.push(step);
            continue;
        }
        let mut at = span.start;
        for piece in pieces {
            new.extend_from_slice(&flat[at..piece.span.start]);
            at = piece.span.end();
            new.push(loop_step(&flat[piece.span.start..at], piece, templates));
        }
        new.extend_from_slice(&flat[at..span.end()]);
    }
    *steps = new;
}

/// Unrolls loops for which more operands are copied to arrays than the loop has work.
fn unroll_copying(
    steps: &mut Vec<Step>,
    templates: &Templates,
    definitions: &mut Definitions<'_>,
    limits: &RerollLimits,
) {
    set_definitions(steps, definitions);
    let search = Search::new(steps, templates, definitions, limits);
    let mut new = Vec::with_capacity(steps.len());
    for step in steps.iter() {
        if let Some((times, body)) = rectangular_loop(step, templates) {
            let copied = body.iter().flat_map(|inner| &inner.operands).map(|&operand| {
                let Ref::Outer(outer) = operand else { return 0 };
                search.copied_operands(&step.operands[outer as usize..][..times])
            });
            if copied.sum::<usize>() as u64 * 2 > templates.weight(step.template) {
                unroll(step, times, body, templates, &mut new);
                continue;
            }
        }
        new.push(step.clone());
    }
    *steps = new;
}

/// The steps of a loop with so many iterations and this body.
fn unroll(whole: &Step, times: usize, body: &[Inner], templates: &Templates, flat: &mut Vec<Step>) {
    let width = templates.outputs(whole.template) / times.max(1);
    let mut next = 0;
    for iteration in 0..times {
        for step in body {
            let operand = |&operand: &Ref| match operand {
                Ref::Own(value) => whole.outputs[iteration * width + value as usize],
                Ref::Outer(outer) | Ref::Rows { outer, .. } => {
                    whole.operands[outer as usize + iteration]
                }
                Ref::Carried { value, distance, outer } => {
                    match iteration.checked_sub(distance as usize) {
                        Some(earlier) => whole.outputs[earlier * width + value as usize],
                        None => whole.operands[outer as usize + iteration],
                    }
                }
            };
            let operands = step.operands.iter().map(operand).collect();
            let end = next + templates.outputs(step.template);
            let outputs = SmallVec::from_slice(&whole.outputs[next..end]);
            next = end;
            flat.push(Step { template: step.template, operands, outputs });
        }
    }
}

/// Replaces each repetition by a loop.
fn replace(steps: Vec<Step>, found: &[Repetition], templates: &mut Templates) -> Vec<Step> {
    let mut new = Vec::new();
    let mut at = 0;
    for repetition in found {
        let span = repetition.span;
        new.extend_from_slice(&steps[at..span.start]);
        at = span.end();
        new.push(loop_step(&steps[span.start..at], repetition, templates));
    }
    new.extend_from_slice(&steps[at..]);
    new
}

/// The loop step for a repetition.
fn loop_step(steps: &[Step], repetition: &Repetition, templates: &mut Templates) -> Step {
    let Span { period, times, .. } = repetition.span;
    let body = &steps[..period];
    let mut operands = SmallVec::new();
    let inner = loop_body(steps, repetition, &mut operands);
    let place = body.iter().find_map(|step| templates.place(step.template));
    let outputs: SmallVec<[Node; 1]> =
        steps.iter().flat_map(|step| step.outputs.iter().copied()).collect();
    let template = Template::Loop { times: times as u32, steps: inner, place };
    let weight =
        body.iter().map(|step| templates.weight(step.template)).sum::<u64>() * times as u64;
    let template = templates.intern(template, outputs.len(), weight);
    Step { template, operands, outputs }
}

/// The body of the loop for a repetition. Appends the operands of the loop to `operands`.
pub(super) fn loop_body(
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
    // The operands of the loop: initial values of carried operands, or one for each iteration.
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
                Source::Unknown | Source::LiveIn | Source::Element { .. } => {
                    first(times);
                    Ref::Outer(outer)
                }
            }
        });
        let refs = refs.collect();
        inner.push(Inner { template: step.template, operands: refs });
    }
    inner
}
