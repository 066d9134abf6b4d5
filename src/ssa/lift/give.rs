//! What is known of regions while they are walked through: what they were given,
//! on which it rests that they share their sides.

use smallvec::SmallVec;

use super::notes::{Carried, Known};
use super::tree::{Given, Knowledge, Meeting, MeetingData, Origin, Value};
use super::unknown_place;
use super::walk::{Stop, Walk};
use crate::trace::{ForJumps, Operand, Trace};

impl Walk<'_> {
    /// Notes what the region that is being entered was given.
    pub(super) fn give(
        &mut self,
        meeting: Meeting,
        event: usize,
        trace: &Trace<'_>,
    ) -> Result<(), Stop> {
        let Some((key, captured)) = trace.captured(event) else { return Ok(()) };
        let values: Result<Vec<Value>, Stop> =
            captured.iter().map(|&operand| self.operand(operand, unknown_place)).collect();
        let state = SmallVec::from_slice(&[key]);
        let given = values.ok().map(|captured| Given { of: None, state, captured });
        let jumps = trace.captured_for_jumps(event);
        self.give_to(meeting, given, |data| &mut data.given)?;
        let Some(ForJumps { key, goals, operands }) = jumps else { return Ok(()) };
        let values: Result<Vec<Value>, Stop> =
            operands.iter().map(|&operand| self.operand(operand, unknown_place)).collect();
        let state = SmallVec::from_slice(&[key]);
        let given = values.ok().map(|captured| Given { of: None, state, captured });
        let goal = |operand: &Operand| match *operand {
            Operand::Event(id) => self.opened(u64::from(id)),
            Operand::Constant(_) => None,
        };
        let goals: SmallVec<[Option<Meeting>; 1]> = goals.iter().map(goal).collect();
        self.tree.meetings[meeting].goals = goals;
        self.give_to(meeting, given, |data| &mut data.for_jumps)
    }

    /// The meeting of the region with this number, which is open.
    fn opened(&self, id: u64) -> Option<Meeting> {
        let open = self.open.iter().find(|open| open.id == id && !open.is_body);
        open.map(|open| open.meeting)
    }

    /// Notes what the iteration that has just begun was given: where what is
    /// carried to the head of one loop is the same, so is what can come next.
    pub(super) fn give_head(&mut self, carried: &Carried) -> Result<(), Stop> {
        let Some(meeting) = self.open.last().map(|open| open.meeting) else { return Ok(()) };
        let mut captured = Vec::with_capacity(carried.phis.len());
        for &phi in &carried.phis {
            let Some(Known { value, .. }) = self.known.get(phi) else { return Ok(()) };
            // Others may stand for something else, too.
            if !matches!(
                self.tree.values[value],
                Origin::Carried | Origin::Apply(..) | Origin::Repeated
            ) {
                return Ok(());
            }
            captured.push(value);
        }
        let (of, state) = (self.tree.meetings[meeting].parent, carried.state.clone());
        let given = Some(Given { of, state, captured });
        self.give_to(meeting, given, |data| &mut data.given)
    }

    /// Notes what `meeting` was given; `None` is what the tree has no value for.
    fn give_to(
        &mut self,
        meeting: Meeting,
        given: Option<Given>,
        knowledge: impl FnOnce(&mut MeetingData) -> &mut Knowledge,
    ) -> Result<(), Stop> {
        let data = &mut self.tree.meetings[meeting];
        let (site, is_shared) = (data.site, data.is_shared);
        let known = knowledge(data);
        match (&*known, given) {
            (Knowledge::Nothing, Some(given)) => *known = Knowledge::Given(given),
            (Knowledge::Given(before), Some(given)) if *before == given => {}
            // It depends on something that does not matter behind it, or that is
            // not seen; what others know must not be used here.
            _ => {
                *known = Knowledge::Varying;
                if is_shared {
                    return Err(Stop::Unshare(site));
                }
            }
        }
        Ok(())
    }
}
