//! How exact a kernel has to be: an error of four times the tape's, and four ulps of the
//! result more.
#![allow(dead_code)] // Each target uses a part of it.

/// The distance from the size of `x` to the next larger number.
pub fn ulp(x: f64) -> f64 {
    let size = x.abs().max(f64::MIN_POSITIVE);
    size.next_up() - size
}

/// The inputs, and some near to them: where the tape is right by chance in one of them it
/// is not in others. Some are not very near: what comes to rest is rounded alike for all
/// inputs next to each other.
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
