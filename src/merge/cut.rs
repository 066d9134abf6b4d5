//! Loop splitting: some iterations of a loop in the tree are peeled into single steps, the others
//! stay loops. Values keep their ids.
//!
//! A loop that reads another loop's values with a stride reads them by one array access; so it is
//! split where the other one is split.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::repeat::{Part, Repeat, RepeatId, Slot};
use super::tree::{BasicBlock, End, Instance, Origin, Step, Tree, Value};
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
    is_single: bool,
}

impl Piece {
    /// The only piece of `whole` if all of it is peeled.
    fn all_single(repeat: &Repeat) -> Vec<Piece> {
        vec![Piece { start: 0, end: repeat.times, is_single: true }]
    }
}

/// The loops to split, with their pieces in order.
type Cuts = HashMap<RepeatId, Vec<Piece>>;

impl Tree {
    /// Peels iteration number `at` of the loop that is step number `step` of `basic_block`, and
    /// splits all loops that depend on it.
    pub(super) fn cut(&mut self, basic_block: BasicBlock, step: usize, at: usize) {
        let Some(&Step::Repeat(id)) = self.basic_blocks[basic_block].steps.get(step) else {
            return;
        };
        let mut cuts = Cuts::new();
        cuts.insert(id, self.pieces(id, vec![at, at + 1], |iteration| iteration == at));
        let basic_blocks = (!self.cut_others(&mut cuts)).then_some(basic_block);
        self.apply(&cuts, basic_blocks);
    }

