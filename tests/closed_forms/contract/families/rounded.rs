//! Coefficients that functions compute before the loop, which round them.

use phigrad::Var;
use phigrad::internals::Random;

use super::super::number::Number;
use super::{Family, Reference, decade, table};

table![
    Rounded { kind: Kind::Decay },
    Rounded { kind: Kind::Driven },
    Rounded { kind: Kind::Logistic },
    Rounded { kind: Kind::Logarithm },
];

enum Kind {
    Decay,
    Driven,
    Logistic,
    Logarithm,
}

/// y ← a·y + b, of which a and b are functions of inputs.
struct Rounded {
    kind: Kind,
}

impl Rounded {
    fn coefficients<T: Number>(&self, x: &[T]) -> [T; 2] {
        let one = T::from(1.0);
        match self.kind {
            Kind::Decay => [(-x[0]).exponential(), T::from(0.0)],
            Kind::Driven => [(-x[0]).exponential(), (x[1] * T::from(0.5)).exponential()],
            Kind::Logistic => [one / (one + (x[0] * x[1]).exponential()), x[1]],
            Kind::Logarithm => [(one + x[0]).logarithm() + T::from(0.5), x[1] + one],
        }
    }
}

impl Family for Rounded {
    fn name(&self) -> String {
        let kind = match self.kind {
            Kind::Decay => "exp(-r)",
            Kind::Driven => "exp(-r), driven by exp(s/2)",
            Kind::Logistic => "1/(1 + exp(r·s))",
            Kind::Logarithm => "ln(1 + r) + 1/2",
        };
        format!("coefficient {kind}")
    }

    fn inputs(&self) -> usize {
        3
    }

    fn trips(&self) -> &'static [usize] {
        &[40, 300, 1500]
    }

    fn reference(&self) -> Reference {
        Reference::Steps
    }

    fn bits(&self) -> usize {
        320
    }

    /// The coefficients are states that do not change.
    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        let [a, b] = self.coefficients(x);
        vec![x[2], a, b]
    }

    fn step<T: Number>(&self, _: &[T], z: &[T], _: usize) -> Vec<T> {
        vec![z[0] * z[1] + z[2], z[1], z[2]]
    }

    fn run(&self, trips: usize, x: &[Var]) -> Var {
        let [a, b] = self.coefficients(x);
        (0..trips).fold(x[2], |y, _| y * a + b)
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let rate = match self.kind {
            Kind::Logarithm => random.uniform(0.05, 0.648),
            _ => decade(random, -4.0, 0.0),
        };
        vec![rate, random.uniform(0.1, 1.0), random.uniform(0.5, 2.0)]
    }
}
