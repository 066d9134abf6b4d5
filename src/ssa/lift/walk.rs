//! Walking along a trace: what the tree knows is compared, what it does not
//! know is added.
//!
//! Two points of two traces are one point of the tree if what led there was the
//! same, or if they are the same exit of a region: the same point of the
//! program with the same live static state. This is partial evaluation, and it
//! makes merging sound: hidden state that decides what happens next is part of
//! the key, and what was not seen is not in the tree.

use core::panic::Location;

use hashbrown::HashSet;
use smallvec::SmallVec;

use super::notes::{Carried, Entry, Known, Notes, Open, carried, find_one_way};
use super::tree::{
    End, ExitKey, Given, Knowledge, Meeting, Origin, Step, Stretch, Target, Tree, Value,
};
use super::{Unmerge, Unmerged, place, unknown_place};
use crate::op::{MAX_ARITY, Op};
use crate::ssa::graph::Place;
use crate::trace::{Event, Operand, Role, Site, Trace};

/// Why a walk ended early.
pub(super) enum Stop {
    /// The trace does something that the tree does not know, here, and the tree
    /// must not grow.
    New {
        at: Place,
        /// Whether it does so in a region, the ways of which meet again.
        in_region: bool,
    },
    /// The trace does something else than the tree without a guard in between.
    Divergent(Place),
    /// The region must not be merged.
    Unmerge(Site, Unmerged),
}

