//! The regularised incomplete gamma function with its derivatives by the shape, the gamma density,
//! and differences of ln Γ and its derivatives.
//!
//! Powers of x are taken by deviance and Stirling's remainder (Loader, Fast and Accurate
//! Computation of Binomial Probabilities, 2000), which keep the digits that the difference of large
//! logarithms would lose. Where x is below exp(ψ(a + 1)) the lower integral is computed, by the
//! series of NIST Digital Library of Mathematical Functions, 8.7.1; above it the upper integral,
//! by the continued fraction 8.9.2. For large shapes, and for the derivatives of the upper one,
//! there is quadrature. The integrands of the first derivative by the shape have one sign on that
//! side, so it keeps its digits too.
//!
//! Derivatives by the shape are those under the integral: with the complete Bell polynomials Bₙ of
//! ln t - ψ(a + 1), -ψ′(a + 1), -ψ″(a + 1) …, the derivative of order n of tᵃ/Γ(a + 1) is that
//! number times Bₙ, and the derivative of tᵃ/Γ(a) is tᵃ/Γ(a + 1) times a·Bₙ + n·Bₙ₋₁.

use core::f64::consts::TAU;

use super::fraction::continued_fraction;
use super::polygamma::polygamma;
use super::quadrature::integral;
use crate::op::powi;

/// The largest order of derivatives by the shape.
const MAX_ORDER: usize = 30;

/// Shapes from here on have a Stirling series.
pub(super) const LARGE: f64 = 10.0;

/// The terms of series and fraction grow as √a; from here on quadrature is faster.
const LARGE_FOR_SERIES: f64 = 200.0;

/// Stirling's remainder ln Γ(z) - (z - 1/2)·ln z + z - ln(2π)/2 is Σⱼ cⱼ / z²ʲ⁻¹
/// with these numbers cⱼ = B₂ⱼ / (2j·(2j - 1)).
const STIRLING: [f64; 10] = [
    1.0 / 12.0,
    -1.0 / 360.0,
    1.0 / 1260.0,
    -1.0 / 1680.0,
    1.0 / 1188.0,
    -691.0 / 360360.0,
    1.0 / 156.0,
    -3617.0 / 122400.0,
    43867.0 / 244188.0,
    -174611.0 / 125400.0,
];

/// The powers of 1/z in it.
const ODD: [u32; 10] = [1, 3, 5, 7, 9, 11, 13, 15, 17, 19];

/// The derivative by a, of the order that is nearest to `order`, of ln Γ(a + b) - ln Γ(a): for
/// order 0 the logarithm of the rising factorial, for order n a difference of polygamma functions.
/// NaN for orders below 0 or above 30, and unless a and a + b are positive.
///
/// Compared with 60 digits, the relative error is below 4e-15 from order 1 on; for order 0 it is
/// below 4e-15 of the largest of b, b·ln a and (a + b)·ln(1 + b/a).
pub(in crate::op) fn ln_rising(a: f64, b: f64, order: f64) -> f64 {
    let order = order.round();
    if !((0.0..=MAX_ORDER as f64).contains(&order) && a > 0.0 && a + b > 0.0) {
        return f64::NAN;
    }
    let order = order as u32;
    if a == f64::INFINITY || b == f64::INFINITY {
        return infinite_rising(a, b, order);
    }
    let large = LARGE + f64::from(order);
    let steps = (large - a.min(a + b)).ceil().max(0.0) as u32;
    let mut sum = rising_series(a + f64::from(steps), b, order);
    // The largest terms last.
    for step in (0..steps).rev() {
        let z = a + f64::from(step);
        sum -= match order {
            0 => logarithm_of_ratio(z, b),
            // Simpler and more accurate than the general form.
            1 => -b / z / (z + b),
            _ => signed_factorial(order - 1) * difference_of_powers(order, z, b),
        };
    }
    sum
}

fn infinite_rising(a: f64, b: f64, order: u32) -> f64 {
    match order {
        _ if b == 0.0 => 0.0,
        0 => f64::INFINITY.copysign(b),
        1 if a < f64::INFINITY => f64::INFINITY,
        _ if a < f64::INFINITY => -polygamma(a, f64::from(order - 1)),
        _ => 0.0,
    }
}

/// ln((z + b) / z)
fn logarithm_of_ratio(z: f64, b: f64) -> f64 {
    let ratio = b / z;
    if ratio < f64::INFINITY { ratio.ln_1p() } else { (z + b).ln() - z.ln() }
}

