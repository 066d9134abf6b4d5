//! Chains: makes loops of repetition that may end in each iteration.
//!
//! A loop whose number of iterations depends on the inputs is a chain of
//! branches: one side ends the loop, the other goes on with the next iteration.
//! What comes behind the loop is there once for each number of iterations that
//! was seen. Where all these copies do the same with values that correspond, one
//! is enough, and the iterations are a loop. In an iteration in which the loop
//! was not seen to end, a guard stops the graph there, as it did before.

use smallvec::SmallVec;

use super::RerollLimits;
use super::collect::{Collect, Tree};
use super::period::{Run, runs};
use super::roll::{inside, settle};
use super::search::{Repetition, Search, Source, Span};
use super::shape::{Exit, Ref, Scope, Shape, ShapeId, Shapes, Step};
use crate::ssa::graph::{Block, End, Node};

/// So many runs of one list are looked at.
const MOST_RUNS: usize = 64;

/// The blocks from one of a tree down to one of its ends as one list; a branch is
/// a guard with another side.
struct Spine {
    steps: Vec<Step>,
    /// The block and the number of each step; a branch comes after the last one.
    at: Vec<(Block, usize)>,
    /// The other side of each step that is a branch.
    sides: Vec<Option<Block>>,
    blocks: Vec<Block>,
}

impl Collect<'_> {
    /// Makes loops of the chains in the tree of `root`.
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

    /// The spine from `start` on, always on the heavier side.
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

    /// Makes a loop of the first chain in `spine`, if there is one.
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
                for (end, falls) in chain.ends(run) {
                    found = chain.find(run, end, falls);
                    if found.is_some() {
                        break 'runs;
                    }
                }
            }
        }
        let Some(found) = found else { return false };
        let Found { span, inner, exits, last, operands, outputs, rest } = found;
        let body = &spine.steps[span.start..][..span.period];
        let weight = body.iter().map(|step| self.shapes.weight(step.shape)).sum();
        let place = body.iter().find_map(|step| self.shapes.place(step.shape));
        let times = span.times as u32;
        let shape = Shape::While { times, steps: inner, exits, last, place };
        let shape = self.shapes.intern(shape, outputs.len(), weight);
        let (home, count) = spine.at[span.start];
        let behind = self.tree.lists[rest.0].split_off(rest.1);
        let list = &mut self.tree.lists[home];
        list.truncate(count);
        list.push(Step { shape, operands, outputs });
        list.extend(behind);
        self.tree.ends[home] = self.tree.ends[rest.0].clone();
        true
    }
}

/// A loop that may end in each iteration.
struct Found {
    span: Span,
    inner: Vec<super::shape::Inner>,
    exits: Vec<Exit>,
    last: Option<Vec<Ref>>,
    operands: SmallVec<[Node; 3]>,
    outputs: SmallVec<[Node; 1]>,
    /// The block and the step with which it goes on.
    rest: (Block, usize),
}

struct Chain<'c, 'a> {
    spine: &'c Spine,
    search: Search<'c>,
    shapes: &'c Shapes,
    tree: &'c mut Tree<'a>,
    limits: &'c RerollLimits,
}

/// For an iteration that ended the loop what the steps behind it use.
type Seen = (usize, SmallVec<[Node; 3]>);

impl Chain<'_, '_> {
    fn expectation(&self, at: usize) -> Option<bool> {
        match self.shapes.get(self.spine.steps.get(at)?.shape) {
            Shape::Guard { expect } => Some(*expect),
            _ => None,
        }
    }

    /// The steps before which a loop of the steps of `run` may end, with whether
    /// it may end there without a guard having failed.
    fn ends(&self, run: &Run) -> SmallVec<[(usize, bool); 3]> {
        let mut ends = SmallVec::new();
        let before = self.expectation(run.end - run.period);
        if before.is_some_and(|expect| self.expectation(run.end) == Some(!expect))
            && self.spine.sides[run.end].is_none()
        {
            ends.push((run.end + 1, false));
        }
        ends.push((run.end, true));
        let last = (run.start..run.end).rev().find(|&at| self.expectation(at).is_some());
        ends.extend(last.map(|last| (last + 1, true)).filter(|&(end, _)| end < run.end));
        ends
    }

