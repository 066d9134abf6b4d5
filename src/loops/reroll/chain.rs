//! Exit chains: rolls repetition with branches into loops with data-dependent exits.
//!
//! A loop with a data-dependent trip count is recorded as a chain of branches: one arm ends the
//! loop, the other begins the next iteration. The code after the loop is there once for each trip
//! count seen. If all these copies are equal up to corresponding values, one is kept and the
//! iterations become a loop. An iteration in which the loop was never seen to end gets a guard
//! there, so it stops the graph as before.
//!
//! The last iterations, which are seen less often, may have fewer arms recorded than the others.
//! They stay outside, and the loop returns a flag that says whether it ended or continues with
//! them.

use smallvec::SmallVec;

use super::RerollLimits;
use super::collect::{Collect, Tree};
use super::period::{Run, runs};
use super::roll::{inside, settle};
use super::search::{Repetition, Search, Source, Span};
use super::shape::{Exit, Ref, Scope, Shape, ShapeId, Shapes, Step};
use crate::entity::Entity;
use crate::ssa::{Block, End, Node};

/// The limit on runs that are tried in one list.
const MOST_RUNS: usize = 64;

/// A heavy path: the blocks from one block down to a leaf, always into the heavier arm, as one
/// list of steps. A branch is a guard with another arm.
struct Spine {
    steps: Vec<Step>,
    /// The block and the number of each step; a branch follows the last item.
    at: Vec<(Block, usize)>,
    /// The other arm of each step that is a branch.
    sides: Vec<Option<Block>>,
    blocks: Vec<Block>,
}

impl Collect<'_> {
    /// Rolls the exit chains in the tree of `root`.
    pub(super) fn roll_chains(&mut self, root: Block) {
        let order = self.tree.order(root);
        if order.len() == 1 {
            return;
        }
        for &(block, _) in order.iter().rev() {
            let own = self.tree.lists[block].iter().map(|step| self.shapes.weight(step.shape));
            let mut weight = 1 + own.sum::<u64>();
            if let End::Branch { then, otherwise, .. } = self.tree.ends[block] {
                weight += self.weights[then] + self.weights[otherwise];
            }
            self.weights[block] = weight;
        }
        let mut pending = vec![root];
        while let Some(start) = pending.pop() {
            let mut spine = self.spine(start);
            while self.roll_chain(&spine) {
                self.chains += 1;
                spine = self.spine(start);
            }
            pending.extend(spine.sides.iter().flatten());
        }
    }

    /// The heavy path from `start`.
    fn spine(&mut self, start: Block) -> Spine {
        let (mut steps, mut at, mut sides, mut blocks) = (vec![], vec![], vec![], vec![]);
        let mut next = Some(start);
        while let Some(block) = next.take() {
            let list = &self.tree.lists[block];
            at.extend((0..list.len()).map(|index| (block, index)));
            steps.extend_from_slice(list);
            sides.resize(steps.len(), None);
            blocks.push(block);
            if let End::Branch { condition, then, otherwise } = self.tree.ends[block] {
                let expect = self.weights[then] > self.weights[otherwise];
                let (on, side) = if expect { (then, otherwise) } else { (otherwise, then) };
                let shape = self.shapes.intern(Shape::Guard { expect }, 0, 1);
                let operands = SmallVec::from_slice(&[condition]);
                at.push((block, steps.len()));
                if let Some(last) = at.last_mut() {
                    last.1 = list.len();
                }
                steps.push(Step { shape, operands, outputs: SmallVec::new() });
                sides.push(Some(side));
                next = Some(on);
            }
        }
        Spine { steps, at, sides, blocks }
    }

    /// Rolls the first exit chain in `path`; returns false if there is none.
    fn roll_chain(&mut self, spine: &Spine) -> bool {
        if spine.blocks.len() == 1 {
            return false;
        }
        let limits = RerollLimits { iterations: self.limits.exits, ..*self.limits };
        let list: Vec<ShapeId> = spine.steps.iter().map(|step| step.shape).collect();
        let runs = runs(&list, &limits);
        let has_sides =
            |run: &&Run| spine.sides[run.start..run.end].iter().any(|side| side.is_some());
        settle(&spine.steps, &mut self.homes);
        let mut found = None;
        {
            let search = Search::new(&spine.steps, self.shapes, &self.homes, &limits);
            let mut chain =
                Chain { spine, search, shapes: self.shapes, tree: &mut self.tree, limits: &limits };
            'runs: for run in runs.iter().filter(has_sides).take(MOST_RUNS) {
                for (end, how) in chain.ends(run) {
                    found = chain.find(run, end, how);
                    if found.is_some() {
                        break 'runs;
                    }
                }
            }
        }
        let Some(found) = found else { return false };
        let Found { span, inner, exits, last, operands, mut outputs, rest, side } = found;
        let body = &spine.steps[span.start..][..span.period];
        let weight = body.iter().map(|step| self.shapes.weight(step.shape)).sum();
        let place = body.iter().find_map(|step| self.shapes.place(step.shape));
        let tree = &mut self.tree;
        let (home, count) = spine.at[span.start];
        let behind = tree.lists[rest.0].split_off(rest.1);
        let mut end = tree.ends[rest.0].clone();
        let list = &mut tree.lists[home];
        list.truncate(count);
        let tells = side.is_some();
        let goes_on = Node::from_index(self.next);
        if tells {
            outputs.insert(0, goes_on);
            self.next += 1;
        }
        let times = span.times as u32;
        let shape = Shape::While { times, steps: inner, exits, last, tells, place };
        let shape = self.shapes.intern(shape, outputs.len(), weight);
        list.push(Step { shape, operands, outputs });
        match side {
            None => list.extend(behind),
            Some(side) => {
                let then = tree.lists.push(behind);
                tree.ends.push(end);
                self.weights.push(self.weights[rest.0]);
                end = End::Branch { condition: goes_on, then, otherwise: side };
            }
        }
        tree.ends[home] = end;
        true
    }
}

