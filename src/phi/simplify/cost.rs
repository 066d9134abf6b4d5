//! What primitives cost: latencies in tenths of a nanosecond, as measured on the
//! x86-64 server of the benchmarks, calls with their overhead.

use super::language::Term;
use super::loops::{LoopSet, shared};
use crate::op::Op;

/// What it takes to compute `term` from its operands in each iteration, if it changes in
/// these loops: what is computed before a loop is shared by its iterations.
pub(super) fn cost(term: &Term, changes: LoopSet, ways: &[(LoopSet, u64)]) -> u64 {
    match term {
        Term::Leaf(_) | Term::Const(_) => 0,
        Term::Apply(op, _) => shared(latency(*op), changes, ways),
    }
}

/// What it takes to compute `op` from its operands.
pub(super) fn latency(op: Op) -> u64 {
    match op {
        Op::Attach => 0,
        Op::Neg | Op::Abs | Op::CopySign => 4,
        Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne | Op::Same => 8,
        Op::Select | Op::Min | Op::Max | Op::Signum => 10,
        Op::Add | Op::Sub | Op::Mul | Op::MulAdd => 12,
        Op::Floor | Op::Ceil | Op::Trunc | Op::Fract | Op::Round => 20,
        Op::Powi => 30,
        Op::Div | Op::Recip => 36,
        Op::Sqrt => 57,
        Op::Exp | Op::Exp2 => 90,
        Op::Cos | Op::Sin | Op::Log2 | Op::Ln => 120,
        Op::Asin | Op::Acos | Op::Atan | Op::Cosh | Op::Rem => 145,
        Op::Tan | Op::Hypot => 170,
        Op::ExpM1 | Op::Log10 => 185,
        Op::Ln1p | Op::Atan2 | Op::Acosh => 215,
        Op::Powf | Op::Sinh => 245,
        Op::Cbrt | Op::Atanh => 270,
        Op::Tanh => 320,
        Op::Asinh => 700,
    }
}
