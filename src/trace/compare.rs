//! Comparisons of `Var` as guards, and formatting as an escape.

use core::cmp::Ordering;
use core::fmt;

use super::{Var, recorder};
use crate::op::Op;

impl Var {
    /// The outcome of `op`, recorded as a guard unless both sides are constants.
    #[inline]
    #[track_caller]
    pub(super) fn guarded(self, op: Op, other: Var) -> bool {
        let comparison = self.apply2(op, other);
        let outcome = comparison.value != 0.0;
        if !comparison.is_constant() {
            recorder::guard(outcome);
        }
        outcome
    }

    #[track_caller]
    fn ordering(self, other: Var) -> Option<Ordering> {
        if self.guarded(Op::Lt, other) {
            Some(Ordering::Less)
        } else if self.guarded(Op::Gt, other) {
            Some(Ordering::Greater)
        } else if self.guarded(Op::Eq, other) {
            Some(Ordering::Equal)
        } else {
            None
        }
    }
}

macro_rules! comparisons {
    ($left:ty, $right:ty) => {
        impl PartialEq<$right> for $left {
            #[inline]
            #[track_caller]
            fn eq(&self, other: &$right) -> bool {
                Var::from(*self).guarded(Op::Eq, Var::from(*other))
            }

            #[inline]
            #[track_caller]
            #[allow(clippy::partialeq_ne_impl)] // The guard repeats the operator that was used.
            fn ne(&self, other: &$right) -> bool {
                Var::from(*self).guarded(Op::Ne, Var::from(*other))
            }
        }

        impl PartialOrd<$right> for $left {
            #[inline]
            #[track_caller]
            fn partial_cmp(&self, other: &$right) -> Option<Ordering> {
                Var::from(*self).ordering(Var::from(*other))
            }

            #[inline]
            #[track_caller]
            fn lt(&self, other: &$right) -> bool {
                Var::from(*self).guarded(Op::Lt, Var::from(*other))
            }

            #[inline]
            #[track_caller]
            fn le(&self, other: &$right) -> bool {
                Var::from(*self).guarded(Op::Le, Var::from(*other))
            }

            #[inline]
            #[track_caller]
            fn gt(&self, other: &$right) -> bool {
                Var::from(*self).guarded(Op::Gt, Var::from(*other))
            }

            #[inline]
            #[track_caller]
            fn ge(&self, other: &$right) -> bool {
                Var::from(*self).guarded(Op::Ge, Var::from(*other))
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
                /// Formats the number. What is printed leaves the recording, so
                /// this guards the number as [`Var::value`] does.
                #[track_caller]
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    fmt::$trait::fmt(&self.value(), f)
                }
            }
        )*
    };
}

formatting!(Debug, Display, LowerExp, UpperExp);
