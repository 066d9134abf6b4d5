//! Path sharing for exits of a region: to its own end, and by jumps to outer targets.
//!
//! A jump carries variables that the region need not name: to the end of a loop, for instance, all
//! that changes in the loop. So a region has a second capture for its jumps, of its live-in values
//! and all values carried to the targets. If two instances have equal or corresponding values
//! there, a jump out of one of them carries corresponding values out of the other, and its target
//! is known: the loops around may be in different iterations.

use smallvec::SmallVec;

use super::path_sharing::PathSharing;
use super::tree::{End, ExitKey, Instance, LiveInState, Target, Tree, Value};
use crate::trace::StateWord;

/// The correspondence of the jumps out of two instances.
pub(super) struct Jumps {
    /// Corresponding values.
    captured: Vec<(Value, Value)>,
    /// Corresponding targets: the regions to whose ends jumps lead.
    targets: SmallVec<[(Instance, Instance); 1]>,
}

impl Jumps {
    /// The jumps out of `from` and `to`, if they carry corresponding values.
    pub(super) fn between(tree: &Tree, from: Instance, to: Instance) -> Option<Jumps> {
        let (from, to) = (&tree.instances[from], &tree.instances[to]);
        let (LiveInState::Known(one), LiveInState::Known(other)) =
            (&from.jump_live_in, &to.jump_live_in)
        else {
            return None;
        };
        let captured = one.captured.iter().copied().zip(other.captured.iter().copied());
        let captured: Vec<(Value, Value)> = captured.collect();
        // Operations on constants are not in the trace, so constants must be equal, or be constants
        // only in the other instance.
        let is_same = one.state == other.state
            && one.captured.len() == other.captured.len()
            && from.jump_targets.len() == to.jump_targets.len()
            && captured.iter().all(|&(a, b)| a == b || !tree.is_constant(a));
        let targets =
            from.jump_targets.iter().zip(&to.jump_targets).filter_map(|(a, b)| (*a).zip(*b));
        is_same.then(|| Jumps { captured, targets: targets.collect() })
    }
}

impl PathSharing<'_> {
    /// The exit of `to` that corresponds to exit number `exit` of `from`; a new one if need be.
    pub(super) fn exit(&mut self, from: Instance, exit: usize, to: Instance) -> Option<usize> {
        if !self.pairs.contains_key(&from) {
            let (target, last) = self.outer_target(from, exit)?;
            // The static state is in the key of the last exit alone, which need not be new.
            if !self.may_copy(&self.tree.instances[target].exits.get(last)?.key) {
                return None;
            }
            let targets = &self.jumps.as_ref()?.targets;
            let (_, other) = targets.iter().copied().find(|(known, _)| *known == target)?;
            return self.outer_exit(from, exit, to, (target, other));
        }
        // Both instances are iterations of one loop.
        if from == to {
            return Some(exit);
        }
        let key = self.tree.instances[from].exits.get(exit)?.key.clone();
        let target = match key.to {
            Target::Outer(outer) => {
                let parents = (self.tree.instances[from].parent?, self.tree.instances[to].parent?);
                Target::Outer(self.exit(parents.0, outer, parents.1)?)
            }
            own => own,
        };
        self.exit_with(to, ExitKey { to: target, ..key })
    }

    /// The exit of `to`, an instance around the copied one, that corresponds to exit number `exit`
    /// of `from`; they lead to the ends of `targets`.
    fn outer_exit(
        &mut self,
        from: Instance,
        exit: usize,
        to: Instance,
        targets: (Instance, Instance),
    ) -> Option<usize> {
        if from == to {
            return (targets.0 == targets.1).then_some(exit);
        }
        let (a, b) = (&self.tree.instances[from], &self.tree.instances[to]);
        if a.site != b.site {
            return None;
        }
        let (key, parents) = (a.exits.get(exit)?.key.clone(), a.parent.zip(b.parent));
        let target = match key.to {
            Target::Outer(outer) => {
                let (a, b) = parents?;
                Target::Outer(self.outer_exit(a, outer, b, targets)?)
            }
            Target::Join if (from, to) == targets => Target::Join,
            Target::Join | Target::Iterate => return None,
        };
        self.exit_with(to, ExitKey { to: target, ..key })
    }

    /// The instance to whose end exit number `exit` of `from` leads, and the number of its own exit
    /// there.
    fn outer_target(&self, mut from: Instance, mut exit: usize) -> Option<(Instance, usize)> {
        loop {
            let data = &self.tree.instances[from];
            match data.exits.get(exit)?.key.to {
                Target::Outer(outer) => (from, exit) = (data.parent?, outer),
                Target::Join => return Some((from, exit)),
                Target::Iterate => return None,
            }
        }
    }

    /// Tests whether an exit with this key may be copied to the other instance. Static state that
    /// names an input does not transfer between regions, where inputs are captured and may
    /// correspond to others; it does between iterations of one loop.
    fn may_copy(&self, key: &ExitKey) -> bool {
        let live_in = self.tree.live_in(self.from);
        let names_input = key.state.contains(&StateWord::NamesInput);
        live_in.is_some_and(|live_in| live_in.of.is_some() || !names_input)
    }

    /// The exit of `to` with this key; a new one if need be.
    fn exit_with(&mut self, to: Instance, key: ExitKey) -> Option<usize> {
        if !self.may_copy(&key) {
            return None;
        }
        if let Some(known) = self.tree.find_exit(to, &key) {
            return Some(known);
        }
        let target = key.to;
        let new = self.tree.new_exit(to, key);
        // An exit to an outer region continues like the other exits there; otherwise the
        // continuation is unknown.
        let tail = self.tree.new_basic_block();
        if let Target::Outer(exit) = target {
            let values = self.tree.instances[to].exits[new].carried.clone();
            self.tree.set_end(tail, End::Exit { exit, values });
        }
        let (block, parent) = (self.tree.instances[to].block?, self.tree.instances[to].parent);
        if let End::Region { tails, .. } = &mut self.tree.basic_blocks[block].end {
            tails.push(tail);
            let is_another = tails.len() > 1;
            if is_another && parent.is_none() {
                self.tree.step_bound.add_path();
            }
        }
        Some(new)
    }

    /// The values that correspond to `values`, which exit number `exit` of `inside` carries.
    pub(super) fn carried(
        &self,
        inside: Instance,
        exit: usize,
        values: &[Value],
    ) -> Option<SmallVec<[Value; 4]>> {
        let jumps = self.jumps.as_ref().filter(|_| self.is_jump(inside, exit));
        let value = |&value: &Value| match (jumps, self.values.get(&value)) {
            (Some(jumps), None) => self.tree.captured(value, jumps.captured.iter().copied()),
            _ => self.value(value),
        };
        values.iter().map(value).collect()
    }

    /// Tests whether exit number `exit` of `inside` leads out of the copied instance and past its
    /// end.
    fn is_jump(&self, mut inside: Instance, mut exit: usize) -> bool {
        loop {
            let data = &self.tree.instances[inside];
            let Some(Target::Outer(outer)) = data.exits.get(exit).map(|exit| exit.key.to) else {
                return false;
            };
            if inside == self.from {
                return true;
            }
            let Some(parent) = data.parent else { return false };
            (inside, exit) = (parent, outer);
        }
    }
}
