//! The thread's recorder: the operators of `Var` append their events to it.
//!
//! The front is a ring of cells in thread-local storage, so that recording an operation is a few
//! loads and stores, in a function without a stack frame. The back takes the events of a full ring
//! and has the rest of the state. A Jacobian tape has a ring of its own (`jacobian`).
//!
//! [`Tracer::run`](super::Tracer::run) begins and ends recordings.

use core::cell::{Cell, RefCell};
use core::mem::ManuallyDrop;
use core::panic::Location;

use super::captures::Captures;
use super::custom_call::{CustomCall, OutputWord};
use super::event::{Kind, Step};
use super::inline::Inlining;
use super::jacobian::{self, JacobianTape};
use super::payload::Payload;
use super::run::CarriedName;
use super::stamp::{FOREIGN_STAMP, maker};
use super::store::Store;
use super::{Detail, Events, Operand, Role, Site, TraceError, Var};
use crate::custom::Custom;

/// Tag of a constant.
pub(super) const CONSTANT: u64 = 0;
/// Tag of a value that belongs to no recording.
pub(super) const FOREIGN: u64 = (FOREIGN_STAMP as u64) << 32;
/// The id in a tag.
pub(super) const ID: u64 = u32::MAX as u64;
/// The number of events in the ring.
const RING: usize = 128;

/// The part of the recorder that the operators touch.
#[derive(Clone, Copy)]
pub(super) struct Front<'a> {
    pub(super) cursor: &'a Cursor,
    pub(super) ring: &'a Ring,
}

/// The latest events as structure of arrays; event number `i` is in cell `i % RING`.
pub(super) struct Ring {
    values: [Cell<f64>; RING],
    pub(super) steps: [Cell<Step>; RING],
    sites: [Cell<Site>; RING],
}

/// The state of the recording that operators and marks change.
pub(super) struct Cursor {
    /// The tag of the next event: the stamp of the recording (high half) and
    /// the index of the event (low half).
    pub(super) next: Cell<u64>,
    /// The tag at which the ring is full.
    full: Cell<u64>,
    /// A hash of the guards passed and their outcomes.
    pub(super) signature: Cell<u64>,
    /// The number of regions entered.
    pub(super) regions: Cell<u32>,
    /// The number of guards passed since which paths have not joined.
    pub(super) unjoined: Cell<u32>,
    /// True if the latest end mark is followed by carried values.
    pub(super) carries: Cell<bool>,
    /// The amount of information recorded besides operations and guards.
    pub(super) detail: Cell<Detail>,
}

