//! Comparisons of `Var` as guards, and formatting as an escape.

use core::cmp::Ordering;
use core::fmt;
use core::panic::Location;

use super::operators::Plain;
use super::{Var, operations};
use crate::op::{Op, eval};

impl Var {
    /// The outcome of a comparison, which is a guard unless both numbers are constants.
    #[inline(always)]
    #[track_caller]
    pub(super) fn compare(self, op: Op, other: Var) -> bool {
        let x = [self.value, other.value];
        let outcome = eval(op, [x[0], x[1], 0.0]) != 0.0;
        let of = [self.differential, other.differential];
        operations::guard(op, x, of, outcome, Location::caller());
        outcome
    }
}

macro_rules! comparisons {
    ($left:ty, $right:ty) => {
        impl PartialEq<$right> for $left {
            #[inline]
            #[track_caller]
            fn eq(&self, other: &$right) -> bool {
                Var::from(self.plain()).compare(Op::Eq, other.plain().into())
            }

            #[inline]
            #[track_caller]
            #[allow(clippy::partialeq_ne_impl)] // The guard repeats the operator that was used.
            fn ne(&self, other: &$right) -> bool {
                Var::from(self.plain()).compare(Op::Ne, other.plain().into())
            }
        }

        impl PartialOrd<$right> for $left {
            #[inline]
            #[track_caller]
            fn partial_cmp(&self, other: &$right) -> Option<Ordering> {
                let (a, b) = (Var::from(self.plain()), Var::from(other.plain()));
                if a.compare(Op::Lt, b) {
                    Some(Ordering::Less)
                } else if a.compare(Op::Gt, b) {
                    Some(Ordering::Greater)
                } else if a.compare(Op::Eq, b) {
                    Some(Ordering::Equal)
                } else {
                    None
                }
            }

            #[inline]
            #[track_caller]
            fn lt(&self, other: &$right) -> bool {
                Var::from(self.plain()).compare(Op::Lt, other.plain().into())
            }

            #[inline]
            #[track_caller]
            fn le(&self, other: &$right) -> bool {
                Var::from(self.plain()).compare(Op::Le, other.plain().into())
            }

            #[inline]
            #[track_caller]
            fn gt(&self, other: &$right) -> bool {
                Var::from(self.plain()).compare(Op::Gt, other.plain().into())
            }

            #[inline]
            #[track_caller]
            fn ge(&self, other: &$right) -> bool {
                Var::from(self.plain()).compare(Op::Ge, other.plain().into())
            }
        }
    };
}

comparisons!(Var, Var);
comparisons!(Var, f64);
comparisons!(f64, Var);

impl Var {
    /// Tests whether it is NaN, as a guard.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| if x[0].is_nan() { 2.0 * x[1] } else { x[0] * x[1] });
    /// assert_eq!(f.grad(&[3.0, 5.0])?, [5.0, 3.0]);
    /// assert_eq!(f.grad(&[f64::NAN, 5.0])?, [0.0, 2.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn is_nan(self) -> bool {
        #[allow(clippy::eq_op)] // The guard that is true for NaN alone.
        let nan = self != self;
        nan
    }

    /// The place of `self` in the order of [`f64::total_cmp`], as guards: with NaN above all
    /// numbers and -0 below 0. The sign of NaN does not count, because that of a computed one is
    /// not specified.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let least = Tape::record(|x: &[Var]| *x.iter().min_by(|a, b| a.total_cmp(b)).unwrap());
    /// assert_eq!(least.grad(&[3.0, f64::NAN, -0.0, 0.0])?, [0.0, 0.0, 1.0, 0.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[track_caller]
    pub fn total_cmp(&self, other: &Var) -> Ordering {
        match self.partial_cmp(other) {
            // Zeros may have different signs.
            Some(Ordering::Equal) => {
                let sign = |number: &Var| Var::constant(1.0).copysign(*number);
                sign(self).partial_cmp(&sign(other)).unwrap_or(Ordering::Equal)
            }
            Some(order) => order,
            None => match (self.is_nan(), other.is_nan()) {
                (true, false) => Ordering::Greater,
                (false, _) => Ordering::Less,
                (true, true) => Ordering::Equal,
            },
        }
    }

    /// Tests whether it is infinite, as a guard.
    #[inline]
    #[track_caller]
    pub fn is_infinite(self) -> bool {
        self.abs() == f64::INFINITY
    }

    /// Tests whether it is neither infinite nor NaN, as a guard.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| if x[0].exp().is_finite() { x[0].exp() } else { x[0] });
    /// assert_eq!(f.grad(&[0.0])?, [1.0]);
    /// assert_eq!(f.value_and_grad(&[1000.0])?, (1000.0, vec![1.0]));
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn is_finite(self) -> bool {
        self.abs() < f64::INFINITY
    }
}

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
