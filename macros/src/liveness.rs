//! Liveness: the variables that have a value where a region begins, and those that are used after
//! it.

use crate::captures::{Access, Mention};
use crate::flow_graph::Liveness;
use crate::log::{Entry, Kind, Log, Point, Projection, Role, Variable};

/// The value of a variable, declared without one, where a region begins.
#[derive(Clone, Copy, PartialEq)]
pub enum EntryValue {
    Present,
    /// It has none, or is certainly assigned before it is read.
    Dead,
    Unknown,
}

impl Log {
    /// Tests whether `variable` may be used after `point`. If so, it has a value there: otherwise
    /// the compiler would reject the use.
    pub fn is_needed(&self, point: &Point, variable: Variable) -> bool {
        let binding = &self.bindings[variable];
        if point.role == Role::Exit {
            return binding.is_reference();
        }
        // What a closure has borrowed is in use for longer than the closure.
        if binding.is_closure() {
            return true;
        }
        // Something else may refer to its target.
        if binding.is_reference() && !binding.is_deferred() {
            return true;
        }
        let needs = |entry: &Entry| !matches!(entry.kind, Kind::Assign | Kind::Jump);
        let at = if point.role == Role::Head { point.start } else { point.end };
        let outer = point.loops.iter().filter(|&&start| binding.at < start);
        let first = outer.min().copied();
        if first.is_some_and(|start| self.entries_in(start..at, variable).any(needs)) {
            return true;
        }
        let mut after = self.entries_in(at..self.entries.len(), variable);
        if point.role == Role::Join {
            let next = self.positions_in(at..self.entries.len(), variable).next();
            if next.is_some_and(|next| {
                let Entry { kind, branch, .. } = &self.entries[next];
                let comes = self.encloses(*branch, point.branch) && !self.has_jump(at..next);
                *kind == Kind::Assign && comes
            }) {
                return false;
            }
        }
        after.any(needs)
    }

    /// Retains only those changes of a variable that are used later, if it may have no value at
    /// `point`. Returns true if it may not be read nevertheless.
    pub fn retain_used(
        &self,
        point: &Point,
        variable: Variable,
        changes: &mut Vec<(Projection, bool)>,
    ) -> bool {
        let binding = &self.bindings[variable];
        if point.role == Role::Exit || binding.is_closure() || !self.may_lack_value(variable) {
            return false;
        }
        let mut uncertain = false;
        changes.retain(|(projection, _)| {
            let liveness =
                self.flow.liveness(point.location, variable, &projection.fields, &self.mentions);
            uncertain |= liveness == Liveness::MaybeLive
                && binding.is_deferred()
                && !self.flow.is_assigned(point.location, variable, &self.mentions);
            liveness != Liveness::Dead
        });
        uncertain
    }

    /// Tests whether `variable` may have no value between its declaration and its last use.
    fn may_lack_value(&self, variable: Variable) -> bool {
        let binding = &self.bindings[variable];
        let leaves = |mention: &Mention| matches!(mention.access, Access::Move | Access::Word);
        binding.is_deferred()
            || (!binding.copied
                && !binding.is_reference()
                && self.mentions_of(variable).any(leaves))
    }

    /// The value of `variable` where the region of `point` begins, if it was declared without one.
    pub fn entry_value(&self, point: &Point, variable: Variable) -> EntryValue {
        let start = self.starts.binary_search_by_key(&point.start, |&(at, _)| at);
        let (Ok(index), true) = (start, self.bindings[variable].is_deferred()) else {
            return EntryValue::Present;
        };
        let place = self.starts[index].1;
        match self.flow.liveness(place, variable, &[], &self.mentions) {
            Liveness::Dead => EntryValue::Dead,
            Liveness::MaybeLive if !self.flow.is_assigned(place, variable, &self.mentions) => {
                EntryValue::Unknown
            }
            Liveness::MaybeLive | Liveness::Live => EntryValue::Present,
        }
    }
}
