//! How far results are from the expected ones.

/// Elements smaller than this times the largest one are compared relative to
/// that bound: they are sums of cancelling terms, with no accuracy of their own.
const NEGLIGIBLE: f64 = 1e-9;

/// Largest relative deviation of an element; infinite if any is not a number or
/// the lengths differ.
pub fn deviation(got: &[f64], want: &[f64]) -> f64 {
    if got.len() != want.len() {
        return f64::INFINITY;
    }
    let largest = want.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
    let of_element = |(got, want): (&f64, &f64)| {
        if got == want {
            return 0.0;
        }
        let relative = (got - want).abs() / want.abs().max(NEGLIGIBLE * largest);
        if relative.is_nan() { f64::INFINITY } else { relative }
    };
    got.iter().zip(want).map(of_element).fold(0.0, f64::max)
}

/// True if all elements have the same bits, signed zeros included.
pub fn same_bits(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_results_deviate_by_zero() {
        assert_eq!(deviation(&[1.0, -2.0, 0.0], &[1.0, -2.0, 0.0]), 0.0);
        assert_eq!(deviation(&[], &[]), 0.0);
    }

    #[test]
    fn a_planted_error_is_found_with_either_sign_and_at_any_place() {
        let want = [3.0, -0.5, 20.0];
        for place in 0..want.len() {
            for error in [1e-7, -1e-7] {
                let mut got = want;
                got[place] *= 1.0 + error;
                let found = deviation(&got, &want);
                assert!((found - 1e-7).abs() < 1e-13, "{place} {error:e}: {found:e}");
            }
        }
    }

    #[test]
    fn a_tiny_element_is_compared_with_the_largest() {
        let found = deviation(&[1.0, 1e-15], &[1.0, 3e-15]);
        assert!((found - 2e-6).abs() < 1e-12, "{found:e}");
    }

    #[test]
    fn what_cannot_be_compared_deviates_infinitely() {
        assert_eq!(deviation(&[f64::NAN], &[1.0]), f64::INFINITY);
        assert_eq!(deviation(&[1.0], &[f64::NAN]), f64::INFINITY);
        assert_eq!(deviation(&[f64::INFINITY], &[1.0]), f64::INFINITY);
        assert_eq!(deviation(&[1.0], &[0.0]), f64::INFINITY);
        assert_eq!(deviation(&[1.0], &[1.0, 2.0]), f64::INFINITY);
    }

    #[test]
    fn bits_tell_zeros_apart() {
        assert!(same_bits(&[0.0, 1.5], &[0.0, 1.5]));
        assert!(!same_bits(&[0.0], &[-0.0]));
        assert!(!same_bits(&[0.0], &[0.0, 0.0]));
    }
}
