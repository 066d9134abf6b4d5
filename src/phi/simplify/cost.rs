//! What terms cost in the loops around them.

use super::language::Term;
use super::loops::{LoopSet, shared};
use crate::op::latency;

/// What it takes to compute `term` from its operands in each iteration, if it changes in
/// these loops: what is computed before a loop is shared by its iterations.
pub(super) fn cost(term: &Term, changes: LoopSet, ways: &[(LoopSet, u64)]) -> u64 {
    match term {
        Term::Leaf(_) | Term::Const(_) => 0,
        Term::Apply(op, _) => shared(latency(*op), changes, ways),
    }
}
