//! Walking along a trace: compares it with the tree and appends what is new.
//!
//! Two points of two traces are one point of the tree if the steps before them are equal, or if
//! they follow the same exit of a region: the same point of the program with equal live static
//! state. This is partial evaluation, and it makes merging sound: static state that decides about
//! the continuation is part of the key of an exit, and a continuation that was not seen is not in
//! the tree.

use core::panic::Location;

use hashbrown::HashSet;
use smallvec::SmallVec;

use super::buffers::{
    Carried, Entry, EventValue, EventValues, OpenRegion, SinglePaths, WalkBuffers,
};
use super::side_exit::ExitFinder;
use super::state_splits::StateSplits;
use super::tree::{Applied, BasicBlock, End, Instance, Origin, SAME, Step, Tree, Value};
use super::walk_loops::LoopSearch;
use super::{MergeError, MergeLimits, UnmergedReason, UnmergedRegion, place, unknown_place};
use crate::op::{MAX_ARITY, Op};
use crate::ssa::Place;
use crate::trace::{Event, Operand, Role, Site, Trace};

/// A reason why a walk ended early: the trace does not match the tree.
pub(super) enum Mismatch {
    /// The path is not in the tree, which must not be extended.
    NewPath(Place),
    /// The trace differs from the tree without a guard in between.
    Divergent(Place),
    /// The region cannot be merged.
    Unmerged(Site, UnmergedRegion),
    /// Paths copied from or to this region may be wrong.
    WrongSharing(Site),
    /// The path is not in the tree, which has reached a limit.
    Limit(MergeError),
}

/// The result of a part of a walk. It is small, because the walk goes on after most events.
pub(super) type Walked<T = ()> = Result<T, Box<Mismatch>>;

/// The extension of the tree by a walk.
#[derive(Clone, Copy)]
pub(super) enum Extension {
    /// The tree must not be extended.
    Never,
    /// A transaction begins at the first unknown step, unless there are as many paths as these
    /// limits allow, or the tree is full.
    FromUnknown { limits: MergeLimits, is_full: bool },
    /// The tree may be extended in a transaction that has begun.
    Begun,
}

/// The point from which on the path of a walk is new.
pub(super) struct NewPath {
    pub(super) at: Place,
    /// The number of events before it.
    pub(super) event: usize,
}

