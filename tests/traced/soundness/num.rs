//! The numbers that the programs are generic over.

use core::fmt::Debug;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use phigrad::{Carry, Var};

/// A plain number or a traced one, with what the programs need.
pub trait Num:
    Copy
    + Carry
    + Debug
    + Default
    + PartialOrd
    + PartialOrd<f64>
    + From<f64>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
    + Div<f64, Output = Self>
    + AddAssign
    + SubAssign
    + AddAssign<f64>
    + 'static
{
    fn sin(self) -> Self;
    fn exp(self) -> Self;
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    fn floor(self) -> Self;
    fn larger(self, other: Self) -> Self;
    /// The number as it leaves the recording.
    fn value(self) -> f64;
}

macro_rules! nums {
    ($($type:ty, |$x:ident| $value:expr;)*) => {
        $(
            impl Num for $type {
                fn sin(self) -> Self {
                    <$type>::sin(self)
                }

                fn exp(self) -> Self {
                    <$type>::exp(self)
                }

                fn sqrt(self) -> Self {
                    <$type>::sqrt(self)
                }

                fn abs(self) -> Self {
                    <$type>::abs(self)
                }

                fn floor(self) -> Self {
                    <$type>::floor(self)
                }

                fn larger(self, other: Self) -> Self {
                    <$type>::max(self, other)
                }

                fn value(self) -> f64 {
                    let $x = self;
                    $value
                }
            }
        )*
    };
}

nums! {
    f64, |x| x;
    Var, |x| Var::value(x);
}
