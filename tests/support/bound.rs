//! How exact a kernel has to be: an error of four times the tape's, and four ulps of the
//! result more.
#![allow(dead_code)] // Each target uses a part of it.

use phigrad::check::Random;

/// The distance from the size of `x` to the next larger number.
pub fn ulp(x: f64) -> f64 {
    let size = x.abs().max(f64::MIN_POSITIVE);
    size.next_up() - size
}

/// The inputs, and some next to them: where the tape is right by chance in one of them it
/// is not in others.
pub fn neighbours(x: &[f64]) -> Vec<Vec<f64>> {
    let mut random = Random::new(7);
    let mut near = |x: &f64| x * (1.0 + random.uniform(-1e-13, 1e-13));
    let others = (0..8).map(|_| x.iter().map(&mut near).collect());
    core::iter::once(x.to_vec()).chain(others).collect()
}
