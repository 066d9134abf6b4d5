//! The polygamma functions: the derivatives of ln Γ(x) from the first, digamma, on.
//!
//! ψ⁽ⁿ⁾(x) is computed by the asymptotic series (NIST Digital Library of Mathematical Functions,
//! 5.11.2 and 5.15.9) where x is at least 10 + n, by the recurrence 5.15.5 below that, and by
//! the reflection formula 5.15.6 below 0. For x > 0, compared with 60 digits, the relative error is
//! below 1e-15 up to order 5 and below 1e-14 up to order 100, but for digamma between 1 and 2,
//! where it has a root: there the absolute error is below 1e-15.

/// The largest order.
const MAX_ORDER: usize = 100;

/// B₂ⱼ / (2j)! for j from 1 to 10, with the Bernoulli numbers B. The first term that is left out is
/// below 1e-19 of the sum.
const BERNOULLI: [f64; 10] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30240.0,
    -1.0 / 1209600.0,
    1.0 / 47900160.0,
    -691.0 / 1307674368000.0,
    1.0 / 74724249600.0,
    -3617.0 / 10670622842880000.0,
    43867.0 / 5109094217170944000.0,
    -174611.0 / 802857662698291200000.0,
];

/// The polygamma function ψ⁽ⁿ⁾(x), for n the whole number nearest to `order`; NaN where that is
/// below 0 or above 100, and for negative whole numbers x, which are poles. At ±0 it is the limit
/// from that side.
pub(in crate::op) fn polygamma(x: f64, order: f64) -> f64 {
    let order = order.round();
    if !(0.0..=MAX_ORDER as f64).contains(&order) {
        return f64::NAN;
    }
    let order = order as usize;
    if x >= 0.0 {
        return at_positive(order, x);
    }
    let reflected = at_positive(order, 1.0 - x);
    let reflected = if order.is_multiple_of(2) { reflected } else { -reflected };
    reflected - cotangent(order, x)
}

/// ψ⁽ⁿ⁾(x) for n = `order` and x ≥ 0, ±0 included.
fn at_positive(order: usize, x: f64) -> f64 {
    let threshold = (10 + order) as f64;
    let steps = (threshold - x).ceil() as u32;
    let shifted = x + f64::from(steps);
    // (-1)ⁿ⁺¹ ψ⁽ⁿ⁾, in which all terms are positive but the logarithm.
    let mut sum = power(order, shifted) * series(order, shifted);
    for step in (1..steps).rev() {
        sum += power(order, x + f64::from(step));
    }
    // `x + 0` would be +0 for x = -0.
    if steps > 0 {
        sum += power(order, x);
    }
    let sum = match order.checked_sub(1) {
        None => sum - shifted.ln(),
        Some(below) => sum + power(below, shifted),
    };
    if order.is_multiple_of(2) { -sum } else { sum }
}

/// n! / xⁿ⁺¹ for n = `order`.
fn power(order: usize, x: f64) -> f64 {
    (1..=order).fold(1.0 / x, |product, factor| product * (factor as f64 / x))
}

/// 1/2 + Σⱼ B₂ⱼ/(2j)! · (n + 1)(n + 2)…(n + 2j - 1) / x²ʲ⁻¹ for n = `order`.
fn series(order: usize, x: f64) -> f64 {
    let inverse = 1.0 / x;
    let (mut sum, mut factor) = (0.5, (order + 1) as f64 * inverse);
    for (j, bernoulli) in (1..).zip(BERNOULLI) {
        sum += bernoulli * factor;
        let next = order + 2 * j;
        factor *= (next as f64 * inverse) * ((next + 1) as f64 * inverse);
    }
    sum
}

/// The derivative of π·cot(πx) of this order; NaN at whole numbers.
fn cotangent(order: usize, x: f64) -> f64 {
    use core::f64::consts::PI;

    // Exact, so that it is accurate near poles as well.
    let distance = x - x.round();
    if distance == 0.0 {
        return f64::NAN;
    }
    // A polynomial in c = cot(πx), as c' = -π(1 + c²).
    let mut polynomial = [0.0; MAX_ORDER + 2];
    polynomial[1] = PI;
    for _ in 0..order {
        let mut next = [0.0; MAX_ORDER + 2];
        for power in 1..=order {
            let derivative = -PI * power as f64 * polynomial[power];
            next[power - 1] += derivative;
            next[power + 1] += derivative;
        }
        polynomial = next;
    }
    let cotangent = 1.0 / (PI * distance).tan();
    polynomial[..order + 2].iter().rev().fold(0.0, |sum, factor| sum * cotangent + factor)
}

