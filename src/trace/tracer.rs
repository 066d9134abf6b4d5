//! The tracer: begins a recording, runs the user's function, and takes the events.
//!
//! Recordings nest: an inner one saves the state of the outer one and restores it at its end, also
//! if the user's function panics.

use core::cell::Cell;
use core::fmt;
use core::ops::Range;

use super::custom_call::CustomCall;
use super::event::Step;
use super::inline::Inlining;
use super::jacobian::{self, JacobianRun};
use super::payload::Payload;
use super::recorder::{Back, Cursor, FOREIGN, exchange_back, mix, with_back, with_front};
use super::stamp::{has_events, next_stamp};
use super::store::{Extent, MAX_EVENTS, Store};
use super::{Events, Inputs, LongRun, Operand, Role, Run, RunLimits, Site, Trace, TraceError, Var};

thread_local! {
    /// The inputs of the latest run, for their memory. A `Var` must not leave its thread and a
    /// [`Tracer`] may, so they cannot be fields of it.
    static INPUTS: Cell<Vec<Var>> = const { Cell::new(Vec::new()) };
}

/// Runs functions under the recorder. The buffers are reused from run to run.
#[derive(Default)]
pub struct Tracer {
    /// The buffers; `None` before the first run, and after one that panicked.
    back: Option<Box<Back>>,
    detail: Detail,
    inlining: Inlining,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("detail", &self.detail).finish_non_exhaustive()
    }
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

    /// Sets the treatment of recorded functions that later runs call; by default each call is a
    /// node.
    pub(crate) fn inline(&mut self, inlining: Inlining) {
        self.inlining = inlining;
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
        let limits = RunLimits { whole: limit, call: limit, has_reverse_sweep: false };
        self.record(f, inputs, limits, made).map(|finished| self.trace(inputs, finished))
    }

    /// Runs `f` on `inputs` and returns the tape, or a [`LongRun`] if there are too many events to
    /// keep them whole.
    ///
    /// # Errors
    ///
    /// Those of [`Tracer::run`].
    pub fn run_within<'a>(
        &'a mut self,
        f: impl FnOnce(&[Var], &[Var]) -> Var,
        inputs: Inputs<'a>,
        limits: RunLimits,
        made: Site,
    ) -> Result<Run<'a>, TraceError> {
        let finished = self.record(f, inputs, limits, made)?;
        Ok(match finished.extent {
            Extent { beyond: None, .. } => Run::Whole(self.trace(inputs, finished)),
            Extent { beyond: Some(beyond), .. } => {
                Run::Long(LongRun::new(self, inputs, made, finished, beyond))
            }
        })
    }

    /// Runs `f` on `inputs` and returns the Jacobian tape; `None` if it has more than `limit`
    /// entries. Gradients of recorded functions inside are no operations of it.
    ///
    /// # Errors
    ///
    /// [`TraceError::ForeignVar`], as for [`Tracer::run`].
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
    /// use phigrad::internals::trace::{Adjoints, Inputs, Tracer};
    ///
    /// let mut tracer = Tracer::default();
    /// let inputs = Inputs { active: &[2.0, 3.0], inactive: &[5.0] };
    /// let f = |x: &[phigrad::Var], data: &[phigrad::Var]| (x[0].sqrt() * x[1] + 1.0) * data[0];
    /// let run = tracer.run_jacobian(f, inputs, 100, Location::caller())?.expect("it is short");
    /// // The two products.
    /// assert_eq!(run.entries(), 2);
    /// assert_eq!(run.sweep(&mut Adjoints::default())[1], 5.0 * 2.0f64.sqrt());
    /// # Ok::<(), phigrad::internals::trace::TraceError>(())
    /// ```
    pub fn run_jacobian(
        &mut self,
        f: impl FnOnce(&[Var], &[Var]) -> Var,
        inputs: Inputs<'_>,
        limit: usize,
        made: Site,
    ) -> Result<Option<JacobianRun<'_>>, TraceError> {
        let (active, count) = (inputs.active.len(), inputs.active.len() + inputs.inactive.len());
        if count >= MAX_EVENTS {
            return Ok(None);
        }
        let limit = limit.min(MAX_EVENTS - 1 - count);
        let back = self.back();
        back.jacobian.begin(count, limit);
        (back.has_failed_call, back.inlining) = (false, Inlining::None);
        let Ended { output, guards, .. } =
            self.call(f, inputs, next_stamp(made, false), Detail::Untracked, made);
        let back = &*self.back();
        if back.jacobian.is_exceeded {
            return Ok(None);
        }
        match back.failure {
            Some(failure) => Err(failure),
            None => Ok(Some(JacobianRun::new(back, active, output, guards))),
        }
    }

    /// The tape of a run that was kept whole.
    fn trace(&mut self, inputs: Inputs<'_>, finished: Finished) -> Trace<'_> {
        let back = &*self.back();
        Trace {
            events: &back.events,
            active: inputs.active.len(),
            inactive: inputs.inactive.len(),
            output: finished.output,
            opaque: &back.opaque,
            states: &back.states,
            captures: &back.captures,
            calls: &back.calls,
            has_failed_call: back.has_failed_call,
            signature: finished.signature,
        }
    }

    fn back(&mut self) -> &mut Back {
        self.back.get_or_insert_default()
    }

    /// The events and calls of the latest run.
    pub(super) fn recorded(&mut self) -> (&Events, &[CustomCall]) {
        let back = self.back();
        (&back.events, &back.calls)
    }

    fn record(
        &mut self,
        f: impl FnOnce(&[Var], &[Var]) -> Var,
        inputs: Inputs<'_>,
        limits: RunLimits,
        made: Site,
    ) -> Result<Finished, TraceError> {
        let count = inputs.active.len().saturating_add(inputs.inactive.len());
        if count > MAX_EVENTS {
            let (limit, name) = (MAX_EVENTS, "call_events");
            return Err(TraceError::TooLong { limit, name, at: made });
        }
        let is_untracked = self.detail == Detail::Untracked;
        let back = self.back();
        back.events.begin(is_untracked, made);
        for (role, values) in
            [(Role::ActiveInput, inputs.active), (Role::InactiveInput, inputs.inactive)]
        {
            back.events.extend_leaves(Step::none(role, Payload::NONE), values, made);
        }
        back.opaque.clear();
        back.states.clear();
        back.captures.clear();
        back.calls.clear();
        back.has_failed_call = false;
        self.run_into(Store::first(count, limits), f, inputs, self.detail, made)
    }

    /// Repeats the run of `len` events that is in the buffers, with the steps of the events in
    /// `window`.
    pub(super) fn repeat(
        &mut self,
        f: impl FnOnce(&[Var], &[Var]) -> Var,
        inputs: Inputs<'_>,
        len: usize,
        window: Range<usize>,
        made: Site,
    ) -> Result<Finished, TraceError> {
        let count = inputs.active.len() + inputs.inactive.len();
        self.back().calls.clear();
        let steps = &mut self.back().events.steps;
        steps.clear();
        steps.reserve(window.len());
        let store = Store::repeated(count, len, window);
        // The events are the same, without captures, as with them.
        self.run_into(store, f, inputs, self.detail.min(Detail::Marks), made)
    }

    /// Runs `f`, and keeps of its events what `store` says.
    fn run_into(
        &mut self,
        store: Store,
        f: impl FnOnce(&[Var], &[Var]) -> Var,
        inputs: Inputs<'_>,
        detail: Detail,
        made: Site,
    ) -> Result<Finished, TraceError> {
        let inlining = self.inlining;
        let back = self.back();
        (back.store, back.inlining) = (store, inlining);
        let stamp = next_stamp(made, true);
        let Ended { output: var, guards, latest } = self.call(f, inputs, stamp, detail, made);
        let back = self.back();
        let (extent, failure) = (back.store.extent(), back.failure);
        if let Some(failure) = failure {
            return Err(failure);
        }
        let output = var.into_operand();
        let end = match output {
            Operand::Event(event) => u64::from(event),
            // No event has this index.
            Operand::Constant(_) => u64::MAX,
        };
        let signature = mix(mix(guards, extent.len as u64), end);
        Ok(Finished { extent, output, value: var.value, signature, latest })
    }

    /// Runs `f` under the recording with this stamp, whose buffers have been prepared.
    fn call(
        &mut self,
        f: impl FnOnce(&[Var], &[Var]) -> Var,
        inputs: Inputs<'_>,
        stamp: u32,
        detail: Detail,
        made: Site,
    ) -> Ended {
        let mut vars = INPUTS.try_with(Cell::take).unwrap_or_default();
        vars.clear();
        // Variable 0 of a Jacobian tape is no input.
        let first_id = if has_events(stamp) { 0 } else { 1 };
        for values in [inputs.active, inputs.inactive] {
            let first = tag(stamp, first_id + vars.len() as u32);
            vars.extend(values.iter().zip(first..).map(|(&value, tag)| Var::traced(value, tag)));
        }
        let mut back = self.back.take().unwrap_or_default();
        (back.inputs, back.failure) = (first_id + vars.len() as u32, None);
        let session = Session::enter(back, stamp, detail, made);
        let (active, inactive) = vars.split_at(inputs.active.len());
        let output = f(active, inactive);
        with_front(|front| with_back(|back| front.check_all(back, &[output.tag()], made)));
        // If the thread is ending, the buffer is dropped.
        let _ = INPUTS.try_with(|inputs| inputs.set(vars));
        let (back, guards, latest) = session.end();
        self.back = Some(back);
        Ended { output, guards, latest }
    }
}

