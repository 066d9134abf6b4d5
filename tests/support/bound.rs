//! How exact a kernel has to be: an error of four times the tape's, and four ulps of the
//! result more.
#![allow(dead_code)] // Each target uses a part of it.

/// The distance from the size of `x` to the next larger number.
pub fn ulp(x: f64) -> f64 {
    (x.abs().next_up() - x.abs()).max(f64::MIN_POSITIVE)
}

/// The inputs, and some near to them: where the tape is right by chance in one of them it
/// is not in others.
pub fn neighbours(x: &[f64]) -> Vec<Vec<f64>> {
    let mut all = vec![x.to_vec()];
    for i in 0..x.len() {
        for step in [-1e-13, 6e-14, -3e-14, 1e-14, 3e-15, -1e-15] {
            let mut next = x.to_vec();
            next[i] += step * next[i].abs().max(1e-6);
            all.push(next);
        }
    }
    all
}
