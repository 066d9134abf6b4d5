//! The accuracy required of kernels: at most four times the error of the tape, and four ulps of
//! the result.
#![allow(dead_code)] // Each target uses a part of it.

/// The distance from |x| to the next larger number.
pub fn ulp(x: f64) -> f64 {
    let size = x.abs().max(f64::MIN_POSITIVE);
    size.next_up() - size
}

/// The inputs and some neighbours, because the tape may be exact by chance at one of them. Some
/// are farther away: a fixed point is rounded alike for adjacent inputs.
pub fn neighbours(x: &[f64]) -> Vec<Vec<f64>> {
    let mut all = vec![x.to_vec()];
    for i in 0..x.len() {
        for step in [-1e-9, -1e-12, 3e-12, 2e-10, 1e-14, -1e-15] {
            let mut next = x.to_vec();
            next[i] += step * next[i].abs().max(1e-6);
            all.push(next);
        }
    }
    all
}
