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
use super::period::{PeriodicRun, runs};
use super::roll::{loop_body, set_definitions};
use super::search::{Repetition, Search, Source, Span};
use super::template::{Exit, Inner, Ref, Scope, Step, Template, TemplateId, Templates};
use crate::entity::Entity;
use crate::ssa::{Block, End, Node};

/// The limit on runs that are tried in one list.
const MOST_RUNS: usize = 64;

/// A heavy path: the blocks from one block down to a leaf, always into the heavier arm, as one
/// list of steps. A branch is a guard with another arm.
struct HeavyPath {
    /// The template of each step.
    templates: Vec<TemplateId>,
    /// The steps themselves, once a run has been found.
    steps: Vec<Step>,
    /// The block and the number of each step; a branch follows the last item.
    at: Vec<(Block, usize)>,
    /// The other arm of each step that is a branch.
    arms: Vec<Option<Block>>,
    blocks: Vec<Block>,
}

impl Collect<'_> {
    /// Rolls the exit chains in the tree of `root`.
    pub(super) fn roll_exit_chains(&mut self, root: Block) {
        let order = self.tree.order(root);
        if order.len() == 1 {
            return;
        }
        for &(block, _) in order.iter().rev() {
            let own =
                self.tree.lists[block].iter().map(|step| self.templates.weight(step.template));
            let mut weight = 1 + own.sum::<u64>();
            if let End::Branch { then, otherwise, .. } = self.tree.ends[block] {
                weight += self.weights[then] + self.weights[otherwise];
            }
            self.weights[block] = weight;
        }
        let mut pending = vec![root];
        while let Some(start) = pending.pop() {
            let mut path = self.path(start);
            while self.roll_exit_chain(&mut path) {
                self.chains += 1;
                path = self.path(start);
            }
            pending.extend(path.arms.iter().flatten());
        }
    }

    /// The heavy path from `start`, without the steps.
    fn path(&mut self, start: Block) -> HeavyPath {
        let (mut templates, mut at, mut arms, mut blocks) = (vec![], vec![], vec![], vec![]);
        let mut next = Some(start);
        while let Some(block) = next.take() {
            let list = &self.tree.lists[block];
            at.extend((0..list.len()).map(|index| (block, index)));
            templates.extend(list.iter().map(|step| step.template));
            arms.resize(templates.len(), None);
            blocks.push(block);
            if let End::Branch { then, otherwise, .. } = self.tree.ends[block] {
                let expect = self.weights[then] > self.weights[otherwise];
                let (on, arm) = if expect { (then, otherwise) } else { (otherwise, then) };
                at.push((block, list.len()));
                templates.push(self.templates.intern(Template::Guard { expect }, 0, 1));
                arms.push(Some(arm));
                next = Some(on);
            }
        }
        HeavyPath { templates, steps: Vec::new(), at, arms, blocks }
    }

    /// The steps of `path`.
    fn path_steps(&self, path: &HeavyPath) -> Vec<Step> {
        let step = |(&template, &(block, number)): (&TemplateId, &(Block, usize))| {
            if let Some(step) = self.tree.lists[block].get(number) {
                return step.clone();
            }
            let operands = match self.tree.ends[block] {
                End::Branch { condition, .. } => SmallVec::from_slice(&[condition]),
                End::Return(_) | End::Open => SmallVec::new(),
            };
            Step { template, operands, outputs: SmallVec::new() }
        };
        path.templates.iter().zip(&path.at).map(step).collect()
    }

    /// Rolls the first exit chain in `path`; returns false if there is none.
    fn roll_exit_chain(&mut self, path: &mut HeavyPath) -> bool {
        if path.blocks.len() == 1 {
            return false;
        }
        let Some(iterations) = self.limits.exits else { return false };
        let limits = RerollLimits { iterations, ..*self.limits };
        let mut runs = runs(&path.templates, &limits);
        runs.retain(|run| path.arms[run.start..run.end].iter().any(Option::is_some));
        if runs.is_empty() {
            return false;
        }
        path.steps = self.path_steps(path);
        let path = &*path;
        set_definitions(&path.steps, &mut self.definitions);
        let mut found = None;
        {
            let search = Search::new(&path.steps, self.templates, &self.definitions, &limits);
            let mut chain = ExitChain {
                path,
                search,
                templates: self.templates,
                tree: &mut self.tree,
                limits: &limits,
            };
            'runs: for run in runs.iter().take(MOST_RUNS) {
                for (end, continuation) in chain.ends(run) {
                    found = chain.find(run, end, continuation);
                    if found.is_some() {
                        break 'runs;
                    }
                }
            }
        }
        // The code after the loop moves to the block of its first step.
        let Some(found) = found else { return false };
        let ExitLoop { span, inner, exits, last, operands, mut outputs, after, arm } = found;
        let body = &path.steps[span.start..][..span.period];
        let weight = body.iter().map(|step| self.templates.weight(step.template)).sum();
        let place = body.iter().find_map(|step| self.templates.place(step.template));
        let tree = &mut self.tree;
        let (head, count) = path.at[span.start];
        let code_after = tree.lists[after.0].split_off(after.1);
        let mut end = tree.ends[after.0].clone();
        let list = &mut tree.lists[head];
        list.truncate(count);
        let has_flag = arm.is_some();
        let flag = Node::from_index(self.next);
        if has_flag {
            outputs.insert(0, flag);
            self.next += 1;
        }
        // The loop replaces its steps; with a flag, a branch on it follows.
        let times = span.times as u32;
        let template = Template::While { times, steps: inner, exits, last, has_flag, place };
        let template = self.templates.intern(template, outputs.len(), weight);
        list.push(Step { template, operands, outputs });
        match arm {
            None => list.extend(code_after),
            Some(arm) => {
                let then = tree.lists.push(code_after);
                tree.ends.push(end);
                self.weights.push(self.weights[after.0]);
                end = End::Branch { condition: flag, then, otherwise: arm };
            }
        }
        tree.ends[head] = end;
        true
    }
}

