//! Loops in merged traces: a segment of a trace that repeats is one step of the tree.
//!
//! A loop is a compressed form of its steps: iterations can be peeled at any time
//! (`loop_splitting`), and values keep their ids. Code that needs single steps peels them first:
//! path sharing, and the walk of a trace that differs in one iteration.

use std::sync::Arc;

use smallvec::SmallVec;

use super::tree::{Step, Tree, Value};
use crate::entity::{Entity, entity};
use crate::op::Op;
use crate::trace::Site;

entity!(
    /// A loop in the merged traces.
    TraceLoopId,
    "t"
);

/// A loop: the same steps, a number of times.
#[derive(Clone, Debug)]
pub(super) struct TraceLoop {
    /// The value of the first step of the first iteration. The others follow, one for each step of
    /// each iteration.
    pub(super) first: Value,
    pub(super) times: usize,
    /// True if it reads values of another loop with a stride.
    pub(super) reads_with_stride: bool,
    /// True if it was split from a longer loop.
    pub(super) is_split_off: bool,
    /// The steps of an iteration.
    pub(super) body: Vec<LoopStep>,
}

/// A step of each iteration.
#[derive(Clone, Debug)]
pub(super) enum LoopStep {
    /// No step, and a value that is never used.
    NoStep,
    /// Applies a primitive; a guard of it follows if there is an outcome.
    Apply { op: Op, operand_rules: SmallVec<[OperandRule; 2]>, outcome: Option<bool>, site: Site },
}

/// The rule of an operand over the iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OperandRule {
    /// The value `first + stride · iteration`.
    Value { first: Value, stride: i64 },
    /// A constant for each iteration.
    Table(Arc<[u64]>),
    /// The value of step `at` of the body, `distance` iterations earlier; in the first `distance`
    /// iterations the values `initial`.
    Body { at: usize, distance: usize, initial: SmallVec<[Value; 1]> },
}

impl TraceLoop {
    /// The number of its values.
    pub(super) fn len(&self) -> usize {
        self.body.len() * self.times
    }

    /// The value of step number `at` of an iteration.
    pub(super) fn value(&self, at: usize, iteration: usize) -> Value {
        Value::from_index(self.first.index() + iteration * self.body.len() + at)
    }

    /// The step and the iteration of `value`, one of its values.
    pub(super) fn position_of(&self, value: Value) -> (usize, usize) {
        let index = value.index() - self.first.index();
        (index % self.body.len(), index / self.body.len())
    }

    /// The number of steps if all iterations are peeled.
    pub(super) fn steps(&self) -> usize {
        let steps = self.body.iter().map(|step| match step {
            LoopStep::NoStep => 0,
            LoopStep::Apply { outcome: None, .. } => 1,
            LoopStep::Apply { outcome: Some(_), .. } => 2,
        });
        steps.sum::<usize>().saturating_mul(self.times)
    }

    /// The operands of all steps.
    pub(super) fn operand_rules(&self) -> impl Iterator<Item = &OperandRule> {
        let operand_rules = self.body.iter().map(|step| match step {
            LoopStep::NoStep => &[][..],
            LoopStep::Apply { operand_rules, .. } => &operand_rules[..],
        });
        operand_rules.flatten()
    }
}

impl Tree {
    /// The number of steps that `step` counts for.
    pub(super) fn weight(&self, step: &Step) -> usize {
        match *step {
            Step::Value(_) | Step::Guard { .. } => 1,
            Step::Loop(trace_loop) => self.loops[trace_loop].steps(),
        }
    }

    /// Tests whether any step is a loop.
    pub(super) fn has_loops(&self) -> bool {
        self.loops.values().any(|trace_loop| trace_loop.times > 0)
    }
}
