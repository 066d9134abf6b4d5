//! Linear algebra on slices of `Var`: derivatives of the first and second order against differences
//! and identities, on the tape and by kernels.

#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

mod cholesky;
#[cfg(feature = "linalg")]
mod eigenvalues;
#[cfg(feature = "linalg")]
mod factorisations;
mod products;
mod shapes;
#[cfg(feature = "linalg")]
mod singular;
mod stable;

use phigrad::internals::Random;
use phigrad::{Numerics, Tape, TapeBuilder, Var};

/// Both options for rounding.
const NUMERICS: [Numerics; 2] = [Numerics::Exact, Numerics::Real];

/// A builder of functions that are compiled only on request.
fn manual(numerics: Numerics) -> TapeBuilder {
    Tape::builder().hot_threshold(u32::MAX).background(false).numerics(numerics)
}

/// Numbers from -1 to 1.
fn vector(random: &mut Random, length: usize) -> Vec<f64> {
    (0..length).map(|_| random.uniform(-1.0, 1.0)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn largest(numbers: &[f64]) -> f64 {
    numbers.iter().fold(1.0, |most, number| most.max(number.abs()))
}

/// Asserts that numbers are near, relative to the largest of them.
fn assert_near(name: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{name}");
    let bound = tolerance * largest(expected);
    let is_near = |(one, other): (&f64, &f64)| (one - other).abs() <= bound;
    assert!(found.iter().zip(expected).all(is_near), "{name}: {found:?} {expected:?}");
}

/// The derivative along `v` by differences of the fourth order.
fn difference(f: impl Fn(&[f64]) -> Vec<f64>, x: &[f64], v: &[f64]) -> Vec<f64> {
    let step = 1e-3;
    let at = |t: f64| f(&x.iter().zip(v).map(|(x, v)| x + t * step * v).collect::<Vec<_>>());
    let values = [at(-2.0), at(-1.0), at(1.0), at(2.0)];
    let derivative = |i| {
        let [a, b, c, d] = [0, 1, 2, 3].map(|k| values[k][i]);
        (a - d + 8.0 * (c - b)) / (12.0 * step)
    };
    (0..values[0].len()).map(derivative).collect()
}

/// A smooth function of all outputs.
fn combined(y: &[Var]) -> Var {
    y.iter().zip(1..).map(|(&y, number)| (y * (0.3 + 0.1 * f64::from(number % 7))).sin()).sum()
}

/// Checks outputs and derivatives of `f` at several points of `point`, by differences, and kernels
/// against the tape. All points have one path.
fn check<F>(name: &str, f: F, point: impl Fn(&mut Random) -> Vec<f64>)
where
    F: Fn(&[Var]) -> Vec<Var> + Clone,
{
    let of = f.clone();
    let scalar = move |x: &[Var]| combined(&of(x));
    let tape = Tape::builder().tape_only().numerics(Numerics::Exact).record(f.clone());
    let scalar_tape = Tape::builder().tape_only().numerics(Numerics::Exact).record(scalar.clone());
    let mut random = Random::new(3);
    for _ in 0..3 {
        let x = point(&mut random);
        let v = vector(&mut random, x.len());
        let values = |x: &[f64]| tape.eval(x).unwrap();
        let w = vector(&mut random, values(&x).len());
        let (forward, reverse) = (tape.jvp(&x, &v).unwrap(), tape.vjp(&x, &w).unwrap());
        assert_near(name, &forward, &difference(values, &x, &v), 1e-7);
        let (one, other) = (dot(&forward, &w), dot(&v, &reverse));
        assert!((one - other).abs() <= 1e-11 * largest(&reverse), "{name}: {one} {other}");
        let gradient = |x: &[f64]| scalar_tape.grad(x).unwrap();
        let product = scalar_tape.hvp(&x, &v).unwrap();
        assert_near(name, &product, &difference(gradient, &x, &v), 1e-7);
    }
    for numerics in NUMERICS {
        let (vectors, scalars) = (manual(numerics).record(&f), manual(numerics).record(&scalar));
        for round in 0..6 {
            let x = point(&mut random);
            let v = vector(&mut random, x.len());
            let w = vector(&mut random, tape.eval(&x).unwrap().len());
            let results = [
                (vectors.eval(&x), tape.eval(&x)),
                (vectors.jvp(&x, &v), tape.jvp(&x, &v)),
                (vectors.vjp(&x, &w), tape.vjp(&x, &w)),
                (scalars.grad(&x), scalar_tape.grad(&x)),
                (scalars.hvp(&x, &v), scalar_tape.hvp(&x, &v)),
            ];
            for (number, (found, expected)) in results.into_iter().enumerate() {
                let (found, expected) = (found.unwrap(), expected.unwrap());
                // Derivatives of the second order are not added up in the order of the tape.
                if numerics == Numerics::Exact && number < 4 {
                    assert_eq!(found, expected, "{name}");
                }
                assert_near(name, &found, &expected, 1e-11);
            }
            if round == 0 {
                vectors.compile().unwrap();
                scalars.compile().unwrap();
            }
        }
        let reports = [vectors.report(), scalars.report()];
        assert_eq!(reports.each_ref().map(|report| report.paths), [1, 1], "{name}");
        let calls = reports.each_ref().map(|report| report.kernel_calls);
        assert_eq!(calls, [15, 10], "{name}: {}", reports[0]);
    }
}
