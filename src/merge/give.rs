//! Live-in values of regions and iterations, as far as the walks have seen them: two instances
//! share paths only if their live-in values correspond.

use smallvec::SmallVec;

use super::notes::Carried;
use super::tree::{Instance, Knowledge, LiveIn, Origin, Value};
use super::walk::{Stop, Walk};
use crate::trace::{ForJumps, Operand, Trace};

/// What live-in values determine.
#[derive(Clone, Copy)]
enum About {
    /// The whole region.
    All,
    /// The values carried by its jumps.
    Jumps,
}

impl Walk<'_> {
    /// Notes the live-in values of the region that is being entered.
    pub(super) fn give(
        &mut self,
        instance: Instance,
        event: usize,
        trace: &Trace<'_>,
    ) -> Result<(), Stop> {
        let Some((key, captured)) = trace.captured(event) else { return Ok(()) };
        let jumps = trace.captured_for_jumps(event);
        self.give_operands(instance, key, captured, About::All)?;
        let Some(ForJumps { key, goals, operands }) = jumps else { return Ok(()) };
        let goal = |operand: &Operand| match *operand {
            Operand::Event(id) => self.opened(u64::from(id)),
            Operand::Constant(_) => None,
        };
        if !goals.iter().map(goal).eq(self.tree.instances[instance].goals.iter().copied()) {
            let goals: SmallVec<[Option<Instance>; 1]> = goals.iter().map(goal).collect();
            self.tree.instances[instance].goals = goals;
        }
        self.give_operands(instance, key, operands, About::Jumps)
    }

    /// Notes live-in values of `instance`: these operands, and static state with this hash.
    fn give_operands(
        &mut self,
        instance: Instance,
        key: u64,
        operands: &[Operand],
        about: About,
    ) -> Result<(), Stop> {
        let mut captured = core::mem::take(self.captured);
        captured.clear();
        for &operand in operands {
            captured.extend(match operand {
                Operand::Constant(value) => Some(self.tree.constant(value.to_bits())),
                Operand::Event(event) => self.visible(event as usize),
            });
        }
        let live_in = (captured.len() == operands.len()).then_some(&captured[..]);
        let result = self.give_to(instance, None, &[key], live_in, about);
        *self.captured = captured;
        result
    }

    /// The instance of the open region with this id.
    fn opened(&self, id: u64) -> Option<Instance> {
        let open = self.open.iter().find(|open| open.id == id && !open.is_body);
        open.map(|open| open.instance)
    }

    /// Notes the live-in values of the iteration that has just begun: the values carried to the
    /// loop head determine how the loop continues.
    pub(super) fn give_head(&mut self, carried: &Carried) -> Result<(), Stop> {
        let Some(instance) = self.open.last().map(|open| open.instance) else { return Ok(()) };
        let mut captured = core::mem::take(self.captured);
        captured.clear();
        for &phi in &carried.phis {
            // Other values may have further meanings.
            captured.extend(self.known.get(phi).map(|known| known.value).filter(|&value| {
                matches!(
                    self.tree.values[value],
                    Origin::Carried | Origin::Apply(..) | Origin::Repeated
                )
            }));
        }
        let mut result = Ok(());
        if captured.len() == carried.phis.len() {
            let of = self.tree.instances[instance].parent;
            let live_in = Some(&captured[..]);
            result = self.give_to(instance, of, &carried.state, live_in, About::All);
        }
        *self.captured = captured;
        result
    }

    /// Notes the live-in values of `instance`, a region or an iteration of loop `of`. `captured` is
    /// `None` if the tree has no value for one of them.
    fn give_to(
        &mut self,
        instance: Instance,
        of: Option<Instance>,
        state: &[u64],
        captured: Option<&[Value]>,
        about: About,
    ) -> Result<(), Stop> {
        let data = &self.tree.instances[instance];
        let (site, is_shared) = (data.site, data.is_shared);
        let before = match about {
            About::All => &data.live_in,
            About::Jumps => &data.for_jumps,
        };
        match (before, captured) {
            (Knowledge::LiveIn(before), Some(captured)) if before.is(of, state, captured) => {}
            (Knowledge::Nothing, Some(captured)) => {
                let (state, captured) = (SmallVec::from_slice(state), captured.to_vec());
                let live_in = Knowledge::LiveIn(LiveIn { of, state, captured });
                self.note_given(instance, about, live_in);
            }
            // It depends on something that is dead after it or that was not captured; paths of
            // other instances must not be used here.
            _ => {
                if !matches!(before, Knowledge::Varying) {
                    self.note_given(instance, about, Knowledge::Varying);
                }
                if is_shared {
                    return Err(Stop::Unshare(site));
                }
            }
        }
        Ok(())
    }

    fn note_given(&mut self, instance: Instance, about: About, live_in: Knowledge) {
        let data = &mut self.tree.instances[instance];
        match about {
            About::All => data.live_in = live_in,
            About::Jumps => data.for_jumps = live_in,
        }
    }
}
