//! Live-in values of regions and iterations, as far as the walks have seen them: two instances
//! share paths only if their live-in values correspond.

use smallvec::SmallVec;

use super::tree::{Instance, LiveIn, LiveInState, Origin, Value};
use super::walk::{Mismatch, Walk, Walked};
use crate::trace::{EventCaptures, JumpCapture, Operand, StateWord, Trace};

/// The code whose live-in values a capture has.
#[derive(Clone, Copy)]
enum CaptureScope {
    /// The whole region.
    Region,
    /// The values carried by its jumps.
    Jumps,
}

impl Walk<'_> {
    /// Notes the live-in values of the region that is being entered.
    pub(super) fn note_live_in(
        &mut self,
        instance: Instance,
        event: usize,
        trace: &Trace<'_>,
    ) -> Walked {
        let Some(captures) = trace.captures_from(&mut self.next_capture, event) else {
            return Ok(());
        };
        let EventCaptures { region: (key, captured), jumps } = captures;
        self.note_operands(instance, key, captured, CaptureScope::Region)?;
        let Some(JumpCapture { key, targets, operands }) = jumps else { return Ok(()) };
        let target = |operand: &Operand| match *operand {
            Operand::Event(id) => self.open_instance(u64::from(id)),
            Operand::Constant(_) => None,
        };
        if !targets
            .iter()
            .map(target)
            .eq(self.tree.instances[instance].jump_targets.iter().copied())
        {
            let targets: SmallVec<[Option<Instance>; 1]> = targets.iter().map(target).collect();
            self.tree.instances[instance].jump_targets = targets;
        }
        self.note_operands(instance, key, operands, CaptureScope::Jumps)
    }

    /// Notes live-in values of `instance`: these operands, and static state with this hash.
    fn note_operands(
        &mut self,
        instance: Instance,
        key: u64,
        operands: &[Operand],
        scope: CaptureScope,
    ) -> Walked {
        if self.is_known(instance, key, operands, scope) {
            return Ok(());
        }
        let mut captured = core::mem::take(self.captured);
        captured.clear();
        for &operand in operands {
            captured.extend(match operand {
                Operand::Constant(value) => Some(self.tree.constant(value.to_bits())),
                Operand::Event(event) => self.visible(event as usize),
            });
        }
        let live_in = (captured.len() == operands.len()).then_some(&captured[..]);
        let result = self.note_live_in_of(instance, None, &[StateWord::Bits(key)], live_in, scope);
        *self.captured = captured;
        result
    }

    /// Tests whether the live-in values of `instance` are known to be these.
    fn is_known(
        &self,
        instance: Instance,
        key: u64,
        operands: &[Operand],
        scope: CaptureScope,
    ) -> bool {
        let data = &self.tree.instances[instance];
        let state = match scope {
            CaptureScope::Region => &data.live_in,
            CaptureScope::Jumps => &data.jump_live_in,
        };
        let LiveInState::Known(known) = state else { return false };
        let is_value = |(&value, operand): (&Value, &Operand)| match *operand {
            Operand::Constant(number) => self.tree.values[value] == Origin::Const(number.to_bits()),
            Operand::Event(event) => self.visible(event as usize) == Some(value),
        };
        known.of.is_none()
            && known.state[..] == [StateWord::Bits(key)]
            && known.captured.len() == operands.len()
            && known.captured.iter().zip(operands).all(is_value)
    }

    /// The instance of the open region with this id.
    fn open_instance(&self, id: u64) -> Option<Instance> {
        let open = self.open.iter().find(|open| open.id == id && !open.is_body);
        open.map(|open| open.instance)
    }

    /// Notes the live-in values of the iteration that has just begun: the values carried to the
    /// loop head determine how the loop continues.
    pub(super) fn note_head_live_in(&mut self) -> Walked {
        let Some(instance) = self.open.last().map(|open| open.instance) else { return Ok(()) };
        let mut captured = core::mem::take(self.captured);
        captured.clear();
        for &phi in &self.carried.phis {
            // Other values may have further meanings.
            captured.extend(self.known.get(phi).map(|known| known.value).filter(|&value| {
                matches!(
                    self.tree.values[value],
                    Origin::Carried | Origin::Apply(..) | Origin::InLoop
                )
            }));
        }
        let mut result = Ok(());
        if captured.len() == self.carried.phis.len() {
            let of = self.tree.instances[instance].parent;
            let live_in = Some(&captured[..]);
            let state = core::mem::take(&mut self.carried.state);
            result = self.note_live_in_of(instance, of, &state, live_in, CaptureScope::Region);
            self.carried.state = state;
        }
        *self.captured = captured;
        result
    }

    /// Notes the live-in values of `instance`, a region or an iteration of loop `of`. `captured` is
    /// `None` if the tree has no value for one of them.
    fn note_live_in_of(
        &mut self,
        instance: Instance,
        of: Option<Instance>,
        state: &[StateWord],
        captured: Option<&[Value]>,
        scope: CaptureScope,
    ) -> Walked {
        let data = &self.tree.instances[instance];
        let (site, is_shared) = (data.site, data.is_shared);
        let before = match scope {
            CaptureScope::Region => &data.live_in,
            CaptureScope::Jumps => &data.jump_live_in,
        };
        match (before, captured) {
            (LiveInState::Known(before), Some(captured)) if before.is(of, state, captured) => {}
            (LiveInState::Unknown, Some(captured)) => {
                let (state, captured) = (SmallVec::from_slice(state), captured.to_vec());
                let live_in = LiveInState::Known(LiveIn { of, state, captured });
                self.set_live_in(instance, scope, live_in);
            }
            // It depends on something that is dead after it or that was not captured; paths of
            // other instances must not be used here.
            _ => {
                if !matches!(before, LiveInState::Varying) {
                    self.set_live_in(instance, scope, LiveInState::Varying);
                }
                if is_shared {
                    return Err(Box::new(Mismatch::WrongSharing(site)));
                }
            }
        }
        Ok(())
    }

    fn set_live_in(&mut self, instance: Instance, scope: CaptureScope, live_in: LiveInState) {
        let bytes = |state: &LiveInState| match state {
            LiveInState::Known(live_in) => live_in.captured.len() * size_of::<Value>(),
            LiveInState::Unknown | LiveInState::Varying => 0,
        };
        let data = &mut self.tree.instances[instance];
        let state = match scope {
            CaptureScope::Region => &mut data.live_in,
            CaptureScope::Jumps => &mut data.jump_live_in,
        };
        let (before, after) = (bytes(state), bytes(&live_in));
        *state = live_in;
        if matches!(scope, CaptureScope::Region) {
            self.tree.groups.note_change(instance);
        }
        self.tree.instance_bytes = self.tree.instance_bytes + after - before;
    }
}
