//! Loops that add a number and subtract it again, of all sizes up to overflow.

use phigrad::internals::Random;

use super::super::number::Number;
use super::{Family, decade, sign, table};

table![
    Cancelled { kind: Kind::Plain },
    Cancelled { kind: Kind::Decayed },
    Cancelled { kind: Kind::Products },
    Cancelled { kind: Kind::Reflected },
    Cancelled { kind: Kind::Inverse },
    Cancelled { kind: Kind::Coupled },
];

enum Kind {
    Plain,
    Decayed,
    Products,
    Reflected,
    Inverse,
    Coupled,
}

/// A state to which an input is added and subtracted.
struct Cancelled {
    kind: Kind,
}

impl Family for Cancelled {
    fn name(&self) -> String {
        let kind = match self.kind {
            Kind::Plain => "s + x - x",
            Kind::Decayed => "0.9·s + x - x",
            Kind::Products => "0.9·s + x·y - y·x",
            Kind::Reflected => "x - (x - s)",
            Kind::Inverse => "s/2 + x - x + 1/x",
            Kind::Coupled => "two states + x·y - y·x",
        };
        format!("cancelled {kind}")
    }

    fn inputs(&self) -> usize {
        3
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 100]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[1], x[1] * T::from(0.5)]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        let (s, constant) = (z[0], T::from);
        let next = match self.kind {
            Kind::Plain => s + x[0] - x[0],
            Kind::Decayed => s * constant(0.9) + x[0] - x[0],
            Kind::Products => s * constant(0.9) + x[0] * x[2] - x[2] * x[0],
            Kind::Reflected => x[0] - (x[0] - s),
            Kind::Inverse => s * constant(0.5) + x[0] - x[0] + constant(1.0) / x[0],
            Kind::Coupled => {
                let a = s * constant(0.5) + z[1] * x[2] + x[0] * x[2] - x[2] * x[0];
                return vec![a, z[1] * constant(0.25) + s * constant(0.1)];
            }
        };
        vec![next, z[1]]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let usual = sign(random) * decade(random, -3.0, 3.0);
        let large = sign(random) * decade(random, -200.0, 300.0);
        let factor = match self.kind {
            Kind::Coupled => random.uniform(-0.5, 0.5),
            _ => sign(random) * decade(random, -5.0, 5.0),
        };
        vec![random.pick(&[usual, usual, large]), random.uniform(-2.0, 2.0), factor]
    }
}
