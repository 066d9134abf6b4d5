//! The scaled complementary error function with its repeated integrals, and the inverses of the
//! error functions.
//!
//! With the repeated integrals iⁿerfc of NIST Digital Library of Mathematical Functions, 7.18, the
//! functions wₙ(x) = exp(x²)·iⁿerfc(x) have the derivatives wₙ′ = -2(n + 1)·wₙ₊₁, in which nothing
//! cancels: the derivatives of exp(x²)·erfc(x) = w₀ keep their digits where those of the product
//! would not. Compared with 60 digits, the relative error of w₀ is below 1e-15 and that of w₁ and
//! w₂ below 4e-15. The inverses are within 2 ulp.

use core::f64::consts::{FRAC_2_SQRT_PI, PI};

/// The largest number of integrations.
const MAX_ORDER: f64 = 30.0;

/// √π / 2
const FRAC_SQRT_PI_2: f64 = 0.886_226_925_452_758;

/// exp(x²)·iⁿerfc(x), for n the whole number nearest to `order`; NaN where that is below 0 or
/// above 30. Below x = -26.6 it is infinite.
///
/// For 0 < x < 1 cancellation takes one digit for every two orders from order 3 on.
pub(in crate::op) fn erfcx(x: f64, order: f64) -> f64 {
    let order = order.round();
    if !(0.0..=MAX_ORDER).contains(&order) {
        return f64::NAN;
    }
    let order = order as u32;
    let value = scaled(x);
    if order == 0 {
        return value;
    }
    if x >= 1.0 {
        return value * ratio(x, order);
    }
    // Recurrence 7.18.7. For x < 0 no term is negative, up to 1 little cancels in the first orders.
    let (mut before, mut value) = (FRAC_2_SQRT_PI, value);
    for n in 1..=order {
        (before, value) = (value, (before - 2.0 * x * value) / f64::from(2 * n));
    }
    value
}

/// exp(x²)·erfc(x)
fn scaled(x: f64) -> f64 {
    if x < -30.0 {
        return f64::INFINITY;
    }
    if x < 25.0 {
        return exp_of_square(x) * libm::erfc(x);
    }
    // The asymptotic series 7.12.1.
    let step = 0.5 / (x * x);
    let sum = (1..=9).rev().fold(1.0, |sum, k| 1.0 - f64::from(2 * k - 1) * step * sum);
    0.5 * FRAC_2_SQRT_PI * sum / x
}

/// exp(x²), where the rounding error of the square does not count.
fn exp_of_square(x: f64) -> f64 {
    let square = x * x;
    let exponential = square.exp();
    // Infinite squares have no rounding error.
    if exponential < f64::INFINITY {
        exponential * (1.0 + x.mul_add(x, -square))
    } else {
        exponential
    }
}

/// wₙ / w₀ for n = `order` and x ≥ 1: the product of the continued fractions wₙ / wₙ₋₁, which the
/// recurrence gives backwards.
fn ratio(x: f64, order: u32) -> f64 {
    let terms = order + 20 + (200.0 / (x * x)) as u32;
    let mut fraction = 1.0 / (x + (x * x + f64::from(2 * terms)).sqrt());
    let mut product = 1.0;
    for n in (1..terms).rev() {
        fraction = 1.0 / (2.0 * x + f64::from(2 * (n + 1)) * fraction);
        if n <= order {
            product *= fraction;
        }
    }
    product
}

/// The number whose error function is `x`; ±∞ for ±1 and NaN outside [-1, 1].
pub(in crate::op) fn erf_inv(x: f64) -> f64 {
    if x.abs() > 0.5 {
        // The difference is exact.
        return tail(1.0 - x.abs()).copysign(x);
    }
    if x == 0.0 {
        return x;
    }
    let mut y = near((-x * x).ln_1p()).copysign(x);
    for _ in 0..3 {
        let newton = (libm::erf(y) - x) * FRAC_SQRT_PI_2 * (y * y).exp();
        y -= newton / newton.mul_add(y, 1.0);
    }
    y
}

/// The number whose complementary error function is `x`; ±∞ for 0 and 2 and NaN outside
/// [0, 2].
pub(in crate::op) fn erfc_inv(x: f64) -> f64 {
    // The differences are exact.
    match x {
        _ if x <= 0.5 => tail(x),
        _ if x < 1.5 => erf_inv(1.0 - x),
        _ => -tail(2.0 - x),
    }
}

/// The number whose complementary error function is `x`, for x ≤ 1/2.
fn tail(x: f64) -> f64 {
    if x <= 0.0 {
        return if x == 0.0 { f64::INFINITY } else { f64::NAN };
    }
    // Newton's method for the logarithms, whose difference is nearly a parabola.
    let logarithm = x.ln();
    let mut y = near(logarithm + (2.0 - x).ln());
    for _ in 0..4 {
        let scaled = scaled(y);
        y += (scaled.ln() - y.mul_add(y, logarithm)) * scaled * FRAC_SQRT_PI_2;
    }
    y
}

/// The number y > 0 with this logarithm of 1 - erf(y)², to two digits: Winitzki's formula.
fn near(logarithm: f64) -> f64 {
    const A: f64 = 0.147;
    let half = 2.0 / (PI * A) + 0.5 * logarithm;
    ((half * half - logarithm / A).sqrt() - half).max(0.0).sqrt()
}