/// A loop with exits.
struct Found {
    span: Span,
    inner: Vec<super::shape::Inner>,
    exits: Vec<Exit>,
    last: Option<Vec<Option<Ref>>>,
    operands: SmallVec<[Node; 3]>,
    outputs: SmallVec<[Node; 1]>,
    /// The block and the step after the loop.
    rest: (Block, usize),
    /// The block after an exit, if it is not the same.
    side: Option<Block>,
}

/// The continuation of a loop after its last iteration, if no exit was taken before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// The last guard fails: this is an exit, too.
    Guard,
    /// The same code as after an exit.
    Same,
    /// Other code.
    On,
    /// The graph stops.
    Never,
}

struct Chain<'c, 'a> {
    spine: &'c Spine,
    search: Search<'c>,
    shapes: &'c Shapes,
    tree: &'c mut Tree<'a>,
    limits: &'c RerollLimits,
}

/// An iteration in which an exit was seen, with the operands of the code after it.
type Seen = (usize, SmallVec<[Node; 3]>);

impl Chain<'_, '_> {
    fn expectation(&self, at: usize) -> Option<bool> {
        match self.shapes.get(self.spine.steps.get(at)?.shape) {
            Shape::Guard { expect } => Some(*expect),
            _ => None,
        }
    }

    /// The steps before which a loop in `run` may end, with the continuation.
    fn ends(&self, run: &Run) -> SmallVec<[(usize, Last); 4]> {
        let mut ends = SmallVec::new();
        let before = self.expectation(run.end - run.period);
        if before.is_some_and(|expect| self.expectation(run.end) == Some(!expect))
            && self.spine.sides[run.end].is_none()
        {
            ends.push((run.end + 1, Last::Guard));
        }
        let mut backwards = (run.start..run.end).rev();
        let last = backwards.find(|&at| self.expectation(at).is_some()).map(|last| last + 1);
        let mut places: SmallVec<[usize; 2]> = SmallVec::from_slice(&[run.end]);
        places.extend(last.filter(|&last| last < run.end));
        ends.extend(places.iter().map(|&end| (end, Last::Same)));
        let branch = (run.start..run.end).rev().find(|&at| self.spine.sides[at].is_some());
        ends.extend(branch.map(|branch| (branch + 1, Last::On)));
        ends
    }