    /// Peels all iterations of all loops inside these instances.
    pub(super) fn expand_in(&mut self, instances: impl Iterator<Item = Instance>) {
        if !self.has_repeats() {
            return;
        }
        let (mut pending, mut seen): (Vec<Instance>, HashSet<Instance>) =
            (instances.collect(), HashSet::new());
        let mut cuts = Cuts::new();
        while let Some(instance) = pending.pop() {
            if !seen.insert(instance) {
                continue;
            }
            let mut basic_blocks = vec![self.instances[instance].root];
            while let Some(basic_block) = basic_blocks.pop() {
                let data = &self.basic_blocks[basic_block];
                for step in &data.steps {
                    if let Step::Repeat(id) = *step {
                        cuts.insert(id, Piece::all_single(&self.repeats[id]));
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
        if !cuts.is_empty() {
            self.cut_others(&mut cuts);
            self.apply(&cuts, None);
        }
    }

    /// Adds the loops that read values of split loops with a stride, split at the same places.
    /// Returns whether there are any.
    fn cut_others(&self, cuts: &mut Cuts) -> bool {
        let count = cuts.len();
        let Some(first) = cuts.keys().map(|&id| self.repeats[id].first).min() else { return false };
        // A loop reads values of older loops only.
        let is_later = |other: &RepeatId| {
            let other = &self.repeats[*other];
            other.goes_through_values && other.times > 0 && other.first > first
        };
        let mut others: Vec<RepeatId> = self.repeats.keys().filter(is_later).collect();
        others.sort_unstable_by_key(|&other| self.repeats[other].first);
        for other in others {
            if cuts.contains_key(&other) {
                continue;
            }
            let (bounds, sources) = self.sources(other, cuts);
            let is_single =
                |iteration: usize| sources.iter().any(|source| source.is_single_at(iteration));
            let pieces = self.pieces(other, bounds, is_single);
            if pieces.len() > 1 || pieces.iter().any(|piece| piece.is_single) {
                cuts.insert(other, pieces);
            }
        }
        cuts.len() > count
    }

    /// Peels all iterations of all loops.
    pub(super) fn expand_all(&mut self) {
        let whole = |(id, repeat): (RepeatId, &Repeat)| (id, Piece::all_single(repeat));
        let alive = self.repeats.iter().filter(|(_, repeat)| repeat.times > 0);
        let cuts: Cuts = alive.map(whole).collect();
        self.apply(&cuts, None);
    }

    /// The pieces of a loop that is split at these iterations. Pieces too short to be a loop are
    /// peeled, too.
    fn pieces(
        &self,
        id: RepeatId,
        mut bounds: Vec<usize>,
        is_single: impl Fn(usize) -> bool,
    ) -> Vec<Piece> {
        let repeat = &self.repeats[id];
        bounds.extend([0, repeat.times]);
        bounds.sort_unstable();
        bounds.dedup();
        let mut pieces: Vec<Piece> = Vec::new();
        for pair in bounds.windows(2) {
            let (start, end, period) = (pair[0], pair[1], repeat.body.len());
            let length = trace::Repeat { start: 0, period, times: end - start };
            let is_single = is_single(start) || !self.worth.is_reached(&length);
            match pieces.last_mut() {
                Some(last) if last.is_single && is_single => last.end = end,
                _ => pieces.push(Piece { start, end, is_single }),
            }
        }
        pieces
    }

    /// For each operand of `id` that reads a split loop with a stride: the iterations of `id` at
    /// which it passes a split, and the read itself.
    fn sources<'a>(&self, id: RepeatId, cuts: &'a Cuts) -> (Vec<usize>, Vec<Cut<'a>>) {
        let (mut bounds, mut sources) = (Vec::new(), Vec::new());
        let repeat = &self.repeats[id];
        for slot in repeat.slots() {
            let Slot::Value { first, by } = *slot else { continue };
            let Place::Repeat(used) = self.values.place(first) else { continue };
            let Some(pieces) = cuts.get(&used).filter(|_| by != 0) else { continue };
            let used = &self.repeats[used];
            let (_, from) = used.part(first);
            let source = Cut { pieces, from, by: by / used.body.len() as i64 };
            let inner = pieces.iter().skip(1).map(|piece| source.reaches(piece.start));
            bounds.extend(inner.filter(|&bound| bound < repeat.times));
            sources.push(source);
        }
        (bounds, sources)
    }

    /// Replaces the loops by their pieces, in the basic block `only` or in all.
    fn apply(&mut self, cuts: &Cuts, only: Option<BasicBlock>) {
        let mut ids: Vec<RepeatId> = cuts.keys().copied().collect();
        ids.sort_unstable();
        let steps: HashMap<RepeatId, Vec<Step>> =
            ids.into_iter().map(|id| (id, self.apply_to(id, &cuts[&id]))).collect();
        match only {
            Some(basic_block) => self.replace_steps(basic_block, &steps),
            None => self
                .basic_blocks
                .keys()
                .for_each(|basic_block| self.replace_steps(basic_block, &steps)),
        }
    }

    /// Replaces a loop by its pieces. Returns their steps.
    fn apply_to(&mut self, id: RepeatId, pieces: &[Piece]) -> Vec<Step> {
        let nothing = Repeat::nothing(self.input(0));
        let whole = core::mem::replace(&mut self.repeats[id], nothing);
        let (mut steps, mut sources) = (Vec::new(), Vec::with_capacity(pieces.len()));
        for &Piece { start, end, is_single } in pieces {
            if is_single {
                sources.push(Source::Origins(self.single(&whole, start, end, &mut steps)));
            } else {
                let piece = whole.piece(start, end);
                let count = piece.len();
                let id = self.repeats.push(piece);
                steps.push(Step::Repeat(id));
                sources.push(Source::Repeat(id, count));
            }
        }
        self.values.replace(whole.first, sources);
        steps
    }

    /// Appends the steps of iterations `start..end` to `steps`; returns the origins of the values.
    fn single(
        &mut self,
        whole: &Repeat,
        start: usize,
        end: usize,
        steps: &mut Vec<Step>,
    ) -> Vec<Origin> {
        let mut origins = Vec::with_capacity(whole.body.len() * (end - start));
        for iteration in start..end {
            for (at, part) in whole.body.iter().enumerate() {
                let Part::Apply { op, slots, outcome, site } = part else {
                    origins.push(Origin::Repeated);
                    continue;
                };
                let mut args: SmallVec<[Value; MAX_ARITY]> = SmallVec::new();
                for slot in slots {
                    args.push(match slot {
                        Slot::Table(numbers) => self.constant(numbers[iteration]),
                        _ => whole.operand(slot, iteration),
                    });
                }
                origins.push(Origin::Apply(*op, pad(&args), site));
                let condition = whole.value(at, iteration);
                steps.push(Step::Value(condition));
                steps.extend(outcome.map(|expect| Step::Guard { condition, expect }));
            }
        }
        origins
    }

    /// Replaces loops in `basic_block` by these steps.
    fn replace_steps(&mut self, basic_block: BasicBlock, steps: &HashMap<RepeatId, Vec<Step>>) {
        let is_replaced = |step: &Step| matches!(step, Step::Repeat(id) if steps.contains_key(id));
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
                Step::Repeat(id) if steps.contains_key(&id) => long.extend_from_slice(&steps[&id]),
                _ => long.push(step),
            }
        }
        places.push(long.len());
        data.steps = long;
        if let Some((_, at)) = &mut data.grown {
            *at = places[(*at).min(count)];
        }
    }
}

/// A read with a stride of the values of a loop that is split.
struct Cut<'a> {
    pieces: &'a [Piece],
    /// The iteration that is read in the first iteration of the reader.
    from: usize,
    /// The stride, in iterations.
    by: i64,
}

