//! Liveness: the variables that have a value where a region begins, and those that are used after
//! it.

use crate::captures::{How, Mention};
use crate::log::{Entry, Kind, Log, Point, Role, Variable, Way};
use crate::ways::Later;

/// The value of a variable, declared without one, where a region begins.
#[derive(Clone, Copy, PartialEq)]
pub enum Birth {
    Born,
    /// It has none, or is certainly assigned before it is read.
    Unborn,
    Unknown,
}

impl Log {
    /// Tests whether `variable` may be used after `point`. If so, it has a value there: otherwise
    /// the compiler would reject the use.
    pub fn is_needed(&self, point: &Point, variable: Variable) -> bool {
        let binding = &self.bindings[variable];
        if point.role == Role::Exit {
            return binding.reference;
        }
        // What a closure has borrowed is in use for longer than the closure.
        if binding.closure {
            return true;
        }
        // Something else may refer to its target.
        if binding.reference && !binding.deferred {
            return true;
        }
        let needs = |entry: &Entry| !matches!(entry.kind, Kind::Assign | Kind::Jump);
        let at = if point.role == Role::Head { point.start } else { point.end };
        let outer = point.loops.iter().filter(|&&start| binding.at < start);
        let first = outer.min().copied();
        if first.is_some_and(|start| self.entries_in(start..at, variable).any(needs)) {
            return true;
        }
        let mut after = self.entries_in(at..usize::MAX, variable);
        if point.role == Role::Join {
            let next = self.positions_in(at..usize::MAX, variable).next();
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
    pub fn leave_used(
        &self,
        point: &Point,
        variable: Variable,
        changes: &mut Vec<(Way, bool)>,
    ) -> bool {
        let binding = &self.bindings[variable];
        if point.role == Role::Exit || binding.closure || !self.may_lack_value(variable) {
            return false;
        }
        let mut doubtful = false;
        changes.retain(|(way, _)| {
            let later = self.ways.used(point.place, variable, &way.fields, &self.mentions);
            doubtful |= later == Later::Perhaps
                && binding.deferred
                && !self.ways.has_value(point.place, variable, &self.mentions);
            later != Later::Never
        });
        doubtful
    }

    /// Tests whether `variable` may have no value between its declaration and its last use.
    fn may_lack_value(&self, variable: Variable) -> bool {
        let binding = &self.bindings[variable];
        let leaves = |mention: &Mention| matches!(mention.how, How::Move | How::Word);
        binding.deferred
            || (!binding.copied && !binding.reference && self.mentions_of(variable).any(leaves))
    }

    /// The value of `variable` where the region of `point` begins, if it was declared without one.
    pub fn birth(&self, point: &Point, variable: Variable) -> Birth {
        let start = self.starts.binary_search_by_key(&point.start, |&(at, _)| at);
        let (Ok(index), true) = (start, self.bindings[variable].deferred) else {
            return Birth::Born;
        };
        let place = self.starts[index].1;
        match self.ways.used(place, variable, &[], &self.mentions) {
            Later::Never => Birth::Unborn,
            Later::Perhaps if !self.ways.has_value(place, variable, &self.mentions) => {
                Birth::Unknown
            }
            Later::Perhaps | Later::Surely => Birth::Born,
        }
    }
}
