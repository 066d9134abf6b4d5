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

/// The integers that a traced shadow may have, and the largest summand that needs no guard.
///
/// A run has fewer than 2³² events, and a loop in a kernel no more iterations than were recorded:
/// sums of summands up to `free` stay far from the limits of the type, and exact as `f64`.
pub(super) struct Range {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) free: f64,
}

impl Numbering {
    pub(super) fn range(self) -> Range {
        let power = |exponent: u32| f64::from(exponent).exp2();
        let (bits, signed) = match self {
            Numbering::Flag => return Range { low: 0.0, high: 1.0, free: 0.0 },
            Numbering::Choices(count) => {
                return Range { low: 0.0, high: f64::from(count) - 1.0, free: 0.0 };
            }
            Numbering::Integer { bits, signed } => (bits, signed),
        };
        let (low, high, free) = match (bits, signed) {
            (..=16, true) => (-power(bits - 1), power(bits - 1) - 1.0, 0.0),
            (..=16, false) => (0.0, power(bits) - 1.0, 0.0),
            (..=32, _) => (-power(30), power(30), 16.0),
            _ => (-power(52), power(52), power(20)),
        };
        Range { low: if signed { low } else { 0.0 }, high, free }
    }
}

/// Types of flags, counters, indices and modes. Each value has a number.
pub trait Plain {
    /// The numbers of all values.
    const NUMBERING: Numbering;

    /// The number of this value; its bits if it is not in the range of this type.
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
            let mut bounds = (0.0, 2.0);
            if signed && shadow < 0.0 {
                bounds = (-2.0, 0.0);
                while shadow < bounds.0 {
                    bounds = (bounds.0 * 8.0, bounds.0);
                }
            } else {
                while shadow >= bounds.1 {
                    bounds = (bounds.1, bounds.1 * 8.0);
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

/// The shadow of a sum with the number `after`: `before` plus something that is known on this path.
/// `subtracts` tells that it was written with a minus sign.
#[cold]
#[track_caller]
pub(super) fn add(
    numbering: Numbering,
    before: Var,
    number: f64,
    after: i128,
    subtracts: bool,
) -> Var {
    if let Numbering::Integer { bits: bits @ ..=64, signed } = numbering {
        // The summand, whether the sum has wrapped around or not.
        let modulus = 1i128 << bits;
        let least = match (signed, subtracts) {
            (true, _) => -modulus / 2,
            (false, true) => 1 - modulus,
            (false, false) => 0,
        };
        let by = (after - number as i128 - least).rem_euclid(modulus) + least;
        if by == 0 {
            return before;
        }
        let by = by as f64;
        let (sum, range) = (before + by, numbering.range());
        let is_free = by.abs() <= range.free && (by > 0.0 || signed);
        if is_free || (if by > 0.0 { sum <= range.high } else { sum >= range.low }) {
            return sum;
        }
    }
    pin(numbering, before);
    Var::from(after as f64)
}
