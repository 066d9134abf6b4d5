//! Tolerance: the one place that decides whether two numbers agree.

/// A bound on the difference of two numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tolerance {
    /// The relative part, a factor of the larger of the two.
    pub relative: f64,
    /// The absolute part, for numbers near zero.
    pub absolute: f64,
}

impl Tolerance {
    /// A tolerance of this relative and this absolute part.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::check::{Tolerance, close};
    ///
    /// assert!(close(1e9, 1e9 + 1.0, Tolerance::new(1e-8, 0.0)));
    /// assert!(!close(1e-9, 2e-9, Tolerance::new(1e-8, 0.0)));
    /// assert!(close(1e-9, 2e-9, Tolerance::new(1e-8, 1e-8)));
    /// ```
    pub const fn new(relative: f64, absolute: f64) -> Self {
        Tolerance { relative, absolute }
    }
}

/// True if `a` and `b` differ by at most `tolerance`.
///
/// NaN agrees with NaN alone, and an infinity with itself alone. The difference
/// is taken without its sign, so the order of the numbers does not matter.
///
/// # Examples
///
/// ```
/// use phigrad::check::{Tolerance, close};
///
/// let tolerance = Tolerance::new(1e-12, 1e-300);
/// assert!(close(0.1 + 0.2, 0.3, tolerance));
/// assert!(!close(0.3, 0.4, tolerance));
/// assert!(!close(0.4, 0.3, tolerance));
/// assert!(close(f64::NAN, -f64::NAN, tolerance));
/// assert!(!close(f64::INFINITY, f64::MAX, tolerance));
/// ```
pub fn close(a: f64, b: f64, tolerance: Tolerance) -> bool {
    if a.is_nan() || b.is_nan() {
        return a.is_nan() && b.is_nan();
    }
    if a == b {
        return true;
    }
    if a.is_infinite() || b.is_infinite() {
        return false;
    }
    // Halved, because the difference of two large numbers may overflow.
    let half_difference = (0.5 * a - 0.5 * b).abs();
    let larger = a.abs().max(b.abs());
    half_difference <= 0.5 * tolerance.absolute + 0.5 * tolerance.relative * larger
}

/// True if `a` and `b` have the same bits, or both are NaN: the guarantee of
/// [`Numerics::Exact`](crate::Numerics::Exact).
///
/// # Examples
///
/// ```
/// use phigrad::check::same;
///
/// assert!(same(0.5, 0.5));
/// assert!(!same(0.0, -0.0));
/// assert!(same(f64::NAN, -f64::NAN));
/// ```
pub fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: Tolerance = Tolerance::new(1e-9, 1e-12);
    const NUMBERS: [f64; 9] = [0.0, 1.0, -1.0, 3.5e-7, 1e300, -1e300, f64::MAX, f64::MIN, 1e-200];

    /// `number` with an error of `factor` times the tolerance.
    fn off(number: f64, factor: f64) -> f64 {
        number + factor * (TOLERANCE.absolute + TOLERANCE.relative * number.abs())
    }

    #[test]
    fn planted_errors_of_either_sign_are_found_in_either_order() {
        for number in NUMBERS {
            for factor in [1.1, -1.1, 10.0, -10.0, 1e8, -1e8] {
                let wrong = off(number, factor);
                assert!(!close(number, wrong, TOLERANCE), "{number} {wrong}");
                assert!(!close(wrong, number, TOLERANCE), "{wrong} {number}");
            }
        }
    }

    #[test]
    fn small_errors_of_either_sign_pass() {
        for number in NUMBERS {
            for factor in [0.0, 0.9, -0.9] {
                let near = off(number, factor);
                assert!(near.is_infinite() || close(number, near, TOLERANCE), "{number} {near}");
                assert!(near.is_infinite() || close(near, number, TOLERANCE), "{near} {number}");
            }
        }
    }

    #[test]
    fn a_wrong_sign_is_found() {
        for number in NUMBERS {
            assert_eq!(close(number, -number, TOLERANCE), number.abs() < 1e-12, "{number}");
        }
    }

    #[test]
    fn nan_and_infinities_agree_with_themselves_alone() {
        let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, f64::MAX, f64::MIN];
        let lax = Tolerance::new(1e300, f64::MAX);
        for (i, &a) in numbers.iter().enumerate() {
            for (j, &b) in numbers.iter().enumerate().filter(|&(j, _)| i < 3 || j < 3) {
                assert_eq!(close(a, b, lax), i == j, "{a} {b}");
                assert_eq!(same(a, b), i == j, "{a} {b}");
            }
        }
    }

    #[test]
    fn zeros_are_close_but_not_the_same() {
        assert!(close(0.0, -0.0, Tolerance::new(0.0, 0.0)));
        assert!(!same(0.0, -0.0));
        assert!(!same(1.0, 1.0 + f64::EPSILON));
    }
}
