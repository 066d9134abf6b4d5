//! Data of the programs: points of Weyl sequences, the same on every machine.

/// (sqrt 5 - 1) / 2.
pub const GOLDEN: f64 = 0.6180339887498949;
/// sqrt 2 - 1.
pub const SILVER: f64 = 0.41421356237309515;

/// The `index`-th point, in [0, 1), of the Weyl sequence of `step`.
pub fn weyl(index: usize, step: f64) -> f64 {
    let t = (index + 1) as f64 * step;
    t - t.floor()
}