/// The end of a run of a function.
struct Ended {
    output: Var,
    /// A hash of the guards.
    guards: u64,
    /// The site of the last event.
    latest: Site,
}

/// The end of a run, without its events.
pub(super) struct Finished {
    pub(super) extent: Extent,
    pub(super) output: Operand,
    pub(super) value: f64,
    /// A hash of guards, number of events, and output.
    pub(super) signature: u64,
    /// The site of the last event.
    pub(super) latest: Site,
}

/// A running recording; restores the previous one when dropped.
struct Session {
    /// Its state, the tag of its next variable, and the site of its latest event.
    previous: Option<(Option<Box<Back>>, Cursor, u64, Site)>,
}

impl Session {
    /// Starts a recording whose first events, the inputs, are in `new`.
    fn enter(new: Box<Back>, stamp: u32, detail: Detail, made: Site) -> Self {
        with_front(|front| {
            with_back(|back| back.flush(front));
            let next = tag(stamp, new.inputs);
            let (event, variable) = match has_events(stamp) {
                true => (next, FOREIGN),
                false => (FOREIGN, next),
            };
            let previous = exchange_back(Some(new));
            let site = front.latest_site();
            let cursor = front.cursor.restart(event);
            let before = jacobian::restart(variable);
            front.set_latest_site(made);
            front.cursor.detail.set(detail);
            Session { previous: Some((previous, cursor, before, site)) }
        })
    }

    /// Ends the recording; returns its events, the hash of its guards, and the site of its last
    /// event.
    fn end(mut self) -> (Box<Back>, u64, Site) {
        with_front(|front| {
            with_back(|back| back.flush(front));
            let (guards, latest) = (front.cursor.signature.get(), front.latest_site());
            (self.restore().unwrap_or_default(), guards, latest)
        })
    }

    /// Restores the previous recording; returns this one.
    fn restore(&mut self) -> Option<Box<Back>> {
        let (previous, cursor, variable, site) = self.previous.take()?;
        with_front(|front| {
            // Its ring was flushed when this recording began.
            jacobian::restart(variable);
            front.cursor.restart(cursor.next.get());
            front.set_latest_site(site);
            front.cursor.signature.set(cursor.signature.get());
            front.cursor.regions.set(cursor.regions.get());
            front.cursor.unjoined.set(cursor.unjoined.get());
            front.cursor.carries.set(cursor.carries.get());
            front.cursor.detail.set(cursor.detail.get());
        });
        exchange_back(previous)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.restore());
    }
}

fn tag(stamp: u32, id: u32) -> u64 {
    u64::from(stamp) << 32 | u64::from(id)
}
