//! Three small programs: the function on plain numbers, its gradient on the
//! tape, and its gradient in the kernel.
//!
//! Run it with `cargo bench --bench gradient`.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use num_traits::Float;
use phigrad::{Tape, Var};

criterion_group!(benches, gradients);
criterion_main!(benches);

/// A program for plain and for traced numbers, as a user writes it once.
trait Program {
    const NAME: &'static str;
    /// The number of inputs.
    const INPUTS: usize;

    fn run<T: Float>(x: &[T]) -> T;
}

/// Arithmetic only.
struct Rosenbrock;

impl Program for Rosenbrock {
    const NAME: &'static str = "rosenbrock";
    const INPUTS: usize = 64;

    fn run<T: Float>(x: &[T]) -> T {
        let hundred = constant::<T>(100.0);
        x.windows(2).fold(T::zero(), |sum, pair| {
            let (valley, wall) = (T::one() - pair[0], pair[1] - pair[0] * pair[0]);
            sum + valley * valley + hundred * wall * wall
        })
    }
}

/// Calls of mathematical functions: the loss of a small neural network.
struct Network;

impl Program for Network {
    const NAME: &'static str = "network";
    /// Eight hidden units of two inputs and a bias, then their weights.
    const INPUTS: usize = 32;

    fn run<T: Float>(weights: &[T]) -> T {
        let (hidden, output) = weights.split_at(24);
        (0..8).fold(T::zero(), |loss, i| {
            let (a, b) = (constant::<T>(0.3 * f64::from(i)), constant::<T>(1.0 - f64::from(i)));
            let units = hidden.chunks(3).zip(output);
            let answer = units.fold(T::zero(), |sum, (unit, &weight)| {
                sum + weight * (unit[0] * a + unit[1] * b + unit[2]).tanh()
            });
            let error = answer - (a * b).sin();
            loss + error * error
        })
    }
}

/// A guard on every step: Newton's method until it has converged.
struct Newton;

impl Program for Newton {
    const NAME: &'static str = "newton";
    const INPUTS: usize = 2;

    /// The root of y³ + x₀·y = x₁.
    fn run<T: Float>(x: &[T]) -> T {
        let (three, tiny) = (constant::<T>(3.0), constant::<T>(1e-12));
        let mut y = x[1];
        for _ in 0..50 {
            let step = (y * y * y + x[0] * y - x[1]) / (three * y * y + x[0]);
            y = y - step;
            if step.abs() < tiny {
                break;
            }
        }
        y
    }
}

fn constant<T: Float>(value: f64) -> T {
    T::from(value).unwrap_or_else(T::nan)
}

fn gradients(criterion: &mut Criterion) {
    bench::<Rosenbrock>(criterion);
    bench::<Network>(criterion);
    bench::<Newton>(criterion);
}

fn bench<P: Program>(criterion: &mut Criterion) {
    let x: Vec<f64> = (0..P::INPUTS).map(|i| 1.0 + 0.5 * (i as f64).sin()).collect();
    let mut gradient = vec![0.0; P::INPUTS];
    let mut group = criterion.benchmark_group(P::NAME);
    group.bench_function(BenchmarkId::from_parameter("primal"), |bencher| {
        bencher.iter(|| P::run(black_box(&x)));
    });
    let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| P::run(x));
    group.bench_function(BenchmarkId::from_parameter("tape"), |bencher| {
        bencher.iter(|| f.grad_into(black_box(&x), black_box(&mut gradient)));
    });
    // The calls above have recorded the path; a benchmark filter may have left
    // them out.
    let compiled = f.grad_into(&x, &mut gradient).and_then(|()| f.compile());
    if let Err(error) = compiled {
        eprintln!("{}: no kernel to measure: {error}", P::NAME);
        return;
    }
    group.bench_function(BenchmarkId::from_parameter("kernel"), |bencher| {
        bencher.iter(|| f.grad_into(black_box(&x), black_box(&mut gradient)));
    });
    group.finish();
}
