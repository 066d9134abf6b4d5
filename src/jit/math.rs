//! Primitives that are library calls on this host: the function of `op` that defines each of them,
//! with the calling convention of C.

use crate::op::{ConstantOp, Feature, Lowering, Op, OpVisitor, eval, with_constant_op};

/// A function that a primitive calls, by its number of operands.
#[derive(Clone, Copy)]
pub(super) enum Function {
    One(extern "C" fn(f64) -> f64),
    Two(extern "C" fn(f64, f64) -> f64),
    Three(extern "C" fn(f64, f64, f64) -> f64),
}

impl Function {
    /// The function that computes `op`.
    pub(super) fn of(op: Op) -> Function {
        with_constant_op(op, Meaning)
    }

    pub(super) fn address(self) -> *const u8 {
        match self {
            Function::One(function) => function as *const u8,
            Function::Two(function) => function as *const u8,
            Function::Three(function) => function as *const u8,
        }
    }
}

/// Makes the function of a primitive.
struct Meaning;

impl OpVisitor for Meaning {
    type Output = Function;

    #[inline(always)]
    fn visit<P: ConstantOp>(self) -> Function {
        match P::OP.arity() {
            1 => Function::One(one::<P>),
            2 => Function::Two(two::<P>),
            _ => Function::Three(three::<P>),
        }
    }
}

extern "C" fn one<P: ConstantOp>(a: f64) -> f64 {
    eval(P::OP, [a, 0.0, 0.0])
}

extern "C" fn two<P: ConstantOp>(a: f64, b: f64) -> f64 {
    eval(P::OP, [a, b, 0.0])
}

extern "C" fn three<P: ConstantOp>(a: f64, b: f64, c: f64) -> f64 {
    eval(P::OP, [a, b, c])
}

/// True if `op` is a call, which clobbers all registers.
pub(super) fn is_call(op: Op) -> bool {
    match op.lowering() {
        Lowering::Instructions => false,
        Lowering::InstructionsWith(Feature::Fma) => !host_fuses(),
        Lowering::InstructionsWith(Feature::Rounding) => !host_rounds(),
        Lowering::Call => true,
    }
}

/// True if the host has a fused multiply-add instruction.
fn host_fuses() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        cfg!(target_arch = "aarch64")
    }
}

/// True if the host has instructions that round to integers.
fn host_rounds() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("sse4.1")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        true
    }
}
