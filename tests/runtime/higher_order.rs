//! Derivatives of the third order and above, by gradients inside recorded functions: against the
//! coefficients of Taylor series, and against formulas.

use core::ops::{Add, Div, Mul, Sub};
use std::sync::Arc;

use phigrad::internals::Random;
use phigrad::{Recorded, Tape, TapeBuilder, Var};

use crate::common::served::{NUMERICS, manual};

/// The number of coefficients of a series.
const TERMS: usize = 7;

/// The Taylor series of a number along a line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Series([f64; TERMS]);

impl Series {
    /// The derivative of this order along the line.
    fn derivative(self, order: usize) -> f64 {
        (1..=order).fold(self.0[order], |product, factor| product * factor as f64)
    }

    fn of(value: f64, slope: f64) -> Series {
        let mut terms = [0.0; TERMS];
        (terms[0], terms[1]) = (value, slope);
        Series(terms)
    }

    /// The solution of y' = x'·`rate`(terms of y so far, k), with the first term `first`.
    fn integral(self, first: f64, rate: impl Fn(&[f64; TERMS]) -> Series) -> Series {
        let mut y = Series::of(first, 0.0).0;
        for k in 1..TERMS {
            let rate = rate(&y).0;
            let sum: f64 = (1..=k).map(|i| i as f64 * self.0[i] * rate[k - i]).sum();
            y[k] = sum / k as f64;
        }
        Series(y)
    }

    fn exp(self) -> Series {
        self.integral(self.0[0].exp(), |y| Series(*y))
    }

    fn ln(self) -> Series {
        let rate = Series::of(1.0, 0.0) / self;
        self.integral(self.0[0].ln(), |_| rate)
    }

    fn sqrt(self) -> Series {
        (0.5 * self.ln()).exp()
    }

