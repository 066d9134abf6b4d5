//! Loop splitting: some iterations of a loop in the tree are peeled into single steps, the others
//! stay loops. Values keep their ids.
//!
//! A loop that reads another loop's values with a stride reads them by one array access; so it is
//! split where the other one is split.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::trace_loop::{LoopStep, OperandRule, TraceLoop, TraceLoopId};
use super::tree::{Applied, BasicBlock, End, Instance, Origin, Step, Tree, Value};
use super::values::{Place, Source};
use super::walk::pad;
use crate::entity::Entity;
use crate::op::MAX_ARITY;
use crate::trace;

/// Consecutive iterations of a loop that is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    start: usize,
    end: usize,
    /// True if they become single steps.
    is_peeled: bool,
}

impl Piece {
    /// The only piece of `whole` if all of it is peeled.
    fn all_peeled(trace_loop: &TraceLoop) -> Vec<Piece> {
        vec![Piece { start: 0, end: trace_loop.times, is_peeled: true }]
    }
}

/// The loops to split, with their pieces in order.
type Splits = HashMap<TraceLoopId, Vec<Piece>>;

impl Tree {
    /// Peels iteration number `at` of the loop that is step number `step` of `basic_block`, and
    /// splits all loops that depend on it.
    pub(super) fn split_loop(&mut self, basic_block: BasicBlock, step: usize, at: usize) {
        let Some(&Step::Loop(id)) = self.basic_blocks[basic_block].steps.get(step) else {
            return;
        };
        let mut splits = Splits::new();
        splits.insert(id, self.pieces(id, vec![at, at + 1], |iteration| iteration == at));
        let basic_blocks = (!self.split_dependents(&mut splits)).then_some(basic_block);
        self.apply(&splits, basic_blocks);
    }

    /// Peels all iterations of all loops inside these instances.
    pub(super) fn peel_in(&mut self, instances: impl Iterator<Item = Instance>) {
        if !self.has_loops() {
            return;
        }
        let (mut pending, mut seen): (Vec<Instance>, HashSet<Instance>) =
            (instances.collect(), HashSet::new());
        let mut splits = Splits::new();
        while let Some(instance) = pending.pop() {
            if !seen.insert(instance) {
                continue;
            }
            let mut basic_blocks = vec![self.instances[instance].root];
            while let Some(basic_block) = basic_blocks.pop() {
                let data = &self.basic_blocks[basic_block];
                for step in &data.steps {
                    if let Step::Loop(id) = *step {
                        splits.insert(id, Piece::all_peeled(&self.loops[id]));
                    }
                }
                match &data.end {
                    End::Branch { then, otherwise, .. } => basic_blocks.extend([*then, *otherwise]),
                    End::Region { instance, tails } => {
                        pending.push(*instance);
                        basic_blocks.extend_from_slice(tails);
                    }
                    End::Return(_) | End::Exit { .. } | End::Open => {}
                }
            }
        }
        if !splits.is_empty() {
            self.split_dependents(&mut splits);
            self.apply(&splits, None);
        }
    }

    /// Adds the loops that read values of split loops with a stride, split at the same places.
    /// Returns whether there are any.
    fn split_dependents(&self, splits: &mut Splits) -> bool {
        let count = splits.len();
        let Some(first) = splits.keys().map(|&id| self.loops[id].first).min() else { return false };
        // A loop reads values of older loops only.
        let is_later = |other: &TraceLoopId| {
            let other = &self.loops[*other];
            other.reads_with_stride && other.times > 0 && other.first > first
        };
        let mut others: Vec<TraceLoopId> = self.loops.keys().filter(is_later).collect();
        others.sort_unstable_by_key(|&other| self.loops[other].first);
        for other in others {
            if splits.contains_key(&other) {
                continue;
            }
            let (bounds, sources) = self.sources(other, splits);
            let is_peeled =
                |iteration: usize| sources.iter().any(|source| source.is_peeled_at(iteration));
            let pieces = self.pieces(other, bounds, is_peeled);
            if pieces.len() > 1 || pieces.iter().any(|piece| piece.is_peeled) {
                splits.insert(other, pieces);
            }
        }
        splits.len() > count
    }

    /// Peels all iterations of all loops.
    pub(super) fn peel_all(&mut self) {
        let whole =
            |(id, trace_loop): (TraceLoopId, &TraceLoop)| (id, Piece::all_peeled(trace_loop));
        let alive = self.loops.iter().filter(|(_, trace_loop)| trace_loop.times > 0);
        let splits: Splits = alive.map(whole).collect();
        self.apply(&splits, None);
    }

