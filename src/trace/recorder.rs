//! The thread's recorder: where the operators of `Var` append their events.
//!
//! A recording is entered and left by [`Tracer::run`]. Recordings nest: the
//! inner one puts the outer recorder aside and a guard puts it back, also when
//! the user's function panics.

use core::cell::{Cell, RefCell};
use core::mem::{self, ManuallyDrop};

use super::event::Form;
use super::{Event, Operand, Role, Site, TraceError, Var};
use crate::op::Op;

/// Stamp of no recording: a `Var` with it is a constant.
pub(super) const NO_STAMP: u32 = 0;
/// Stamp of a value computed from a `Var` outside its recording; never issued.
pub(super) const FOREIGN_STAMP: u32 = u32::MAX;
/// Set in the id of a `Var` that depends on no active input.
const INACTIVE: u64 = 1 << 31;
/// The id in a tag.
pub(super) const ID: u64 = INACTIVE - 1;
/// Ids have 31 bits.
const MAX_EVENTS: usize = (1 << 31) - 1;
/// Room for events that the first one makes.
const FIRST_ROOM: usize = 64;

thread_local! {
    // Without a destructor the access compiles to one address computation. The
    // vector inside is moved out at the end of each recording, so that nothing
    // is lost when the thread ends.
    static RECORDER: ManuallyDrop<RefCell<Recorder>> =
        const { ManuallyDrop::new(RefCell::new(Recorder::idle())) };
    static LAST_STAMP: Cell<u32> = const { Cell::new(NO_STAMP) };
    /// The most recent recordings of the thread, for the error message about a
    /// `Var` that outlived one of them.
    static RECENT: [Cell<Option<(u32, Site)>>; 16] = const { [const { Cell::new(None) }; 16] };
}

struct Recorder {
    /// The events of this run, then room left from earlier ones: writing into
    /// room costs one check, where a growing vector would need a slow path
    /// inside the fast one.
    events: Vec<Event>,
    len: usize,
    stamp: u32,
    limit: usize,
    /// A hash of the guards passed and their outcomes.
    signature: u64,
    failure: Option<TraceError>,
}

/// The parts of an event that are not its numbers.
struct Kind {
    first: u32,
    op: Op,
    form: Form,
    role: Role,
}

/// The outcome of one recorded run.
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    /// What happened, in order; the inputs come first, active before inactive.
    pub events: &'a [Event],
    /// How many active inputs there are.
    pub active: usize,
    /// How many inactive inputs there are.
    pub inactive: usize,
    /// What the function returned.
    pub output: Operand,
    /// Equal for runs of one function along the same path.
    pub signature: u64,
}

impl Trace<'_> {
    /// The value that the function returned.
    pub fn value(&self) -> f64 {
        match self.output {
            Operand::Constant(value) => value,
            Operand::Event(event) => self.events.get(event as usize).map_or(f64::NAN, Event::value),
        }
    }
}

/// The inputs of one recorded run.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// Inputs whose gradient may be asked for.
    pub active: &'a [f64],
    /// Inputs that need no gradient.
    pub inactive: &'a [f64],
}

/// Runs functions under the recorder, and keeps the buffers from one run to
/// the next.
#[derive(Debug, Default)]
pub struct Tracer {
    events: Vec<Event>,
    vars: Vec<Var>,
}

impl Tracer {
    /// Runs `f` on `inputs` and returns what it did.
    ///
    /// `made` is where the user recorded the function.
    ///
    /// # Errors
    ///
    /// [`TraceError::ForeignVar`] when `f` used or returned a `Var` of another
    /// recording; [`TraceError::TooLong`] when it did more than `limit` steps.
    ///
    /// # Panics
    ///
    /// Only when `f` does; the thread stays usable.
    pub fn run(
        &mut self,
        f: impl FnOnce(&[Var], &[Var]) -> Var,
        inputs: Inputs<'_>,
        limit: usize,
        made: Site,
    ) -> Result<Trace<'_>, TraceError> {
        let stamp = next_stamp(made);
        let events = mem::take(&mut self.events);
        let inputs_len = inputs.active.len().saturating_add(inputs.inactive.len());
        let limit = limit.saturating_add(inputs_len).min(MAX_EVENTS);
        let mut recorder = Recorder { events, len: 0, stamp, limit, signature: 0, failure: None };
        self.vars.clear();
        let roles = [(Role::ActiveInput, inputs.active), (Role::InactiveInput, inputs.inactive)];
        for (role, values) in roles {
            for &value in values {
                let tag = recorder.push_leaf(role, value, made);
                self.vars.push(Var::traced(value, tag));
            }
        }
        let session = Session::enter(recorder);
        let (active, inactive) = self.vars.split_at(inputs.active.len());
        let output = f(active, inactive);
        let mut recorder = session.leave();

