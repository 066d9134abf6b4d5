//! What primitives cost, as measured on the x86-64 server of the benchmarks; calls with their
//! overhead.

use super::Op;

/// The latency of `op` in tenths of a nanosecond.
pub(crate) fn latency(op: Op) -> u64 {
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

/// The time in tenths of a nanosecond that `op` takes among independent others: a division is
/// nine additions, a call what it takes.
pub(crate) fn throughput(op: Op) -> u64 {
    match op {
        Op::Attach => 0,
        Op::Div | Op::Recip => 9,
        Op::Sqrt => 12,
        op => match latency(op) {
            cheap @ ..=30 => cheap.div_ceil(12),
            call => call,
        },
    }
}