    /// The pieces of a loop that is split at these iterations. Pieces too short to be a loop are
    /// peeled, too.
    fn pieces(
        &self,
        id: TraceLoopId,
        mut bounds: Vec<usize>,
        is_peeled: impl Fn(usize) -> bool,
    ) -> Vec<Piece> {
        let trace_loop = &self.loops[id];
        bounds.extend([0, trace_loop.times]);
        bounds.sort_unstable();
        bounds.dedup();
        let mut pieces: Vec<Piece> = Vec::new();
        for pair in bounds.windows(2) {
            let (start, end, period) = (pair[0], pair[1], trace_loop.body.len());
            let length = trace::LoopRange { start: 0, period, times: end - start };
            let is_peeled = is_peeled(start) || !self.loop_threshold.is_reached(&length);
            match pieces.last_mut() {
                Some(last) if last.is_peeled && is_peeled => last.end = end,
                _ => pieces.push(Piece { start, end, is_peeled }),
            }
        }
        pieces
    }

    /// For each operand of `id` that reads a split loop with a stride: the iterations of `id` at
    /// which it passes a split, and the read itself.
    fn sources<'a>(
        &self,
        id: TraceLoopId,
        splits: &'a Splits,
    ) -> (Vec<usize>, Vec<StridedRead<'a>>) {
        let (mut bounds, mut sources) = (Vec::new(), Vec::new());
        let trace_loop = &self.loops[id];
        for operand_rule in trace_loop.operand_rules() {
            let OperandRule::Value { first, stride } = *operand_rule else { continue };
            let Place::Loop(used) = self.values.place(first) else { continue };
            let Some(pieces) = splits.get(&used).filter(|_| stride != 0) else { continue };
            let used = &self.loops[used];
            let (_, from) = used.position_of(first);
            let source = StridedRead { pieces, from, stride: stride / used.body.len() as i64 };
            let inner = pieces.iter().skip(1).map(|piece| source.first_past(piece.start));
            bounds.extend(inner.filter(|&bound| bound < trace_loop.times));
            sources.push(source);
        }
        (bounds, sources)
    }

    /// Replaces the loops by their pieces, in the basic block `only` or in all.
    fn apply(&mut self, splits: &Splits, only: Option<BasicBlock>) {
        let mut ids: Vec<TraceLoopId> = splits.keys().copied().collect();
        ids.sort_unstable();
        let steps: HashMap<TraceLoopId, Vec<Step>> =
            ids.into_iter().map(|id| (id, self.apply_to(id, &splits[&id]))).collect();
        match only {
            Some(basic_block) => self.replace_steps(basic_block, &steps),
            None => self
                .basic_blocks
                .keys()
                .for_each(|basic_block| self.replace_steps(basic_block, &steps)),
        }
    }

    /// Replaces a loop by its pieces. Returns their steps.
    fn apply_to(&mut self, id: TraceLoopId, pieces: &[Piece]) -> Vec<Step> {
        let empty = TraceLoop::empty(self.input(0));
        let whole = core::mem::replace(&mut self.loops[id], empty);
        let (mut steps, mut sources) = (Vec::new(), Vec::with_capacity(pieces.len()));
        for &Piece { start, end, is_peeled } in pieces {
            if is_peeled {
                sources.push(Source::Origins(self.peel(&whole, start, end, &mut steps)));
            } else {
                let piece = whole.piece(start, end);
                let count = piece.len();
                let id = self.loops.push(piece);
                steps.push(Step::Loop(id));
                sources.push(Source::Loop(id, count));
            }
        }
        self.values.replace(whole.first, sources);
        steps
    }

    /// Appends the steps of iterations `start..end` to `steps`; returns the origins of the values.
    fn peel(
        &mut self,
        whole: &TraceLoop,
        start: usize,
        end: usize,
        steps: &mut Vec<Step>,
    ) -> Vec<Origin> {
        let mut origins = Vec::with_capacity(whole.body.len() * (end - start));
        for iteration in start..end {
            for (at, step) in whole.body.iter().enumerate() {
                let LoopStep::Apply { op, operand_rules, outcome, site } = step else {
                    origins.push(Origin::InLoop);
                    continue;
                };
                let mut args: SmallVec<[Value; MAX_ARITY]> = SmallVec::new();
                for operand_rule in operand_rules {
                    args.push(match operand_rule {
                        OperandRule::Table(numbers) => self.constant(numbers[iteration]),
                        _ => whole.operand(operand_rule, iteration),
                    });
                }
                origins.push(Origin::Apply(Applied::Primitive(*op), pad(&args), site));
                let condition = whole.value(at, iteration);
                steps.push(Step::Value(condition));
                steps.extend(outcome.map(|expect| Step::Guard { condition, expect }));
            }
        }
        origins
    }

    /// Replaces loops in `basic_block` by these steps.
    fn replace_steps(&mut self, basic_block: BasicBlock, steps: &HashMap<TraceLoopId, Vec<Step>>) {
        let is_replaced = |step: &Step| matches!(step, Step::Loop(id) if steps.contains_key(id));
        if !self.basic_blocks[basic_block].steps.iter().any(is_replaced) {
            return;
        }
        let data = &mut self.basic_blocks[basic_block];
        let short = core::mem::take(&mut data.steps);
        let (mut long, count) = (Vec::new(), short.len());
        // The new index of each old step.
        let mut places = Vec::with_capacity(count + 1);
        for step in short {
            places.push(long.len());
            match step {
                Step::Loop(id) if steps.contains_key(&id) => long.extend_from_slice(&steps[&id]),
                _ => long.push(step),
            }
        }
        places.push(long.len());
        data.steps = long;
        if let Some((_, at)) = &mut data.extension {
            *at = places[(*at).min(count)];
        }
    }
}