/// A walk along one trace.
pub(super) struct Walk<'a> {
    pub(super) tree: &'a mut Tree,
    pub(super) extension: Extension,
    /// The point at which the walk began a transaction.
    pub(super) new_path: Option<NewPath>,
    /// Regions that are not merged: their marks are ignored.
    pub(super) unmerged: &'a HashSet<Site>,
    pub(super) known: &'a mut EventValues,
    pub(super) entries: &'a mut Vec<Entry>,
    pub(super) open: &'a mut Vec<OpenRegion>,
    pub(super) extended: &'a mut Vec<Instance>,
    pub(super) single_path: &'a mut SinglePaths,
    pub(super) carried: &'a mut Carried,
    pub(super) values: &'a mut Vec<Value>,
    pub(super) captured: &'a mut Vec<Value>,
    pub(super) splits: &'a mut StateSplits,
    pub(super) basic_block: BasicBlock,
    /// The next step of the basic block.
    pub(super) step: usize,
    /// The search for the side exit from an older version, if asked for.
    pub(super) exit_finder: Option<ExitFinder>,
    pub(super) loop_search: LoopSearch,
    /// The index of the next capture of the trace.
    pub(super) next_capture: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        tree: &'a mut Tree,
        extension: Extension,
        unmerged: &'a HashSet<Site>,
        buffers: &'a mut WalkBuffers,
    ) -> Self {
        let WalkBuffers {
            known,
            entries,
            open,
            extended,
            single_path,
            carried,
            values,
            captured,
            splits,
        } = buffers;
        splits.begin();
        known.clear();
        entries.clear();
        open.clear();
        extended.clear();
        // The function itself.
        entries.push(Entry { open: true, site: Location::caller() });
        let basic_block = tree.root();
        tree.mark_walked(basic_block);
        let (step, exit_finder, loop_search) = (0, None, LoopSearch::default());
        Walk {
            tree,
            extension,
            new_path: None,
            unmerged,
            known,
            entries,
            open,
            extended,
            single_path,
            carried,
            values,
            captured,
            splits,
            basic_block,
            step,
            exit_finder,
            loop_search,
            next_capture: 0,
        }
    }

    /// Walks along the whole trace.
    pub(super) fn run(&mut self, trace: &Trace<'_>) -> Walked {
        self.single_path.find(trace);
        while let Some(event) = trace.events.get(self.known.len()) {
            let role = event.role();
            if matches!(role, Role::Apply | Role::Guard | Role::Constant)
                && self.walk_loop(trace, &event)?
            {
                continue;
            }
            match role {
                Role::ActiveInput | Role::InactiveInput => {
                    let value = self.tree.input(self.known.len());
                    self.note(value);
                }
                Role::Constant => {
                    let value = self.tree.constant(event.value().to_bits());
                    self.note(value);
                }
                Role::Apply | Role::Argument | Role::Output => {
                    let args = self.operands(&event)?;
                    let value = self.apply(Applied::of(&event), args, || event.site())?;
                    self.note(value);
                }
                Role::Guard => {
                    self.guard(&event)?;
                    self.known.push(None);
                }
                Role::Enter => {
                    let index = self.known.len();
                    if !self.is_unmerged(|| event.site()) {
                        match self.single_path.contains(index) {
                            false => self.enter(event.payload(), false, index, trace)?,
                            true => self.pass_single_path(event.site())?,
                        }
                    }
                    self.known.push(None);
                }
                Role::Iterate => self.iterate(trace)?,
                Role::Join => self.join(trace)?,
                // Read with the join or loop head before them.
                Role::Phi | Role::State | Role::NamesInput | Role::Opaque => self.known.push(None),
            }
        }
        self.finish(trace)
    }

    /// Tests whether the region at this site is not merged.
    #[inline]
    pub(super) fn is_unmerged(&self, site: impl FnOnce() -> Site) -> bool {
        !self.unmerged.is_empty() && self.unmerged.contains(&site())
    }

    fn finish(&mut self, trace: &Trace<'_>) -> Walked {
        let at = || trace.events.last().map_or_else(unknown_place, |event| place(event.site()));
        if let Some(open) = self.open.first() {
            return Err(unmerge(self.entries[open.entry].site, UnmergedReason::EndsInside));
        }
        let output = self.operand(trace.output, at)?;
        self.look();
        match &self.tree.basic_blocks[self.basic_block].end {
            End::Return(known) if self.at_end() && *known == output => Ok(()),
            End::Open => {
                self.require_extension(at)?;
                self.tree.set_end(self.basic_block, End::Return(output));
                Ok(())
            }
            _ => Err(Box::new(Mismatch::Divergent(at()))),
        }
    }

    /// Continues at the start of `basic_block`.
    pub(super) fn go(&mut self, basic_block: BasicBlock) {
        self.look();
        self.tree.mark_walked(basic_block);
        (self.basic_block, self.step) = (basic_block, 0);
        self.look();
    }

    /// Checks whether an older version of the tree had this point.
    #[inline]
    pub(super) fn look(&mut self) {
        if let Some(exit_finder) = &mut self.exit_finder {
            exit_finder.visit(self.tree, self.basic_block, self.step);
        }
    }

    /// Notes the value of the next event.
    #[inline]
    pub(super) fn note(&mut self, value: Value) {
        let entry = self.open.last().map_or(0, |open| open.entry);
        self.known.push(Some(EventValue::new(value, entry)));
    }

    /// Tests whether all steps of the basic block have been walked.
    pub(super) fn at_end(&self) -> bool {
        self.step == self.tree.basic_blocks[self.basic_block].steps.len()
    }

    /// Tests whether the continuation of the basic block is unknown here.
    pub(super) fn at_open_end(&self) -> bool {
        self.at_end() && self.tree.basic_blocks[self.basic_block].end == End::Open
    }

    pub(super) fn require_extension(&mut self, at: impl FnOnce() -> Place) -> Walked {
        match self.extension {
            Extension::Never => {
                self.exit_finder.iter_mut().for_each(ExitFinder::exit_to);
                return Err(Box::new(Mismatch::NewPath(at())));
            }
            Extension::FromUnknown { limits, is_full } => {
                self.exit_finder.iter_mut().for_each(ExitFinder::exit_to);
                if self.open.is_empty() && self.tree.splits + 1 >= limits.paths {
                    let error = MergeError::TooManyPaths { limit: limits.paths };
                    return Err(Box::new(Mismatch::Limit(error)));
                }
                if is_full {
                    let error = MergeError::TooManyNodes { limit: limits.nodes };
                    return Err(Box::new(Mismatch::Limit(error)));
                }
                self.tree.begin();
                self.tree.version += 1;
                self.extension = Extension::Begun;
                self.new_path = Some(NewPath { at: at(), event: self.known.len() });
            }
            Extension::Begun => {}
        }
        if self.at_open_end() {
            self.tree.note_extension(self.basic_block);
        }
        if let Some(open) = self.open.last_mut() {
            open.is_extended = true;
        }
        Ok(())
    }

    /// The next step of the basic block.
    fn next_step(&mut self) -> Option<Step> {
        let step = self.tree.basic_blocks[self.basic_block].steps.get(self.step).copied();
        self.step += usize::from(step.is_some());
        step
    }

    pub(super) fn push(&mut self, step: Step) {
        self.tree.push_step(self.basic_block, step, !self.open.is_empty());
        self.step += 1;
    }

    /// Walks along an operation: compares it with the tree, or appends it.
    pub(super) fn apply(
        &mut self,
        op: Applied,
        args: [Value; MAX_ARITY],
        site: impl FnOnce() -> Site,
    ) -> Walked<Value> {
        let data = &self.tree.basic_blocks[self.basic_block];
        match data.steps.get(self.step) {
            Some(&Step::Value(value)) if self.is(value, op, args) => {
                self.step += 1;
                Ok(value)
            }
            None if data.end == End::Open => {
                let site = site();
                self.require_extension(|| place(site))?;
                let value = self.tree.values.push(Origin::Apply(op, args, site));
                self.push(Step::Value(value));
                Ok(value)
            }
            _ => Err(Box::new(Mismatch::Divergent(place(site())))),
        }
    }

    fn is(&self, value: Value, op: Applied, args: [Value; MAX_ARITY]) -> bool {
        matches!(self.tree.values[value], Origin::Apply(known, all, _)
            if known == op && all == args)
    }

    fn guard(&mut self, event: &Event<'_>) -> Walked {
        let args = self.operands(event)?;
        let applied = Applied::Primitive(event.op());
        let divergent = || Box::new(Mismatch::Divergent(place(event.site())));
        loop {
            if self.at_open_end() {
                let condition = self.apply(applied, args, || event.site())?;
                self.push(Step::Guard { condition, expect: event.value() != 0.0 });
                return Ok(());
            }
            let Some(Step::Value(condition)) = self.next_step() else { return Err(divergent()) };
            // An escaped number that differs from the known one takes the other branch of that
            // guard, and is compared with the next known number there.
            let same = self.is(condition, applied, args);
            if !same && !self.escapes_same_value(condition, event.op(), args) {
                return Err(divergent());
            }
            let outcome = same && event.value() != 0.0;
            self.look();
            self.exit_finder
                .iter_mut()
                .for_each(|exit_finder| exit_finder.note_outcome(event, outcome));
            let data = &self.tree.basic_blocks[self.basic_block];
            match (data.steps.get(self.step), &data.end) {
                (Some(&Step::Guard { condition: guarded, expect }), _) if guarded == condition => {
                    if expect == outcome {
                        self.step += 1;
                    } else {
                        self.require_extension(|| place(event.site()))?;
                        if self.open.is_empty() {
                            self.tree.splits += 1;
                            self.tree.step_bound.add_path();
                        }
                        let new = self.tree.split(self.basic_block, self.step, outcome);
                        self.go(new);
                    }
                }
                (None, &End::Branch { condition: decided, then, otherwise })
                    if decided == condition =>
                {
                    self.go(if outcome { then } else { otherwise });
                }
                _ => return Err(divergent()),
            }
            if same {
                return Ok(());
            }
        }
    }

    /// Tests whether both guard an escape of the same value, with different numbers.
    fn escapes_same_value(&self, condition: Value, op: Op, args: [Value; MAX_ARITY]) -> bool {
        matches!(self.tree.values[condition], Origin::Apply(SAME, known, _)
            if op == Op::Same && args[0] == known[0])
    }

    /// Enters a region, or the body of a loop.
    pub(super) fn enter(
        &mut self,
        id: u64,
        is_body: bool,
        event: usize,
        trace: &Trace<'_>,
    ) -> Walked {
        let (block, site) = (self.basic_block, trace.events.at(event).site());
        let instance = if self.at_open_end() {
            self.require_extension(|| place(site))?;
            let parent = self.open.last().map(|open| open.instance);
            let instance = self.tree.new_instance(site, parent);
            self.tree.set_end(block, End::Region { instance, tails: SmallVec::new() });
            instance
        } else {
            match self.tree.basic_blocks[block].end {
                End::Region { instance, .. }
                    if self.at_end() && is_same_site(self.tree.instances[instance].site, site) =>
                {
                    instance
                }
                _ => return Err(unmerge(site, UnmergedReason::DependsOnContext)),
            }
        };
        if !is_body {
            self.note_live_in(instance, event, trace)?;
        }
        let entry = self.entries.len();
        self.entries.push(Entry { open: true, site });
        self.open.push(OpenRegion { id, is_body, instance, block, entry, is_extended: false });
        self.go(self.tree.instances[instance].root);
        Ok(())
    }

    /// Enters a region with a single path, which leaves no trace in the tree.
    pub(super) fn pass_single_path(&mut self, site: Site) -> Walked {
        match self.tree.basic_blocks[self.basic_block].end {
            End::Region { instance, .. }
                if self.at_end() && is_same_site(self.tree.instances[instance].site, site) =>
            {
                Err(unmerge(site, UnmergedReason::DependsOnContext))
            }
            _ => Ok(()),
        }
    }

    /// The operands of a primitive, as those of [`Origin::Apply`].
    #[inline]
    fn operands(&mut self, event: &Event<'_>) -> Walked<[Value; MAX_ARITY]> {
        let at = || place(event.site());
        let arity = Applied::of(event).arity();
        let first = self.operand(event.operand(0), at)?;
        let second = if arity > 1 { self.operand(event.operand(1), at)? } else { first };
        let third = if arity > 2 { self.operand(event.operand(2), at)? } else { first };
        Ok([first, second, third])
    }

    #[inline(always)]
    pub(super) fn operand(
        &mut self,
        operand: Operand,
        at: impl FnOnce() -> Place,
    ) -> Walked<Value> {
        match operand {
            Operand::Event(event) => match self.visible(event as usize) {
                Some(value) => Ok(value),
                None => self.other_operand(operand, at),
            },
            Operand::Constant(_) => self.other_operand(operand, at),
        }
    }

    /// The value of an operand that is not visible, or a constant.
    #[inline(never)]
    fn other_operand(&mut self, operand: Operand, at: impl FnOnce() -> Place) -> Walked<Value> {
        match operand {
            Operand::Constant(value) => Ok(self.tree.constant(value.to_bits())),
            Operand::Event(event) => match self.known.get(event as usize) {
                Some(known) => match self.entries[known.entry()] {
                    Entry { open: true, .. } => Ok(known.value),
                    Entry { site, .. } => {
                        Err(unmerge(site, UnmergedReason::UntrackedUse { to: at() }))
                    }
                },
                None => Err(Box::new(Mismatch::Divergent(at()))),
            },
        }
    }
}

pub(super) fn unmerge(site: Site, reason: UnmergedReason) -> Box<Mismatch> {
    Box::new(Mismatch::Unmerged(site, UnmergedRegion { at: place(site), reason }))
}

/// Tests whether two sites are equal. Few are at different addresses.
pub(super) fn is_same_site(one: Site, other: Site) -> bool {
    core::ptr::eq(one, other) || one == other
}

/// Pads operands to the array of [`Origin::Apply`].
pub(super) fn pad(args: &[Value]) -> [Value; MAX_ARITY] {
    core::array::from_fn(|i| args.get(i).copied().unwrap_or(args[0]))
}
