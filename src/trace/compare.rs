//! Comparisons of `Var` as guards, and formatting as an escape.

use core::cmp::Ordering;
use core::fmt;

use super::operators::{Pair, Plain};
use super::{Var, recorder};
use crate::op::Op;

/// The outcome of `comparison`, which was just recorded and becomes a guard unless both operands
/// are constants.
#[inline]
fn guarded(comparison: Var) -> bool {
    let outcome = comparison.value != 0.0;
    if !comparison.is_constant() {
        recorder::guard(outcome);
    }
    outcome
}

macro_rules! comparisons {
    ($left:ty, $right:ty) => {
        impl PartialEq<$right> for $left {
            #[inline]
            #[track_caller]
            fn eq(&self, other: &$right) -> bool {
                guarded((self.plain(), other.plain()).apply(Op::Eq))
            }

            #[inline]
            #[track_caller]
            #[allow(clippy::partialeq_ne_impl)] // The guard repeats the operator that was used.
            fn ne(&self, other: &$right) -> bool {
                guarded((self.plain(), other.plain()).apply(Op::Ne))
            }
        }

        impl PartialOrd<$right> for $left {
            #[inline]
            #[track_caller]
            fn partial_cmp(&self, other: &$right) -> Option<Ordering> {
                let pair = (self.plain(), other.plain());
                if guarded(pair.apply(Op::Lt)) {
                    Some(Ordering::Less)
                } else if guarded(pair.apply(Op::Gt)) {
                    Some(Ordering::Greater)
                } else if guarded(pair.apply(Op::Eq)) {
                    Some(Ordering::Equal)
                } else {
                    None
                }
            }

            #[inline]
            #[track_caller]
            fn lt(&self, other: &$right) -> bool {
                guarded((self.plain(), other.plain()).apply(Op::Lt))
            }

            #[inline]
            #[track_caller]
            fn le(&self, other: &$right) -> bool {
                guarded((self.plain(), other.plain()).apply(Op::Le))
            }

            #[inline]
            #[track_caller]
            fn gt(&self, other: &$right) -> bool {
                guarded((self.plain(), other.plain()).apply(Op::Gt))
            }

            #[inline]
            #[track_caller]
            fn ge(&self, other: &$right) -> bool {
                guarded((self.plain(), other.plain()).apply(Op::Ge))
            }
        }
    };
}

comparisons!(Var, Var);
comparisons!(Var, f64);
comparisons!(f64, Var);

macro_rules! formatting {
    ($($trait:ident),*) => {
        $(
            impl fmt::$trait for Var {
                /// Formats the number. The text is not traced, so the number is guarded as by
                /// [`Var::value`].
                #[track_caller]
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    fmt::$trait::fmt(&self.value(), f)
                }
            }
        )*
    };
}

formatting!(Debug, Display, LowerExp, UpperExp);
