//! Subnormal, tiny and huge numbers.

use phigrad::internals::Random;

use super::super::number::Number;
use super::{Family, decade, sign, table};

table![ExtremeScalar, ExtremeSystem, TinyFactors];

/// From the least to the largest number in double precision, and some more.
const BITS: usize = 2400;

/// y ← a·y + b.
struct ExtremeScalar;

impl Family for ExtremeScalar {
    fn name(&self) -> String {
        "extremes a·y + b".into()
    }

    fn inputs(&self) -> usize {
        3
    }

    fn bits(&self) -> usize {
        BITS
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[2]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        vec![z[0] * x[0] + x[1]]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let ratios =
            [2.0, 0.5, 1.0, 1.5, 1.01, 0.9, -2.0, 1e-3, 1e3, 1e100, 1e-100, 1.0 + 1e-9, 0.99, 1.1];
        let sizes = [
            0.0, 5e-324, 1e-320, 1e-310, 1e-300, 1e-250, 1.0, 1e200, 1e300, 1.7e308, -1e308, 1e-290,
        ];
        let mut number = || random.pick(&sizes) * random.pick(&[1.0, 1.0, 0.7]);
        let (added, start) = (number(), number());
        vec![random.pick(&ratios), added, start]
    }
}

/// Two weakly coupled states.
struct ExtremeSystem;

impl Family for ExtremeSystem {
    fn name(&self) -> String {
        "extremes, hardly coupled 2x2".into()
    }

    fn inputs(&self) -> usize {
        6
    }

    fn bits(&self) -> usize {
        BITS
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[4], x[5]]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        vec![x[0] * z[0] + x[1] * z[1], x[2] * z[0] + x[3] * z[1]]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let sizes = [0.0, 5e-324, 1e-310, 1e-200, 1e-160, 1e-100, 1e-10, 1.0, 1e150, 1e300];
        let ratios = [2.0, 1.5, 1.0, 0.5, 0.9, 1.1, 1e3];
        let [a, d] = [random.pick(&ratios), random.pick(&ratios)];
        let [b, c] = [random.pick(&sizes[..7]), random.pick(&sizes[..7])];
        vec![a, b, c, d, random.pick(&sizes), random.pick(&sizes)]
    }
}

/// Factors so small that the state underflows within some steps, with a supply of all sizes.
struct TinyFactors;

impl Family for TinyFactors {
    fn name(&self) -> String {
        "extremes, underflow".into()
    }

    fn inputs(&self) -> usize {
        3
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 300]
    }

    fn bits(&self) -> usize {
        BITS
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[2], T::from(1.0)]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        vec![z[0] * T::from(0.5) + x[1] * z[1], z[1] * x[0]]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let factor = sign(random) * decade(random, -20.0, -1.0);
        let supply = sign(random) * decade(random, -320.0, 10.0);
        vec![factor, supply, random.pick(&[0.0, 1.0, 1e-300, 1e300])]
    }
}
