//! The primitives: one row for each in `table.rs`, with its meaning, domain, derivative, cost and
//! lowering.
//!
//! Every value is an `f64`. A comparison yields 1 or 0 and has derivative
//! zero; a condition holds when it is not 0. Everything that is known of a primitive derives
//! from its row, but for the instructions of those that are no calls, which are in `jit`.

#[macro_use]
mod generate;
pub(crate) mod compositions;
mod derivative;
mod domain;
mod interaction;
mod meaning;
mod properties;
mod special;
mod table;

pub use derivative::{Algebra, Numbers};
pub use domain::{Domain, is_singular};
pub(crate) use interaction::Structure;
pub use meaning::powi;
use properties::Flag;
pub(crate) use properties::{Feature, Lowering, throughput};
pub use table::{Op, contribution, domain, eval};
pub(crate) use table::{latency, with_constant_op};
use table::{listed_throughput, smoothness};

/// The largest number of operands of a primitive.
pub const MAX_ARITY: usize = 3;

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
    fn visit<P: ConstantOp>(self) -> Self::Output;
}

/// A primitive as a type.
pub(crate) trait ConstantOp {
    const OP: Op;
}

impl Op {
    /// True if the primitive yields only 1 and 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::op::Op;
    ///
    /// assert!(Op::Lt.is_comparison() && !Op::Min.is_comparison());
    /// ```
    pub const fn is_comparison(self) -> bool {
        self.has(Flag::Comparison)
    }

    /// True if the first two operands may change places; of two NaN the result
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
        self.has(Flag::Commutes)
    }

    const fn has(self, flag: Flag) -> bool {
        let flags = self.flags();
        let mut index = 0;
        // Iterators are not const.
        while index < flags.len() {
            if flags[index] as u8 == flag as u8 {
                return true;
            }
            index += 1;
        }
        false
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