/// A loop with exits.
struct ExitLoop {
    span: Span,
    inner: Vec<Inner>,
    exits: Vec<Exit>,
    last: Option<Vec<Option<Ref>>>,
    operands: SmallVec<[Node; 3]>,
    outputs: SmallVec<[Node; 1]>,
    /// The block and the step after the loop.
    after: (Block, usize),
    /// The block after an exit, if it is not the same.
    arm: Option<Block>,
}

/// The continuation of a loop after its last iteration, if no exit was taken before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Continuation {
    /// The last guard fails: this is an exit, too.
    Exit,
    /// The same code as after an exit.
    Same,
    /// Other code.
    Other,
    /// The graph stops.
    Stop,
}

/// The search for an exit chain in a heavy path.
struct ExitChain<'c, 'a> {
    path: &'c HeavyPath,
    search: Search<'c>,
    templates: &'c Templates,
    tree: &'c mut Tree<'a>,
    limits: &'c RerollLimits,
}

/// An iteration in which an exit was seen, with the operands of the code after it.
type SeenExit = (usize, SmallVec<[Node; 3]>);

impl ExitChain<'_, '_> {
    /// The expected outcome of the step `at`, if it is a guard.
    fn expectation(&self, at: usize) -> Option<bool> {
        match self.templates.get(self.path.steps.get(at)?.template) {
            Template::Guard { expect } => Some(*expect),
            _ => None,
        }
    }

    /// The steps before which a loop in `run` may end, with the continuation.
    fn ends(&self, run: &PeriodicRun) -> SmallVec<[(usize, Continuation); 4]> {
        let mut ends = SmallVec::new();
        let before = self.expectation(run.end - run.period);
        if before.is_some_and(|expect| self.expectation(run.end) == Some(!expect))
            && self.path.arms[run.end].is_none()
        {
            ends.push((run.end + 1, Continuation::Exit));
        }
        let mut backwards = (run.start..run.end).rev();
        let last = backwards.find(|&at| self.expectation(at).is_some()).map(|last| last + 1);
        let mut places: SmallVec<[usize; 2]> = SmallVec::from_slice(&[run.end]);
        places.extend(last.filter(|&last| last < run.end));
        ends.extend(places.iter().map(|&end| (end, Continuation::Same)));
        let branch = (run.start..run.end).rev().find(|&at| self.path.arms[at].is_some());
        ends.extend(branch.map(|branch| (branch + 1, Continuation::Other)));
        ends
    }

    /// The loop in `run` that ends before `end`.
    fn find(
        &mut self,
        run: &PeriodicRun,
        end: usize,
        continuation: Continuation,
    ) -> Option<ExitLoop> {
        let (path, period) = (self.path, run.period);
        if end < run.start + period {
            return None;
        }
        // The longest repetition of the run that ends before `end`.
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
        // The code after the last iteration, and the latest exit.
        let after = match path.arms[end - 1] {
            Some(_) => {
                let place = path.blocks.iter().position(|&block| block == path.at[end - 1].0)?;
                (*path.blocks.get(place + 1)?, 0)
            }
            None => (path.at[end - 1].0, path.at[end - 1].1 + 1),
        };
        let latest = path.arms[start..end].iter().rev().find_map(|&arm| arm)?;
        let never = continuation == Continuation::Other && self.stops(after.0, after.1);
        let (continuation, after) =
            if never { (Continuation::Stop, (latest, 0)) } else { (continuation, after) };
        let (code_after, finals) = match continuation {
            Continuation::Other | Continuation::Stop => self.tree.view(latest, 0),
            Continuation::Exit | Continuation::Same => self.tree.view(after.0, after.1),
        };
        // The exits, with the same code after each of them.
        let mut seen: Vec<(usize, Vec<SeenExit>)> = Vec::new();
        for guard in 0..period {
            if self.expectation(start + guard).is_none() {
                continue;
            }
            let mut here = self.seen(&repetition, guard, &code_after)?;
            if continuation == Continuation::Exit && guard == period - 1 {
                here.push((times - 1, finals.clone()));
            }
            if !here.is_empty() {
                seen.push((guard, here));
            }
        }
        if seen.iter().map(|(_, all)| all.len()).sum::<usize>() < 2 {
            return None;
        }
        let continued = match continuation {
            Continuation::Exit | Continuation::Stop => None,
            Continuation::Same => Some(finals.clone()),
            Continuation::Other => Some(self.tree.view(after.0, after.1).1),
        };
        let mut found = self.build(&repetition, &seen, &finals, continued.as_deref())?;
        found.after = after;
        found.arm = (continuation == Continuation::Other).then_some(latest);
        Some(found)
    }

