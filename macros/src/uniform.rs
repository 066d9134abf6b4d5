//! Uniform variables: tracked ones whose value at a loop head depends on the iteration alone, as
//! that of a loop counter.
//!
//! While the value of such a variable is known on the path it is static state of the head:
//! operations on it are not in the trace, and it may index arrays. A mistake here costs paths,
//! never correctness.

use crate::log::{Branch, JumpTarget, Kind, Log, Point, Role, Variable};

/// The text of a loop.
pub struct LoopText {
    /// The range of the log with the loop's code.
    pub start: usize,
    pub end: usize,
    /// The branches of its scope and its body.
    pub scope: Branch,
    pub body: Branch,
    /// The variables that the number of iterations depends on; `None` if it may depend on more.
    pub bound: Option<Vec<Variable>>,
}

/// A change of a tracked variable.
pub struct Update {
    /// Its position in the log.
    pub at: usize,
    pub variable: Variable,
    /// The variables that the new value depends on; `None` if it may depend on more.
    pub from: Option<Vec<Variable>>,
    /// It assigns, adds or subtracts a small number.
    pub is_small: bool,
}

/// The number of variables through which a dependence is followed.
const DEPTH: usize = 4;

impl Log {
    /// Tests whether `variable` is a counter: it begins with a small number and changes by small
    /// ones, so that it does not overflow as long as a call ends.
    pub fn is_counter(&self, variable: Variable) -> bool {
        let mut updates = self.updates.iter().filter(|update| update.variable == variable);
        self.bindings[variable].is_small && updates.all(|update| update.is_small)
    }

    /// Tests whether tracked `variable` is static state at `point` as long as its value is known.
    pub fn keeps_constant(&self, index: usize, variable: Variable) -> bool {
        let point: &Point = &self.points[index];
        let end = match point.role {
            Role::Head => point.mutators_of,
            Role::Join => index,
            Role::Exit => return false,
        };
        let Some(number) = self.loops.iter().position(|&other| other == Some(end)) else {
            return false;
        };
        self.is_uniform(number, variable, DEPTH)
            && (point.role == Role::Head || self.is_counted(number, DEPTH))
    }

    /// Tests whether `variable` depends on the iteration of loop `number` alone.
    fn is_uniform(&self, number: usize, variable: Variable, depth: usize) -> bool {
        let text = &self.loop_texts[number];
        let mut changes = self.positions_in(text.start..text.end, variable).filter(|&at| {
            matches!(self.entries[at].kind, Kind::Assign | Kind::Change(..) | Kind::Lend(_))
        });
        depth > 0
            && changes.all(|at| {
                let Some(update) = self.updates.iter().find(|update| update.at == at) else {
                    return false;
                };
                let jumps = self.jumps.iter().any(|&(jump, target)| {
                    (text.start..at).contains(&jump)
                        && matches!(target, JumpTarget::Unknown | JumpTarget::Next(_))
                });
                !jumps
                    && self.runs_always(number, self.entries[at].branch, depth)
                    && update.from.as_ref().is_some_and(|from| {
                        from.iter()
                            .all(|&other| other == variable || self.is_given(number, other, depth))
                    })
            })
    }

    /// Tests whether `branch` runs a number of times in each iteration of loop `number` that
    /// depends on the iteration alone.
    fn runs_always(&self, number: usize, mut branch: Branch, depth: usize) -> bool {
        let text = &self.loop_texts[number];
        while branch != text.body && branch != text.scope {
            let is_inner = |inner: &LoopText| inner.body == branch || inner.scope == branch;
            let Some(inner) = self.loop_texts.iter().position(is_inner) else { return false };
            if !self.is_counted(inner, depth) {
                return false;
            }
            let scope = self.loop_texts[inner].scope;
            branch = self.branches.get(scope.wrapping_sub(1)).copied().unwrap_or_default();
        }
        true
    }

    /// Tests whether the number of iterations of loop `number` depends on no decision.
    fn is_counted(&self, number: usize, depth: usize) -> bool {
        let text = &self.loop_texts[number];
        let leaves = self.jumps.iter().any(|&(at, target)| {
            (text.start..text.end).contains(&at)
                && (target == JumpTarget::Loop(number) || target == JumpTarget::Unknown)
        });
        depth > 0
            && !leaves
            && text.bound.as_ref().is_some_and(|bound| {
                bound.iter().all(|&variable| self.is_given(number, variable, depth - 1))
            })
    }

    /// Tests whether the value of `variable` depends on the iteration of loop `number` alone.
    fn is_given(&self, number: usize, variable: Variable, depth: usize) -> bool {
        let (text, binding) = (&self.loop_texts[number], &self.bindings[variable]);
        let is_outside = binding.at <= text.start;
        let is_fixed = !binding.mutable && !binding.is_deferred();
        match binding.tracked {
            true => is_outside && depth > 0 && self.is_uniform(number, variable, depth - 1),
            false => is_fixed && (is_outside || binding.origin == crate::binding::Origin::Item),
        }
    }
}