    fn sin(self) -> Series {
        let (mut sin, mut cos) = (Series::of(self.0[0].sin(), 0.0), Series::of(self.0[0].cos(), 0.0));
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

mixed! { Add add, Sub sub, Mul mul, Div div, }

/// Programs of two numbers, for `Var` and for [`Series`].
macro_rules! programs {
    ($($(#[$meta:meta])* fn $name:ident($x:ident, $y:ident) $body:block)*) => {
        mod traced_numbers {
            use phigrad::Var as Number;

            $(
                $(#[$meta])*
                fn $name(numbers: &[Number]) -> Number {
                    let ($x, $y) = (numbers[0], numbers[1]);
                    $body
                }
            )*

            pub const ALL: &[(&str, fn(&[Number]) -> Number)] =
                &[$((stringify!($name), $name)),*];
        }

        mod series {
            use super::Series as Number;

            $(
                fn $name(numbers: &[Number]) -> Number {
                    let ($x, $y) = (numbers[0], numbers[1]);
                    $body
                }
            )*

            pub const ALL: &[fn(&[Number]) -> Number] = &[$($name),*];
        }
    };
}

programs! {
    fn polynomial(x, y) { x * x * x * y - 2.0 * x * y * y + 0.5 * x * x * x * x }

    fn exponential(x, y) { (x * y).exp() + (x - 2.0 * y).sin() }

    fn quotient(x, y) { x / (2.0 + y * y) * (1.0 + x * x).sqrt() }

    fn logarithm(x, y) { (x.exp() + (2.0 * y).exp() + 1.0).ln() * y }

    fn branch(x, y) { if x > y { x * y.sin() * x } else { (x * y).exp() } }

    #[phigrad::traced]
    fn traced_branch(x, y) {
        let mut z = x * y;
        if z > 0.0 {
            z = z.exp();
        } else {
            z = z * z * y;
        }
        z * x + y.sin()
    }

    fn recurrence(x, y) {
        let mut z = y;
        for k in 0..7 {
            z = z * x + (y * f64::from(k)).sin();
        }
        z
    }

    fn search(x, y) {
        let mut z = y * y + 0.5;
        while z < 4.0 {
            z = z * (1.5 + 0.25 * x * x);
        }
        z * x
    }

    #[phigrad::traced]
    fn traced_search(x, y) {
        let mut z = y * y + 0.5;
        let mut sum = x;
        while z < 4.0 {
            if sum > 1.0 {
                z = z * (1.5 + 0.25 * x * x);
            } else {
                z = z + 1.0 + (x * z).sin() * 0.25;
            }
            sum = sum + z * 0.25;
        }
        z * sum
    }

    #[phigrad::traced]
    fn pendulum(x, y) {
        let (mut angle, mut speed) = (x, y);
        for _ in 0..12 {
            speed = speed - 0.2 * angle.sin();
            angle = angle + 0.2 * speed;
        }
        angle * speed
    }
}

/// The derivative of `f` along `v`, by its gradient.
fn along<F: Fn(&[Var]) -> Var + Send + Sync + 'static>(
    builder: TapeBuilder,
    f: Arc<Recorded<F>>,
    v: [f64; 2],
) -> Arc<Recorded<impl Fn(&[Var]) -> Var + Send + Sync + 'static>> {
    Arc::new(builder.record(move |x: &[Var]| {
        let gradient = f.call_grad(x).unwrap();
        gradient[0] * v[0] + gradient[1] * v[1]
    }))
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn assert_near(name: &str, found: f64, expected: f64) {
    let tolerance = 1e-10 * expected.abs().max(1.0);
    assert!((found - expected).abs() <= tolerance, "{name}: {found} {expected}");
}

/// Compares the third and fourth derivatives of all programs, and what serves them.
fn check(builder: impl Fn() -> TapeBuilder, compile: bool, has_kernels: bool) {
    let mut random = Random::new(7);
    let programs = traced_numbers::ALL.iter().zip(series::ALL);
    for (&(name, program), series) in programs {
        let v = [random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0)];
        let f = Arc::new(builder().record(program));
        let first = along(builder(), f, v);
        let second = along(builder(), Arc::clone(&first), v);
        let mut served = 0;
        for round in 0..12 {
            let x = [random.uniform(-1.5, 1.5), random.uniform(-1.5, 1.5)];
            let line = [Series::of(x[0], v[0]), Series::of(x[1], v[1])];
            let [_, _, two, three, four] = core::array::from_fn(|k| series(&line).derivative(k));
            assert_near(name, dot(&first.grad(&x).unwrap(), &v), two);
            assert_near(name, dot(&first.hvp(&x, &v).unwrap(), &v), three);
            let hessian = first.hessian(&x).unwrap();
            let product = [dot(&hessian[..2], &v), dot(&hessian[2..], &v)];
            assert_near(name, dot(&product, &v), three);
            let sparse = first.sparse_hessian(&x).unwrap();
            let entries = sparse.triplets().map(|(row, column, entry)| v[row] * entry * v[column]);
            assert_near(name, entries.sum(), three);
            assert_near(name, dot(&second.grad(&x).unwrap(), &v), three);
            let before = second.report().kernel_calls;
            assert_near(name, dot(&second.hvp(&x, &v).unwrap(), &v), four);
            served += second.report().kernel_calls - before;
            if compile && round % 4 == 3 {
                first.compile().unwrap();
                second.compile().unwrap();
            }
        }
        assert_eq!(served > 0, has_kernels, "{name}: {}", second.report());
    }
}

#[test]
fn the_tape_has_third_and_fourth_derivatives() {
    check(|| Tape::builder().tape_only(), false, false);
}

#[test]
fn kernels_have_third_and_fourth_derivatives() {
    for numerics in NUMERICS {
        check(|| manual(numerics), true, true);
    }
}

#[test]
fn kernels_of_first_calls_have_third_and_fourth_derivatives() {
    check(|| Tape::builder().compile_at_first_call(), false, true);
}