/// (-1)ᵐ·m!
fn signed_factorial(m: u32) -> f64 {
    (1..=m).fold(1.0, |product, factor| -product * f64::from(factor))
}

/// 1/(z + b)ᵖ - 1/zᵖ
fn difference_of_powers(power: u32, z: f64, b: f64) -> f64 {
    let power = power as i32;
    (-f64::from(power) * logarithm_of_ratio(z, b)).exp_m1() / powi(z, power)
}

/// [`ln_rising`] by Stirling's series, for z and z + b from 10 + `order` on.
fn rising_series(z: f64, b: f64, order: u32) -> f64 {
    let logarithm = logarithm_of_ratio(z, b);
    let mut sum = 0.0;
    for (coefficient, power) in STIRLING.into_iter().zip(ODD).rev() {
        // (-1)ⁿ·p·(p + 1)…(p + n - 1) for the derivative of order n.
        let factor = (0..order).fold(coefficient, |product, k| -product * f64::from(power + k));
        sum += factor * difference_of_powers(power + order, z, b);
    }
    match order {
        0 => (z + b - 0.5) * logarithm + (b * (z.ln() - 1.0) + sum),
        // The derivative of (z - 1/2)·ln z - z is ln z - 1/(2z).
        1 => logarithm - (0.5 * difference_of_powers(1, z, b) - sum),
        _ => {
            let half = 0.5 * signed_factorial(order - 1) * difference_of_powers(order, z, b);
            signed_factorial(order - 2) * difference_of_powers(order - 1, z, b) - (half - sum)
        }
    }
}

/// ln(Γ(z + b)/Γ(z)) - b·ln z, for z ≥ 10 and b ≥ 0.
pub(super) fn ln_scaled_rising(z: f64, b: f64) -> f64 {
    (z + b - 0.5) * logarithm_of_ratio(z, b) + (stirling(z + b) - stirling(z) - b)
}

/// The derivative by the shape `a`, of the order that is nearest to `order`, of the lower
/// regularised incomplete gamma function P(a, x). NaN for orders below 0 or above 30 and unless
/// a > 0 and x ≥ 0.
pub(in crate::op) fn gamma_p(a: f64, x: f64, order: f64) -> f64 {
    let order = order.round();
    if !((0.0..=MAX_ORDER as f64).contains(&order) && a > 0.0 && x >= 0.0) {
        return f64::NAN;
    }
    let order = order as usize;
    match side(a, x) {
        _ if a == f64::INFINITY => {
            if x < a {
                0.0
            } else {
                f64::NAN
            }
        }
        Side::Lower => lower(a, x, order),
        Side::Upper if order == 0 => 1.0 - upper(a, x, 0),
        Side::Upper => -upper(a, x, order),
    }
}

/// The upper regularised incomplete gamma function Q(a, x) = 1 - P(a, x), accurate where that is
/// small.
pub(in crate::op) fn gamma_q(a: f64, x: f64) -> f64 {
    if !(a > 0.0 && x >= 0.0) {
        return f64::NAN;
    }
    match side(a, x) {
        _ if a == f64::INFINITY => 1.0 - gamma_p(a, x, 0.0),
        Side::Upper => upper(a, x, 0),
        Side::Lower => match lower(a, x, 0) {
            lower if lower > 0.5 && a < 1.0 => upper_of_small_shape(a, x),
            lower => 1.0 - lower,
        },
    }
}

/// The integral that is computed.
enum Side {
    Lower,
    Upper,
}

fn side(a: f64, x: f64) -> Side {
    let middle = if a < LARGE { polygamma(a + 1.0, 0.0).exp() } else { a + 0.5 };
    if x < middle { Side::Lower } else { Side::Upper }
}

/// The derivative of this order of P by a, below the middle.
fn lower(a: f64, x: f64, order: usize) -> f64 {
    let factor = power_and_exponential(a, x);
    if factor == 0.0 {
        return 0.0;
    }
    if a >= LARGE_FOR_SERIES {
        return factor * quadrature(a, x, order, -1.0);
    }
    if order == 0 {
        return (factor * series(a, x, |_| 1.0)).min(1.0);
    }
    let mut weight = Weight::new(a + 1.0, logarithm_less_digamma(a, x), order);
    factor
        * series(a, x, |z| {
            let value = weight.bell(order);
            weight.advance(z);
            value
        })
}