#[cfg(test)]
mod tests {
    use super::polygamma;

    /// x, the order, and the value that mpmath computes with 60 digits.
    const FIGURES: &[(f64, u32, f64)] = &[
        (0.001, 0, -1000.5755719318103),
        (0.25, 0, -4.2274535333762655),
        (0.5, 0, -1.9635100260214235),
        (1.0, 0, -0.5772156649015329),
        (1.25, 0, -0.22745353337626542),
        (2.0, 0, 0.42278433509846713),
        (3.5, 0, 1.103156640645243),
        (9.75, 0, 2.225109535044576),
        (10.5, 0, 2.3030010342976865),
        (100.0, 0, 4.600161852738087),
        (1e10, 0, 23.025850929890456),
        (-0.25, 0, 2.9141391202135276),
        (-1.75, 0, -2.3226916286143604),
        (-33.3125, 0, 5.620012095888043),
        (0.001, 1, 1000001.6425331958),
        (0.5, 1, 4.934802200544679),
        (1.0, 1, 1.6449340668482264),
        (2.5, 1, 0.49035775610023485),
        (11.0, 1, 0.09516633568168574),
        (12.5, 1, 0.08328522460157838),
        (1e10, 1, 1.00000000005e-10),
        (-0.75, 1, 18.975106932284888),
        (-5.125, 1, 67.21655979107496),
        (0.5, 2, -16.82879664423432),
        (1.0, 2, -2.4041138063191885),
        (4.25, 2, -0.06989568177725804),
        (30.0, 2, -0.0011487652037286),
        (-1.25, 2, 123.72136678366236),
        (0.5, 3, 97.40909103400244),
        (1.0, 3, 6.493939402266829),
        (8.0, 3, 0.004699239795945104),
        (-2.625, 3, 345.662536234519),
        (0.5, 10, -7431824508.858769),
        (3.0, 10, -21.43660662871299),
        (50.0, 10, -4.101091112731268e-12),
        (-0.375, 10, 175323677616.25436),
        (2.0, 50, -1.350657063237689e49),
        (40.0, 100, -0.00015834291085306513),
    ];

    #[test]
    fn values_are_those_of_multiple_precision() {
        for &(x, order, expected) in FIGURES {
            let found = polygamma(x, f64::from(order));
            // Reflection adds two terms, which may cancel.
            let allowed = if x > 0.0 { 1e-15 * f64::from(order / 10 + 1) } else { 1e-14 };
            let error = ((found - expected) / expected).abs();
            assert!(error <= allowed, "ψ({order}, {x}) = {found:e}, not {expected:e}: {error:e}");
        }
    }

    #[test]
    fn digamma_is_accurate_around_its_root_in_absolute_terms() {
        for (x, expected) in [
            (1.25, -0.22745353337626542),
            (1.4375, -0.023613544005297898),
            (1.4616321449683622, -9.241265521729427e-17),
            (1.5, 0.03648997397857652),
        ] {
            let found = polygamma(x, 0.0);
            assert!((found - expected).abs() < 1e-15, "ψ({x}) = {found:e}, not {expected:e}");
        }
    }

    #[test]
    fn poles_and_infinities_have_their_limits() {
        let (infinity, nan) = (f64::INFINITY, f64::NAN);
        assert_eq!((polygamma(0.0, 0.0), polygamma(-0.0, 0.0)), (-infinity, infinity));
        assert_eq!((polygamma(0.0, 1.0), polygamma(-0.0, 1.0)), (infinity, infinity));
        assert_eq!((polygamma(infinity, 0.0), polygamma(infinity, 1.0)), (infinity, 0.0));
        assert_eq!(polygamma(1e300, 1.0), 1e-300);
        for x in [-1.0, -2.0, -1e300, -infinity, nan] {
            assert!(polygamma(x, 0.0).is_nan() && polygamma(x, 1.0).is_nan(), "{x}");
        }
    }

    #[test]
    fn orders_are_rounded_and_limited() {
        assert_eq!(polygamma(1.5, 1.25), polygamma(1.5, 1.0));
        assert!(polygamma(1.5, 100.0).is_finite());
        for order in [-1.0, 101.0, f64::INFINITY, f64::NAN] {
            assert!(polygamma(1.5, order).is_nan(), "{order}");
        }
    }
}
