//! Gradient descent over data in several styles: no loop over data remains in any of them.

use std::error::Error;

use phigrad::internals::{LoopForm, Tuning};
use phigrad::{Tape, Var};

/// Pairs of a regressor and a response.
type Data = [(f64, f64)];
/// A training run of some epochs from the rate and the first weight to the final loss.
type Run = fn(&[Var], &Data, usize) -> Var;

fn data(rows: usize) -> Vec<(f64, f64)> {
    let row = |i: usize| {
        let x = (i * 37 % 101) as f64 / 50.0 - 1.0;
        (x, 0.7 * x + 0.1 * ((i * 13 % 7) as f64 - 3.0))
    };
    (0..rows).map(row).collect()
}

fn loss(data: &Data, line: impl Fn(f64) -> Var) -> Var {
    let squares = data.iter().map(|&(x, y)| (line(x) - y).powi(2));
    squares.fold(Var::from(0.0), |sum, square| sum + square) / data.len() as f64
}

fn sums(v: &[Var], data: &Data, epochs: usize) -> Var {
    let mut w = v[1];
    for _ in 0..epochs {
        let mut slope = Var::from(0.0);
        for &(x, y) in data {
            slope += (w * x - y) * x;
        }
        w -= v[0] * slope / data.len() as f64;
    }
    loss(data, |x| w * x)
}

fn residuals(v: &[Var], data: &Data, epochs: usize) -> Var {
    let mut w = v[1];
    for _ in 0..epochs {
        let residuals: Vec<Var> = data.iter().map(|&(x, y)| w * x - y).collect();
        let mut slope = Var::from(0.0);
        for (residual, (x, _)) in residuals.iter().zip(data) {
            slope += *residual * *x;
        }
        w -= v[0] * slope / data.len() as f64;
    }
    loss(data, |x| w * x)
}

fn predictions(v: &[Var], data: &Data, epochs: usize) -> Var {
    let mut w = v[1];
    for _ in 0..epochs {
        let predictions: Vec<Var> = data.iter().map(|&(x, _)| w * x).collect();
        let errors: Vec<Var> = predictions.iter().zip(data).map(|(p, (_, y))| *p - *y).collect();
        let slopes: Vec<Var> = errors.iter().zip(data).map(|(error, (x, _))| *error * *x).collect();
        let slope = slopes.iter().fold(Var::from(0.0), |sum, slope| sum + *slope);
        w -= v[0] * slope / data.len() as f64;
    }
    loss(data, |x| w * x)
}

fn copies(v: &[Var], data: &Data, epochs: usize) -> Var {
    let (mut w, mut b) = (v[1], v[1] * 0.5);
    for _ in 0..epochs {
        let (mut next_w, mut next_b) = (w, b);
        for &(x, y) in data {
            let error = w * x + b - y;
            next_w -= v[0] * error * x / data.len() as f64;
            next_b -= v[0] * error / data.len() as f64;
        }
        (w, b) = (next_w, next_b);
    }
    loss(data, |x| w * x + b)
}

fn momentum(v: &[Var], data: &Data, epochs: usize) -> Var {
    let (mut w, mut speed) = (v[1], Var::from(0.0));
    for _ in 0..epochs {
        let slope = data.iter().fold(Var::from(0.0), |sum, &(x, y)| sum + (w * x - y) * x);
        speed = speed * 0.9 - v[0] * slope / data.len() as f64;
        w += speed;
    }
    loss(data, |x| w * x)
}

