//! The traits of `num_traits`, so that generic numerical code takes `Var`.

use core::num::FpCategory;

use num_traits::{
    Bounded, Float, FloatConst, FromPrimitive, Num, NumCast, One, Signed, ToPrimitive, Zero,
};

use super::Var;

impl Zero for Var {
    fn zero() -> Self {
        Var::constant(0.0)
    }

    #[track_caller]
    fn is_zero(&self) -> bool {
        *self == 0.0
    }
}

impl One for Var {
    fn one() -> Self {
        Var::constant(1.0)
    }

    #[track_caller]
    fn is_one(&self) -> bool {
        *self == 1.0
    }
}

impl Num for Var {
    type FromStrRadixErr = <f64 as Num>::FromStrRadixErr;

    fn from_str_radix(text: &str, radix: u32) -> Result<Self, Self::FromStrRadixErr> {
        f64::from_str_radix(text, radix).map(Var::constant)
    }
}

impl Bounded for Var {
    fn min_value() -> Self {
        Var::constant(f64::MIN)
    }

    fn max_value() -> Self {
        Var::constant(f64::MAX)
    }
}

/// Conversions to integers guard the integer part, so that the compiled gradient is used for every
/// number that converts to the same integer.
macro_rules! truncated {
    ($($name:ident $integer:ty),+) => {
        $(#[track_caller]
        fn $name(&self) -> Option<$integer> {
            self.trunc().value().$name()
        })+
    };
}

impl ToPrimitive for Var {
    truncated!(
        to_isize isize, to_i8 i8, to_i16 i16, to_i32 i32, to_i64 i64, to_i128 i128,
        to_usize usize, to_u8 u8, to_u16 u16, to_u32 u32, to_u64 u64, to_u128 u128
    );

    #[track_caller]
    fn to_f32(&self) -> Option<f32> {
        self.value().to_f32()
    }

    #[track_caller]
    fn to_f64(&self) -> Option<f64> {
        Some(self.value())
    }
}

impl NumCast for Var {
    /// The constant of this value: casting a `Var` through this trait reads the
    /// number out and guards it.
    #[track_caller]
    fn from<T: ToPrimitive>(number: T) -> Option<Self> {
        number.to_f64().map(Var::constant)
    }
}

impl FromPrimitive for Var {
    fn from_i64(number: i64) -> Option<Self> {
        number.to_f64().map(Var::constant)
    }

    fn from_u64(number: u64) -> Option<Self> {
        number.to_f64().map(Var::constant)
    }

    fn from_f64(number: f64) -> Option<Self> {
        Some(Var::constant(number))
    }
}

impl Signed for Var {
    #[track_caller]
    fn abs(&self) -> Self {
        Var::abs(*self)
    }

    #[track_caller]
    fn abs_sub(&self, other: &Self) -> Self {
        self.at_most(*other).select(0.0, *self - *other)
    }

    #[track_caller]
    fn signum(&self) -> Self {
        Var::signum(*self)
    }

    #[track_caller]
    fn is_positive(&self) -> bool {
        self.is_sign_positive()
    }

    #[track_caller]
    fn is_negative(&self) -> bool {
        self.is_sign_negative()
    }
}

macro_rules! constants {
    ($($name:ident)*) => {
        #[allow(non_snake_case)]
        impl FloatConst for Var {
            $(
                fn $name() -> Self {
                    Var::constant(core::f64::consts::$name)
                }
            )*
        }
    };
}

constants! {
    E FRAC_1_PI FRAC_1_SQRT_2 FRAC_2_PI FRAC_2_SQRT_PI FRAC_PI_2 FRAC_PI_3 FRAC_PI_4 FRAC_PI_6
    FRAC_PI_8 LN_10 LN_2 LOG10_2 LOG10_E LOG2_10 LOG2_E PI SQRT_2 TAU
}

macro_rules! float {
    (
        values { $($value:ident = $constant:expr;)* }
        unary { $($unary:ident)* }
        binary { $($binary:ident)* }
    ) => {
        impl Float for Var {
            $(
                fn $value() -> Self {
                    Var::constant($constant)
                }
            )*
            $(
                #[inline]
                #[track_caller]
                fn $unary(self) -> Self {
                    Var::$unary(self)
                }
            )*
            $(
                #[inline]
                #[track_caller]
                fn $binary(self, other: Self) -> Self {
                    Var::$binary(self, other)
                }
            )*

            #[track_caller]
            fn is_nan(self) -> bool {
                Var::is_nan(self)
            }

            #[track_caller]
            fn is_infinite(self) -> bool {
                Var::is_infinite(self)
            }

            #[track_caller]
            fn is_finite(self) -> bool {
                Var::is_finite(self)
            }

            #[track_caller]
            fn is_normal(self) -> bool {
                let magnitude = Var::abs(self);
                #[allow(clippy::manual_range_contains)] // Guards at this place, not in `core`.
                let normal = magnitude >= f64::MIN_POSITIVE && magnitude < f64::INFINITY;
                normal
            }

            #[track_caller]
            fn classify(self) -> FpCategory {
                if self.is_nan() {
                    FpCategory::Nan
                } else if self.is_infinite() {
                    FpCategory::Infinite
                } else if self == 0.0 {
                    FpCategory::Zero
                } else if self.is_normal() {
                    FpCategory::Normal
                } else {
                    FpCategory::Subnormal
                }
            }

            #[track_caller]
            fn is_sign_positive(self) -> bool {
                Var::constant(1.0).copysign(self) > 0.0
            }

            #[track_caller]
            fn is_sign_negative(self) -> bool {
                Var::constant(1.0).copysign(self) < 0.0
            }

            #[inline]
            #[track_caller]
            fn mul_add(self, a: Self, b: Self) -> Self {
                Var::mul_add(self, a, b)
            }

            #[inline]
            #[track_caller]
            fn powi(self, n: i32) -> Self {
                Var::powi(self, n)
            }

            #[track_caller]
            fn clamp(self, low: Self, high: Self) -> Self {
                Var::clamp(self, low, high)
            }

            #[track_caller]
            fn abs_sub(self, other: Self) -> Self {
                self.at_most(other).select(0.0, self - other)
            }

            #[track_caller]
            fn sin_cos(self) -> (Self, Self) {
                Var::sin_cos(self)
            }

            #[track_caller]
            fn integer_decode(self) -> (u64, i16, i8) {
                self.value().integer_decode()
            }
        }
    };
}

float! {
    values {
        nan = f64::NAN;
        infinity = f64::INFINITY;
        neg_infinity = f64::NEG_INFINITY;
        neg_zero = -0.0;
        min_value = f64::MIN;
        min_positive_value = f64::MIN_POSITIVE;
        max_value = f64::MAX;
        epsilon = f64::EPSILON;
    }
    unary {
        floor ceil round trunc fract abs signum recip sqrt exp exp2 ln log2 log10 to_degrees
        to_radians cbrt sin cos tan asin acos atan exp_m1 ln_1p sinh cosh tanh asinh acosh atanh
    }
    binary { powf log max min hypot atan2 copysign }
}
