//! `Plain`: types whose values are numbered, so that a `Var` can stand for a variable of the type.

use crate::trace::Var;

/// The values of a plain type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Numbering {
    /// 0 and 1: a `bool`.
    Flag,
    /// 0 to `n - 1`: the variants of an enum.
    Choices(u32),
    /// The integers of so many bits.
    Integer {
        /// The size of the type.
        bits: u32,
        /// Includes negative numbers.
        signed: bool,
    },
}

/// The absolute value up to which each integer is its own number. Beyond it the largest and the
/// smallest value of a type, which often stand for "none", have numbers of their own, and all
/// others of one sign have the same.
const EXACT: i128 = 1 << 53;
const EXTREME: i128 = 1 << 60;
const OTHER: i128 = 1 << 59;

impl Numbering {
    /// The smallest and the largest number that a sum may have.
    fn range(self) -> (i128, i128) {
        match self {
            Numbering::Flag => (0, 1),
            Numbering::Choices(count) => (0, i128::from(count) - 1),
            Numbering::Integer { bits, signed } => {
                let high = EXACT.min((1 << (bits - u32::from(signed))) - 1);
                (if signed { -high - i128::from(high < EXACT) } else { 0 }, high)
            }
        }
    }

    /// The smallest and the largest value of a type with values that are not exact.
    fn extremes(self) -> Option<(i128, i128)> {
        let Numbering::Integer { bits: 64, signed } = self else { return None };
        let high = (1 << (64 - u32::from(signed))) - 1;
        Some((if signed { -high - 1 } else { 0 }, high))
    }

    /// The number of a value. The order of numbers is that of the values.
    pub(super) fn number(self, wide: i128) -> f64 {
        let number = match self.extremes() {
            Some((low, high)) if wide.abs() > EXACT => match wide {
                _ if wide == high => EXTREME,
                _ if wide == low => -EXTREME,
                _ => OTHER * wide.signum(),
            },
            _ => wide,
        };
        number as f64
    }

    /// The value with this number, which is exact or extreme.
    fn value(self, number: f64) -> i128 {
        match (self.extremes(), number as i128) {
            (Some((_, high)), EXTREME) => high,
            (Some((low, _)), number) if number == -EXTREME => low,
            (_, number) => number,
        }
    }

    /// Tests whether a value can become a φ: no other has its number.
    pub(super) fn is_exact(self, wide: i128) -> bool {
        self.number(wide).abs() != OTHER as f64
    }

    /// Tests whether values of the type are tracked.
    pub(super) fn is_tracked(self) -> bool {
        !matches!(self, Numbering::Integer { bits: 128, .. })
    }
}

/// Types of flags, counters, indices and modes. Each value has a number.
pub trait Plain {
    /// The numbers of all values.
    const NUMBERING: Numbering;

    /// This value; a `u128` beyond the range wraps around.
    fn wide(&self) -> i128;
}

impl Plain for bool {
    const NUMBERING: Numbering = Numbering::Flag;

    #[inline]
    fn wide(&self) -> i128 {
        i128::from(*self)
    }
}

macro_rules! integers {
    ($($type:ty, $signed:literal;)*) => {
        $(
            impl Plain for $type {
                const NUMBERING: Numbering =
                    Numbering::Integer { bits: (8 * size_of::<$type>()) as u32, signed: $signed };

                #[inline]
                fn wide(&self) -> i128 {
                    *self as i128
                }
            }
        )*
    };
}

impl Plain for char {
    const NUMBERING: Numbering = Numbering::Integer { bits: 32, signed: false };

    #[inline]
    fn wide(&self) -> i128 {
        i128::from(u32::from(*self))
    }
}

integers! {
    u8, false;
    u16, false;
    u32, false;
    u64, false;
    usize, false;
    u128, false;
    i8, true;
    i16, true;
    i32, true;
    i64, true;
    isize, true;
    i128, true;
}

/// Guards that fix the number of a traced shadow. Each depends on the outcomes of those before it
/// only, so that runs with different numbers part at a guard.
#[cold]
#[track_caller]
pub(super) fn pin(numbering: Numbering, shadow: Var) {
    let (mut low, mut high) = match numbering {
        Numbering::Flag => (0.0, 2.0),
        Numbering::Choices(count) => (0.0, f64::from(count)),
        Numbering::Integer { signed, .. } => {
            let limit = EXACT as f64;
            let mut bounds = (0.0, 2.0);
            if signed && shadow < 0.0 {
                bounds = (-2.0, 0.0);
                while bounds.0 >= -limit && shadow < bounds.0 {
                    bounds = (bounds.0 * 8.0, bounds.0);
                }
                if bounds.0 < -limit && shadow < bounds.0 {
                    return;
                }
            } else {
                while bounds.1 <= limit && shadow >= bounds.1 {
                    bounds = (bounds.1, bounds.1 * 8.0);
                }
                if bounds.1 > limit && shadow >= bounds.1 {
                    return;
                }
            }
            bounds
        }
    };
    while high - low > 1.0 {
        let middle = ((low + high) * 0.5).floor();
        if shadow < middle {
            high = middle;
        } else {
            low = middle;
        }
    }
}

/// The change of a variable by something known.
#[derive(Clone, Copy)]
pub(super) struct Increment {
    /// It was written with a minus sign.
    pub(super) subtracts: bool,
    /// The variable is a counter: it would take 2²⁸ of its small steps to overflow 32 bits.
    pub(super) is_counter: bool,
}

/// The shadow of a sum with the number `after`: `before` plus something that is known on this path.
#[cold]
#[track_caller]
pub(super) fn add(
    numbering: Numbering,
    before: Var,
    number: f64,
    after: i128,
    Increment { subtracts, is_counter }: Increment,
) -> Var {
    if let Numbering::Integer { bits, signed } = numbering {
        // The summand, whether the sum has wrapped around or not.
        let modulus = 1i128 << bits;
        let least = match (signed, subtracts) {
            (true, _) => -modulus / 2,
            (false, true) => 1 - modulus,
            (false, false) => 0,
        };
        let by = (after - numbering.value(number) - least).rem_euclid(modulus) + least;
        if by == 0 {
            return before;
        }
        // Beyond the range the variable has wrapped around, or its number is not exact.
        let (sum, (low, high)) = (before + by as f64, numbering.range());
        let is_free = is_counter && bits >= 32 && (by > 0 || signed);
        if is_free || if by > 0 { sum <= high as f64 } else { sum >= low as f64 } {
            return sum;
        }
    }
    pin(numbering, before);
    Var::from(numbering.number(after))
}