        let operand = recorder.operand(output, made);
        self.events = recorder.events;
        if let Some(failure) = recorder.failure {
            return Err(failure);
        }
        let events = &self.events[..recorder.len];
        let end = match operand {
            Operand::Event(event) => u64::from(event),
            Operand::Constant(_) => u64::MAX,
        };
        let signature = mix(mix(recorder.signature, events.len() as u64), end);
        Ok(Trace {
            events,
            active: inputs.active.len(),
            inactive: inputs.inactive.len(),
            output: operand,
            signature,
        })
    }
}

/// The time during which a recorder is installed; puts the previous one back.
struct Session {
    previous: Option<Recorder>,
}

impl Session {
    fn enter(recorder: Recorder) -> Self {
        Session { previous: Some(RECORDER.with(|r| r.replace(recorder))) }
    }

    fn leave(mut self) -> Recorder {
        let previous = self.previous.take().unwrap_or(Recorder::idle());
        RECORDER.with(|r| r.replace(previous))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(previous) = self.previous.take() {
            drop(RECORDER.with(|r| r.replace(previous)));
        }
    }
}

/// Records an event with one or two operands by its parts. Returns the tag of
/// the result.
///
/// One copy of this serves all operators: arguments travel in registers, and
/// the user's code stays small.
#[inline]
pub(super) fn record(value: f64, payload: u64, a: u64, b: u64, op: Op, form: Form, at: Site) -> u64 {
    RECORDER.with(|recorder| record_in(recorder, value, payload, a, b, op, form, at))
}

/// The tags of the operands are `a` and `b`; an event with one operand repeats
/// it. The fast path is a leaf: whatever needs a call is in [`record_slowly`].
#[inline(never)]
#[allow(clippy::too_many_arguments)] // A struct would travel through memory.
fn record_in(
    cell: &RefCell<Recorder>,
    value: f64,
    payload: u64,
    a: u64,
    b: u64,
    op: Op,
    form: Form,
    at: Site,
) -> u64 {
    if let Ok(mut recorder) = cell.try_borrow_mut() {
        let stamp = u64::from(recorder.stamp);
        if a >> 32 == stamp && b >> 32 == stamp {
            let kind = Kind { first: id(a) as u32, op, form, role: Role::Apply };
            if let Some(tag) = recorder.push(value, payload, at, kind, a & b & INACTIVE) {
                return tag;
            }
        }
    }
    record_slowly(cell, value, payload, a, b, op, form, at)
}

#[cold]
#[inline(never)]
#[allow(clippy::too_many_arguments)]
fn record_slowly(
    cell: &RefCell<Recorder>,
    value: f64,
    payload: u64,
    a: u64,
    b: u64,
    op: Op,
    form: Form,
    at: Site,
) -> u64 {
    let mut recorder = cell.borrow_mut();
    let known = recorder.check(&[a, b], at) && recorder.grow(at);
    drop(recorder);
    if known { record_in(cell, value, payload, a, b, op, form, at) } else { tag(FOREIGN_STAMP, 0) }
}

/// Records `op` on three operands, of which at least one is not a constant.
/// Returns the tag of the result.
pub(super) fn record3(op: Op, value: f64, vars: [Var; 3], at: Site) -> u64 {
    RECORDER.with(|recorder| {
        let mut recorder = recorder.borrow_mut();
        let [a, b, c] = vars.map(|var| match var.is_constant() {
            true => recorder.push_leaf(Role::Constant, var.value, at),
            false => var.tag,
        });
        if !recorder.check(&[a, b, c], at) || !recorder.grow(at) {
            return tag(FOREIGN_STAMP, 0);
        }
        let kind = Kind { first: id(a) as u32, op, form: Form::Events, role: Role::Apply };
        let payload = id(b) | id(c) << 32;
        recorder.push(value, payload, at, kind, a & b & c & INACTIVE).unwrap_or(tag(FOREIGN_STAMP, 0))
    })
}

