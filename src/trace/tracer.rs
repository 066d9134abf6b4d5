//! The tracer: begins a recording, runs the user's function, and takes the events.
//!
//! Recordings nest: an inner one saves the state of the outer one and restores it at its end, also
//! if the user's function panics.

use core::cell::Cell;
use core::mem;

use super::captures::Captures;
use super::event::Step;
use super::payload::Payload;
use super::recorder::{Back, Cursor, mix, with_back, with_front};
use super::run::CarriedName;
use super::stamp::next_stamp;
use super::{Events, Inputs, Operand, Role, Site, Trace, TraceError, Var};

/// Fewer than there are ids, so that counting events never changes the stamp.
const MAX_EVENTS: usize = i32::MAX as usize;

thread_local! {
    /// The inputs of the latest run, for their memory. A `Var` must not leave its thread and a
    /// [`Tracer`] may, so they cannot be fields of it.
    static INPUTS: Cell<Vec<Var>> = const { Cell::new(Vec::new()) };
}

/// Runs functions under the recorder. The buffers are reused from run to run.
#[derive(Debug, Default)]
pub struct Tracer {
    events: Events,
    opaque: Vec<(u32, &'static str)>,
    states: Vec<(u32, CarriedName)>,
    captures: Captures,
    detail: Detail,
}

/// The amount of information that a run records besides the operations and guards, which suffice
/// for the gradient.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Nothing: no marks of annotated functions and no sites; all events have the site at which the
    /// function was recorded.
    Untracked,
    /// Marks and sites.
    #[default]
    Marks,
    /// Marks, sites, and the live-in values of the regions of annotated functions, for
    /// [`Trace::captured`]; the events are those of [`Detail::Marks`].
    Captures,
}

impl Tracer {
    /// Sets what later runs record; [`Detail::Marks`] by default.
    ///
    /// ```
    /// use std::panic::Location;
    ///
    /// use phigrad::internals::trace::{Detail, Inputs, Tracer};
    ///
    /// #[phigrad::traced]
    /// fn same(x: &[phigrad::Var]) -> phigrad::Var {
    ///     x[0]
    /// }
    ///
    /// let inputs = Inputs { active: &[1.0], inactive: &[] };
    /// let mut tracer = Tracer::default();
    /// for (detail, events) in [(Detail::Untracked, 1), (Detail::Marks, 3), (Detail::Captures, 3)] {
    ///     tracer.detail(detail);
    ///     let trace = tracer.run(|x, _| same(x), inputs, 100, Location::caller())?;
    ///     assert_eq!(trace.events.len(), events);
    ///     // The input is event 0, and event 1 enters the function.
    ///     assert_eq!(trace.captured(1).is_some(), detail == Detail::Captures);
    /// }
    /// # Ok::<(), phigrad::internals::trace::TraceError>(())
    /// ```
    pub fn detail(&mut self, detail: Detail) {
        self.detail = detail;
    }

    /// Runs `f` on `inputs` and returns the tape.
    ///
    /// `made` is the place where the user recorded the function. `limit` counts events without the
    /// inputs.
    ///
    /// # Errors
    ///
    /// [`TraceError::ForeignVar`] if `f` used or returned a `Var` of another recording;
    /// [`TraceError::TooLong`] if it recorded more than `limit` events.
    ///
    /// # Panics
    ///
    /// Only if `f` does; the thread stays usable.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::panic::Location;
    ///
    /// use phigrad::internals::op::Op;
    /// use phigrad::internals::trace::{Adjoints, Inputs, Tracer, sweep};
    ///
    /// let mut tracer = Tracer::default();
    /// let inputs = Inputs { active: &[2.0, 3.0], inactive: &[5.0] };
    /// let trace = tracer.run(|x, data| x[0] * x[1] + data[0], inputs, 100, Location::caller())?;
    /// assert_eq!(trace.value(), 11.0);
    /// let ops: Vec<Op> = trace.events.iter().skip(3).map(|event| event.op()).collect();
    /// assert_eq!(ops, [Op::Mul, Op::Add]);
    /// assert_eq!(sweep(&trace, &mut Adjoints::default()), [3.0, 2.0]);
    /// # Ok::<(), phigrad::internals::trace::TraceError>(())
    /// ```
    pub fn run(
        &mut self,
        f: impl FnOnce(&[Var], &[Var]) -> Var,
        inputs: Inputs<'_>,
        limit: usize,
        made: Site,
    ) -> Result<Trace<'_>, TraceError> {
        let count = inputs.active.len().saturating_add(inputs.inactive.len());
        let limit = limit.saturating_add(count);
        if count > MAX_EVENTS {
            return Err(TraceError::TooLong { limit: MAX_EVENTS, at: made });
        }
        let stamp = next_stamp(made);
        self.events.begin(self.detail == Detail::Untracked, made);
        let mut vars = INPUTS.try_with(Cell::take).unwrap_or_default();
        vars.clear();
        for (role, values) in
            [(Role::ActiveInput, inputs.active), (Role::InactiveInput, inputs.inactive)]
        {
            let first = self.events.len() as u32;
            let ids = first..first + values.len() as u32;
            vars.extend(
                values.iter().zip(ids).map(|(&value, id)| Var::traced(value, tag(stamp, id))),
            );
            self.events.extend_leaves(Step::none(role, Payload::NONE), values, made);
        }
        self.opaque.clear();
        self.states.clear();
        self.captures.clear();
        let back = Back {
            inputs: self.events.len() as u32,
            events: mem::take(&mut self.events),
            opaque: mem::take(&mut self.opaque),
            states: mem::take(&mut self.states),
            captures: mem::take(&mut self.captures),
            limit: limit.min(MAX_EVENTS),
            failure: None,
        };
        let session = Session::enter(back, stamp, self.detail, made);
        let (active, inactive) = vars.split_at(inputs.active.len());
        let output = f(active, inactive);
        let operand = operand(output, stamp, made);
        // If the thread is ending, the buffer is dropped.
        let _ = INPUTS.try_with(|inputs| inputs.set(vars));
        let (back, signature) = session.end();