/// The part of the recorder behind the front.
pub(super) struct Back {
    /// The events that have been moved out of the ring.
    pub(super) events: Events,
    pub(super) store: Store,
    /// The entries that have been moved out of the ring of the Jacobian tape.
    pub(super) jacobian: JacobianTape,
    /// The names of opaque variables, by the indices of their events.
    pub(super) opaque: Vec<(u32, &'static str)>,
    /// The variables of static state, by the indices of its events.
    pub(super) states: Vec<(u32, CarriedName)>,
    /// The live-in values of regions.
    pub(super) captures: Captures,
    /// The calls of custom operations whose steps are kept, in order.
    pub(super) calls: Vec<CustomCall>,
    /// A custom operation has returned an error.
    pub(super) has_failed_call: bool,
    /// The number of inputs, which are the first events.
    pub(super) inputs: u32,
    pub(super) inlining: Inlining,
    pub(super) failure: Option<TraceError>,
}

/// The back of the running recording, if there is one, and that for the time without. It is large,
/// so recordings exchange pointers.
struct Backs {
    running: Option<Box<Back>>,
    idle: Back,
}

thread_local! {
    // None has a destructor, so that an access is one address computation. The vectors of the back
    // are moved out at the end of each recording, so nothing leaks when the thread ends.
    //
    // Cursor and ring are two variables: so the compiler knows that a store into the ring does not
    // alias the cursor, and keeps the cursor in a register between operations.
    static CURSOR: Cursor = const { Cursor::idle() };
    static LATEST: Ring = const { Ring::new() };
    static BACK: ManuallyDrop<RefCell<Backs>> =
        const { ManuallyDrop::new(RefCell::new(Backs { running: None, idle: Back::idle() })) };
}

#[inline(always)]
pub(super) fn with_front<R>(f: impl FnOnce(Front<'_>) -> R) -> R {
    CURSOR.with(|cursor| LATEST.with(|ring| f(Front { cursor, ring })))
}

pub(super) fn with_back<R>(f: impl FnOnce(&mut Back) -> R) -> R {
    BACK.with(|backs| {
        let Backs { running, idle } = &mut *backs.borrow_mut();
        f(running.as_deref_mut().unwrap_or(idle))
    })
}

/// Makes `running` the back of the running recording; returns the previous one.
pub(super) fn exchange_back(running: Option<Box<Back>>) -> Option<Box<Back>> {
    BACK.with(|backs| core::mem::replace(&mut backs.borrow_mut().running, running))
}

/// Appends an event with one or two operands, whose tags are `a` and `b`; an event with one operand
/// repeats it. Returns its tag, or `None` if an operand is not an event of this recording or there
/// is no room.
#[inline(always)]
pub(super) fn append_operation(
    value: f64,
    payload: Payload,
    a: u64,
    b: u64,
    kind: Kind,
    at: Site,
) -> Option<u64> {
    let step = Step { payload, first: a as u32, kind };
    with_front(|front| {
        let next = front.cursor.next.get();
        if (a ^ next | b ^ next) >> 32 != 0 || next == front.cursor.full.get() {
            return None;
        }
        front.ring.set(next, value, step, at);
        front.cursor.next.set(next + 1);
        Some(next)
    })
}

/// Records a call of `custom` with `x`, of which at least one is not a constant, and the outputs
/// `y`. Returns the tag of the first output.
pub(super) fn record_call(
    custom: &Custom,
    (x, y): (&[Var], &[f64]),
    saved: Vec<f64>,
    at: Site,
) -> u64 {
    with_front(|front| {
        with_back(|back| {
            let tags: Vec<u64> = x.iter().map(|var| var.tag()).collect();
            if !front.check_all(back, &tags, at) {
                return FOREIGN;
            }
            let signature = &front.cursor.signature;
            signature.set(mix(signature.get(), custom.id()));
            if jacobian::is_recording() {
                let x = x.iter().map(|x| (x.value, x.differential));
                return back.jacobian.record_call(custom, x, y, saved).unwrap_or(FOREIGN);
            }
            let tags: Vec<u64> = x
                .iter()
                .map(|var| match var.is_constant() {
                    true => {
                        front.push(back, var.value, Step::none(Role::Constant, Payload::NONE), at)
                    }
                    false => var.tag(),
                })
                .collect();
            let mut before = None;
            for (&tag, var) in tags.iter().zip(x) {
                let payload = Payload::second_operand(before.unwrap_or(tag));
                let step = Step { payload, first: tag as u32, kind: Kind::ARGUMENT };
                before = Some(front.push(back, var.value, step, at));
            }
            let (last, operation) = (before.unwrap_or(FOREIGN), custom.id());
            for (&value, number) in y.iter().zip(0..) {
                let word = OutputWord { operation, number }.encode();
                let payload = Payload::constant(word);
                front.push(
                    back,
                    value,
                    Step { payload, first: last as u32, kind: Kind::OUTPUT },
                    at,
                );
            }
            if !front.is_recording() {
                return FOREIGN;
            }
            let first = last + 1;
            let first_output = (first & ID) as usize;
            if back.store.keeps_steps(first_output..first_output + y.len()) {
                back.calls.push(CustomCall { custom: custom.clone(), first_output, saved });
            }
            first
        })
    })
}

/// Notes that a custom operation, or a recorded function inside this one, has returned an error.
#[cold]
pub(crate) fn note_failed_call() {
    with_back(|back| back.has_failed_call = true);
}

/// The tag of the event `number` places after that with `tag`.
pub(super) fn later(tag: u64, number: u32) -> u64 {
    if tag == FOREIGN { FOREIGN } else { tag + u64::from(number) }
}

/// Fails the run, if there is one.
#[cold]
pub(crate) fn fail(error: TraceError) {
    with_front(|front| {
        if front.is_recording() {
            with_back(|back| front.fail(back, error));
        }
    });
}

/// Appends an event if a recording runs. Returns its tag.
#[inline]
pub(super) fn append(value: f64, step: Step, at: Site) -> Option<u64> {
    with_front(|front| {
        let is_full = front.cursor.next.get() == front.cursor.full.get();
        (!is_full || has_room(at)).then(|| front.set_next(value, step, at))
    })
}

/// Makes room for an event at `at`; `false` if no recording runs.
#[cold]
#[inline(never)]
fn has_room(at: Site) -> bool {
    with_front(|front| with_back(|back| front.make_room(back, at)))
}

/// The site of the latest event; that of the recorded function before the first one.
#[inline]
pub(super) fn latest_site() -> Site {
    with_front(|front| front.latest_site())
}

/// The treatment of recorded functions that the running recording calls.
pub(super) fn inlining() -> Inlining {
    with_back(|back| back.inlining)
}

/// Calls `f` with all recorded functions inlined, and without marks: values computed inside regions
/// are used outside of them.
pub(super) fn inlined<T>(f: impl FnOnce() -> T) -> T {
    /// Restores the state also if `f` panics.
    struct Before(Inlining, Detail);
    impl Drop for Before {
        fn drop(&mut self) {
            with_back(|back| back.inlining = self.0);
            with_front(|front| front.cursor.detail.set(self.1));
        }
    }
    let inlining = with_back(|back| core::mem::replace(&mut back.inlining, Inlining::All));
    let detail = with_front(|front| front.cursor.detail.replace(Detail::Untracked));
    let _before = Before(inlining, detail);
    f()
}

/// The values and steps of the events from that with the tag `first` on; `None` if the recording
/// has failed, or is too long to have them.
pub(super) fn events_from(first: u64) -> Option<Vec<(f64, Step)>> {
    with_front(|front| {
        with_back(|back| {
            back.flush(front);
            let is_whole = back.store.is_whole() && back.failure.is_none();
            (front.records_events() && is_whole).then(|| {
                let (Events { values, steps, .. }, first) = (&back.events, (first & ID) as usize);
                let latest = values[first..].iter().zip(&steps[first..]);
                latest.map(|(&value, &step)| (value, step)).collect()
            })
        })
    })
}

/// Tests whether event number `index` is an input.
pub(super) fn is_input(index: u32) -> bool {
    with_back(|back| index < back.inputs)
}

/// Stores the name of the opaque variable recorded with this tag.
pub(super) fn name(tag: u64, name: &'static str) {
    with_back(|back| {
        if back.store.is_whole() {
            back.opaque.push((tag as u32, name));
        }
    });
}

/// Stores the variable whose static state was recorded with this tag.
pub(super) fn name_state(tag: u64, of: CarriedName) {
    with_back(|back| {
        if back.store.is_whole() {
            back.states.push((tag as u32, of));
        }
    });
}

/// A hash of the guards and the tag of the next event: `(guards, events)`.
#[inline]
pub(super) fn progress() -> (u64, u64) {
    with_front(|front| (front.cursor.signature.get(), front.next()))
}

/// The number of guards passed since which paths have not joined.
#[inline]
pub(super) fn unjoined() -> u32 {
    with_front(|front| front.cursor.unjoined.get())
}

/// Tests whether the latest end mark is followed by carried values.
#[inline]
pub(super) fn carries() -> bool {
    with_front(|front| front.cursor.carries.get())
}

/// Sets whether the latest mark is followed by carried values.
#[inline]
pub(super) fn set_carries(carries: bool) {
    with_front(|front| front.cursor.carries.set(carries));
}

/// Sets the number of guards passed since which paths have not joined.
#[inline]
pub(super) fn set_unjoined(unjoined: u32) {
    with_front(|front| front.cursor.unjoined.set(unjoined));
}

/// Tests whether live-in values are captured.
#[inline]
pub(super) fn captures() -> bool {
    with_front(|front| front.cursor.detail.get() == Detail::Captures && front.records_events())
}

/// Calls `keep` with the captures and the index of the latest event.
pub(super) fn capture(keep: impl FnOnce(&mut Captures, u32)) {
    with_front(|front| {
        let latest = (front.cursor.next.get() & ID).checked_sub(1);
        let Some(latest) = latest.filter(|_| front.is_recording()) else { return };
        with_back(|back| keep(&mut back.captures, latest as u32));
    });
}

/// An empty list for the operands of a capture.
pub(super) fn spare_operands() -> Vec<Operand> {
    with_back(|back| back.captures.take_spare())
}

/// The id for a new region; 0 if no marks are recorded.
#[inline]
pub(super) fn next_region() -> u32 {
    with_front(|front| {
        if front.cursor.detail.get() == Detail::Untracked || !front.records_events() {
            return 0;
        }
        let next = front.cursor.regions.get() + 1;
        front.cursor.regions.set(next);
        next
    })
}

/// Tests whether `tag` belongs to an event of this recording.
#[inline]
pub(super) fn is_own(tag: u64) -> bool {
    with_front(|front| front.records_events() && (tag ^ front.cursor.next.get()) >> 32 == 0)
}

impl Cursor {
    pub(super) const fn idle() -> Self {
        let (next, full) = (Cell::new(FOREIGN), Cell::new(FOREIGN));
        let (regions, unjoined) = (Cell::new(0), Cell::new(0));
        let (carries, detail) = (Cell::new(false), Cell::new(Detail::Marks));
        Cursor { next, full, signature: Cell::new(0), regions, unjoined, carries, detail }
    }

    /// Continues with the tag `next` and an empty ring; returns the former state.
    pub(super) fn restart(&self, next: u64) -> Cursor {
        let before = Cursor::idle();
        before.full.set(self.full.replace(next));
        before.next.set(self.next.replace(next));
        before.signature.set(self.signature.replace(0));
        before.regions.set(self.regions.replace(0));
        before.unjoined.set(self.unjoined.replace(0));
        before.carries.set(self.carries.replace(false));
        before.detail.set(self.detail.replace(Detail::Marks));
        before
    }
}

impl Ring {
    const fn new() -> Self {
        const NOWHERE: Site = Location::caller();
        Ring {
            values: [const { Cell::new(0.0) }; RING],
            steps: [const { Cell::new(Step::none(Role::Constant, Payload::NONE)) }; RING],
            sites: [const { Cell::new(NOWHERE) }; RING],
        }
    }

    /// Sets the event with the tag `next`.
    #[inline(always)]
    fn set(&self, next: u64, value: f64, step: Step, at: Site) {
        let cell = next as usize % RING;
        self.values[cell].set(value);
        self.steps[cell].set(step);
        self.sites[cell].set(at);
    }
}

impl Front<'_> {
    /// The site in the cell of the latest event.
    #[inline]
    pub(super) fn latest_site(self) -> Site {
        self.ring.sites[self.latest_cell()].get()
    }

    /// Sets the site in the cell of the latest event, which is not in the ring.
    pub(super) fn set_latest_site(self, site: Site) {
        self.ring.sites[self.latest_cell()].set(site);
    }

    #[inline]
    pub(super) fn latest_cell(self) -> usize {
        (self.cursor.next.get() & ID).wrapping_sub(1) as usize % RING
    }

    /// The tag of the next event or variable.
    #[inline]
    pub(super) fn next(self) -> u64 {
        match jacobian::next_variable() {
            FOREIGN => self.cursor.next.get(),
            next => next,
        }
    }

    #[inline]
    fn is_recording(self) -> bool {
        self.next() >> 32 != u64::from(FOREIGN_STAMP)
    }

    /// Tests whether an event tape is recorded.
    #[inline]
    pub(super) fn records_events(self) -> bool {
        self.cursor.next.get() >> 32 != u64::from(FOREIGN_STAMP)
    }

    /// Appends an event. Returns its tag.
    pub(super) fn push(self, back: &mut Back, value: f64, step: Step, at: Site) -> u64 {
        if self.make_room(back, at) { self.set_next(value, step, at) } else { FOREIGN }
    }

    /// Appends an event; the ring must have room. Returns its tag.
    #[inline]
    fn set_next(self, value: f64, step: Step, at: Site) -> u64 {
        let next = self.cursor.next.get();
        self.ring.set(next, value, step, at);
        self.cursor.next.set(next + 1);
        next
    }

    /// Makes room in the ring; `false` at the limit of events, or if no recording runs.
    fn make_room(self, back: &mut Back, at: Site) -> bool {
        if !self.records_events() {
            return false;
        }
        if self.cursor.next.get() != self.cursor.full.get() {
            return true;
        }
        back.flush(self);
        if (back.store.room() == 0 || back.failure.is_some()) && !self.keep_less(back, at) {
            return false;
        }
        // Up to the end of the ring at most, so that its events are contiguous.
        let room = back.store.room().min(RING - back.store.len() % RING);
        self.cursor.full.set(self.cursor.next.get() + room as u64);
        true
    }

    /// Continues a run beyond the events that are kept whole, or in the next window; `false` if it
    /// has failed.
    #[cold]
    #[inline(never)]
    fn keep_less(self, back: &mut Back, at: Site) -> bool {
        let failure = back.failure.or_else(|| back.store.keep_less(&mut back.events, at).err());
        if let Some(failure) = failure {
            self.fail(back, failure);
            return false;
        }
        // Their steps are dropped.
        back.calls.clear();
        if self.cursor.detail.get() == Detail::Captures {
            // A long run is not merged. Its events are the same without captures.
            self.cursor.detail.set(Detail::Marks);
            back.captures.clear();
        }
        true
    }

    /// Tests whether all operands are constants or belong to this recording. If not, the run fails.
    pub(super) fn check_all(self, back: &mut Back, operands: &[u64], used: Site) -> bool {
        let own = self.next() >> 32;
        let is_foreign = |tag: &u64| *tag != CONSTANT && *tag >> 32 != own;
        let mut foreign = operands.iter().filter(|tag| is_foreign(tag)).peekable();
        if foreign.peek().is_none() {
            return true;
        }
        let made = foreign.find_map(|tag| maker((tag >> 32) as u32));
        self.fail(back, TraceError::ForeignVar { used, made });
        false
    }

    /// Keeps the first failure. The run continues without recording, so that the user's code
    /// computes ordinary numbers; they are foreign to every recording.
    fn fail(self, back: &mut Back, failure: TraceError) {
        back.flush(self);
        back.failure.get_or_insert(failure);
        self.cursor.next.set(FOREIGN);
        self.cursor.full.set(FOREIGN);
        jacobian::restart(FOREIGN);
    }
}

impl Default for Back {
    fn default() -> Self {
        Back::idle()
    }
}

impl Back {
    const fn idle() -> Self {
        Back {
            events: Events::new(),
            store: Store::idle(),
            jacobian: JacobianTape::new(),
            opaque: Vec::new(),
            states: Vec::new(),
            captures: Captures::new(),
            calls: Vec::new(),
            has_failed_call: false,
            inputs: 0,
            inlining: Inlining::None,
            failure: None,
        }
    }

    /// Moves the events out of the ring. A difference from the run that this one repeats becomes
    /// its failure, at which the recording ends when it needs room.
    pub(super) fn flush(&mut self, front: Front<'_>) {
        self.jacobian.flush();
        let next = front.cursor.next.get();
        if next >> 32 != u64::from(FOREIGN_STAMP) {
            let first = self.store.len() % RING;
            let waiting = first..first + (next & ID) as usize - self.store.len();
            let Ring { values, steps, sites } = front.ring;
            let (values, steps) = (&values[waiting.clone()], &steps[waiting.clone()]);
            if let Err(failure) =
                self.store.extend(&mut self.events, values, steps, &sites[waiting])
            {
                self.failure.get_or_insert(failure);
            }
        }
    }
}

pub(super) fn mix(hash: u64, word: u64) -> u64 {
    // A multiplicative hash; the rotation lets high bits reach low ones.
    (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
