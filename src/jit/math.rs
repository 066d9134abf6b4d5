//! Which primitives are machine instructions and which are calls, and the
//! functions that are called: the one meaning of each primitive, seen from C.

use crate::op::{Op, eval};

/// How a primitive becomes native code.
#[derive(Clone, Copy)]
pub(super) enum Lowering {
    /// Instructions that leave other registers alone.
    Instructions,
    /// A call of a function of one number.
    Call1(extern "C" fn(f64) -> f64),
    /// A call of a function of two numbers.
    Call2(extern "C" fn(f64, f64) -> f64),
    /// A call of a function of three numbers.
    Call3(extern "C" fn(f64, f64, f64) -> f64),
}

macro_rules! call {
    (1 $op:ident) => {{
        extern "C" fn function(a: f64) -> f64 {
            eval(Op::$op, [a, 0.0, 0.0])
        }
        Lowering::Call1(function)
    }};
    (2 $op:ident) => {{
        extern "C" fn function(a: f64, b: f64) -> f64 {
            eval(Op::$op, [a, b, 0.0])
        }
        Lowering::Call2(function)
    }};
    (3 $op:ident) => {{
        extern "C" fn function(a: f64, b: f64, c: f64) -> f64 {
            eval(Op::$op, [a, b, c])
        }
        Lowering::Call3(function)
    }};
}

/// The lowering of `op` on this host.
pub(super) fn lowering(op: Op) -> Lowering {
    match op {
        Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Neg | Op::Recip | Op::Sqrt => {
            Lowering::Instructions
        }
        Op::MulAdd if host_fuses() => Lowering::Instructions,
        Op::MulAdd => call!(3 MulAdd),
        // Its exponent is a constant, so it becomes multiplications.
        Op::Powi => Lowering::Instructions,
        Op::Abs | Op::Signum | Op::CopySign | Op::Min | Op::Max | Op::Select | Op::Attach => {
            Lowering::Instructions
        }
        Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne | Op::Same => Lowering::Instructions,
        Op::Floor | Op::Ceil | Op::Trunc | Op::Fract if host_rounds() => Lowering::Instructions,
        Op::Floor => call!(1 Floor),
        Op::Ceil => call!(1 Ceil),
        Op::Trunc => call!(1 Trunc),
        Op::Fract => call!(1 Fract),
        Op::Round => call!(1 Round),
        Op::Rem => call!(2 Rem),
        Op::Powf => call!(2 Powf),
        Op::Cbrt => call!(1 Cbrt),
        Op::Hypot => call!(2 Hypot),
        Op::Exp => call!(1 Exp),
        Op::ExpM1 => call!(1 ExpM1),
        Op::Exp2 => call!(1 Exp2),
        Op::Ln => call!(1 Ln),
        Op::Ln1p => call!(1 Ln1p),
        Op::Log2 => call!(1 Log2),
        Op::Log10 => call!(1 Log10),
        Op::Sin => call!(1 Sin),
        Op::Cos => call!(1 Cos),
        Op::Tan => call!(1 Tan),
        Op::Asin => call!(1 Asin),
        Op::Acos => call!(1 Acos),
        Op::Atan => call!(1 Atan),
        Op::Atan2 => call!(2 Atan2),
        Op::Sinh => call!(1 Sinh),
        Op::Cosh => call!(1 Cosh),
        Op::Tanh => call!(1 Tanh),
        Op::Asinh => call!(1 Asinh),
        Op::Acosh => call!(1 Acosh),
        Op::Atanh => call!(1 Atanh),
    }
}

/// Whether `op` is a call, which may change every register.
pub(super) fn is_call(op: Op) -> bool {
    !matches!(lowering(op), Lowering::Instructions)
}

/// Whether the host multiplies and adds in one instruction.
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

/// Whether the host rounds to integers in one instruction.
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