/// A read with a stride of the values of a loop that is split.
struct StridedRead<'a> {
    pieces: &'a [Piece],
    /// The iteration that is read in the first iteration of the reader.
    from: usize,
    /// The stride, in iterations.
    stride: i64,
}

impl StridedRead<'_> {
    /// The first iteration of the reader that reads at or past iteration number `bound`; 0 if none
    /// reads before it.
    fn first_past(&self, bound: usize) -> usize {
        let (from, bound) = (self.from as i64, bound as i64);
        let iteration = match self.stride > 0 {
            true => (bound - from + self.stride - 1).div_euclid(self.stride),
            false => (from - bound).div_euclid(-self.stride) + 1,
        };
        usize::try_from(iteration).unwrap_or(0)
    }

    /// Tests whether the reader reads a peeled iteration in this iteration.
    fn is_peeled_at(&self, iteration: usize) -> bool {
        let at = self.from as i64 + self.stride * iteration as i64;
        let is_in = |piece: &&Piece| (piece.start as i64..piece.end as i64).contains(&at);
        self.pieces.iter().find(is_in).is_none_or(|piece| piece.is_peeled)
    }
}

impl TraceLoop {
    /// Takes the place of a loop that was split.
    fn empty(first: Value) -> TraceLoop {
        TraceLoop {
            first,
            times: 0,
            reads_with_stride: false,
            is_split_off: false,
            body: Vec::new(),
        }
    }

    /// A loop of iterations `start..end`.
    fn piece(&self, start: usize, end: usize) -> TraceLoop {
        let operand_rule = |operand_rule: &OperandRule| match operand_rule {
            OperandRule::Value { stride, .. } => {
                OperandRule::Value { first: self.operand(operand_rule, start), stride: *stride }
            }
            OperandRule::Table(numbers) => OperandRule::Table(Arc::from(&numbers[start..end])),
            &OperandRule::Body { at, distance, .. } => {
                let initial = (start..start + distance)
                    .map(|iteration| self.operand(operand_rule, iteration));
                OperandRule::Body { at, distance, initial: initial.collect() }
            }
        };
        let body = self.body.iter().map(|step| match step {
            LoopStep::NoStep => LoopStep::NoStep,
            LoopStep::Apply { op, operand_rules, outcome, site } => {
                let operand_rules = operand_rules.iter().map(operand_rule).collect();
                LoopStep::Apply { op: *op, operand_rules, outcome: *outcome, site }
            }
        });
        let (body, first) = (body.collect(), self.value(0, start));
        TraceLoop { first, times: end - start, is_split_off: true, body, ..*self }
    }

    /// The value of an operand, which is not a table, in an iteration.
    pub(super) fn operand(&self, operand_rule: &OperandRule, iteration: usize) -> Value {
        match operand_rule {
            OperandRule::Value { first, stride } => {
                let index = first.index() as i64 + stride * iteration as i64;
                Value::from_index(usize::try_from(index).unwrap_or(0))
            }
            OperandRule::Body { at, distance, initial } => match iteration.checked_sub(*distance) {
                Some(earlier) => self.value(*at, earlier),
                None => initial[iteration],
            },
            // Table entries get values only when they are peeled.
            OperandRule::Table(_) => self.first,
        }
    }
}