    /// The loop of steps of `run` that ends before `end`.
    fn find(&mut self, run: &Run, end: usize, falls: bool) -> Option<Found> {
        let (spine, period) = (self.spine, run.period);
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
            Some(_) => (*spine.at.get(end).map(|(block, _)| block)?, 0),
            None => (spine.at[end - 1].0, spine.at[end - 1].1 + 1),
        };
        let (behind, finals) = self.tree.view(rest.0, rest.1);
        let mut seen: Vec<(usize, Vec<Seen>)> = Vec::new();
        for guard in 0..period {
            if self.expectation(start + guard).is_none() {
                continue;
            }
            let mut here = self.seen(&repetition, guard, &behind)?;
            let is_last = !falls && guard == period - 1;
            if is_last {
                here.push((times - 1, finals.clone()));
            }
            if here.len() > usize::from(is_last) || is_last {
                seen.push((guard, here));
            }
        }
        if seen.iter().map(|(_, all)| all.len()).sum::<usize>() < 2 {
            return None;
        }
        self.build(&repetition, falls, rest, &seen, &finals)
    }

    /// The iterations that guard number `at` of the body was seen to end; none if
    /// something else comes behind one than behind the whole.
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

    fn build(
        &self,
        repetition: &Repetition,
        falls: bool,
        rest: (Block, usize),
        seen: &[(usize, Vec<Seen>)],
        finals: &[Node],
    ) -> Option<Found> {
        let Span { start, period, times } = repetition.span;
        // The slot in which each output is used first.
        let mut slots: Vec<usize> = Vec::new();
        for (slot, &node) in finals.iter().enumerate() {
            let all = || seen.iter().flat_map(|(_, all)| all.iter().map(|(_, nodes)| nodes));
            if self.home(repetition, node).is_none() {
                // From before the loop: the same wherever it ends.
                if !all().all(|nodes| nodes[slot] == node) {
                    return None;
                }
            } else if let Some(&first) = slots.iter().find(|&&first| finals[first] == node) {
                if !all().all(|nodes| nodes[slot] == nodes[first]) {
                    return None;
                }
            } else {
                slots.push(slot);
            }
        }
        let steps = &self.spine.steps[start..repetition.span.end()];
        let mut operands = SmallVec::new();
        let inner = inside(steps, repetition, &mut operands);
        let mut exits = Vec::with_capacity(seen.len());
        for (at, all) in seen {
            let mut may_end = vec![false; times];
            all.iter().for_each(|&(iteration, _)| may_end[iteration] = true);
            let mut values = Vec::with_capacity(slots.len());
            for &slot in &slots {
                let of: Vec<(usize, Node)> =
                    all.iter().map(|(iteration, nodes)| (*iteration, nodes[slot])).collect();
                values.push(self.value(repetition, &of, &mut operands)?);
            }
            exits.push(Exit { at: *at, seen: may_end, values });
        }
        let mut last = None;
        if falls {
            let of =
                |&slot: &usize| self.value(repetition, &[(times - 1, finals[slot])], &mut operands);
            last = Some(slots.iter().map(of).collect::<Option<Vec<Ref>>>()?);
        }
        let outputs = slots.iter().map(|&slot| finals[slot]).collect();
        debug_assert!(exits.iter().all(|exit| exit.at < period));
        Some(Found { span: repetition.span, inner, exits, last, operands, outputs, rest })
    }

    /// The iteration, step and output that `node` is, if it is from the loop.
    fn home(&self, repetition: &Repetition, node: Node) -> Option<(usize, usize, usize)> {
        let Span { start, period, .. } = repetition.span;
        let (step, output) = self.search.home(node)?;
        let inside = step >= start && step < repetition.span.end();
        inside.then(|| ((step - start) / period, (step - start) % period, output))
    }

    /// What is `node` in each of these iterations; none if nothing is all.
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
        // What it is in the first iterations, for an operand that is carried alike.
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