    /// The loop in `run` that ends before `end`.
    fn find(&mut self, run: &Run, end: usize, how: Last) -> Option<Found> {
        let (spine, period) = (self.spine, run.period);
        if end < run.start + period {
            return None;
        }
        let mut at = run.start + (end - run.start) % period;
        let repetition = loop {
            if at + period * self.limits.iterations as usize > end {
                return None;
            }
            let found = self.search.longest(period, at, end, false);
            if found.span.end() == end {
                break found;
            }
            at += period * found.span.times.max(1);
        };
        let Span { start, times, .. } = repetition.span;
        if times < self.limits.iterations as usize {
            return None;
        }
        let rest = match spine.sides[end - 1] {
            Some(_) => {
                let place = spine.blocks.iter().position(|&block| block == spine.at[end - 1].0)?;
                (*spine.blocks.get(place + 1)?, 0)
            }
            None => (spine.at[end - 1].0, spine.at[end - 1].1 + 1),
        };
        let latest = spine.sides[start..end].iter().rev().find_map(|&side| side)?;
        let never = how == Last::On && self.stops(rest.0, rest.1);
        let (how, rest) = if never { (Last::Never, (latest, 0)) } else { (how, rest) };
        let (behind, finals) = match how {
            Last::On | Last::Never => self.tree.view(latest, 0),
            Last::Guard | Last::Same => self.tree.view(rest.0, rest.1),
        };
        let mut seen: Vec<(usize, Vec<Seen>)> = Vec::new();
        for guard in 0..period {
            if self.expectation(start + guard).is_none() {
                continue;
            }
            let mut here = self.seen(&repetition, guard, &behind)?;
            if how == Last::Guard && guard == period - 1 {
                here.push((times - 1, finals.clone()));
            }
            if !here.is_empty() {
                seen.push((guard, here));
            }
        }
        if seen.iter().map(|(_, all)| all.len()).sum::<usize>() < 2 {
            return None;
        }
        let ons = match how {
            Last::Guard | Last::Never => None,
            Last::Same => Some(finals.clone()),
            Last::On => Some(self.tree.view(rest.0, rest.1).1),
        };
        let mut found = self.build(&repetition, &seen, &finals, ons.as_deref())?;
        found.rest = rest;
        found.side = (how == Last::On).then_some(latest);
        Some(found)
    }

    /// Tests whether a block, from this step on, certainly stops the graph.
    fn stops(&self, block: Block, first: usize) -> bool {
        let list = &self.tree.lists[block][first..];
        let never = |step: &Step| match self.shapes.get(step.shape) {
            Shape::Guard { expect } => {
                let outcome = self.tree.graph().constant(step.operands[0]);
                outcome.is_some_and(|outcome| (outcome != 0.0) != *expect)
            }
            _ => false,
        };
        list.iter().any(never)
    }

    /// The iterations in which guard `at` of the body was seen to exit; `None` if the code after
    /// one of them is not `behind`.
    fn seen(&mut self, repetition: &Repetition, at: usize, behind: &Scope) -> Option<Vec<Seen>> {
        let Span { start, period, times } = repetition.span;
        let mut seen = Vec::new();
        for iteration in 0..times {
            let Some(side) = self.spine.sides[start + iteration * period + at] else { continue };
            let (scope, operands) = self.tree.view(side, 0);
            if scope != *behind {
                return None;
            }
            seen.push((iteration, operands));
        }
        Some(seen)
    }

