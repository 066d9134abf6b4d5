//! Numbers as Taylor series along a line, for derivatives of any order.

use core::ops::{Add, AddAssign, Div, Mul, MulAssign, Sub, SubAssign};

/// The number of coefficients of a series.
const TERMS: usize = 7;

/// The Taylor series of a number along a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Series([f64; TERMS]);

impl Series {
    /// The derivative of this order along the line.
    pub fn derivative(self, order: usize) -> f64 {
        (1..=order).fold(self.0[order], |product, factor| product * factor as f64)
    }

    /// The number `value` that changes along the line by `slope`.
    pub fn of(value: f64, slope: f64) -> Series {
        let mut terms = [0.0; TERMS];
        (terms[0], terms[1]) = (value, slope);
        Series(terms)
    }

    /// The solution of y' = x'·`rate`(y), with the first term `first`; the rate is asked for the
    /// terms so far.
    fn integral(self, first: f64, rate: impl Fn(&[f64; TERMS]) -> Series) -> Series {
        let mut y = Series::of(first, 0.0).0;
        for k in 1..TERMS {
            let rate = rate(&y).0;
            let sum: f64 = (1..=k).map(|i| i as f64 * self.0[i] * rate[k - i]).sum();
            y[k] = sum / k as f64;
        }
        Series(y)
    }

    pub fn exp(self) -> Series {
        self.integral(self.0[0].exp(), |y| Series(*y))
    }

    pub fn ln(self) -> Series {
        let rate = Series::of(1.0, 0.0) / self;
        self.integral(self.0[0].ln(), |_| rate)
    }

    pub fn sqrt(self) -> Series {
        (0.5 * self.ln()).exp()
    }

    pub fn sin(self) -> Series {
        let (mut sin, mut cos) =
            (Series::of(self.0[0].sin(), 0.0), Series::of(self.0[0].cos(), 0.0));
        for _ in 1..TERMS {
            sin = self.integral(sin.0[0], |_| cos);
            cos = 0.0 - self.integral(-cos.0[0], |_| sin);
        }
        sin
    }
}

impl PartialOrd for Series {
    fn partial_cmp(&self, other: &Series) -> Option<core::cmp::Ordering> {
        self.0[0].partial_cmp(&other.0[0])
    }
}

impl PartialEq<f64> for Series {
    fn eq(&self, other: &f64) -> bool {
        self.0[0] == *other
    }
}

impl PartialOrd<f64> for Series {
    fn partial_cmp(&self, other: &f64) -> Option<core::cmp::Ordering> {
        self.0[0].partial_cmp(other)
    }
}

impl Add for Series {
    type Output = Series;
    fn add(self, other: Series) -> Series {
        Series(core::array::from_fn(|k| self.0[k] + other.0[k]))
    }
}

impl Sub for Series {
    type Output = Series;
    fn sub(self, other: Series) -> Series {
        Series(core::array::from_fn(|k| self.0[k] - other.0[k]))
    }
}

impl Mul for Series {
    type Output = Series;
    fn mul(self, other: Series) -> Series {
        Series(core::array::from_fn(|k| (0..=k).map(|i| self.0[i] * other.0[k - i]).sum()))
    }
}

impl Div for Series {
    type Output = Series;
    fn div(self, other: Series) -> Series {
        let mut y = [0.0; TERMS];
        for k in 0..TERMS {
            let sum: f64 = (0..k).map(|i| y[i] * other.0[k - i]).sum();
            y[k] = (self.0[k] - sum) / other.0[0];
        }
        Series(y)
    }
}

macro_rules! mixed {
    ($($operator:ident $method:ident,)*) => {$(
        impl $operator<f64> for Series {
            type Output = Series;
            fn $method(self, other: f64) -> Series {
                self.$method(Series::of(other, 0.0))
            }
        }

        impl $operator<Series> for f64 {
            type Output = Series;
            fn $method(self, other: Series) -> Series {
                Series::of(self, 0.0).$method(other)
            }
        }
    )*};
}

macro_rules! assigning {
    ($($operator:ident $assign:ident $by:ident $method:ident,)*) => {$(
        impl<T> $operator<T> for Series
        where
            Series: $by<T, Output = Series>,
        {
            fn $assign(&mut self, other: T) {
                *self = self.$method(other);
            }
        }
    )*};
}

mixed! { Add add, Sub sub, Mul mul, Div div, }
assigning! {
    AddAssign add_assign Add add,
    SubAssign sub_assign Sub sub,
    MulAssign mul_assign Mul mul,
}