    /// Tests whether a block, from this step on, certainly stops the graph.
    fn stops(&self, block: Block, first: usize) -> bool {
        let list = &self.tree.lists[block][first..];
        let never = |step: &Step| match self.templates.get(step.template) {
            Template::Guard { expect } => {
                let outcome = self.tree.graph().constant(step.operands[0]);
                outcome.is_some_and(|outcome| (outcome != 0.0) != *expect)
            }
            _ => false,
        };
        list.iter().any(never)
    }

    /// The iterations in which guard `at` of the body was seen to exit; `None` if the code after
    /// one of them is not `code_after`.
    fn seen(
        &mut self,
        repetition: &Repetition,
        at: usize,
        code_after: &Scope,
    ) -> Option<Vec<SeenExit>> {
        let Span { start, period, times } = repetition.span;
        let mut seen = Vec::new();
        for iteration in 0..times {
            let Some(arm) = self.path.arms[start + iteration * period + at] else { continue };
            let (scope, operands) = self.tree.view(arm, 0);
            if scope != *code_after {
                return None;
            }
            seen.push((iteration, operands));
        }
        Some(seen)
    }

    /// The loop of `repetition` with its `seen` exits. The code after the loop uses `finals`, or
    /// what corresponds to them after an exit; `continued` are used if the loop ends after its last
    /// iteration without an exit.
    fn build(
        &self,
        repetition: &Repetition,
        seen: &[(usize, Vec<SeenExit>)],
        finals: &[Node],
        continued: Option<&[Node]>,
    ) -> Option<ExitLoop> {
        let Span { start, times, .. } = repetition.span;
        // Each output with the first operand of the code after the loop that is it, if any.
        let mut outputs: Vec<(Node, Option<usize>)> = Vec::new();
        for (slot, &node) in finals.iter().enumerate() {
            let all = || seen.iter().flat_map(|(_, all)| all.iter().map(|(_, nodes)| nodes));
            if self.definition(repetition, node).is_none() {
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
        for &node in continued.unwrap_or_default() {
            let is_known = outputs.iter().any(|&(known, _)| known == node);
            if !is_known && self.definition(repetition, node).is_some() {
                outputs.push((node, None));
            }
        }
        // The body, then the outputs at each exit and after the last iteration.
        let steps = &self.path.steps[start..repetition.span.end()];
        let mut operands = SmallVec::new();
        let inner = loop_body(steps, repetition, &mut operands);
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
        if let Some(continued) = continued {
            let mut values = Vec::with_capacity(outputs.len());
            for &(node, _) in &outputs {
                values.push(match continued.contains(&node) {
                    true => Some(self.value(repetition, &[(times - 1, node)], &mut operands)?),
                    false => None,
                });
            }
            last = Some(values);
        }
        let outputs = outputs.iter().map(|&(node, _)| node).collect();
        let (after, arm) = ((self.path.at[start].0, 0), None);
        Some(ExitLoop { span: repetition.span, inner, exits, last, operands, outputs, after, arm })
    }

    /// The iteration, step and output that define `node`, if they are in the loop.
    fn definition(&self, repetition: &Repetition, node: Node) -> Option<(usize, usize, usize)> {
        let Span { start, period, .. } = repetition.span;
        let (step, output) = self.search.definition(node)?;
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
        let Some((iteration, step, output)) = self.definition(repetition, node) else {
            operands.extend(core::iter::repeat_n(node, times));
            return nodes.iter().all(|&(_, other)| other == node).then_some(Ref::Outer(outer));
        };
        let distance = latest.checked_sub(iteration)?;
        if distance > self.limits.distance as usize {
            return None;
        }
        let body = &self.path.steps[start..][..period];
        let before: usize = body[..step].iter().map(|step| step.outputs.len()).sum();
        let value = (before + output) as u32;
        // The initial values, taken from an operand that is carried in the same way.
        let source = Source::Inside { distance, step, output };
        let mut firsts: &[Node] = &[];
        let initial: Vec<Node>;
        if distance > 0 {
            let slots = body
                .iter()
                .enumerate()
                .flat_map(|(at, step)| (0..step.operands.len()).map(move |slot| (at, slot)));
            let (_, (at, slot)) =
                repetition.sources.iter().zip(slots).find(|(other, _)| **other == source)?;
            let steps = self.path.steps[start + at..].iter().step_by(period).take(distance);
            initial = steps.map(|step| step.operands[slot]).collect();
            firsts = &initial;
        }
        let fits = |&(iteration, node): &(usize, Node)| match iteration.checked_sub(distance) {
            Some(earlier) => {
                self.path.steps[start + earlier * period + step].outputs[output] == node
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