/// Σₘ xᵐ / ((a + 1)…(a + m)) times `weight`, which is called with a + m + 1.
fn series(a: f64, x: f64, mut weight: impl FnMut(f64) -> f64) -> f64 {
    let (mut z, mut term, mut sum, mut terms) = (a + 1.0, 1.0, 0.0, 0.0);
    loop {
        sum += term * weight(z);
        terms += term;
        term *= x / z;
        z += 1.0;
        // The weights grow as powers of a logarithm.
        if term < 1e-20 * terms || term.is_nan() {
            return sum;
        }
    }
}

/// The derivative of this order of Q by a, above the middle.
fn upper(a: f64, x: f64, order: usize) -> f64 {
    let factor = power_and_exponential(a, x);
    if factor == 0.0 {
        0.0
    } else if order == 0 && a < LARGE_FOR_SERIES && x > (a + 1.0).max(2.0) {
        // The continued fraction 8.9.2, contracted.
        let term = |n: u32| {
            let n = f64::from(n);
            (n * (a - n), x - a + (2.0 * n + 1.0))
        };
        a * factor / continued_fraction(x - a + 1.0, term)
    } else {
        factor * quadrature(a, x, order, 1.0)
    }
}

/// The integral of (t/x)ᵃ·exp(x - t)·(a·Bₙ + n·Bₙ₋₁)/t over the numbers t = x·exp(±s), s > 0.
fn quadrature(a: f64, x: f64, order: usize, sign: f64) -> f64 {
    let derivative = sign * (x - a);
    let exponent = |s: f64| {
        let (excess, rate) = exponential_excess(sign * s);
        (-derivative * s - x * excess, -derivative - sign * x * rate)
    };
    let near = 80.0 / (derivative.max(0.0) + (derivative * derivative + 80.0 * x).sqrt());
    if order == 0 {
        return a * integral(near, exponent, |_| 1.0);
    }
    let logarithm = logarithm_less_digamma(a, x);
    let weight = Weight::new(a + 1.0, 0.0, order);
    integral(near, exponent, |s| {
        let bell = weight.at(logarithm + sign * s);
        a.mul_add(bell[order], order as f64 * bell[order - 1])
    })
}

/// eˢ - 1 - s and its derivative eˢ - 1.
pub(super) fn exponential_excess(s: f64) -> (f64, f64) {
    let rate = s.exp_m1();
    if s.abs() > 0.5 {
        return (rate - s, rate);
    }
    let sum = (3..=16).rev().fold(1.0, |sum, k| 1.0 + sum * s / f64::from(k));
    (0.5 * s * s * sum, rate)
}

/// Q where P is near 1 although x is small: 1 - xᵃ/Γ(a + 1), and the rest of the alternating series
/// 8.7.1.
fn upper_of_small_shape(a: f64, x: f64) -> f64 {
    let logarithm = a * x.ln() - ln_rising(1.0, a, 0.0);
    let (mut sum, mut term) = (0.0, 1.0);
    for m in 1..60 {
        let m = f64::from(m);
        term *= -x / m;
        sum += term / (a + m);
    }
    -logarithm.exp_m1() - logarithm.exp() * a * sum
}

/// The derivative by the shape `a`, of the order that is nearest to `order`, of the density
/// xᵃ⁻¹·exp(-x)/Γ(a). NaN for orders below 0 or above 30 and unless x ≥ 0. Shapes below 0 are
/// those of derivatives by x.
pub(in crate::op) fn gamma_density(a: f64, x: f64, order: f64) -> f64 {
    let order = order.round();
    if !((0.0..=MAX_ORDER as f64).contains(&order) && x >= 0.0) || a.is_nan() {
        return f64::NAN;
    }
    let order = order as usize;
    if x == f64::INFINITY {
        return 0.0;
    }
    if order == 0 {
        return density(a, x);
    }
    let weight = Weight::new(a + 1.0, 0.0, order);
    let bell = weight.at(logarithm_less_digamma(a, x));
    let below = order as f64 * bell[order - 1];
    if a.abs() < 1.0 {
        // Γ(a) has a pole, Γ(a + 1) has none.
        return product_of_powers(a - 1.0, x, libm::tgamma(a + 1.0))
            * a.mul_add(bell[order], below);
    }
    let density = density(a, x);
    if density == 0.0 { 0.0 } else { density * (bell[order] + below / a) }
}

