//! The regularised incomplete beta function and its density.
//!
//! Below (a + 1)/(a + b + 2) the lower integral is the continued fraction of NIST Digital Library
//! of Mathematical Functions, 8.17.22, or, for large shapes, quadrature; above it the upper
//! integral is computed, which is the lower one with both ends exchanged. The power before them is
//! taken by deviances, as that of the incomplete gamma function.

use core::f64::consts::TAU;

use super::fraction::continued_fraction;
use super::gamma::{LARGE, deviance, exponential_excess, ln_scaled_rising, stirling};
use super::quadrature::integral;

/// The terms of the continued fraction grow as the root of the shape; from here on quadrature is
/// faster.
const LARGE_FOR_FRACTION: f64 = 1000.0;

/// The regularised incomplete beta function Iₓ(a, b); NaN unless 0 ≤ x ≤ 1 and both shapes are
/// positive and below 1e150.
pub(in crate::op) fn beta_inc(x: f64, a: f64, b: f64) -> f64 {
    if !is_in_domain(x, a, b) {
        return f64::NAN;
    }
    if x == 0.0 || x == 1.0 {
        return x;
    }
    let ends = Ends { x, y: 1.0 - x, a, b };
    if x <= (a + 1.0) / (a + b + 2.0) { ends.lower() } else { 1.0 - ends.exchanged().lower() }
}

/// The density xᵃ⁻¹·(1 - x)ᵇ⁻¹/B(a, b); NaN as [`beta_inc`].
pub(in crate::op) fn beta_density(x: f64, a: f64, b: f64) -> f64 {
    if !is_in_domain(x, a, b) {
        return f64::NAN;
    }
    let ends = Ends { x, y: 1.0 - x, a, b };
    if a < LARGE && b < LARGE {
        x.powf(a - 1.0) * ends.y.powf(b - 1.0) * ends.of_small_shapes()
    } else if x == 0.0 || x == 1.0 {
        let shape = if x == 0.0 { a } else { b };
        match shape {
            _ if shape < 1.0 => f64::INFINITY,
            // The other shape, which is large.
            _ if shape == 1.0 => a.max(b),
            _ => 0.0,
        }
    } else {
        ends.power() / x / ends.y
    }
}

fn is_in_domain(x: f64, a: f64, b: f64) -> bool {
    let is_shape = |shape: f64| shape > 0.0 && shape < 1e150;
    (0.0..=1.0).contains(&x) && is_shape(a) && is_shape(b)
}

/// The arguments: the distances from both ends and the shapes there.
#[derive(Clone, Copy)]
struct Ends {
    x: f64,
    y: f64,
    a: f64,
    b: f64,
}

impl Ends {
    fn exchanged(self) -> Ends {
        Ends { x: self.y, y: self.x, a: self.b, b: self.a }
    }

    /// Iₓ(a, b), for x not far above the mean.
    fn lower(self) -> f64 {
        let power = self.power();
        if power == 0.0 {
            0.0
        } else if self.a >= LARGE && self.a.max(self.b) > LARGE_FOR_FRACTION {
            power * self.quadrature()
        } else {
            (power / self.a / self.fraction()).min(1.0)
        }
    }

    /// xᵃ·yᵇ/B(a, b)
    fn power(self) -> f64 {
        let Ends { x, y, a, b } = self;
        match (a < LARGE, b < LARGE) {
            (true, true) => x.powf(a) * y.powf(b) * self.of_small_shapes(),
            (true, false) => {
                // Γ(a + b)/Γ(b) = bᵃ·exp(…), and bᵃ goes to xᵃ.
                let exponent = b * self.logarithm_of_y() + ln_scaled_rising(b, a);
                // In two factors, because the power may be large where the product is not.
                let half = (0.5 * exponent).exp();
                if half == 0.0 {
                    return 0.0;
                }
                (x * b).powf(a) / libm::tgamma(a + 1.0) * a * half * half
            }
            (false, true) => self.exchanged().power(),
            (false, false) => {
                let n = a + b;
                let remainder = stirling(n) - stirling(a) - stirling(b);
                let exponent = remainder - deviance(a, n * x) - deviance(b, n * y);
                (a / n * b / TAU).sqrt() * exponent.exp()
            }
        }
    }

    /// 1/B(a, b), of factors without a pole.
    fn of_small_shapes(self) -> f64 {
        let Ends { a, b, .. } = self;
        let sum = a + b;
        let gammas = libm::tgamma(a + 1.0) * libm::tgamma(b + 1.0);
        a / sum * b * (libm::tgamma(sum + 1.0) / gammas)
    }

    fn logarithm_of_y(self) -> f64 {
        if self.x < 0.5 { (-self.x).ln_1p() } else { self.y.ln() }
    }

    /// xᵃ·yᵇ / (a·B(a, b)·Iₓ(a, b))
    fn fraction(self) -> f64 {
        let Ends { x, a, b, .. } = self;
        continued_fraction(1.0, |n| {
            let m = f64::from(n / 2);
            let numerator = if n % 2 == 0 {
                m * (b - m) / (a + 2.0 * m - 1.0) / (a + 2.0 * m) * x
            } else {
                -(a + m) / (a + 2.0 * m) * ((a + b + m) / (a + 2.0 * m + 1.0)) * x
            };
            (numerator, 1.0)
        })
    }

    /// a - (a + b)·x, minus the derivative of the exponent at 0, without the rounding errors of the
    /// sum and the product.
    fn derivative(self) -> f64 {
        let Ends { x, y, a, b } = self;
        // The smaller distance is the one that was not computed as a difference.
        if x > y {
            return -self.exchanged().derivative();
        }
        let n = a + b;
        let (larger, smaller) = if a > b { (a, b) } else { (b, a) };
        let rounding_error = smaller - (n - larger);
        rounding_error.mul_add(-x, n.mul_add(-x, a))
    }

    /// B(a, b)·Iₓ(a, b) / (xᵃ·yᵇ): the integral over the numbers whose odds are exp(-s) times
    /// those of x.
    fn quadrature(self) -> f64 {
        let Ends { x, y, a, b } = self;
        let n = a + b;
        let derivative = self.derivative();
        let exponent = |s: f64| {
            let ((high, high_rate), (low, low_rate)) =
                (exponential_excess(x * s), exponential_excess(-y * s));
            let rate = x * y * (high_rate - low_rate) / (1.0 + y * high_rate + x * low_rate);
            (-derivative * s - n * y.mul_add(high, x * low).ln_1p(), -derivative - n * rate)
        };
        let near =
            80.0 / (derivative.max(0.0) + (derivative * derivative + 80.0 * n * x * y).sqrt());
        integral(near, exponent, |_| 1.0)
    }
}