        (self.events, self.captures) = (back.events, back.captures);
        (self.opaque, self.states) = (back.opaque, back.states);
        match back.failure {
            // The inputs do not count.
            Some(TraceError::TooLong { limit, at }) => {
                return Err(TraceError::TooLong { limit: limit - count, at });
            }
            Some(failure) => return Err(failure),
            None => {}
        }
        let end = match operand {
            Operand::Event(event) => u64::from(event),
            // No event has this index.
            Operand::Constant(_) => u64::MAX,
        };
        Ok(Trace {
            events: &self.events,
            active: inputs.active.len(),
            inactive: inputs.inactive.len(),
            output: operand,
            opaque: &self.opaque,
            states: &self.states,
            captures: &self.captures,
            signature: mix(mix(signature, self.events.len() as u64), end),
        })
    }
}

/// A running recording; restores the previous one when dropped.
struct Session {
    /// Its state, and the site of its latest event.
    previous: Option<(Back, Cursor, Site)>,
}

impl Session {
    /// Starts a recording whose first events, the inputs, are in `new`.
    fn enter(new: Back, stamp: u32, detail: Detail, made: Site) -> Self {
        with_front(|front| {
            with_back(|back| {
                back.flush(front);
                let next = tag(stamp, new.inputs);
                let previous = mem::replace(back, new);
                let site = front.latest_site();
                let cursor = front.cursor.restart(next);
                front.set_latest_site(made);
                front.cursor.detail.set(detail);
                Session { previous: Some((previous, cursor, site)) }
            })
        })
    }

    /// Ends the recording; returns its events and its signature.
    fn end(mut self) -> (Back, u64) {
        with_front(|front| {
            with_back(|back| back.flush(front));
            let signature = front.cursor.signature.get();
            (self.restore().unwrap_or(Back::idle()), signature)
        })
    }

    /// Restores the previous recording; returns this one.
    fn restore(&mut self) -> Option<Back> {
        let (previous, cursor, site) = self.previous.take()?;
        with_front(|front| {
            // Its ring was flushed when this recording began.
            front.cursor.restart(cursor.next.get());
            front.set_latest_site(site);
            front.cursor.signature.set(cursor.signature.get());
            front.cursor.regions.set(cursor.regions.get());
            front.cursor.unjoined.set(cursor.unjoined.get());
            front.cursor.carries.set(cursor.carries.get());
            front.cursor.detail.set(cursor.detail.get());
        });
        Some(with_back(|back| mem::replace(back, previous)))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.restore());
    }
}

/// The operand for `var`, which the function returned.
fn operand(var: Var, stamp: u32, made: Site) -> Operand {
    if var.is_constant() {
        return Operand::Constant(var.value);
    }
    if var.tag >> 32 != u64::from(stamp) {
        with_front(|front| {
            with_back(|back| front.check(back, &[var.tag], made));
        });
    }
    Operand::Event(var.tag as u32)
}

fn tag(stamp: u32, id: u32) -> u64 {
    u64::from(stamp) << 32 | u64::from(id)
}
