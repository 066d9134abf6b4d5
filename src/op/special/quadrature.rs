//! Gauss-Legendre quadrature of the log-concave functions that incomplete gamma and beta functions
//! are integrals of.

/// Positive nodes of the rule with 16 points on [-1, 1], and their weights.
const RULE: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_58),
    (0.458_016_777_657_227_37, 0.169_156_519_395_002_54),
    (0.617_876_244_402_643_8, 0.149_595_988_816_576_74),
    (0.755_404_408_355_003, 0.124_628_971_255_533_88),
    (0.865_631_202_387_831_8, 0.095_158_511_682_492_79),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_894),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_096),
];

/// The number of panels.
const PANELS: u32 = 4;

/// The exponent from which on a function is left off: exp(-40) is below the rounding error of the
/// integral.
const NEGLIGIBLE: f64 = -40.0;

/// ∫₀^∞ exp(φ(s))·f(s) ds for a concave φ with φ(0) = 0 whose maximum is at 0, or so near that it
/// is below 1. `exponent` gives φ and φ′, `near` is a number where φ is about -40, and f is a
/// polynomial or grows no faster.
pub(super) fn integral(
    near: f64,
    exponent: impl Fn(f64) -> (f64, f64),
    f: impl Fn(f64) -> f64,
) -> f64 {
    let end = negligible_from(near, &exponent);
    let width = end / f64::from(PANELS);
    let mut sum = 0.0;
    // The smallest terms first.
    for panel in (0..PANELS).rev() {
        let middle = (f64::from(panel) + 0.5) * width;
        for (node, weight) in RULE.into_iter().rev() {
            for s in [middle + 0.5 * width * node, middle - 0.5 * width * node] {
                sum += weight * exponent(s).0.exp() * f(s);
            }
        }
    }
    0.5 * width * sum
}

/// A number from which on the exponent is below -40, by Newton's method: from the second step on it
/// comes down from above, because φ is concave.
fn negligible_from(near: f64, exponent: impl Fn(f64) -> (f64, f64)) -> f64 {
    let mut end = near;
    for _ in 0..30 {
        let (value, derivative) = exponent(end);
        let step = (NEGLIGIBLE - value) / derivative;
        end += step;
        if step.abs() < 0.02 * end {
            break;
        }
    }
    end
}
