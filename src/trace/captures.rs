//! Captures: the live-in values of regions, in a table beside the events.

use super::{Operand, Trace};

/// The captures of one run, by the event that enters the region.
#[derive(Debug, Default)]
pub(super) struct Captures {
    /// In the order of the events; an event may have a second capture, for its jumps.
    captures: Vec<Capture>,
    operands: Vec<Operand>,
    /// The operands of the latest capture, for their memory.
    spare: Vec<Operand>,
}

/// One capture; its operands end where those of the next capture begin.
#[derive(Debug)]
struct Capture {
    event: u32,
    key: u64,
    first: usize,
}

impl Captures {
    pub(super) const fn new() -> Self {
        Captures { captures: Vec::new(), operands: Vec::new(), spare: Vec::new() }
    }

    pub(super) fn clear(&mut self) {
        self.captures.clear();
        self.operands.clear();
    }

    /// An empty list, in which operands are collected.
    pub(super) fn take_spare(&mut self) -> Vec<Operand> {
        core::mem::take(&mut self.spare)
    }

    /// Returns the list.
    pub(super) fn return_spare(&mut self, mut operands: Vec<Operand>) {
        operands.clear();
        self.spare = operands;
    }

    /// Adds the live-in values of the region that `event`, the latest event, enters.
    pub(super) fn push(&mut self, event: u32, key: u64, operands: &[Operand]) {
        if self.count(event) == 0 {
            self.add(event, key);
            self.operands.extend_from_slice(operands);
        }
    }

    /// Adds the jump capture of that region, if its first capture was added: the number of targets,
    /// the targets, the values.
    pub(super) fn push_for_jumps(
        &mut self,
        event: u32,
        key: u64,
        targets: &[u32],
        operands: &[Operand],
    ) {
        if self.count(event) == 1 {
            self.add(event, key);
            self.operands.push(Operand::Event(targets.len() as u32));
            self.operands.extend(targets.iter().map(|&target| Operand::Event(target)));
            self.operands.extend_from_slice(operands);
        }
    }

    /// The number of captures of the latest event.
    fn count(&self, event: u32) -> usize {
        self.captures.iter().rev().take_while(|capture| capture.event == event).count()
    }

    fn add(&mut self, event: u32, key: u64) {
        self.captures.push(Capture { event, key, first: self.operands.len() });
    }

    /// The number of captures and of their values.
    pub(super) fn size(&self) -> usize {
        self.captures.len() + self.operands.len()
    }

    pub(super) fn get(&self, event: usize) -> Option<(u64, &[Operand])> {
        self.at(self.first_of(event), event)
    }

    /// The index of the first capture of `event` or of a later one.
    fn first_of(&self, event: usize) -> usize {
        self.captures.partition_point(|capture| (capture.event as usize) < event)
    }

    /// Capture number `index`, if it is one of `event`.
    fn at(&self, index: usize, event: usize) -> Option<(u64, &[Operand])> {
        let capture = self.captures.get(index).filter(|capture| capture.event as usize == event)?;
        let end = self.captures.get(index + 1).map_or(self.operands.len(), |next| next.first);
        Some((capture.key, self.operands.get(capture.first..end)?))
    }
}

/// The live-in values of a region together with all values carried to the targets of jumps out of
/// it; see [`Trace::captured_for_jumps`].
#[derive(Clone, Copy, Debug)]
pub struct JumpCapture<'a> {
    /// The hash of the static state.
    pub key: u64,
    /// The regions to whose ends jumps lead: their ids, as [`Operand::Event`]s.
    pub targets: &'a [Operand],
    /// The traced values.
    pub operands: &'a [Operand],
}

impl<'a> JumpCapture<'a> {
    /// Decodes a jump capture.
    fn decoded((key, all): (u64, &'a [Operand])) -> Option<Self> {
        let (Operand::Event(count), rest) = all.split_first()? else { return None };
        let (targets, operands) = rest.split_at_checked(*count as usize)?;
        Some(JumpCapture { key, targets, operands })
    }
}

/// Both captures of an event.
pub(crate) struct EventCaptures<'a> {
    /// The hash of the static state, and the traced values.
    pub(crate) region: (u64, &'a [Operand]),
    pub(crate) jumps: Option<JumpCapture<'a>>,
}

impl Trace<'_> {
    /// The live-in values of the region that event number `event` enters, together with all values
    /// carried to the targets of jumps out of it. They determine what a jump carries, also on a
    /// path that this run does not take. `None` if nothing jumps out of the region, or if a value
    /// is not known.
    ///
    /// ```
    /// use std::panic::Location;
    ///
    /// use phigrad::internals::trace::{Detail, Inputs, Operand, Role, Tracer};
    /// use phigrad::{Var, traced};
    ///
    /// #[traced]
    /// fn sum(x: &[Var]) -> Var {
    ///     let mut sum = x[0] + x[1];
    ///     for x in x {
    ///         sum = sum * x;
    ///         if *x > 2.0 {
    ///             break;
    ///         }
    ///     }
    ///     sum
    /// }
    ///
    /// let mut tracer = Tracer::default();
    /// tracer.detail(Detail::Captures);
    /// let inputs = Inputs { active: &[2.0, 3.0], inactive: &[] };
    /// let trace = tracer.run(|x, _| sum(x), inputs, 100, Location::caller())?;
    /// let branch = trace.events.iter().rposition(|event| event.role() == Role::Enter);
    /// let branch = branch.expect("there are regions");
    /// let (_, numbers) = trace.captured(branch).expect("all is known");
    /// // The second input, and with it the product, which `break` carries.
    /// assert_eq!(numbers, [Operand::Event(1)]);
    /// let for_jumps = trace.captured_for_jumps(branch).expect("all is known");
    /// assert_eq!(for_jumps.operands.len(), 2);
    /// // Out of the loop, which is entered after the function.
    /// assert_eq!(for_jumps.targets, [Operand::Event(2)]);
    /// # Ok::<(), phigrad::internals::trace::TraceError>(())
    /// ```
    pub fn captured_for_jumps(&self, event: usize) -> Option<JumpCapture<'_>> {
        self.captures.at(self.captures.first_of(event) + 1, event).and_then(JumpCapture::decoded)
    }

    /// The captures of event number `event`. `next` is the index of a capture of an earlier event,
    /// or 0, and becomes that of the next one.
    pub(crate) fn captures_from(
        &self,
        next: &mut usize,
        event: usize,
    ) -> Option<EventCaptures<'_>> {
        let later = self.captures.captures.get(*next..)?;
        *next += later.iter().take_while(|capture| (capture.event as usize) < event).count();
        let region = self.captures.at(*next, event)?;
        let jumps = self.captures.at(*next + 1, event).and_then(JumpCapture::decoded);
        Some(EventCaptures { region, jumps })
    }
}
