//! Captures: the live-in values of regions, in a table beside the events.

use super::{Operand, Trace};

/// The captures of one run, by the event that enters the region.
#[derive(Debug, Default)]
pub(super) struct Captures {
    /// In the order of the events; an event may have a second capture, for its jumps.
    captures: Vec<Capture>,
    operands: Vec<Operand>,
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
        Captures { captures: Vec::new(), operands: Vec::new() }
    }

    pub(super) fn clear(&mut self) {
        self.captures.clear();
        self.operands.clear();
    }

    /// Adds the live-in values of the region that `event`, the latest event, enters.
    pub(super) fn push(&mut self, event: u32, key: u64, operands: &[Operand]) {
        if self.count(event) == 0 {
            self.add(event, key, operands);
        }
    }

    /// Adds the jump capture of that region, if its first capture was added.
    pub(super) fn push_for_jumps(&mut self, event: u32, key: u64, operands: &[Operand]) {
        if self.count(event) == 1 {
            self.add(event, key, operands);
        }
    }

    /// The number of captures of the latest event.
    fn count(&self, event: u32) -> usize {
        self.captures.iter().rev().take_while(|capture| capture.event == event).count()
    }

    fn add(&mut self, event: u32, key: u64, operands: &[Operand]) {
        self.captures.push(Capture { event, key, first: self.operands.len() });
        self.operands.extend_from_slice(operands);
    }

    /// The number of captures and of their values.
    pub(super) fn size(&self) -> usize {
        self.captures.len() + self.operands.len()
    }

    pub(super) fn get(&self, event: usize) -> Option<(u64, &[Operand])> {
        self.nth(event, 0)
    }

    /// Capture number `number` of `event`.
    fn nth(&self, event: usize, number: usize) -> Option<(u64, &[Operand])> {
        let first = self.captures.partition_point(|capture| (capture.event as usize) < event);
        let index = first + number;
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

/// Encodes a jump capture: the number of targets, the targets, the values.
pub(super) fn for_jumps(targets: &[u32], operands: &[Operand]) -> Vec<Operand> {
    let count = Operand::Event(targets.len() as u32);
    let targets = targets.iter().map(|&target| Operand::Event(target));
    core::iter::once(count).chain(targets).chain(operands.iter().copied()).collect()
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
        let (key, all) = self.captures.nth(event, 1)?;
        let (Operand::Event(count), rest) = all.split_first()? else { return None };
        let (targets, operands) = rest.split_at_checked(*count as usize)?;
        Some(JumpCapture { key, targets, operands })
    }
}
