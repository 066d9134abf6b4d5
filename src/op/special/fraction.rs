//! Continued fractions, by the method of Lentz in the form of Thompson and Barnett (1986).

/// The smallest number that is divided by.
const TINY: f64 = 1e-300;

/// More terms than any fraction needs where it is used.
const MAX_TERMS: u32 = 10_000;

/// b₀ + a₁/(b₁ + a₂/(b₂ + …)), where `term` gives (aₙ, bₙ) from n = 1 on.
pub(super) fn continued_fraction(first: f64, term: impl Fn(u32) -> (f64, f64)) -> f64 {
    let nonzero = |number: f64| if number.abs() < TINY { TINY } else { number };
    let (mut value, mut above, mut below) = (nonzero(first), nonzero(first), 0.0);
    for n in 1..MAX_TERMS {
        let (numerator, denominator) = term(n);
        below = 1.0 / nonzero(numerator.mul_add(below, denominator));
        above = nonzero(denominator + numerator / above);
        let factor = above * below;
        value *= factor;
        if (factor - 1.0).abs() < 2e-16 {
            break;
        }
    }
    value
}