/// xᵃ⁻¹·exp(-x)/Γ(a)
fn density(a: f64, x: f64) -> f64 {
    match a {
        _ if a >= LARGE + 1.0 => power_and_exponential(a - 1.0, x),
        // 1/Γ is 0 at its poles.
        _ if a <= 0.0 && a == a.floor() => 0.0,
        _ => product_of_powers(a - 1.0, x, libm::tgamma(a)),
    }
}

/// xᵃ·exp(-x)/Γ(a + 1)
fn power_and_exponential(a: f64, x: f64) -> f64 {
    if a < LARGE {
        return product_of_powers(a, x, libm::tgamma(a + 1.0));
    }
    (-deviance(a, x) - stirling(a)).exp() / (TAU * a).sqrt()
}

/// xᵃ·exp(-x)/`gamma`
fn product_of_powers(a: f64, x: f64, gamma: f64) -> f64 {
    // The power may overflow; for all a that come here the product is 0.
    if x > 2000.0 {
        return 0.0;
    }
    // In two factors, because the exponential may underflow where the product does not.
    let half = (-0.5 * x).exp();
    x.powf(a) / gamma * half * half
}

/// Stirling's remainder, for z ≥ 10.
pub(super) fn stirling(z: f64) -> f64 {
    let square = 1.0 / z / z;
    STIRLING[..8].iter().rev().fold(0.0, |sum, coefficient| sum * square + coefficient) / z
}

/// a·ln(a/x) + x - a: half the deviance of the Poisson distribution.
pub(super) fn deviance(a: f64, x: f64) -> f64 {
    if x == 0.0 || x == f64::INFINITY {
        return f64::INFINITY;
    }
    let v = (x - a) / (x + a);
    // It is 0 if the sum overflows.
    if v.abs() > 0.3 || x + a == f64::INFINITY {
        return a * (a / x).ln() + (x - a);
    }
    // The terms of ln(x/a) = 2 artanh(v) from the third power on.
    let square = v * v;
    let (mut sum, mut power, mut odd) = (0.0, square, 3.0);
    while power > 1e-20 {
        sum += power / odd;
        power *= square;
        odd += 2.0;
    }
    v * ((x - a) - 2.0 * a * sum)
}

/// ln x - ψ(a + 1)
fn logarithm_less_digamma(a: f64, x: f64) -> f64 {
    if a < LARGE {
        return x.ln() - polygamma(a + 1.0, 0.0);
    }
    let v = (x - a) / a;
    let logarithm = if v.abs() < 0.5 { v.ln_1p() } else { (x / a).ln() };
    let square = 1.0 / a / a;
    // ln a - ψ(a) - 1/a.
    let mut sum = 0.0;
    for (coefficient, power) in STIRLING.into_iter().zip(ODD).rev() {
        sum = sum * square + coefficient * f64::from(power);
    }
    logarithm - (0.5 / a - sum * square)
}

/// The logarithmic derivatives of tᵃ/Γ(z), z = a + 1, by a: the arguments of the Bell polynomials.
struct Weight {
    derivatives: [f64; MAX_ORDER],
    order: usize,
}

impl Weight {
    /// Up to this order; the first derivative is `first`.
    fn new(z: f64, first: f64, order: usize) -> Weight {
        let mut derivatives = [0.0; MAX_ORDER];
        derivatives[0] = first;
        for (n, derivative) in derivatives.iter_mut().enumerate().take(order).skip(1) {
            *derivative = -polygamma(z, n as f64);
        }
        Weight { derivatives, order }
    }

    /// Replaces `z` by z + 1.
    fn advance(&mut self, z: f64) {
        let mut step = -1.0 / z;
        for (n, derivative) in self.derivatives.iter_mut().enumerate().take(self.order) {
            *derivative += step;
            step *= -((n + 1) as f64) / z;
        }
    }

    /// The Bell polynomials, with this first derivative.
    fn at(&self, first: f64) -> [f64; MAX_ORDER + 1] {
        let mut bell = [0.0; MAX_ORDER + 1];
        bell[0] = 1.0;
        for n in 0..self.order {
            let (mut sum, mut binomial) = (0.0, 1.0);
            for i in 0..=n {
                let derivative = if i == 0 { first } else { self.derivatives[i] };
                sum += binomial * bell[n - i] * derivative;
                binomial *= (n - i) as f64 / (i + 1) as f64;
            }
            bell[n + 1] = sum;
        }
        bell
    }

    /// The last Bell polynomial.
    fn bell(&self, order: usize) -> f64 {
        self.at(self.derivatives[0])[order]
    }
}