/// Turns the comparison that was just recorded into a guard.
pub(super) fn guard(outcome: bool) {
    RECORDER.with(|recorder| recorder.borrow_mut().turn_into_guard(outcome));
}

impl Recorder {
    const fn idle() -> Self {
        let (stamp, failure) = (FOREIGN_STAMP, None);
        Recorder { events: Vec::new(), len: 0, stamp, limit: 0, signature: 0, failure }
    }

    /// Appends an event if there is room. Returns its tag.
    ///
    /// The event is handed over in pieces and written in place: assembled
    /// first and copied then, it would have to travel through the stack.
    #[inline(always)]
    fn push(
        &mut self,
        value: f64,
        payload: u64,
        site: Site,
        kind: Kind,
        inactive: u64,
    ) -> Option<u64> {
        let index = self.len;
        let slot = self.events.get_mut(index)?;
        slot.value = value;
        slot.payload = payload;
        slot.site = site;
        slot.first = kind.first;
        slot.op = kind.op;
        slot.form = kind.form;
        slot.role = kind.role;
        slot.active = inactive == 0;
        self.len = index + 1;
        Some(tag(self.stamp, index as u64 | inactive))
    }

    fn push_leaf(&mut self, role: Role, value: f64, at: Site) -> u64 {
        let inactive = if role == Role::ActiveInput { 0 } else { INACTIVE };
        let kind = Kind { first: 0, op: Op::Add, form: Form::Events, role };
        match self.grow(at) {
            true => self.push(value, 0, at, kind, inactive).unwrap_or(tag(FOREIGN_STAMP, 0)),
            false => tag(FOREIGN_STAMP, 0),
        }
    }

    /// Makes sure that there is room for an event; `false` when the limit
    /// forbids it.
    fn grow(&mut self, at: Site) -> bool {
        let len = self.events.len();
        if self.len < len {
            return true;
        }
        let room = len.saturating_mul(2).max(FIRST_ROOM).min(self.limit);
        if room <= self.len {
            self.failure.get_or_insert(TraceError::TooLong { limit: self.limit, at });
            return false;
        }
        self.events.resize(room, Event::leaf(Role::Constant, 0.0, at));
        true
    }

    fn turn_into_guard(&mut self, outcome: bool) {
        if self.failure.is_some() {
            return;
        }
        let index = self.len as u64;
        if let Some(event) = self.events[..self.len].last_mut() {
            event.role = Role::Guard;
            event.active = false;
            self.signature =
                mix(mix(self.signature, index << 1 | u64::from(outcome)), event.payload);
        }
    }

    /// Whether all operands belong to this recording. If not, that is the
    /// failure of the run, unless there was one before. The run goes on without
    /// being recorded, so that the user's code sees ordinary numbers; what it
    /// computes then is foreign to every recording.
    fn check(&mut self, operands: &[u64], used: Site) -> bool {
        let foreign = |&stamp: &u32| stamp != self.stamp;
        let stamps = operands.iter().map(|tag| (tag >> 32) as u32);
        if !stamps.clone().any(|stamp| foreign(&stamp)) {
            return true;
        }
        let made = stamps.filter(foreign).find_map(maker);
        self.failure.get_or_insert(TraceError::ForeignVar { used, made });
        false
    }

    /// What `var`, returned by the function, stands for.
    fn operand(&mut self, var: Var, site: Site) -> Operand {
        if var.is_constant() {
            return Operand::Constant(var.value);
        }
        self.check(&[var.tag], site);
        Operand::Event(id(var.tag) as u32)
    }
}

fn tag(stamp: u32, id: u64) -> u64 {
    u64::from(stamp) << 32 | id
}

#[inline]
fn id(tag: u64) -> u64 {
    tag & ID
}

#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    // A multiplicative hash; the rotation lets high bits reach low ones.
    (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

fn next_stamp(made: Site) -> u32 {
    let stamp = match LAST_STAMP.get().wrapping_add(1) {
        NO_STAMP | FOREIGN_STAMP => 1,
        stamp => stamp,
    };
    LAST_STAMP.set(stamp);
    RECENT.with(|recent| recent[stamp as usize % recent.len()].set(Some((stamp, made))));
    stamp
}

/// Where the function was recorded that the recording with this stamp ran.
fn maker(stamp: u32) -> Option<Site> {
    RECENT
        .with(|recent| recent[stamp as usize % recent.len()].get())
        .filter(|&(recorded, _)| recorded == stamp)
        .map(|(_, made)| made)
}