/// A walk along one trace.
pub(super) struct Walk<'a> {
    tree: &'a mut Tree,
    /// Whether the tree may grow.
    grow: bool,
    /// Regions that are not merged: their marks are passed over.
    unmerged: &'a HashSet<Site>,
    known: &'a mut Vec<Option<Known>>,
    entries: &'a mut Vec<Entry>,
    open: &'a mut Vec<Open>,
    grew: &'a mut Vec<Meeting>,
    one_way: &'a mut HashSet<usize>,
    stretch: Stretch,
    /// The next step of the stretch.
    step: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        tree: &'a mut Tree,
        grow: bool,
        unmerged: &'a HashSet<Site>,
        notes: &'a mut Notes,
    ) -> Self {
        let Notes { known, entries, open, grew, one_way } = notes;
        known.clear();
        entries.clear();
        open.clear();
        grew.clear();
        // The function itself.
        entries.push(Entry { open: true, site: Location::caller() });
        let stretch = tree.root();
        Walk { tree, grow, unmerged, known, entries, open, grew, one_way, stretch, step: 0 }
    }

    /// Walks along the whole trace.
    pub(super) fn run(mut self, trace: &Trace<'_>) -> Result<(), Stop> {
        find_one_way(trace, self.one_way);
        while let Some(event) = trace.events.get(self.known.len()) {
            match event.role() {
                Role::ActiveInput | Role::InactiveInput => {
                    let value = self.tree.input(self.known.len());
                    self.note(value);
                }
                Role::Constant => {
                    let value = self.tree.constant(event.value().to_bits());
                    self.note(value);
                }
                Role::Apply => {
                    let args = self.operands(event)?;
                    let value = self.apply(event.op(), &args, event.site())?;
                    self.note(value);
                }
                Role::Guard => {
                    self.guard(event)?;
                    self.known.push(None);
                }
                Role::Enter => {
                    let index = self.known.len();
                    if !self.unmerged.contains(&event.site()) {
                        match self.one_way.contains(&index) {
                            false => self.enter(event.payload(), false, index, trace)?,
                            true => self.pass(event.site())?,
                        }
                    }
                    self.known.push(None);
                }
                Role::Iterate => self.iterate(trace)?,
                Role::Join => self.join(trace)?,
                // Behind a join or head, and dealt with there.
                Role::Phi | Role::State | Role::Opaque => self.known.push(None),
            }
        }
        self.finish(trace)
    }

    fn finish(&mut self, trace: &Trace<'_>) -> Result<(), Stop> {
        let at = || trace.events.last().map_or_else(unknown_place, |event| place(event.site()));
        if let Some(open) = self.open.first() {
            return Err(unmerge(self.entries[open.entry].site, Unmerge::NeverLeft));
        }
        let output = self.operand(trace.output, at)?;
        match &self.tree.stretches[self.stretch].end {
            End::Return(known) if self.at_end() && *known == output => Ok(()),
            End::Open => {
                self.must_grow(at)?;
                self.tree.stretches[self.stretch].end = End::Return(output);
                Ok(())
            }
            _ => Err(Stop::Divergent(at())),
        }
    }

    /// The next event stands for `value`.
    fn note(&mut self, value: Value) {
        let entry = self.open.last().map_or(0, |open| open.entry);
        self.known.push(Some(Known { value, entry }));
    }

    /// Whether all known steps of the stretch have been walked.
    fn at_end(&self) -> bool {
        self.step == self.tree.stretches[self.stretch].steps.len()
    }

    /// Whether no trace has come further than here.
    fn at_open_end(&self) -> bool {
        self.at_end() && self.tree.stretches[self.stretch].end == End::Open
    }

    fn must_grow(&mut self, at: impl FnOnce() -> Place) -> Result<(), Stop> {
        if !self.grow {
            return Err(Stop::New { at: at(), in_region: !self.open.is_empty() });
        }
        if let Some(open) = self.open.last_mut() {
            open.grew = true;
        }
        Ok(())
    }

    /// The step that the tree takes next.
    fn next_step(&mut self) -> Option<Step> {
        let step = self.tree.stretches[self.stretch].steps.get(self.step).copied();
        self.step += usize::from(step.is_some());
        step
    }

    fn push(&mut self, step: Step) {
        self.tree.stretches[self.stretch].steps.push(step);
        self.step += 1;
    }

    /// Applies a primitive: the known one, or a new one.
    fn apply(&mut self, op: Op, args: &[Value], site: Site) -> Result<Value, Stop> {
        if self.at_open_end() {
            self.must_grow(|| place(site))?;
            let value = self.tree.values.push(Origin::Apply(op, pad(args), site));
            self.push(Step::Value(value));
            return Ok(value);
        }
        match self.next_step() {
            Some(Step::Value(value)) if self.is(value, op, args) => Ok(value),
            _ => Err(Stop::Divergent(place(site))),
        }
    }

    fn is(&self, value: Value, op: Op, args: &[Value]) -> bool {
        matches!(self.tree.values[value], Origin::Apply(known, all, _)
            if known == op && all[..op.arity()] == *args)
    }

    fn guard(&mut self, event: &Event) -> Result<(), Stop> {
        let args = self.operands(event)?;
        let divergent = || Stop::Divergent(place(event.site()));
        loop {
            if self.at_open_end() {
                let condition = self.apply(event.op(), &args, event.site())?;
                self.push(Step::Guard { condition, expect: event.value() != 0.0 });
                return Ok(());
            }
            let Some(Step::Value(condition)) = self.next_step() else { return Err(divergent()) };
            // An escaped value that differs from the one seen before takes the
            // other side of that guard, and meets its own guard there.
            let same = self.is(condition, event.op(), &args);
            if !same && !self.escapes_same_value(condition, event.op(), &args) {
                return Err(divergent());
            }
            let outcome = same && event.value() != 0.0;
            let data = &self.tree.stretches[self.stretch];
            match (data.steps.get(self.step), &data.end) {
                (Some(&Step::Guard { condition: guarded, expect }), _) if guarded == condition => {
                    if expect == outcome {
                        self.step += 1;
                    } else {
                        self.must_grow(|| place(event.site()))?;
                        self.tree.splits += usize::from(self.open.is_empty());
                        self.stretch = self.tree.split(self.stretch, self.step, outcome);
                        self.step = 0;
                    }
                }
                (None, &End::Branch { condition: decided, then, otherwise })
                    if decided == condition =>
                {
                    self.stretch = if outcome { then } else { otherwise };
                    self.step = 0;
                }
                _ => return Err(divergent()),
            }
            if same {
                return Ok(());
            }
        }
    }

    /// Whether both guard the escape of one value, with different numbers.
    fn escapes_same_value(&self, condition: Value, op: Op, args: &[Value]) -> bool {
        matches!(self.tree.values[condition], Origin::Apply(Op::Same, known, _)
            if op == Op::Same && args.first() == Some(&known[0]))
    }

    /// Enters a region, or the body of a loop.
    fn enter(
        &mut self,
        id: u64,
        is_body: bool,
        event: usize,
        trace: &Trace<'_>,
    ) -> Result<(), Stop> {
        let (home, site) = (self.stretch, trace.events[event].site());
        let meeting = if self.at_open_end() {
            self.must_grow(|| place(site))?;
            let parent = self.open.last().map(|open| open.meeting);
            let meeting = self.tree.new_meeting(site, parent);
            let of_loop = self.open.last().is_some_and(|open| open.id == id);
            if let Some(around) = parent.filter(|_| is_body && of_loop) {
                self.tree.meetings[around].in_loop = true;
            }
            self.tree.meetings[meeting].in_loop = is_body;
            self.tree.set_end(home, End::Region { meeting, tails: SmallVec::new() });
            meeting
        } else {
            match self.tree.stretches[home].end {
                End::Region { meeting, .. }
                    if self.at_end() && self.tree.meetings[meeting].site == site =>
                {
                    meeting
                }
                _ => return Err(unmerge(site, Unmerge::Varies)),
            }
        };
        if !is_body {
            self.give(meeting, event, trace);
        }
        let entry = self.entries.len();
        self.entries.push(Entry { open: true, site });
        self.open.push(Open { id, is_body, meeting, home, entry, grew: false });
        (self.stretch, self.step) = (self.tree.meetings[meeting].root, 0);
        Ok(())
    }

    fn join(&mut self, trace: &Trace<'_>) -> Result<(), Stop> {
        let index = self.known.len();
        let (event, carried) = (&trace.events[index], carried(trace, index));
        self.known.push(None);
        match self.open.iter().position(|open| open.id == event.payload()) {
            Some(level) => self.leave(level, Target::Join, trace, event.site(), &carried),
            None => self.copies(trace, &carried),
        }
    }

    fn iterate(&mut self, trace: &Trace<'_>) -> Result<(), Stop> {
        let index = self.known.len();
        let (event, carried) = (&trace.events[index], carried(trace, index));
        self.known.push(None);
        let (id, site) = (event.payload(), event.site());
        match self.open.iter().position(|open| open.is_body && open.id == id) {
            Some(level) => self.leave(level, Target::Iterate, trace, site, &carried)?,
            None => self.copies(trace, &carried)?,
        }
        if self.unmerged.contains(&site) || self.one_way.contains(&index) {
            return Ok(());
        }
        self.enter(id, true, index, trace)?;
        if event.is_whole() && carried.opaque.is_none() {
            self.give_head(&carried);
        }
        Ok(())
    }

    /// Notes what the iteration that has just begun was given: where what is
    /// carried to the head of one loop is the same, so is what can come next.
    fn give_head(&mut self, carried: &Carried) {
        let Some(meeting) = self.open.last().map(|open| open.meeting) else { return };
        let mut captured = Vec::with_capacity(carried.phis.len());
        for &phi in &carried.phis {
            let Some(Known { value, .. }) = self.known[phi] else { return };
            // Others may stand for something else, too.
            if !matches!(self.tree.values[value], Origin::Carried | Origin::Apply(..)) {
                return;
            }
            captured.push(value);
        }
        let (of, state) = (self.tree.meetings[meeting].parent, carried.state.clone());
        self.give_to(meeting, Given { of, state, captured });
    }

    /// Passes over a region with only one way.
    fn pass(&mut self, site: Site) -> Result<(), Stop> {
        match self.tree.stretches[self.stretch].end {
            End::Region { meeting, .. }
                if self.at_end() && self.tree.meetings[meeting].site == site =>
            {
                Err(unmerge(site, Unmerge::Varies))
            }
            _ => Ok(()),
        }
    }

    /// Notes what the region that is being entered was given.
    fn give(&mut self, meeting: Meeting, event: usize, trace: &Trace<'_>) {
        let Some((key, captured)) = trace.captured(event) else { return };
        let values: Result<Vec<Value>, Stop> =
            captured.iter().map(|&operand| self.operand(operand, unknown_place)).collect();
        let Ok(captured) = values else { return };
        let state = SmallVec::from_slice(&[key]);
        self.give_to(meeting, Given { of: None, state, captured });
    }

    fn give_to(&mut self, meeting: Meeting, given: Given) {
        match &self.tree.meetings[meeting].given {
            Knowledge::Nothing => self.tree.meetings[meeting].given = Knowledge::Given(given),
            Knowledge::Given(before) if *before == given => {}
            // It depends on something that does not matter behind it, or that is
            // not seen; what others know must not be used here.
            Knowledge::Given(_) | Knowledge::Varying => {
                self.tree.meetings[meeting].given = Knowledge::Varying;
            }
        }
    }

    /// What is carried to a point where nothing is merged: equal to what it was.
    fn copies(&mut self, trace: &Trace<'_>, carried: &Carried) -> Result<(), Stop> {
        for index in self.known.len()..carried.end {
            let event = &trace.events[index];
            if event.role() != Role::Phi {
                self.known.push(None);
                continue;
            }
            let (operand, site) = (phi_operand(event), event.site());
            let value = match operand {
                Operand::Constant(value) => self.tree.constant(value.to_bits()),
                Operand::Event(_) => {
                    let value = self.operand(operand, || place(site))?;
                    let zero = self.tree.constant((-0.0f64).to_bits());
                    self.apply(Op::Add, &[value, zero], site)?
                }
            };
            self.note(value);
        }
        Ok(())
    }

    /// Leaves all open regions from number `level` on, for the point `target`
    /// of the outermost of them, with what is carried there.
    fn leave(
        &mut self,
        level: usize,
        target: Target,
        trace: &Trace<'_>,
        site: Site,
        carried: &Carried,
    ) -> Result<(), Stop> {
        let left = self.entries[self.open[level].entry].site;
        if let Some(opaque) = carried.opaque {
            let name = trace.opaque.iter().find(|(event, _)| *event as usize == opaque);
            let name = name.map_or("a variable", |(_, name)| name);
            return Err(unmerge(left, Unmerge::Opaque { name }));
        }
        let at = || place(site);
        let mut values: SmallVec<[Value; 4]> = SmallVec::new();
        for &phi in &carried.phis {
            values.push(self.operand(phi_operand(&trace.events[phi]), at)?);
        }
        // The outermost exit first, because the key of an inner one names it.
        let mut key = ExitKey { to: target, state: carried.state.clone(), carried: values.len() };
        let mut exits: SmallVec<[usize; 4]> = SmallVec::new();
        for level in level..self.open.len() {
            let meeting = self.open[level].meeting;
            let exit = match self.tree.find_exit(meeting, &key) {
                Some(exit) => exit,
                None => {
                    self.must_grow(at)?;
                    self.tree.new_exit(meeting, key)
                }
            };
            exits.push(exit);
            let state = SmallVec::new();
            key = ExitKey { to: Target::Outer(exit), state, carried: values.len() };
        }
        while let Some(exit) = exits.pop() {
            let Some(open) = self.open.pop() else { break };
            self.end_with(End::Exit { exit, values }, at)?;
            self.entries[open.entry].open = false;
            if open.grew {
                self.grew.push(open.meeting);
                if let Some(around) = self.open.last_mut() {
                    around.grew = true;
                }
            }
            (self.stretch, self.step) = (self.tail(&open, exit), 0);
            values = self.tree.meetings[open.meeting].exits[exit].carried.clone();
        }
        // After the exit each value is the φ of its own event.
        let mut values = values.into_iter();
        for index in self.known.len()..carried.end {
            let is_phi = trace.events[index].role() == Role::Phi;
            match if is_phi { values.next() } else { None } {
                Some(value) => self.note(value),
                None => self.known.push(None),
            }
        }
        Ok(())
    }

    /// The stretch ends here with `end`, as it always did.
    fn end_with(&mut self, end: End, at: impl FnOnce() -> Place) -> Result<(), Stop> {
        if self.at_open_end() {
            self.must_grow(at)?;
            self.tree.set_end(self.stretch, end);
        } else if !self.at_end() || self.tree.stretches[self.stretch].end != end {
            return Err(Stop::Divergent(at()));
        }
        Ok(())
    }

    /// Where it goes on after `open` is left by `exit`.
    fn tail(&mut self, open: &Open, exit: usize) -> Stretch {
        if let End::Region { tails, .. } = &self.tree.stretches[open.home].end
            && let Some(&tail) = tails.get(exit)
        {
            return tail;
        }
        // The exit is new, and the latest.
        let tail = self.tree.new_stretch();
        if let End::Region { tails, .. } = &mut self.tree.stretches[open.home].end {
            tails.push(tail);
        }
        tail
    }

    fn operands(&mut self, event: &Event) -> Result<SmallVec<[Value; MAX_ARITY]>, Stop> {
        event.operands().map(|operand| self.operand(operand, || place(event.site()))).collect()
    }

    fn operand(&mut self, operand: Operand, at: impl FnOnce() -> Place) -> Result<Value, Stop> {
        match operand {
            Operand::Constant(value) => Ok(self.tree.constant(value.to_bits())),
            Operand::Event(event) => match self.known.get(event as usize).copied().flatten() {
                Some(Known { entry, .. }) if !self.entries[entry].open => {
                    Err(unmerge(self.entries[entry].site, Unmerge::Escapes { to: at() }))
                }
                Some(Known { value, .. }) => Ok(value),
                None => Err(Stop::Divergent(at())),
            },
        }
    }
}

fn unmerge(site: Site, why: Unmerge) -> Stop {
    Stop::Unmerge(site, Unmerged { at: place(site), why })
}

fn phi_operand(event: &Event) -> Operand {
    event.operands().next().unwrap_or(Operand::Constant(event.value()))
}

/// Operands in the fixed array of [`Origin::Apply`].
fn pad(args: &[Value]) -> [Value; MAX_ARITY] {
    core::array::from_fn(|i| args.get(i).copied().unwrap_or(args[0]))
}