    /// The loop of `repetition` with its `seen` exits. The code after the loop uses `finals`, or
    /// what corresponds to them after an exit; `ons` are used if the loop ends after its last
    /// iteration without an exit.
    fn build(
        &self,
        repetition: &Repetition,
        seen: &[(usize, Vec<Seen>)],
        finals: &[Node],
        ons: Option<&[Node]>,
    ) -> Option<Found> {
        let Span { start, times, .. } = repetition.span;
        // Each output with the first operand of the code after the loop that is it, if any.
        let mut outputs: Vec<(Node, Option<usize>)> = Vec::new();
        for (slot, &node) in finals.iter().enumerate() {
            let all = || seen.iter().flat_map(|(_, all)| all.iter().map(|(_, nodes)| nodes));
            if self.home(repetition, node).is_none() {
                // A live-in must be the same at all exits.
                if !all().all(|nodes| nodes[slot] == node) {
                    return None;
                }
            } else if let Some(&(_, Some(first))) = outputs.iter().find(|&&(of, _)| of == node) {
                if !all().all(|nodes| nodes[slot] == nodes[first]) {
                    return None;
                }
            } else {
                outputs.push((node, Some(slot)));
            }
        }
        for &node in ons.unwrap_or_default() {
            let is_known = outputs.iter().any(|&(known, _)| known == node);
            if !is_known && self.home(repetition, node).is_some() {
                outputs.push((node, None));
            }
        }
        let steps = &self.spine.steps[start..repetition.span.end()];
        let mut operands = SmallVec::new();
        let inner = inside(steps, repetition, &mut operands);
        let mut exits = Vec::with_capacity(seen.len());
        for (at, all) in seen {
            let mut may_end = vec![false; times];
            all.iter().for_each(|&(iteration, _)| may_end[iteration] = true);
            let mut values = Vec::with_capacity(outputs.len());
            for &(_, slot) in &outputs {
                let Some(slot) = slot else {
                    values.push(None);
                    continue;
                };
                let of: Vec<(usize, Node)> =
                    all.iter().map(|(iteration, nodes)| (*iteration, nodes[slot])).collect();
                values.push(Some(self.value(repetition, &of, &mut operands)?));
            }
            exits.push(Exit { at: *at, seen: may_end, values });
        }
        let mut last = None;
        if let Some(ons) = ons {
            let mut values = Vec::with_capacity(outputs.len());
            for &(node, _) in &outputs {
                values.push(match ons.contains(&node) {
                    true => Some(self.value(repetition, &[(times - 1, node)], &mut operands)?),
                    false => None,
                });
            }
            last = Some(values);
        }
        let outputs = outputs.iter().map(|&(node, _)| node).collect();
        let (rest, side) = ((self.spine.at[start].0, 0), None);
        Some(Found { span: repetition.span, inner, exits, last, operands, outputs, rest, side })
    }

    /// The iteration, step and output that define `node`, if they are in the loop.
    fn home(&self, repetition: &Repetition, node: Node) -> Option<(usize, usize, usize)> {
        let Span { start, period, .. } = repetition.span;
        let (step, output) = self.search.home(node)?;
        let inside = step >= start && step < repetition.span.end();
        inside.then(|| ((step - start) / period, (step - start) % period, output))
    }

    /// The reference that is `node` in each of these iterations; `None` if there is none.
    fn value(
        &self,
        repetition: &Repetition,
        nodes: &[(usize, Node)],
        operands: &mut SmallVec<[Node; 3]>,
    ) -> Option<Ref> {
        let Span { start, period, times } = repetition.span;
        let &(latest, node) = nodes.last()?;
        let outer = operands.len() as u32;
        let Some((iteration, step, output)) = self.home(repetition, node) else {
            operands.extend(core::iter::repeat_n(node, times));
            return nodes.iter().all(|&(_, other)| other == node).then_some(Ref::Outer(outer));
        };
        let distance = latest.checked_sub(iteration)?;
        if distance > self.limits.distance as usize {
            return None;
        }
        let body = &self.spine.steps[start..][..period];
        let before: usize = body[..step].iter().map(|step| step.outputs.len()).sum();
        let value = (before + output) as u32;
        // The initial values, taken from an operand that is carried in the same way.
        let source = Source::Inside { distance, step, output };
        let mut firsts: &[Node] = &[];
        let gathered: Vec<Node>;
        if distance > 0 {
            let slots = body
                .iter()
                .enumerate()
                .flat_map(|(at, step)| (0..step.operands.len()).map(move |slot| (at, slot)));
            let (_, (at, slot)) =
                repetition.sources.iter().zip(slots).find(|(other, _)| **other == source)?;
            let steps = self.spine.steps[start + at..].iter().step_by(period).take(distance);
            gathered = steps.map(|step| step.operands[slot]).collect();
            firsts = &gathered;
        }
        let fits = |&(iteration, node): &(usize, Node)| match iteration.checked_sub(distance) {
            Some(earlier) => {
                self.spine.steps[start + earlier * period + step].outputs[output] == node
            }
            None => firsts.get(iteration) == Some(&node),
        };
        if !nodes.iter().all(fits) {
            return None;
        }
        operands.extend_from_slice(firsts);
        Some(match distance as u32 {
            0 => Ref::Own(value),
            distance => Ref::Carried { value, distance, outer },
        })
    }
}