impl Cut<'_> {
    /// The first iteration of the reader that reads at or past iteration number `bound`; 0 if none
    /// reads before it.
    fn reaches(&self, bound: usize) -> usize {
        let (from, bound) = (self.from as i64, bound as i64);
        let iteration = match self.by > 0 {
            true => (bound - from + self.by - 1).div_euclid(self.by),
            false => (from - bound).div_euclid(-self.by) + 1,
        };
        usize::try_from(iteration).unwrap_or(0)
    }

    /// Tests whether the reader reads a peeled iteration in this iteration.
    fn is_single_at(&self, iteration: usize) -> bool {
        let at = self.from as i64 + self.by * iteration as i64;
        let is_in = |piece: &&Piece| (piece.start as i64..piece.end as i64).contains(&at);
        self.pieces.iter().find(is_in).is_none_or(|piece| piece.is_single)
    }
}

impl Repeat {
    /// Takes the place of a loop that was split.
    fn nothing(first: Value) -> Repeat {
        Repeat { first, times: 0, goes_through_values: false, is_piece: false, body: Vec::new() }
    }

    /// A loop of iterations `start..end`.
    fn piece(&self, start: usize, end: usize) -> Repeat {
        let slot = |slot: &Slot| match slot {
            Slot::Value { by, .. } => Slot::Value { first: self.operand(slot, start), by: *by },
            Slot::Table(numbers) => Slot::Table(Arc::from(&numbers[start..end])),
            &Slot::Inside { at, distance, .. } => {
                let firsts =
                    (start..start + distance).map(|iteration| self.operand(slot, iteration));
                Slot::Inside { at, distance, firsts: firsts.collect() }
            }
        };
        let body = self.body.iter().map(|part| match part {
            Part::Nothing => Part::Nothing,
            Part::Apply { op, slots, outcome, site } => {
                let slots = slots.iter().map(slot).collect();
                Part::Apply { op: *op, slots, outcome: *outcome, site }
            }
        });
        let (body, first) = (body.collect(), self.value(0, start));
        Repeat { first, times: end - start, is_piece: true, body, ..*self }
    }

    /// The value of an operand, which is not a table, in an iteration.
    pub(super) fn operand(&self, slot: &Slot, iteration: usize) -> Value {
        match slot {
            Slot::Value { first, by } => {
                let index = first.index() as i64 + by * iteration as i64;
                Value::from_index(usize::try_from(index).unwrap_or(0))
            }
            Slot::Inside { at, distance, firsts } => match iteration.checked_sub(*distance) {
                Some(earlier) => self.value(*at, earlier),
                None => firsts[iteration],
            },
            // Table entries get values only when they are peeled.
            Slot::Table(_) => self.first,
        }
    }
}
