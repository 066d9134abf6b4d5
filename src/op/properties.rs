//! Properties of primitives that the table names: flags, lowering, throughput.

use super::{Op, latency, listed_throughput};

/// A property of few primitives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flag {
    /// The value is 1 or 0.
    Comparison,
    /// The first two operands may change places.
    Commutes,
}

/// An extension of the instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    /// Multiplies and adds in one instruction, rounded once.
    Fma,
    /// Rounds to an integer in one instruction.
    Rounding,
}

/// The form of a primitive in native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lowering {
    /// Instructions, which leave other registers alone.
    Instructions,
    /// Instructions where the host has the feature, otherwise a call.
    InstructionsWith(Feature),
    /// A call of the meaning.
    Call,
}

/// The time in tenths of a nanosecond that `op` takes among independent others; for a call, its
/// latency.
pub(crate) fn throughput(op: Op) -> u64 {
    listed_throughput(op).unwrap_or_else(|| match latency(op) {
        cheap @ ..=30 => cheap.div_ceil(12),
        call => call,
    })
}
