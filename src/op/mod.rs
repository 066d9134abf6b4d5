//! The one list of primitives: names and arities; meaning, domain and
//! derivative are exhaustive matches over it in this folder, and the native
//! lowering is one in `jit`.
//!
//! Every value is an `f64`. A comparison yields 1 or 0 and has derivative
//! zero; a condition holds when it is not 0. Adding a primitive is one line
//! below and one arm in each match: the compiler names those that are missing.

mod cost;
mod derivative;
mod domain;
mod meaning;

pub(crate) use cost::{latency, throughput};
pub use derivative::{Algebra, Numbers, contribution};
pub use domain::{Domain, domain, is_singular};
pub use meaning::{eval, powi};

/// The largest number of operands of a primitive.
pub const MAX_ARITY: usize = 3;

macro_rules! primitives {
    ($($(#[$meta:meta])* $variant:ident $name:literal $arity:literal;)*) => {
        /// A primitive operation.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::internals::op::Op;
        ///
        /// assert_eq!((Op::Atan2.name(), Op::Atan2.arity()), ("atan2", 2));
        /// assert!(Op::ALL.iter().all(|op| Op::from_name(op.name()) == Some(*op)));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Op { $($(#[$meta])* $variant),* }

        impl Op {
            /// All primitives, in the order of the list.
            pub const ALL: &'static [Op] = &[$(Op::$variant),*];

            /// The name in the text form of the graph.
            pub const fn name(self) -> &'static str {
                match self { $(Op::$variant => $name),* }
            }

            /// The number of operands, 1 to [`MAX_ARITY`].
            #[inline(always)]
            pub const fn arity(self) -> usize {
                match self { $(Op::$variant => $arity),* }
            }

            /// The primitive of this name, if there is one.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::internals::op::Op;
            ///
            /// assert_eq!(Op::from_name("mul_add"), Some(Op::MulAdd));
            /// assert_eq!(Op::from_name("fma"), None);
            /// ```
            pub fn from_name(name: &str) -> Option<Op> {
                match name { $($name => Some(Op::$variant),)* _ => None }
            }
        }

        /// Calls `visitor` with `op` known at compile time in each arm, so that
        /// matches on it inside fold away: the dispatch of the reverse sweep.
        #[inline(always)]
        pub(crate) fn with_constant_op<V: OpVisitor>(op: Op, visitor: V) -> V::Output {
            match op { $(Op::$variant => visitor.visit(Op::$variant)),* }
        }
    };
}

#[cfg(feature = "serde")]
impl serde::Serialize for Op {
    /// As its name.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Code that is instantiated for each primitive by [`with_constant_op`].
pub(crate) trait OpVisitor {
    type Output;

    /// Must be `#[inline(always)]` to have an effect.
    fn visit(self, op: Op) -> Self::Output;
}

primitives! {
    /// `a + b`
    Add "add" 2;
    /// `a - b`
    Sub "sub" 2;
    /// `a · b`
    Mul "mul" 2;
    /// `a / b`
    Div "div" 2;
    /// The remainder of `a / b` with the sign of `a`, as Rust's `%`.
    Rem "rem" 2;
    /// `-a`
    Neg "neg" 1;
    /// `1 / a`
    Recip "recip" 1;
    /// `a · b + c`, rounded once.
    MulAdd "mul_add" 3;
    /// `a` to the integer power `b`; `b` is a constant in the range of `i32`.
    Powi "powi" 2;
    /// `a` to the power `b`.
    Powf "powf" 2;
    /// Square root.
    Sqrt "sqrt" 1;
    /// Cube root.
    Cbrt "cbrt" 1;
    /// `√(a² + b²)` without overflow on the way.
    Hypot "hypot" 2;
    /// `eᵃ`
    Exp "exp" 1;
    /// `eᵃ - 1`, accurate near 0.
    ExpM1 "exp_m1" 1;
    /// `2ᵃ`
    Exp2 "exp2" 1;
    /// Natural logarithm.
    Ln "ln" 1;
    /// `ln(1 + a)`, accurate near 0.
    Ln1p "ln_1p" 1;
    /// Logarithm to base 2.
    Log2 "log2" 1;
    /// Logarithm to base 10.
    Log10 "log10" 1;
    /// Sine of an angle in radians.
    Sin "sin" 1;
    /// Cosine of an angle in radians.
    Cos "cos" 1;
    /// Tangent of an angle in radians.
    Tan "tan" 1;
    /// Inverse sine, in radians.
    Asin "asin" 1;
    /// Inverse cosine, in radians.
    Acos "acos" 1;
    /// Inverse tangent, in radians.
    Atan "atan" 1;
    /// The angle of the point (`b`, `a`), in radians.
    Atan2 "atan2" 2;
    /// Hyperbolic sine.
    Sinh "sinh" 1;
    /// Hyperbolic cosine.
    Cosh "cosh" 1;
    /// Hyperbolic tangent.
    Tanh "tanh" 1;
    /// Inverse hyperbolic sine.
    Asinh "asinh" 1;
    /// Inverse hyperbolic cosine.
    Acosh "acosh" 1;
    /// Inverse hyperbolic tangent.
    Atanh "atanh" 1;
    /// Absolute value; derivative 0 at 0.
    Abs "abs" 1;
    /// 1 with the sign of `a`, also for zeros; NaN for NaN.
    Signum "signum" 1;
    /// The magnitude of `a` with the sign of `b`.
    CopySign "copysign" 2;
    /// The smaller operand; ties give `b`; a NaN operand is ignored.
    Min "min" 2;
    /// The larger operand; ties give `b`; a NaN operand is ignored.
    Max "max" 2;
    /// The largest integer not above `a`.
    Floor "floor" 1;
    /// The smallest integer not below `a`.
    Ceil "ceil" 1;
    /// The nearest integer; halves go away from zero.
    Round "round" 1;
    /// The integer part.
    Trunc "trunc" 1;
    /// `a - trunc(a)`
    Fract "fract" 1;
    /// `b` where `a` is not 0, otherwise `c`.
    Select "select" 3;
    /// `a`, with `c` as its partial derivative by `b`: a custom derivative. The sweep passes
    /// the adjoint on to `a`, `c` times the adjoint to `b`, and nothing to `c`.
    Attach "attach" 3;
    /// 1 where `a < b`.
    Lt "lt" 2;
    /// 1 where `a <= b`.
    Le "le" 2;
    /// 1 where `a > b`.
    Gt "gt" 2;
    /// 1 where `a >= b`.
    Ge "ge" 2;
    /// 1 where `a == b`.
    Eq "eq" 2;
    /// 1 where `a != b`.
    Ne "ne" 2;
    /// 1 where `a` and `b` have the same bits or are both NaN: the guard of an escaped value.
    Same "same" 2;
}

impl Op {
    /// Whether the primitive yields only 1 and 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::op::Op;
    ///
    /// assert!(Op::Lt.is_comparison() && !Op::Min.is_comparison());
    /// ```
    pub const fn is_comparison(self) -> bool {
        matches!(self, Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne | Op::Same)
    }

    /// Whether the first two operands may change places; of two NaN the result
    /// may then be the other.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::op::Op;
    ///
    /// assert!(Op::MulAdd.commutes() && !Op::Sub.commutes());
    /// // Of a tie the second operand counts.
    /// assert!(!Op::Max.commutes());
    /// ```
    pub const fn commutes(self) -> bool {
        matches!(self, Op::Add | Op::Mul | Op::MulAdd | Op::Eq | Op::Ne | Op::Same)
    }
}

impl core::fmt::Display for Op {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_parse_back() {
        for &op in Op::ALL {
            assert_eq!(Op::from_name(op.name()), Some(op));
            assert!((1..=MAX_ARITY).contains(&op.arity()), "{op}");
        }
        assert_eq!(Op::from_name("frobnicate"), None);
    }
}