#[test]
fn no_loop_over_data_remains() -> Result<(), Box<dyn Error>> {
    let runs: [(&str, Run); 5] = [
        ("sums", sums),
        ("residuals", residuals),
        ("predictions", predictions),
        ("copies", copies),
        ("momentum", momentum),
    ];
    for (name, run) in runs {
        let rows = data(80);
        let program = |v: &[Var]| run(v, &rows, 200);
        let builder = || {
            let builder = Tape::builder().hot_threshold(u32::MAX).background(false);
            builder.tuning(Tuning::with_loops(LoopForm::Closed))
        };
        let (tape, kernel) = (builder().record(program), builder().record(program));
        kernel.value_and_grad(&[0.1, 0.5])?;
        kernel.compile()?;
        assert!(kernel.report().open_loops.is_empty(), "{name}: {}", kernel.report());
        for x in [[0.1, 0.3], [0.5, -2.0], [1.0, 0.75], [1e-3, 10.0], [0.0, 1.0]] {
            let (value, partials) = tape.value_and_grad(&x)?;
            let (found, gradient) = kernel.value_and_grad(&x)?;
            let pairs = [(found, value), (gradient[0], partials[0]), (gradient[1], partials[1])];
            let is_like = |(a, b): (f64, f64)| (a - b).abs() <= 1e-11 * b.abs().max(1e-3);
            assert!(pairs.into_iter().all(is_like), "{name} at {x:?}: {pairs:?}");
        }
        let served = || kernel.report().kernel_calls;
        let before = served();
        kernel.value_and_grad(&[0.1, 0.3])?;
        assert_eq!(served(), before + 1, "{name}: {}", kernel.report());
    }
    Ok(())
}

#[test]
fn alternating_operands_are_one_iteration() -> Result<(), Box<dyn Error>> {
    type Nest = fn(&[Var]) -> Var;
    let programs: [(&str, Nest); 3] = [
        ("products", |x| (0..30).fold(x[0], |s, _| (0..33).fold(s - x[1], |s, _| s * x[0] * x[2]))),
        ("three", |x| {
            (0..20).fold(x[0], |s, _| (0..21).fold(s * x[1], |s, _| s + x[0] + x[1] + x[2]))
        }),
        ("with a number", |x| {
            (0..30).fold(x[0], |s, _| (0..33).fold(s - x[1], |s, _| s * x[2] * 1.25))
        }),
    ];
    for (name, program) in programs {
        let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
        let (tape, kernel) = (builder().record(program), builder().record(program));
        kernel.value_and_grad(&[1.1, 0.25, 0.9])?;
        kernel.compile()?;
        assert!(kernel.report().open_loops.is_empty(), "{name}: {}", kernel.report());
        for x in [[1.1, 0.25, 0.9], [1.0, 0.5, 0.8], [1.25, -0.5, 0.8]] {
            let (value, partials) = tape.value_and_grad(&x)?;
            let (found, gradient) = kernel.value_and_grad(&x)?;
            let pairs = core::iter::zip(gradient, partials).chain([(found, value)]);
            let mut pairs = pairs.map(|(a, b)| ((a - b).abs() <= 1e-11 * b.abs(), a, b));
            assert!(pairs.all(|(is_like, ..)| is_like), "{name} at {x:?}");
        }
    }
    Ok(())
}

#[test]
fn saved_values_of_inner_loops_are_read_in_place() -> Result<(), Box<dyn Error>> {
    let program = |x: &[Var]| {
        let mut t = x[0];
        let mut all = Vec::new();
        for _ in 0..12 {
            let mut steps = Vec::new();
            for _ in 0..9 {
                t = (t * x[1]).sin();
                steps.push(t);
            }
            all.push(steps[3] * 2.0);
        }
        all.iter().fold(Var::from(0.0), |sum, w| sum + *w * *w)
    };
    let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
    let (tape, kernel) = (builder().record(program), builder().record(program));
    kernel.value_and_grad(&[0.5, 0.9])?;
    kernel.compile()?;
    for x in [[0.5, 0.9], [0.25, 1.5], [-2.0, 0.75]] {
        let (value, partials) = tape.value_and_grad(&x)?;
        let (found, gradient) = kernel.value_and_grad(&x)?;
        let pairs = core::iter::zip(gradient, partials).chain([(found, value)]);
        let mut pairs = pairs.map(|(a, b)| (a - b).abs() <= 1e-12 * b.abs().max(1e-3));
        assert!(pairs.all(|is_like| is_like), "{x:?}");
    }
    Ok(())
}
